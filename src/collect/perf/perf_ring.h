/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_PERF_RING_H
#define COLLECT_PERF_RING_H

/*
 * The ring of a perf event, as the kernel maps it: a control page, then the records (perf_event_open(2)).
 *
 * Runs in: the tool. Threads: one for each ring. Owns: nothing; the mapping belongs to the caller.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/perf_event.h>

struct perf_ring {
    struct perf_event_mmap_page *page;
    size_t page_bytes, bytes; /* of the control page; of the records, a power of two */
};

typedef void perf_ring_fn(void *arg, const struct perf_event_header *record);

/**
 * Reports the records since the last release; each is whole, and valid within the call. `*tail` is the
 * argument for the release. Returns false if the data is inconsistent; then the rest was skipped.
 */
bool perf_ring_read(const struct perf_ring *r, uint64_t *tail, perf_ring_fn *take, void *arg);
/** Gives the space back to the kernel. */
void perf_ring_release(const struct perf_ring *r, uint64_t tail);

#endif
