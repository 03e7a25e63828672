/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_PERF_RING_H
#define COLLECT_PERF_RING_H

/*
 * The ring of a perf event, as the kernel maps it: a page about it, then the records (perf_event_open(2)).
 *
 * Runs in: the tool. Threads: one for each ring. Owns: nothing; the mapping is the caller's.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/perf_event.h>

struct perf_ring {
    struct perf_event_mmap_page *page;
    size_t page_bytes, bytes; /* of the page about it; of the records' part, a power of two */
};

typedef void perf_ring_fn(void *arg, const struct perf_event_header *record);

/**
 * Hands out what was written since the last release; a record is whole, and valid within the call. `*tail` gets what to
 * release. False: what is there makes no sense, and the rest was passed over.
 */
bool perf_ring_read(const struct perf_ring *r, uint64_t *tail, perf_ring_fn *take, void *arg);
/** Makes room for the kernel. */
void perf_ring_release(const struct perf_ring *r, uint64_t tail);

#endif
