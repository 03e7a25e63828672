/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_MEMORY_PARSE_H
#define COLLECT_MEMORY_PARSE_H

/*
 * Parsers of the kernel's files about its own memory, which fill a struct memory_state. They are given texts, of this
 * kernel or of a recording. All accept any text: values that make no sense stay unknown, lines that should be
 * understood and are not count in `bad_lines`.
 *
 * Runs in: the tool. Threads: one at a time. Owns: nothing.
 */

#include "collect/kernel/kernel_state.h"
#include "model/kernel/memory_state.h"

/** Returns the text of a file; NULL: there is none. */
typedef const char *(*memory_text)(void *arg, const char *path);
/**
 * Parses all texts. `page_bytes` is used where the texts do not tell the size of a page, which meminfo and zoneinfo
 * together do. The caller releases `s` in any case.
 */
void memory_parse(struct memory_state *s, memory_text text, void *arg, uint64_t page_bytes);
/** As above, with the texts of one state. */
void memory_parse_state(struct memory_state *s, const struct kernel_state *texts, uint64_t page_bytes);

/* ---- the parts; NULL for a text that is missing ---- */

/** /proc/slabinfo, and the attributes of all caches (KERNEL_STATE_SLAB), from which the sizes of slabs come. */
void slab_state_parse(struct memory_state *s, const char *slabinfo, const char *attributes);
/** /proc/buddyinfo */
void buddyinfo_parse(struct memory_state *s, const char *text);
/** /proc/pagetypeinfo */
void pagetypeinfo_parse(struct memory_state *s, const char *text);
/** The watermarks of /proc/zoneinfo, and the number of CPUs. Zones without pages are left out. */
void zone_marks_parse(struct memory_state *s, const char *text);
/** /proc/vmallocinfo, with addresses as KERNEL_STATE_VMALLOC has them. */
void vmallocinfo_parse(struct memory_state *s, const char *text);
/** /proc/meminfo and /proc/vmstat */
void memory_figures_parse(struct memory_state *s, const char *meminfo, const char *vmstat);

#endif
