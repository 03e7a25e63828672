/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_PROCESS_QUERY_H
#define COLLECT_PROCESS_QUERY_H

/*
 * What a process can only be asked with a lock of its memory map: its command line, its proportional share, its
 * mappings. Where it hangs with that lock, it does not answer. So each question has a time, all of one look have one
 * together, and who did not answer is not asked again.
 *
 * Runs in: the tool. Threads: one at a time. Owns: the list of mappings and their names, until process_maps_release().
 */

#include <sys/types.h>

#include "base/hash_map.h"
#include "model/overview/mapping.h"
#include "model/overview/overview.h"

struct process_queryer {
    unsigned each_ms; /* at most, for one question */
    unsigned left_ms; /* for all that are still to come; set before each look */
    struct map mute;  /* pid and start of those that did not answer */
};

void process_queryer_release(struct process_queryer *a);
/** Sets `command`, with `pss` also `pss_bytes`, and `asked`. */
void process_query(struct process_queryer *a, struct overview_process *p, bool pss);
/**
 * Its mappings, with what is resident. `asked` of the process says what came of it: with OVERVIEW_MUTE or
 * OVERVIEW_REFUSED there are none.
 */
void process_query_maps(struct process_queryer *a, struct overview_process *p, struct mappings *out);
/** /proc/PID/smaps, or maps, which has no figures; what is broken in it is left out. */
void mappings_parse(struct mappings *out, const char *text);
/** Pss of /proc/PID/smaps_rollup. */
bool process_parse_rollup(const char *text, uint64_t *pss_bytes);

#endif
