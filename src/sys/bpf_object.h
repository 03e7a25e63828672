/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_BPF_OBJECT_H
#define SYS_BPF_OBJECT_H

/*
 * A tool's BPF object: from the bytes embedded in the build to maps of the right size and variables shared
 * with the programs.
 */

#include "base/buf.h"
#include "sys/session.h"

/**
 * Appends an embedded object, in the form that libbpf opens, to `out`. Returns 0, -ENOMEM or -EIO (it is damaged).
 */
int bpf_object_inflate(const unsigned char *object, size_t bytes, struct buf *out);
/** Called before loading: gives maps and programs that are not used no memory. */
void bpf_object_size_maps(struct sys_session *s);
/**
 * Called after loading: maps the programs' variables, including s->state. Returns 0, or -errno with a line.
 */
int bpf_object_share(struct sys_session *s, struct error *e);
/** After that: the address of a variable of the programs that is not constant; NULL: none. */
void *bpf_object_shared(const struct sys_session *s, const char *name);
/** After loading: maps a section of variables of its own. Sets *bytes to its size. NULL, and errno: that failed. The
 * caller unmaps it. */
void *bpf_object_map_section(const struct sys_session *s, const char *section, size_t *bytes);
void bpf_object_close(struct sys_session *s);

#endif
