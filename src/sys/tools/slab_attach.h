/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_SLAB_ATTACH_H
#define SYS_SLAB_ATTACH_H

/*
 * The programs of bpf/slab.bpf.h, as attach methods use them.
 *
 * Runs in: the tool. Threads: one. Owns: nothing.
 */

#include "sys/session.h"

/** Sets the variables by which the programs find an object's cache. Called before they are loaded. */
void slab_attach_ready(struct sys_session *s);

/* clang-format off */
#define SLAB_PROGRAMS_BY_POSITION(prefix)                                                                    \
    {prefix "_kmalloc", "kmalloc", "call_site,ptr,bytes_req,bytes_alloc,gfp_flags", NULL, 0},                \
    {prefix "_cache_alloc", "kmem_cache_alloc", "call_site,ptr,s,gfp_flags", NULL, 0},                       \
    {prefix "_kfree", "kfree", "call_site,ptr", NULL, 0},                                                    \
    {prefix "_cache_free", "kmem_cache_free", "call_site,ptr,s", NULL, 0}
#define SLAB_PROGRAMS_BY_NAME                                                                                \
    {.program = "tp_kmalloc"}, {.program = "tp_cache_alloc"},                                                \
    {.program = "tp_kmalloc_node", .if_type = "trace_event_raw_kmem_alloc_node"},                            \
    {.program = "tp_cache_alloc_node", .if_type = "trace_event_raw_kmem_alloc_node"},                        \
    {.program = "tp_kfree"}, {.program = "tp_cache_free"}
#define SLAB_BY_POSITION(prefix) SYS_ATTACH(SLAB_PROGRAMS_BY_POSITION(prefix))
#define SLAB_BY_NAME SYS_ATTACH(SLAB_PROGRAMS_BY_NAME)
/* clang-format on */

#endif
