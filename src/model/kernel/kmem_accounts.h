/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_KMEM_ACCOUNTS_H
#define MODEL_KMEM_ACCOUNTS_H

/*
 * Accounts of the kernel's objects from a complete trace of their events: a row for each call that allocates, each
 * cache, each class of sizes, each set of flags and, if events have them, each stack and each program; other rows of
 * the same events by process; and what each call frees of each other call's objects. Frees are charged to the rows that
 * allocated, whoever frees. Exact while no event was lost.
 *
 * What is live at the end may be freed soon after it, for example by RCU, which frees later than it is asked to. So
 * accounts can have an end: from then on nothing is accounted, but it is noted which objects that were live are freed.
 *
 * Large objects of kmalloc(), which are whole pages, have two events each since Linux 6.11, unless their size is a
 * constant: the first with a call inside the allocator, the second with the call of kmalloc(). The second event moves
 * the object to its own call's row. It is neither an allocation nor a free without an event. An event is taken for a
 * second one if all of this holds. The event before it, of the same thread in the same interrupt context and of the
 * same CPU, was of kmalloc() and of an object of more than 8192 bytes at the same address. That object is still live.
 * Requested bytes, allocated bytes and flags are the same. The calls differ, or are the recorder's own, which have no
 * names. The first event is not a second one itself.
 *
 * An object can be freed without an event (kfree_rcu() frees in bulk), and its address be allocated again. That this is
 * a new object is seen if there are events between the two allocations, or if both are of the same call. If another
 * call of the same thread allocates with no event of that thread between, the second object is taken for the first one.
 * This also happens if the events between were lost.
 * On the other hand, a second event is taken for an allocation, and so for an implied free, if the thread moved to
 * another CPU after the first one, if another thread of the CPU then had a large object, or if
 * kmem_accounts_update_peak() or kmem_accounts_restart_peak() ran: what was told of a row is not taken back.
 *
 * Runs in: the tool. Threads: one at a time. Owns: everything, until kmem_accounts_free().
 * Invariant: in each row allocations == frees + live, where frees include those without an event. In the totals
 * allocations == frees + frees_without_event + live, and unmatched_frees == older_frees + frees_after_loss +
 * unexplained_frees.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/kernel/kmem_event.h"
#include "model/kernel/kmem_objects.h"

struct kmem_account {
    uint64_t call_site; /* in rows by process: 0 */
    uint32_t cache;     /* see kmem_accounts_text(); in rows by process: the number of the text "" */
    uint32_t comm;      /* the program that made these calls; see there */
    uint32_t stack;     /* see kmem_accounts_stack() */
    int32_t process;    /* only in rows by process */
    /* of the objects allocated here: from 2^k bytes to less than 2^(k+1); 0 in a row that only frees */
    uint8_t size_class;
    uint64_t gfp; /* of the allocations; in rows by process: of all of them */
    uint64_t allocations, requested_bytes, allocated_bytes;
    uint64_t frees, freed_bytes;           /* of objects of this row, also those without an event */
    uint64_t freed_requested_bytes;        /* what had been requested for them */
    uint64_t frees_here, freed_here_bytes; /* frees by this call, of objects of whatever row */
    uint64_t at_peak_objects, at_peak_bytes,
        at_peak_requested_bytes;             /* what was live at the peak of all rows */
    uint64_t settled_objects, settled_bytes; /* live at the end, and freed soon after it */
    uint64_t oldest_ns; /* the age of the oldest live object, at kmem_accounts_update_ages() */
    uint64_t held_ns;   /* of those of kmem_accounts_hold() */
    bool no_bytes;      /* how large the objects are is not known: they count 0 bytes */
    /* The cache that frees of this row's objects named, plus 1; 0: none did; KMEM_CACHES: they named several. Before
     * Linux 6.18 only frees name a cache. */
    uint32_t freed_cache;
    uint64_t peak_number; /* for kmem_accounts.c */
};

#define KMEM_CACHES UINT32_MAX

/** Objects that are live, of one call. */
struct kmem_held {
    uint64_t call_site;
    const char *cache;     /* "": not known */
    const uint64_t *stack; /* as in struct kmem_event */
    uint32_t depth;
    uint64_t objects;
    uint64_t bytes, requested_bytes; /* of all of them */
    uint64_t oldest_ns;              /* the age of the oldest one; 0: not known */
    bool no_bytes;                   /* how large they are is not known */
};

/** Frees by one call of what another one allocated. */
struct kmem_pair {
    uint64_t call_site, free_site;
    uint32_t cache; /* of the objects; see kmem_accounts_text() */
    uint64_t frees, freed_bytes;
    uint64_t cross_cpu_frees;  /* by another CPU than the one that allocated */
    uint64_t cross_node_frees; /* ... and of another NUMA node */
};

struct kmem_totals {
    uint64_t events;
    uint64_t allocations, requested_bytes, allocated_bytes;
    uint64_t frees, freed_bytes;  /* that had an event, of objects whose allocation was seen */
    uint64_t frees_without_event; /* seen when the address was allocated again */
    uint64_t null_frees;          /* of NULL, and of what kmalloc(0) returned */
    uint64_t no_allocations;      /* that failed, and kmalloc(0) */
    uint64_t unmatched_frees;     /* whose allocation was not seen; why, is one of these: */
    uint64_t older_frees;         /* nothing had been at the address: older than the trace, or came in bulk */
    uint64_t frees_after_loss;    /* events had been lost before: the allocation may be one of them */
    uint64_t unexplained_frees; /* another object had been there: this one came without an event (in bulk) */
    uint64_t live_objects, live_bytes, live_requested_bytes;
    uint64_t peak_bytes, peak_ns; /* of allocated bytes, and when that was */
    uint64_t cross_cpu_frees;     /* by another CPU than the one that allocated */
    uint64_t cross_node_frees;
    uint64_t settled_objects, settled_bytes; /* of the live ones: see kmem_accounts_end_at() */
    uint64_t first_ns, last_ns;
};

struct kmem_accounts;

/** Never NULL. */
struct kmem_accounts *kmem_accounts_new(void);
void kmem_accounts_free(struct kmem_accounts *a);

/**
 * Says on which NUMA node a CPU is; all are on node 0 at first. CPUs from KMEM_EVENT_CPUS_MAX on are not told apart.
 */
void kmem_accounts_set_node(struct kmem_accounts *a, uint32_t cpu, uint32_t node);

/**
 * Adds an event. Events must come in the order of their times. Returns false, and changes nothing, if it cannot be: an
 * object of 4 GiB or more, or smaller than was requested.
 */
bool kmem_accounts_add(struct kmem_accounts *a, const struct kmem_event *e);
/**
 * Adds objects that are live, in place of the events of their allocations. They have no addresses: nothing can free
 * them. Returns false, and changes nothing, if it cannot be: more was requested than there is, or sums would wrap.
 */
bool kmem_accounts_hold(struct kmem_accounts *a, const struct kmem_held *h);
/** Tells it of an allocation that is not to be accounted: an object that was at this address is gone. */
void kmem_accounts_pass(struct kmem_accounts *a, uint64_t address);
/** Says that events are missing: before those that come now, or `anywhere` in the trace. */
void kmem_accounts_lose(struct kmem_accounts *a, bool anywhere);
/**
 * Events after `end_ns` are not accounted. What they free, for up to `settle_ns`, of what is live then, is noted in
 * settled_objects and settled_bytes; it stays live.
 */
void kmem_accounts_end_at(struct kmem_accounts *a, uint64_t end_ns, uint64_t settle_ns);
/** Brings the ages of the oldest live objects up to date, in all rows. */
void kmem_accounts_update_ages(struct kmem_accounts *a);
/** Returns whether an object is at this address. */
bool kmem_accounts_is_live(const struct kmem_accounts *a, uint64_t address);
/** From now on the peak is the most that is live since now. */
void kmem_accounts_restart_peak(struct kmem_accounts *a);
/** Brings what was live at the peak up to date, in all rows. */
void kmem_accounts_update_peak(struct kmem_accounts *a);

const struct kmem_totals *kmem_accounts_totals(const struct kmem_accounts *a);
/**
 * Returns the rows, in the order in which they came. A row can be empty, without allocations and frees: that of a call
 * inside the allocator.
 */
const struct kmem_account *kmem_accounts_rows(const struct kmem_accounts *a, size_t *n);
/** Returns the rows by process, in the order in which they came; 0: events do not tell the process. */
const struct kmem_account *kmem_accounts_processes(const struct kmem_accounts *a, size_t *n);
const struct kmem_pair *kmem_accounts_pairs(const struct kmem_accounts *a, size_t *n);
/**
 * From now on the addresses of freed objects are kept, too, up to four million. Those whose cache no event named are
 * not.
 */
void kmem_accounts_keep_freed(struct kmem_accounts *a);
/** Calls the function for each live object, in no order; `row` is an index into kmem_accounts_rows(). */
void kmem_accounts_each_live(const struct kmem_accounts *a, kmem_object_fn *f, void *arg);
/** Calls it for each freed object that is kept and was not allocated again; `row` is the number of its cache's text. */
void kmem_accounts_each_freed(const struct kmem_accounts *a, kmem_object_fn *f, void *arg);

/** Returns the name of a cache or a program; "" if the events do not name it. */
const char *kmem_accounts_text(const struct kmem_accounts *a, uint32_t text);
/** Returns how many such names there are; they are numbered from 0. */
size_t kmem_accounts_texts(const struct kmem_accounts *a);
/** The number of no stack. */
#define KMEM_NO_STACK 0u
/** Returns the return addresses of a stack, the innermost first; NULL: rows of events without one have none. */
const uint64_t *kmem_accounts_stack(const struct kmem_accounts *a, uint32_t stack, uint32_t *depth);

#endif
