/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_TRACE_READER_H
#define COLLECT_TRACE_READER_H

/*
 * Reads the ring buffers of a tracing instance, one for each CPU, and gives the records of all CPUs in the order of
 * their times. The instance's clock must be "mono". A step reads each CPU's buffer, a limited number of pages, and
 * gives the records that were at least 0.1 s old when it began; younger ones wait. So records come in order, unless a
 * CPU takes longer than 0.1 s to write one: records that are given after a younger one are counted as late.
 *
 * Runs in: the tool, as root. Threads: one. Owns: its descriptors and copies of pages, until trace_reader_close().
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "collect/kernel/trace/trace_instance.h"
#include "collect/kernel/trace/trace_page.h"

struct trace_reader;

struct trace_reader_counts {
    uint64_t records, bytes;
    uint64_t late;         /* given after a younger one */
    uint64_t broken_pages; /* the rest of such a page is left out */
};

/** A record; its data are valid during the call. */
typedef void trace_record_fn(void *arg, const struct trace_record *r, uint32_t cpu);

/** Returns 0, or -errno with a line. */
int trace_reader_open(struct trace_reader **out, const struct trace_instance *t, struct error *e);
void trace_reader_close(struct trace_reader *r); /* NULL is allowed */

/** Reads what has come. `last`: tracing is off, so that all records are given. Returns 0, or -errno of a read. */
int trace_reader_step(struct trace_reader *r, bool last, trace_record_fn *f, void *arg);

/** While a record is given: the records of its CPU that follow it and have been read. */
struct trace_peek {
    struct trace_page at;
    const struct trace_held_page *page;
};
struct trace_peek trace_reader_peek(const struct trace_reader *r);
/** Takes the next of these. Returns false if there is none. */
bool trace_peek_next(const struct trace_reader *r, struct trace_peek *p, struct trace_record *out);

const struct trace_reader_counts *trace_reader_counts(const struct trace_reader *r);

#endif
