/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_PROCESS_QUERY_H
#define COLLECT_PROCESS_QUERY_H

/*
 * Reads those facts about a process that need a lock of its memory map: its command line, its proportional
 * share, its mappings. A process that hangs with the lock held does not answer. So each read has a time
 * limit, all reads of one snapshot have a common one, and a process that did not answer is not tried again.
 */

#include <sys/types.h>

#include "base/hash_map.h"
#include "model/overview/mapping.h"
#include "model/overview/overview.h"

struct process_queryer {
    unsigned each_ms; /* limit for one read */
    unsigned left_ms; /* limit for all reads still to come; set before each snapshot */
    struct map mute;  /* pid and start of the processes that did not answer */
};

void process_queryer_release(struct process_queryer *a);
/** Sets `command`, with `pss` also `pss_bytes`, and `query_result`. */
void process_query(struct process_queryer *a, struct overview_process *p, bool pss);
/**
 * Reads the mappings with their resident memory. `query_result` of the process tells the result: with OVERVIEW_MUTE
 * or OVERVIEW_REFUSED there are none.
 */
void process_query_maps(struct process_queryer *a, struct overview_process *p, struct mappings *out);
/** Reads the bytes of transparent huge pages that are mapped whole. Returns false if there was no answer. */
bool process_query_huge(struct process_queryer *a, const struct overview_process *p, uint64_t *anon_bytes);
/** Parses /proc/PID/smaps, or maps, which has no figures; damaged parts are left out. */
void mappings_parse(struct mappings *out, const char *text);
/** Parses Pss in /proc/PID/smaps_rollup. */
bool process_parse_rollup(const char *text, uint64_t *pss_bytes);

#endif
