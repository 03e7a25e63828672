/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_KMSG_H
#define COLLECT_KMSG_H

/*
 * The OOM killer's lines in the kernel's log. The log is a ring: kills of long ago are not in it; what the kernel
 * counted is exact (OVERVIEW_OOM_KILLS). Anybody who may write into the log can put such lines there, but not as the
 * kernel's own: only those are taken.
 *
 * Runs in: the tool. Threads: one at a time. Owns: a log owns its descriptor and its kills, until kmsg_close().
 */

#include "model/overview/overview.h"

struct kmsg {
    int fd;                      /* -errno: it cannot be had */
    char trigger[64];            /* who asked for the memory, of the kill that is being told */
    int victim;                  /* of the line "oom-kill:" that came last; 0: none */
    char *cgroup;                /* of the same */
    struct overview_kills kills; /* oldest first; at_ns is not set */
    bool begun;                  /* the oldest record was seen */
    uint64_t
        since_ns; /* of the log's clock: what was before had been overwritten; 0: it has all from boot on */
};

void kmsg_open(struct kmsg *k);
void kmsg_close(struct kmsg *k);
/** Takes what is new in the log; never waits. 0 or -errno. */
int kmsg_read(struct kmsg *k);
/** One record, as /dev/kmsg has it. */
void kmsg_take(struct kmsg *k, const char *record);

#endif
