/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_TRACE_READER_H
#define COLLECT_TRACE_READER_H

/*
 * Reads the ring buffers of a tracing instance, one for each CPU, and gives the records of all CPUs in the order of
 * their times. The instance's clock must be "mono". A step reads each CPU's buffer, a limited number of pages, and
 * gives the records that were at least 0.1 s old when it began; younger ones wait. So records come in order, unless a
 * CPU takes longer than 0.1 s to write one: records that are given after a younger one are counted as late.
 *
 * It reads pages that were kept in files in the same way, with any clock: then all records are given by one step.
 *
 * Runs in: the tool, as root if not from files. Threads: one. Owns: its descriptors and copies of pages, until
 * trace_reader_close().
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
    /* of what pages say: events that are missing before them, and pages that do not say how many */
    uint64_t lost, lost_unknown;
};

/** The pages of one CPU in a file, from `at` up to `end`. The descriptor stays the caller's. */
struct trace_kept_pages {
    uint32_t cpu;
    int fd;
    uint64_t at, end;
};

/** A record; its data are valid during the call. */
typedef void trace_record_fn(void *arg, const struct trace_record *r, uint32_t cpu);

/** Returns 0, or -errno with a line. */
int trace_reader_open(struct trace_reader **out, const struct trace_instance *t, struct error *e);
/** The same for pages in files. `layout`: the text of events/header_page. */
int trace_reader_open_kept(struct trace_reader **out, const char *layout,
                           const struct trace_kept_pages *pages, size_t n, struct error *e);
void trace_reader_close(struct trace_reader *r); /* NULL is allowed */

/** Takes a page that was read, before its records are given. */
typedef void trace_page_fn(void *arg, uint32_t cpu, const void *page, size_t bytes);
/** Gives each page that is read to `f`. NULL: to nobody. */
void trace_reader_keep(struct trace_reader *r, trace_page_fn *f, void *arg);

/** Reads what has come. `last`: tracing is off, so that all records are given. Returns 0, or -errno of a read; of files
 * also -EBADMSG: the pages of a CPU are not in order, or the last one is not whole. */
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
