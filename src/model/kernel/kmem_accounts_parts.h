/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_KMEM_ACCOUNTS_PARTS_H
#define MODEL_KMEM_ACCOUNTS_PARTS_H

/* For kmem_accounts.c and kmem_results.c only. */

#include <string.h>

#include "base/hash_map.h"
#include "base/vec.h"
#include "model/kernel/event_texts.h"
#include "model/kernel/kmem_accounts.h"
#include "model/kernel/kmem_objects.h"
#include "model/kernel/seen_addresses.h"

#define NO_ROW UINT32_MAX

struct row_key {
    uint64_t call_site, gfp;
    uint32_t cache, stack, comm, size_class;
};

struct pair_key {
    uint64_t call_site, free_site, cache;
};

/*
 * Rows and pairs that were looked up lately, in slots by a quick hash. Most events are like one of the latest ones, and
 * comparing with these costs a fraction of a search in a map.
 */
#define RECENT_BITS 9
#define RECENT      (1u << RECENT_BITS)
struct recent {
    struct {
        struct row_key key;
        uint32_t number;
    } rows[RECENT];
    struct {
        struct pair_key key;
        uint32_t number;
    } pairs[RECENT];
};

/* The latest event of a thread on a CPU, if that was of an object that the kernel may report once more. */
struct large_allocation {
    uint64_t address; /* 0: it was none */
    int32_t pid;
    uint32_t cpu;
    uint8_t context;
    uint64_t peak_number; /* after it */
};
#define LARGE_CPUS 64u /* CPUs of one remainder share a slot: then fewer repetitions are found */

struct kmem_accounts {
    struct VEC(struct kmem_account) rows, processes;
    struct VEC(struct kmem_pair) pairs;
    struct event_texts texts; /* names of caches and programs, and stacks */
    struct map row_index, process_index, pair_index;
    struct kmem_objects live;
    struct kmem_objects freed; /* with the object's cache for a row; without slots, unless they are kept */
    uint8_t nodes[KMEM_EVENT_CPUS_MAX]; /* by CPU */
    struct recent recent;
    struct large_allocation large[LARGE_CPUS];
    struct kmem_totals totals;
    struct seen_addresses seen; /* at which objects were */
    bool has_losses;
    uint64_t end_ns, settle_ns;
    /*
     * Each row stores its live amounts at the peak, but only when it next changes: not all rows are visited at a peak.
     * `peak_number` grows when the sum first falls after a new peak. Before a row changes, it stores its live amounts
     * if its own peak_number is older.
     */
    uint64_t peak_number;
    bool at_peak;
};

static inline void store_peak(const struct kmem_accounts *a, struct kmem_account *r)
{
    if (r->peak_number == a->peak_number)
        return;
    r->peak_number = a->peak_number;
    r->at_peak_objects = r->allocations - r->frees;
    r->at_peak_bytes = r->allocated_bytes - r->freed_bytes;
    r->at_peak_requested_bytes = r->requested_bytes - r->freed_requested_bytes;
}

/* What was told of a row is not taken back: from now on an event is not taken for a repetition of an earlier one. */
static inline void forget_large(struct kmem_accounts *a)
{
    memset(a->large, 0, sizeof(a->large));
}

static inline void leave_peak(struct kmem_accounts *a)
{
    a->peak_number += a->at_peak;
    a->at_peak = false;
}

#endif
