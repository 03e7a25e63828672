/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_OVERVIEW_READ_H
#define COLLECT_OVERVIEW_READ_H

/*
 * Reads a snapshot of the whole machine: all sources of struct overview, one after the other. What cannot be
 * read stays unknown and is named. No process can block it: see collect/process/processes.h and
 * collect/process/process_query.h.
 *
 * Runs in: the tool. Threads: one at a time. Owns: its data between snapshots, until overview_read_end().
 */

#include "collect/kernel/kmsg.h"
#include "collect/perf/perf_counters.h"
#include "collect/process/process_query.h"

struct overview_reader {
    struct kmsg log;
    struct perf_counters counters;
    int counters_bad; /* 0 or -errno */
    struct process_queryer asker;
    struct overview before; /* counters of the previous snapshot; boot_ns is 0 if there was none */
};

struct overview_wish {
    enum overview_sort sort;
    uint32_t top;                       /* length of each list; 0: all */
    bool pss;                           /* read it for the listed processes */
    bool (*has_tool)(const char *name); /* as in struct overview */
    unsigned ask_ms;                    /* time for reading what may block on a process, for all together */
};

void overview_read_begin(struct overview_reader *l);
void overview_read_end(struct overview_reader *l);
/** Reads only the counters, for comparison with the next snapshot. Returns 0 or -errno: no /proc. */
int overview_read_count(struct overview_reader *l);
/** Fills `m`, which the caller releases. Its rates cover the time since the previous snapshot. Returns 0, or
 * -errno as above. */
int overview_read(struct overview_reader *l, const struct overview_wish *wish, struct overview *m);

/** Reads the pools of hugetlbfs alone: `huge`, the smallest pages first. */
void overview_read_huge(struct overview *m);

#endif
