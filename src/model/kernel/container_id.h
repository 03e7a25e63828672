/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_CONTAINER_ID_H
#define MODEL_CONTAINER_ID_H

/*
 * The container that a cgroup is, told by the cgroup's path alone.
 *
 * Runs in: the tool. Threads: pure.
 */

#include <stdbool.h>
#include <stddef.h>

#define CONTAINER_ID_BYTES 64

/**
 * The innermost container of a path, short as people and their tools write it: twelve digits of an id of docker,
 * containerd, CRI-O, podman ("docker-4f2a…64 digits….scope", "/docker/4f2a…", "kubepods/…/4f2a…", "libpod-…"); or the
 * name, cut to fit, of LXC ("lxc/NAME", "lxc.payload.NAME") and of machines of systemd ("machine-NAME.scope"). False:
 * none; out is "" then.
 */
bool container_id_of(const char *path, char out[static CONTAINER_ID_BYTES]);

#endif
