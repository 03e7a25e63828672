/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_MEMLEAK_LIVE_H
#define SYS_MEMLEAK_LIVE_H

/*
 * Rows of `allium sys memleak`: live objects, added up by stack, call or process.
 *
 * Runs in: the tool. Threads: one. Owns: the sums, until memleak_live_free().
 */

#include "sys/session.h"

enum memleak_column {
    MEMLEAK_SITE,
    MEMLEAK_PID,
    MEMLEAK_COMM,
    MEMLEAK_LIVE,
    MEMLEAK_OBJECTS,
    MEMLEAK_GROWTH,
    MEMLEAK_OLDEST,
    MEMLEAK_SIZES,
    MEMLEAK_STACK,
    MEMLEAK_COLUMNS
};

struct memleak_live;

void memleak_live_free(struct memleak_live *l); /* NULL is allowed */
/** Of struct sys_tool. */
void memleak_gather(struct sys_session *s);
void memleak_rest(struct sys_session *s, struct table *t);

#endif
