/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_BPF_OBJECT_H
#define SYS_BPF_OBJECT_H

/*
 * A tool's BPF object: from what the build embedded to maps of the size that is needed and variables that both sides
 * see.
 *
 * Runs in: the tool. Threads: one. Owns: s->object and s->shared, until bpf_object_close().
 */

#include "base/buf.h"
#include "sys/session.h"

/** The object as libbpf opens it, appended to `out`. 0, -ENOMEM or -EIO (it is damaged). */
int bpf_object_inflate(const struct sys_tool *tool, struct buf *out);
/** Before it is loaded: what is not used takes no room. */
void bpf_object_size_maps(struct sys_session *s);
/** After it is loaded: maps the programs' own variables, s->state among them. 0, or -errno with a line. */
int bpf_object_share(struct sys_session *s, struct error *e);
void bpf_object_close(struct sys_session *s);

#endif
