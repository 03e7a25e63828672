/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/kernel/trace/trace_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/read_file.h"
#include "base/sigsafe/clock_ns.h"
#include "base/vec.h"

#define FORMAT_BYTES_MAX (64u << 10)
#define PAGES_AT_ONCE    8192u /* of one CPU in a step: it may write faster than it is read */
/*
 * Records that are younger wait. A CPU that is interrupted while it writes a record, or whose virtual machine does not
 * run then, shows that record later; and what belongs to a record, such as its stack, comes behind it.
 */
#define LATE_NS 100000000u
/* Pages that are read ahead from a file, in which a record finds what belongs to it. */
#define AHEAD 16u

/* A copy of a page that has records left, or that is not used now. */
struct trace_held_page {
    struct trace_held_page *next;
    size_t bytes;
    uint8_t *data;
};

/*
 * What describes pages is not beside them: a list of pages is then followed without a miss of the cache and of the TLB
 * at each, which took 1.5 us. Chunks are of the size of a huge page.
 */
#define CHUNK_BYTES (2u << 20)
#define CACHE_LINE  64u
struct page_chunk {
    struct page_chunk *next;
    uint8_t *data;
    struct trace_held_page pages[];
};

/* One CPU's buffer. */
struct cpu {
    uint32_t number;
    int fd;
    bool is_kept; /* in a file */
    uint64_t file_at, file_end;
    uint64_t page_ns; /* the time of the page that was read last from a file */
    struct trace_held_page *first, **end;
    uint32_t n_held;
    struct trace_page at; /* in the first page */
    struct trace_record next;
    bool has_next;
};

struct trace_reader {
    struct VEC(struct cpu) cpus;
    struct page_chunk *chunks;
    struct trace_held_page *unused;
    struct trace_page_layout layout;
    struct trace_reader_counts counts;
    const struct cpu *given; /* whose record is given */
    uint64_t given_ns;       /* its time */
    trace_page_fn *keep;
    void *keep_arg;
};

static int unknown_layout(int bad, struct error *e)
{
    return error_set(e, -bad,
                     "the layout of the kernel's trace buffers (tracefs, events/header_page) is not known");
}

static int read_layout(struct trace_reader *r, const struct trace_instance *t, struct error *e)
{
    struct buf text = BUF_INIT;
    int bad = file_read_at(t->tracefs_fd, "events/header_page", FORMAT_BYTES_MAX, &text);
    if (!bad)
        bad = trace_page_layout_parse(&r->layout, buf_str(&text));
    buf_release(&text);
    return bad ? unknown_layout(bad, e) : 0;
}

/* There is a folder for every CPU that the machine may have. */
static int open_cpus(struct trace_reader *r, const struct trace_instance *t, struct error *e)
{
    char path[64];
    long possible = sysconf(_SC_NPROCESSORS_CONF);
    for (uint32_t number = 0; number < (uint32_t)possible; number++) {
        snprintf(path, sizeof(path), "per_cpu/cpu%u/trace_pipe_raw", number);
        int fd = openat(t->fd, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0 && errno == ENOENT)
            continue;
        if (fd < 0)
            return error_set(e, errno, "cannot open %s of tracefs: %s", path, strerror(errno));
        *vec_push(&r->cpus) = (struct cpu){.number = number, .fd = fd};
    }
    return 0;
}

int trace_reader_open(struct trace_reader **out, const struct trace_instance *t, struct error *e)
{
    struct trace_reader *r = *out = mem_alloc(sizeof(*r));
    int bad = read_layout(r, t, e);
    bad = bad ? bad : open_cpus(r, t, e);
    if (!bad)
        return 0;
    trace_reader_close(r);
    *out = NULL;
    return bad;
}

int trace_reader_open_kept(struct trace_reader **out, const char *layout,
                           const struct trace_kept_pages *pages, size_t n, struct error *e)
{
    struct trace_reader *r = *out = mem_alloc(sizeof(*r));
    int bad = trace_page_layout_parse(&r->layout, layout);
    for (size_t k = 0; k < n; k++)
        *vec_push(&r->cpus) = (struct cpu){.number = pages[k].cpu,
                                           .fd = pages[k].fd,
                                           .is_kept = true,
                                           .file_at = pages[k].at,
                                           .file_end = pages[k].end};
    if (!bad)
        return 0;
    trace_reader_close(r);
    *out = NULL;
    return unknown_layout(bad, e);
}

void trace_reader_keep(struct trace_reader *r, trace_page_fn *f, void *arg)
{
    r->keep = f;
    r->keep_arg = arg;
}

static void free_chunks(struct page_chunk *c)
{
    while (c) {
        struct page_chunk *next = c->next;
        free(c->data);
        free(c);
        c = next;
    }
}

void trace_reader_close(struct trace_reader *r)
{
    if (!r)
        return;
    vec_each (struct cpu, c, &r->cpus)
        if (!c->is_kept)
            close(c->fd);
    free_chunks(r->chunks);
    vec_release(&r->cpus);
    free(r);
}

const struct trace_reader_counts *trace_reader_counts(const struct trace_reader *r)
{
    return &r->counts;
}

/* ---- reading ---- */

static void give_page(struct trace_reader *r, struct trace_held_page *p)
{
    p->next = r->unused;
    r->unused = p;
}

static void add_chunk(struct trace_reader *r)
{
    const size_t n = r->layout.page_bytes < CHUNK_BYTES ? CHUNK_BYTES / r->layout.page_bytes : 1;
    struct page_chunk *c = mem_alloc(sizeof(*c) + n * sizeof(c->pages[0]));
    c->data = mem_aligned(CHUNK_BYTES, n * r->layout.page_bytes);
    madvise(c->data, n * r->layout.page_bytes, MADV_HUGEPAGE);
    c->next = r->chunks;
    r->chunks = c;
    for (size_t k = n; k--;) {
        c->pages[k].data = c->data + k * r->layout.page_bytes;
        give_page(r, &c->pages[k]);
    }
}

static struct trace_held_page *take_page(struct trace_reader *r)
{
    if (!r->unused)
        add_chunk(r);
    struct trace_held_page *p = r->unused;
    r->unused = p->next;
    return p;
}

static void hold_page(struct trace_reader *r, struct cpu *c, struct trace_held_page *p)
{
    p->next = NULL;
    r->counts.bytes += p->bytes;
    if (!c->first)
        c->end = &c->first;
    *c->end = p;
    c->end = &p->next;
    c->n_held++;
}

/* Reads pages of a file until some are held, or the file has no more. */
static int read_kept(struct trace_reader *r, struct cpu *c)
{
    struct trace_page begun;
    while (c->n_held < AHEAD && c->file_at < c->file_end) {
        struct trace_held_page *p = take_page(r);
        const uint64_t left = c->file_end - c->file_at;
        p->bytes = left < r->layout.page_bytes ? left : r->layout.page_bytes;
        const ssize_t got = pread(c->fd, p->data, p->bytes, (off_t)c->file_at);
        const bool whole = got == (ssize_t)r->layout.page_bytes &&
                           !trace_page_begin(&begun, p->data, p->bytes, &r->layout) &&
                           (begun.time >= c->page_ns || begun.at == begun.end);
        if (!whole) {
            c->file_at = c->file_end;
            give_page(r, p);
            return got < 0 ? -errno : -EBADMSG;
        }
        c->page_ns = begun.time > c->page_ns ? begun.time : c->page_ns;
        c->file_at += p->bytes;
        hold_page(r, c, p);
    }
    return 0;
}

/*
 * Reads the pages that the CPU has filled, and what is in the one that it is filling. If it has more than is read at
 * once, `*before` becomes the time up to which all was read. A CPU that was never online has no buffer yet.
 */
static int read_cpu(struct trace_reader *r, struct cpu *c, unsigned pages, uint64_t *before)
{
    struct trace_page begun;
    for (unsigned n = 0; n < pages; n++) {
        struct trace_held_page *p = take_page(r);
        ssize_t got = read(c->fd, p->data, r->layout.page_bytes);
        if (got <= 0) {
            int bad = got < 0 && errno != EAGAIN && errno != EINTR && errno != ENODEV ? -errno : 0;
            give_page(r, p);
            return bad;
        }
        p->bytes = (size_t)got;
        hold_page(r, c, p);
        if (r->keep)
            r->keep(r->keep_arg, c->number, p->data, p->bytes);
        if (n + 1 == pages && !trace_page_begin(&begun, p->data, p->bytes, &r->layout) &&
            begun.time < *before)
            *before = begun.time;
    }
    return 0;
}

/* ---- records in order ---- */

/* The first lines of a page; the processor itself reads ahead only within one. */
static void prefetch(const struct trace_held_page *p)
{
    for (size_t at = 0; p && at < 4 * CACHE_LINE; at += CACHE_LINE)
        __builtin_prefetch(p->data + at);
}

static void begin_page(struct trace_reader *r, struct cpu *c)
{
    prefetch(c->first->next);
    if (trace_page_begin(&c->at, c->first->data, c->first->bytes, &r->layout))
        r->counts.broken_pages++;
    r->counts.lost += c->at.lost == TRACE_PAGE_LOST_UNKNOWN ? 0 : c->at.lost;
    r->counts.lost_unknown += c->at.lost == TRACE_PAGE_LOST_UNKNOWN;
}

/* Moves on to the CPU's next record, if it has one. Returns 0, or -errno of a file. */
static int advance(struct trace_reader *r, struct cpu *c)
{
    int bad = 0;
    c->has_next = false;
    while (c->first && !c->has_next) {
        if (!c->at.at)
            begin_page(r, c);
        int found = trace_page_next(&c->at, &c->next);
        c->has_next = found > 0;
        r->counts.broken_pages += found < 0;
        if (c->has_next)
            break;
        struct trace_held_page *done = c->first;
        c->first = done->next;
        c->at = (struct trace_page){.at = NULL};
        c->n_held--;
        give_page(r, done);
        if (c->is_kept && !bad)
            bad = read_kept(r, c);
    }
    return bad;
}

int trace_reader_step(struct trace_reader *r, bool last, trace_record_fn *f, void *arg)
{
    uint64_t before = last ? UINT64_MAX : clock_ns(CLOCK_MONOTONIC) - LATE_NS;
    int bad = 0;
    vec_each (struct cpu, c, &r->cpus) {
        int failed = c->is_kept ? read_kept(r, c) : read_cpu(r, c, last ? UINT_MAX : PAGES_AT_ONCE, &before);
        bad = bad ? bad : failed;
        if (!c->has_next) {
            failed = advance(r, c);
            bad = bad ? bad : failed;
        }
    }
    for (;;) {
        struct cpu *oldest = NULL;
        vec_each (struct cpu, c, &r->cpus)
            if (c->has_next && c->next.time < before && (!oldest || c->next.time < oldest->next.time))
                oldest = c;
        if (!oldest)
            return bad;
        r->counts.records++;
        r->counts.late += oldest->next.time < r->given_ns;
        r->given_ns = oldest->next.time;
        r->given = oldest;
        f(arg, &oldest->next, oldest->number);
        const int failed = advance(r, oldest);
        bad = bad ? bad : failed;
    }
}

struct trace_peek trace_reader_peek(const struct trace_reader *r)
{
    return (struct trace_peek){r->given->at, r->given->first};
}

bool trace_peek_next(const struct trace_reader *r, struct trace_peek *p, struct trace_record *out)
{
    while (p->page) {
        if (trace_page_next(&p->at, out) > 0)
            return true;
        p->page = p->page->next;
        if (p->page && trace_page_begin(&p->at, p->page->data, p->page->bytes, &r->layout))
            p->page = NULL;
    }
    return false;
}
