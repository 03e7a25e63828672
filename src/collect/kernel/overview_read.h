/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_OVERVIEW_READ_H
#define COLLECT_OVERVIEW_READ_H

/*
 * A look at the whole machine: all sources of struct overview, one after the other. What cannot be read is left unknown, and
 * said. No process can hold it up: see collect/process/processes.h and collect/process/process_query.h.
 *
 * Runs in: the tool. Threads: one at a time. Owns: what it keeps between looks, until machine_look_end().
 */

#include "collect/kernel/kmsg.h"
#include "collect/perf/perf_counters.h"
#include "collect/process/process_query.h"

struct machine_looker {
    struct kmsg log;
    struct counters counters;
    int counters_bad; /* 0 or -errno */
    struct process_asker asker;
    struct overview before; /* what is counted, at the look before; boot_ns is 0 when there was none */
};

struct machine_wish {
    enum overview_sort sort;
    uint32_t top;    /* of each list; 0: all */
    bool pss;        /* of the processes that are listed */
    unsigned ask_ms; /* for questions to processes, all together */
};

void machine_look_begin(struct machine_looker *l);
void machine_look_end(struct machine_looker *l);
/** Counts only, for the next look to be compared with. 0 or -errno: no /proc. */
int machine_look_count(struct machine_looker *l);
/** Fills `m`, which the caller releases; its rates are of the time since the look before. 0, or -errno as above. */
int machine_look(struct machine_looker *l, const struct machine_wish *wish, struct overview *m);

#endif
