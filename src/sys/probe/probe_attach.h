/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_PROBE_ATTACH_H
#define SYS_PROBE_ATTACH_H

/*
 * Puts uprobes on the places of a list of probes, with the programs of bpf/probe.bpf.h.
 *
 * Runs in: the tool, as root. Threads: one. The links belong to the session.
 */

#include "sys/probe/probe_list.h"
#include "sys/session.h"

/** Before loading: makes room for the places of static probes. Returns 0, or -errno with a line. */
int probes_ready(struct sys_session *s, const struct probe_list *probes, struct error *e);
/** After loading. Returns 0, or -errno with a line; -EOPNOTSUPP: this kernel has no uprobes. */
int probes_attach(struct sys_session *s, const struct probe_list *probes, struct error *e);
/** Attaches one program to a place. `id`: its cookie. Returns the link, or NULL: errno says why. */
struct bpf_link *probe_attach_one(struct sys_session *s, const char *program, const char *file,
                                  uint64_t offset, uint64_t semaphore_offset, uint64_t id);

#endif
