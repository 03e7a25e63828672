/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_BLOCK_ATTACH_H
#define SYS_BLOCK_ATTACH_H

/*
 * The programs of bpf/blocks.bpf.h, as attach methods use them.
 *
 * Runs in: the tool. Threads: one. Owns: nothing.
 */

#include "sys/session.h"

/**
 * For a tool that follows blocks until they are freed: called before the programs are loaded. Returns -EOPNOTSUPP with
 * a line, which ends with the advice, if the method's programs cannot tell the frame of a block on this kernel.
 */
int block_attach_ready(const struct sys_session *s, struct error *e, const char *advice);

/* clang-format off */
#define BLOCK_PROGRAMS_BY_POSITION                                                                           \
    {"raw_alloc", "mm_page_alloc", "page,order,gfp_flags,migratetype", NULL, 0},                             \
    {"raw_free", "mm_page_free", "page,order", NULL, 0}
#define BLOCK_PROGRAMS_BY_NAME {.program = "tp_alloc"}, {.program = "tp_free"}
/* clang-format on */

#endif
