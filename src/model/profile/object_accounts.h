/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_OBJECT_ACCOUNTS_H
#define MODEL_OBJECT_ACCOUNTS_H

/*
 * Computes a profile from single events: every allocation and every free, in the order of time. All sums are exact if
 * no event was lost.
 *
 * The profile has the images, threads, stacks and locations, to which the events refer; more may be added meanwhile.
 * Its cells, samples, frees and peaks become those of the events, and its points get the live bytes of the events.
 *
 * Runs in: the tool. Threads: one at a time. Owns: its own state, until object_accounts_free(). Pure.
 * Invariant: for each image, allocated == freed + live.
 */

#include <stdbool.h>
#include <stdint.h>

#include "model/profile/profile.h"

struct object_accounts;

struct object_event {
    uint32_t image, thread; /* in the profile */
    uint32_t cpu;
    uint64_t time_ns; /* CLOCK_REALTIME */
    uint64_t address;
    uint64_t size_bytes; /* of an allocation */
    uint32_t stack;      /* of an allocation */
    uint32_t location;   /* of the call */
};

/** What the calls of one location did in an image, besides their allocations, which cells have. */
struct object_call {
    uint32_t image, location;
    uint64_t failed;
    uint64_t freed, freed_bytes; /* objects, wherever they were allocated */
};
struct object_calls {
    struct VEC(struct object_call) all;
    struct map by_place;
};

/** The beginning of an object's life, or its end. */
struct object_life {
    uint32_t cell; /* in the profile, once it is filled in */
    uint64_t size_bytes;
    /* if realloc() ended the life: when the call began; the listener is told when it has ended */
    uint64_t time_ns;
    bool is_end;
};
struct object_listener {
    void (*hear)(void *arg, const struct object_life *life);
    void *arg;
};

/** Clears the figures of the profile, which stays the caller's and must live as long as the accounts. */
struct object_accounts *object_accounts_new(struct profile *p);
void object_accounts_free(struct object_accounts *a); /* NULL is allowed */
/** Counts calls, too, into *calls, which the caller zeroes before and releases. Call it before the first event. */
void object_accounts_count_calls(struct object_accounts *a, struct object_calls *calls);
void object_calls_release(struct object_calls *calls);

/** From now on the listener, which must live as long as the accounts, hears of all lives but those before a span. */
void object_accounts_listen(struct object_accounts *a, const struct object_listener *listener);

/** Says that an event of this address comes soon: its object is loaded meanwhile. */
void object_accounts_expect(const struct object_accounts *a, uint32_t image, uint64_t address);
/** If the address is live already, the event of its free was lost: that counts as PROFILE_LOST_FREES_UNSEEN. */
void object_accounts_allocated(struct object_accounts *a, const struct object_event *e);
/** From now on, frees may come before their allocation (early_frees.h). */
void object_accounts_wait_for_births(struct object_accounts *a);
/** Returns how many frees of an image came before the allocation. Each was reported as one without an object. */
uint64_t object_accounts_early_frees(const struct object_accounts *a, uint32_t image);
/** An allocation failed, but for those of realloc(). */
void object_accounts_failed(struct object_accounts *a, const struct object_event *e);
/** Returns false if there is no object at the address. */
bool object_accounts_freed(struct object_accounts *a, const struct object_event *e);
/** realloc() begins: the object is no longer found at its address. Returns false if there is none. */
bool object_accounts_realloc_begins(struct object_accounts *a, const struct object_event *e);
/**
 * The realloc() of this thread has ended: the object that it began with is freed, and another one is at `address`. 0:
 * it failed, and the object is there again; with size_bytes 0 it is freed all the same.
 */
void object_accounts_realloc_ended(struct object_accounts *a, const struct object_event *e);

/**
 * A span of time begins: all sums are 0 again. Objects that are live now are in no figure any more; only their frees
 * are counted, apart. Later events have later times than `now_ns`.
 */
void object_accounts_begin_span(struct object_accounts *a, uint64_t now_ns);
/** Returns how many objects from before the span were freed in it, and their bytes. */
struct profile_older_frees object_accounts_older_frees(const struct object_accounts *a);

/** Fills in the profile. Call it once, after the last event. */
void object_accounts_finish(struct object_accounts *a);

#endif
