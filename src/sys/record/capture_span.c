/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/record/capture_span.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/vec.h"

struct objects VEC(struct kmem_account);
struct pages VEC(struct page_account);

struct capture_span {
    struct objects rows, processes;
    struct VEC(struct kmem_pair) pairs;
    struct pages pages, page_processes;
    struct kmem_totals totals;
    struct page_totals page_totals;
    struct objects shown; /* the changed copies */
    struct VEC(struct kmem_pair) shown_pairs;
    struct pages shown_pages;
};

static void keep_objects(struct objects *to, const struct kmem_account *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        *vec_push(to) = rows[i];
}

static void keep_pages(struct pages *to, const struct page_account *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        *vec_push(to) = rows[i];
}

struct capture_span *capture_span_new(struct kmem_accounts *objects, struct page_accounts *pages)
{
    size_t n;
    struct capture_span *s = mem_alloc(sizeof(*s));
    const struct kmem_account *rows = kmem_accounts_rows(objects, &n);
    keep_objects(&s->rows, rows, n);
    rows = kmem_accounts_processes(objects, &n);
    keep_objects(&s->processes, rows, n);
    const struct kmem_pair *pairs = kmem_accounts_pairs(objects, &n);
    for (size_t i = 0; i < n; i++)
        *vec_push(&s->pairs) = pairs[i];
    s->totals = *kmem_accounts_totals(objects);
    kmem_accounts_restart_peak(objects);
    if (!pages)
        return s;
    const struct page_account *page_rows = page_accounts_rows(pages, &n);
    keep_pages(&s->pages, page_rows, n);
    page_rows = page_accounts_processes(pages, &n);
    keep_pages(&s->page_processes, page_rows, n);
    s->page_totals = *page_accounts_totals(pages);
    return s;
}

void capture_span_free(struct capture_span *s)
{
    if (!s)
        return;
    vec_release(&s->rows);
    vec_release(&s->processes);
    vec_release(&s->pairs);
    vec_release(&s->pages);
    vec_release(&s->page_processes);
    vec_release(&s->shown);
    vec_release(&s->shown_pairs);
    vec_release(&s->shown_pages);
    free(s);
}

/* Rows keep their numbers: those that were there at the moment come first. */
static const struct kmem_account *show(struct capture_span *s, const struct objects *before,
                                       const struct kmem_account *rows, size_t *n)
{
    s->shown.len = 0;
    for (size_t i = 0; i < *n; i++) {
        struct kmem_account a = rows[i];
        const uint64_t live_objects = a.allocations - a.frees, live_bytes = a.allocated_bytes - a.freed_bytes;
        if (i < before->len) {
            const struct kmem_account *b = &before->at[i];
            a.allocations -= b->allocations;
            a.requested_bytes -= b->requested_bytes;
            a.allocated_bytes -= b->allocated_bytes;
            a.frees_here -= b->frees_here;
            a.freed_here_bytes -= b->freed_here_bytes;
        }
        a.frees = a.allocations - live_objects;
        a.freed_bytes = a.allocated_bytes - live_bytes;
        if (a.allocations || a.frees_here || live_objects || a.at_peak_objects)
            *vec_push(&s->shown) = a;
    }
    *n = s->shown.len;
    return s->shown.at;
}

static const struct page_account *show_pages(struct capture_span *s, const struct pages *before,
                                             const struct page_account *rows, size_t *n)
{
    s->shown_pages.len = 0;
    for (size_t i = 0; i < *n; i++) {
        struct page_account a = rows[i];
        const uint64_t live = a.allocated_pages - a.freed_pages;
        if (i < before->len) {
            const struct page_account *b = &before->at[i];
            a.allocations -= b->allocations;
            a.allocated_pages -= b->allocated_pages;
            a.failures -= b->failures;
            a.frees_here -= b->frees_here;
            a.freed_here_pages -= b->freed_here_pages;
            a.fallbacks -= b->fallbacks;
        }
        a.freed_pages = a.allocated_pages - live;
        if (a.allocations || a.failures || a.frees_here || a.fallbacks || live)
            *vec_push(&s->shown_pages) = a;
    }
    *n = s->shown_pages.len;
    return s->shown_pages.at;
}

const struct kmem_account *capture_span_rows(struct capture_span *s, const struct kmem_accounts *a, size_t *n)
{
    const struct kmem_account *rows = kmem_accounts_rows(a, n);
    return s ? show(s, &s->rows, rows, n) : rows;
}

const struct kmem_account *capture_span_processes(struct capture_span *s, const struct kmem_accounts *a,
                                                  size_t *n)
{
    const struct kmem_account *rows = kmem_accounts_processes(a, n);
    return s ? show(s, &s->processes, rows, n) : rows;
}

const struct kmem_pair *capture_span_pairs(struct capture_span *s, const struct kmem_accounts *a, size_t *n)
{
    const struct kmem_pair *pairs = kmem_accounts_pairs(a, n);
    if (!s)
        return pairs;
    s->shown_pairs.len = 0;
    for (size_t i = 0; i < *n; i++) {
        struct kmem_pair p = pairs[i];
        if (i < s->pairs.len) {
            const struct kmem_pair *b = &s->pairs.at[i];
            p.frees -= b->frees;
            p.freed_bytes -= b->freed_bytes;
            p.cross_cpu_frees -= b->cross_cpu_frees;
            p.cross_node_frees -= b->cross_node_frees;
        }
        if (p.frees)
            *vec_push(&s->shown_pairs) = p;
    }
    *n = s->shown_pairs.len;
    return s->shown_pairs.at;
}

const struct page_account *capture_span_pages(struct capture_span *s, const struct page_accounts *a,
                                              size_t *n)
{
    const struct page_account *rows = page_accounts_rows(a, n);
    return s ? show_pages(s, &s->pages, rows, n) : rows;
}

const struct page_account *capture_span_page_processes(struct capture_span *s, const struct page_accounts *a,
                                                       size_t *n)
{
    const struct page_account *rows = page_accounts_processes(a, n);
    return s ? show_pages(s, &s->page_processes, rows, n) : rows;
}

struct kmem_totals capture_span_totals(const struct capture_span *s, const struct kmem_accounts *a)
{
    struct kmem_totals t = *kmem_accounts_totals(a);
    if (s) {
        t.null_frees -= s->totals.null_frees;
        t.frees_without_event -= s->totals.frees_without_event;
        t.unmatched_frees -= s->totals.unmatched_frees;
    }
    return t;
}

struct page_totals capture_span_page_totals(const struct capture_span *s, const struct page_accounts *a)
{
    struct page_totals t = *page_accounts_totals(a);
    if (s) {
        t.pages_without_free -= s->page_totals.pages_without_free;
        t.unmatched_pages -= s->page_totals.unmatched_pages;
        t.frees_in_parts -= s->page_totals.frees_in_parts;
        t.failures -= s->page_totals.failures;
    }
    return t;
}
