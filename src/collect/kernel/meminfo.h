/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_MEMINFO_H
#define COLLECT_MEMINFO_H

/*
 * Parsers of the kernel's files about the memory of the whole machine, which fill a struct overview. A value
 * that is missing in this kernel stays unknown. All accept any text.
 */

#include <stddef.h>

#include "model/overview/overview.h"

/** /proc/meminfo */
void meminfo_parse(struct overview *m, const char *text);
/** Parses /proc/vmstat; `page_bytes` is the size of a page. */
void vmstat_parse(struct overview *m, const char *text, uint64_t page_bytes);
/** Parses /proc/zoneinfo; zones without memory are left out. */
void zoneinfo_parse(struct overview *m, const char *text, uint64_t page_bytes);
/** /proc/swaps */
void swaps_parse(struct overview *m, const char *text);
/** /proc/pressure/NAME */
void pressure_parse(struct overview_pressure *p, const char *text);
/** /proc/slabinfo */
void slabinfo_parse(struct overview *m, const char *text, uint64_t page_bytes);
/** Parse /sys/devices/system/node/nodeN/meminfo, and numastat beside it. */
void node_meminfo_parse(struct overview_node *n, const char *text);
void node_numastat_parse(struct overview_node *n, const char *text);
/** Copies the word in brackets of "always [madvise] never"; "": none. */
void chosen_parse(const char *text, char *out, size_t size);

#endif
