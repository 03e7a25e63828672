/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_CONTAINER_ID_H
#define MODEL_CONTAINER_ID_H

/*
 * Finds the container of a cgroup from the cgroup's path alone.
 *
 * Runs in: the tool. Threads: pure.
 */

#include <stdbool.h>
#include <stddef.h>

#define CONTAINER_ID_BYTES 64

/**
 * Writes the short id of the innermost container in a path, as people and their tools write it: twelve digits
 * of an id of docker, containerd, CRI-O, podman ("docker-4f2a…64 digits….scope", "/docker/4f2a…",
 * "kubepods/…/4f2a…", "libpod-…"); or the name, cut to fit, of LXC ("lxc/NAME", "lxc.payload.NAME") and of
 * machines of systemd ("machine-NAME.scope"). Returns false, with `out` "", if there is none.
 */
bool container_id_of(const char *path, char out[static CONTAINER_ID_BYTES]);

#endif
