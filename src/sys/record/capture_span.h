/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_CAPTURE_SPAN_H
#define SYS_CAPTURE_SPAN_H

/*
 * The rows of a capture, of all events, or of those since a moment: what was allocated and freed since then. What is
 * live counts in both cases, however old it is.
 *
 * Runs in: the tool. Threads: one. Owns: copies of the rows at that moment, until capture_span_free().
 */

#include "model/kernel/kmem_accounts.h"
#include "model/kernel/page_accounts.h"

struct capture_span;

/** The moment is now: keeps the rows as they are, and begins a new peak. `pages` may be NULL. */
struct capture_span *capture_span_new(struct kmem_accounts *objects, struct page_accounts *pages);
void capture_span_free(struct capture_span *s); /* NULL is allowed */

/*
 * Each returns the rows of the accounts, or, with a span, changed copies without the rows that are 0, valid until the
 * next call. In these `frees`, `freed_bytes` and `freed_pages` only serve to tell what is live: it is the difference to
 * the allocations, modulo 2^64.
 */
const struct kmem_account *capture_span_rows(struct capture_span *s, const struct kmem_accounts *a,
                                             size_t *n);
const struct kmem_account *capture_span_processes(struct capture_span *s, const struct kmem_accounts *a,
                                                  size_t *n);
const struct kmem_pair *capture_span_pairs(struct capture_span *s, const struct kmem_accounts *a, size_t *n);
const struct page_account *capture_span_pages(struct capture_span *s, const struct page_accounts *a,
                                              size_t *n);
const struct page_account *capture_span_page_processes(struct capture_span *s, const struct page_accounts *a,
                                                       size_t *n);
/** Return the sums; those that reports of losses have are without what came before the moment. */
struct kmem_totals capture_span_totals(const struct capture_span *s, const struct kmem_accounts *a);
struct page_totals capture_span_page_totals(const struct capture_span *s, const struct page_accounts *a);

#endif
