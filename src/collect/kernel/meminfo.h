/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_MEMINFO_H
#define COLLECT_MEMINFO_H

/*
 * The kernel's texts about the machine's memory as a whole, each put into a struct overview: what a line of it is not
 * known, or missing in this kernel, leaves its figure unknown. All take text that nobody has checked.
 *
 * Runs in: the tool. Threads: pure.
 */

#include <stddef.h>

#include "model/overview/overview.h"

/** /proc/meminfo */
void meminfo_parse(struct overview *m, const char *text);
/** /proc/vmstat; pages of that many bytes. */
void vmstat_parse(struct overview *m, const char *text, uint64_t page_bytes);
/** /proc/zoneinfo; zones without memory are left out. */
void zoneinfo_parse(struct overview *m, const char *text, uint64_t page_bytes);
/** /proc/swaps */
void swaps_parse(struct overview *m, const char *text);
/** /proc/pressure/NAME */
void pressure_parse(struct overview_pressure *p, const char *text);
/** /proc/slabinfo */
void slabinfo_parse(struct overview *m, const char *text, uint64_t page_bytes);
/** /sys/devices/system/node/nodeN/meminfo, and numastat beside it. */
void node_meminfo_parse(struct overview_node *n, const char *text);
void node_numastat_parse(struct overview_node *n, const char *text);
/** The word in brackets of "always [madvise] never"; "": none. */
void chosen_parse(const char *text, char *out, size_t size);

#endif
