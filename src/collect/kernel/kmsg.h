/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_KMSG_H
#define COLLECT_KMSG_H

/*
 * The OOM killer's lines in the kernel log. The log is a ring, so kills of long ago are missing; the kernel's
 * counter (OVERVIEW_OOM_KILLS) is exact. Anybody who may write to the log can imitate such lines, but not as
 * messages of the kernel: only these are used.
 *
 * Runs in: the tool. Threads: one at a time.
 * Owns: a log owns its descriptor and its kills, until kmsg_close().
 */

#include "model/overview/overview.h"

struct kmsg {
    int fd;                      /* -errno: it could not be opened */
    char trigger[64];            /* the process that requested the memory, of the kill being reported */
    int victim;                  /* of the last line "oom-kill:"; 0: none */
    char *cgroup;                /* of the same line */
    struct overview_kills kills; /* oldest first; at_ns is not set */
    bool begun;                  /* the oldest record was read */
    /* on the log's clock: earlier records were overwritten; 0: it is complete since boot */
    uint64_t since_ns;
};

void kmsg_open(struct kmsg *k);
void kmsg_close(struct kmsg *k);
/** Reads new records of the log; never waits. Returns 0 or -errno. */
int kmsg_read(struct kmsg *k);
/** Parses one record, as /dev/kmsg has it. */
void kmsg_take(struct kmsg *k, const char *record);

#endif
