/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_PAGE_ACCOUNTS_H
#define MODEL_PAGE_ACCOUNTS_H

/*
 * Accounts of the kernel's pages from a complete trace of their events: a row for each order, migrate type, set of
 * flags, program and stack that allocates; other rows of the same events by process. Each page is followed by itself,
 * so that a block may be split and freed in parts. Pages in which the slab allocator has its objects are told apart,
 * so that nothing is counted twice beside kmem_accounts.h.
 *
 * Runs in: the tool. Threads: one at a time. Owns: everything, until page_accounts_free().
 * Invariant: in each row allocated_pages == freed_pages + live.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/kernel/page_event.h"

/** What a block is for, as far as it is known. */
enum page_use {
    PAGE_USE_OTHER,
    PAGE_USE_SLAB,    /* objects of the slab allocator */
    PAGE_USE_KMALLOC, /* one object that is too large for it */
};

struct page_account {
    uint32_t order;        /* in rows by process: 0 */
    uint32_t migrate_type; /* PAGE_EVENT_NO_TYPE in a row that only frees, and in rows by process */
    uint64_t gfp;          /* in rows by process: of all allocations */
    uint32_t comm;         /* see page_accounts_text() */
    uint32_t stack;        /* see page_accounts_stack() */
    int32_t process;       /* only in rows by process */
    enum page_use use;     /* in rows by process: PAGE_USE_OTHER */
    uint64_t allocations, allocated_pages, failures;
    uint64_t freed_pages;                  /* of this row, whoever freed them, also without an event */
    uint64_t frees_here, freed_here_pages; /* frees by this program and stack, of pages of whatever row */
    uint64_t fallbacks;                    /* blocks of another migrate type that were taken */
    /* The rest is not counted in rows by process. */
    uint64_t freed_blocks;                  /* blocks of this row of which no page is live any more */
    uint64_t at_peak_pages, at_peak_blocks; /* what was live at the peak */
    uint64_t peak_number;                   /* for page_accounts.c */
};

struct page_totals {
    uint64_t events;
    uint64_t allocations, allocated_pages, failures;
    uint64_t frees, freed_pages; /* that had an event, of pages whose allocation was seen */
    uint64_t unmatched_pages;    /* freed, but their allocation was not seen */
    uint64_t frees_in_parts;     /* of a part of a block */
    uint64_t pages_without_free; /* whose free had no event: seen when they were allocated again */
    uint64_t fallbacks;
    uint64_t live_pages, peak_pages;
    uint64_t slab_pages,
        live_slab_pages; /* of those: allocated and live, under objects of the slab allocator */
    uint64_t other_pages, live_other_pages; /* the same of PAGE_USE_OTHER */
    /* The most live_other_pages that there ever were, and when. A page that is under an object counts until the first
     * event of the object. */
    uint64_t peak_other_pages, peak_other_ns;
    uint64_t first_ns, last_ns;
};

struct page_accounts;

/** Never NULL. */
struct page_accounts *page_accounts_new(void);
void page_accounts_free(struct page_accounts *a);
/** Adds an event. Returns false, and changes nothing, if it cannot be: an order or a frame that no machine has. */
bool page_accounts_add(struct page_accounts *a, const struct page_event *e);
/**
 * Adds blocks that are live, in place of the events of their allocations; the frame of `e` does not count, and nothing
 * can free them. Returns false, and changes nothing, if it cannot be.
 */
bool page_accounts_hold(struct page_accounts *a, const struct page_event *e, enum page_use use,
                        uint64_t blocks);
/** Tells it of an allocation that is not to be accounted: what was in these pages is gone. */
void page_accounts_pass(struct page_accounts *a, const struct page_event *e);
/** Returns whether any of these pages is live. */
bool page_accounts_has(struct page_accounts *a, const struct page_event *e);
/**
 * Marks the pages of an object as slab or kmalloc pages. `address` is in the kernel's direct mapping. The start of this
 * mapping is computed from the first events: the first object in a new slab lies in the block of pages that was
 * allocated last on the same CPU.
 */
void page_accounts_object(struct page_accounts *a, uint64_t address, bool is_large, uint32_t cpu);
/** Tells page_accounts_object() of an allocation on a CPU. */
void page_accounts_last(struct page_accounts *a, uint64_t frame, uint32_t order, uint32_t cpu);

/** Brings what was live at the peak of pages of PAGE_USE_OTHER up to date: at_peak_pages of rows of this use. */
void page_accounts_update_peak(struct page_accounts *a);

const struct page_totals *page_accounts_totals(const struct page_accounts *a);
/** Return the rows, in the order in which they came. */
const struct page_account *page_accounts_rows(const struct page_accounts *a, size_t *n);
const struct page_account *page_accounts_processes(const struct page_accounts *a, size_t *n);
/** Returns the name of a program; "" if the events do not name it. */
const char *page_accounts_text(const struct page_accounts *a, uint32_t text);
/** Returns the return addresses of a stack, the innermost first; NULL: rows of events without one have none. */
const uint64_t *page_accounts_stack(const struct page_accounts *a, uint32_t stack, uint32_t *depth);

#endif
