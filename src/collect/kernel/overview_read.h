/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_OVERVIEW_READ_H
#define COLLECT_OVERVIEW_READ_H

/*
 * A look at the whole machine: all sources of struct overview, one after the other. What cannot be read is left
 * unknown, and said. No process can hold it up: see collect/process/processes.h and collect/process/process_query.h.
 *
 * Runs in: the tool. Threads: one at a time. Owns: what it keeps between looks, until overview_read_end().
 */

#include "collect/kernel/kmsg.h"
#include "collect/perf/perf_counters.h"
#include "collect/process/process_query.h"

struct overview_reader {
    struct kmsg log;
    struct perf_counters counters;
    int counters_bad; /* 0 or -errno */
    struct process_queryer asker;
    struct overview before; /* what is counted, at the look before; boot_ns is 0 when there was none */
};

struct overview_wish {
    enum overview_sort sort;
    uint32_t top;    /* of each list; 0: all */
    bool pss;        /* of the processes that are listed */
    unsigned ask_ms; /* for questions to processes, all together */
};

void overview_read_begin(struct overview_reader *l);
void overview_read_end(struct overview_reader *l);
/** Counts only, for the next look to be compared with. 0 or -errno: no /proc. */
int overview_read_count(struct overview_reader *l);
/** Fills `m`, which the caller releases; its rates are of the time since the look before. 0, or -errno as above. */
int overview_read(struct overview_reader *l, const struct overview_wish *wish, struct overview *m);

#endif
