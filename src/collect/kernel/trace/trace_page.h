/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_TRACE_PAGE_H
#define COLLECT_TRACE_PAGE_H

/*
 * The records in one page of the kernel's ring buffer (tracefs, per_cpu/cpuN/trace_pipe_raw): a header, then records,
 * each with the time since the previous one. The layout is that of kernel/trace/ring_buffer.c; where the header's
 * fields are comes from events/header_page.
 *
 * Runs in: the tool. Threads: any. Owns: nothing; records point into the page.
 * The page may hold anything: no record reaches beyond its end.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Where the fields of a page's header are, in bytes. */
struct trace_page_layout {
    uint32_t time_at; /* 8 bytes: the time of the first record, in the units of the trace clock */
    uint32_t commit_at, commit_bytes; /* the bytes of records, and flags */
    uint32_t data_at;                 /* the first record */
    uint32_t page_bytes;
};

/** The number of events that were lost is not known. */
#define TRACE_PAGE_LOST_UNKNOWN UINT64_MAX

struct trace_page {
    const uint8_t *at, *end;
    uint64_t time;
    uint64_t lost; /* events between the previous page and this one, or TRACE_PAGE_LOST_UNKNOWN */
};

struct trace_record {
    uint64_t time;
    const uint8_t *data;
    uint32_t bytes;
};

/** Reads the text of events/header_page. Returns 0, or -EPROTO: a field that is needed is missing. */
int trace_page_layout_parse(struct trace_page_layout *l, const char *text);

/** Begins at the first record. Returns 0, or -EBADMSG: this is no page. */
int trace_page_begin(struct trace_page *p, const void *page, size_t bytes, const struct trace_page_layout *l);
/** Takes the next record. Returns 1, 0 at the end of the page, or -EBADMSG: what follows is no record. */
int trace_page_next(struct trace_page *p, struct trace_record *r);

#endif
