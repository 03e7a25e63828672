/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/formats/chrome_budget.h"

#include <stdlib.h>

#include "base/vec.h"

/* Of the file, at most. Instants may have more where slices leave room. */
#define COUNTERS_PART 10
#define INSTANTS_PART 3

struct slice {
    uint64_t duration_ns;
    uint64_t bytes;
};

struct chrome_budget {
    uint64_t most_bytes;
    struct VEC(struct slice) heap; /* of the slices that may fit: the shortest first */
    uint64_t heap_bytes;
    bool dropped;        /* one did not fit */
    uint64_t dropped_ns; /* the longest of those */
    uint64_t instants, instant_bytes, instant_most;
    uint64_t counters, counter_bytes, counter_most; /* counter_most: of one value */
    /* what is left of them; tie_room: for slices that are as long as dropped_ns */
    uint64_t tie_room, instant_room, counter_room;
    uint64_t each; /* instant is taken */
    uint64_t seen_instants;
    struct chrome_left_out left;
};

struct chrome_budget *chrome_budget_new(uint64_t most_bytes)
{
    struct chrome_budget *b = mem_alloc(sizeof(*b));
    b->most_bytes = most_bytes;
    return b;
}

void chrome_budget_free(struct chrome_budget *b)
{
    if (!b)
        return;
    vec_release(&b->heap);
    free(b);
}

/* ---- the heap ---- */

static void swap(struct chrome_budget *b, size_t x, size_t y)
{
    const struct slice kept = b->heap.at[x];
    b->heap.at[x] = b->heap.at[y];
    b->heap.at[y] = kept;
}

static void rise(struct chrome_budget *b, size_t at)
{
    for (; at && b->heap.at[at].duration_ns < b->heap.at[(at - 1) / 2].duration_ns; at = (at - 1) / 2)
        swap(b, at, (at - 1) / 2);
}

static void sink(struct chrome_budget *b)
{
    for (size_t at = 0;;) {
        size_t least = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < b->heap.len; child++)
            if (b->heap.at[child].duration_ns < b->heap.at[least].duration_ns)
                least = child;
        if (least == at)
            return;
        swap(b, at, least);
        at = least;
    }
}

/* Drops the shortest slices until the others fit. */
static void fit(struct chrome_budget *b, uint64_t bytes)
{
    while (b->heap_bytes > bytes) {
        const struct slice shortest = b->heap.at[0];
        b->heap_bytes -= shortest.bytes;
        b->heap.at[0] = b->heap.at[--b->heap.len];
        sink(b);
        b->dropped_ns =
            b->dropped && b->dropped_ns > shortest.duration_ns ? b->dropped_ns : shortest.duration_ns;
        b->dropped = true;
    }
}

/* ---- the first time ---- */

void chrome_budget_offer_slice(struct chrome_budget *b, uint64_t duration_ns, size_t bytes)
{
    *vec_push(&b->heap) = (struct slice){duration_ns, bytes};
    rise(b, b->heap.len - 1);
    b->heap_bytes += bytes;
    fit(b, b->most_bytes);
}

void chrome_budget_offer_instant(struct chrome_budget *b, size_t bytes)
{
    b->instants++;
    b->instant_bytes += bytes;
    b->instant_most = bytes > b->instant_most ? bytes : b->instant_most;
}

void chrome_budget_offer_counter(struct chrome_budget *b, size_t bytes)
{
    b->counters++;
    b->counter_bytes += bytes;
    b->counter_most = bytes > b->counter_most ? bytes : b->counter_most;
}

/* ---- the decision ---- */

static uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Returns the bytes that counters have at most. */
static uint64_t decide_step(struct chrome_budget *b, uint64_t room, uint64_t span_ns, uint64_t tracks)
{
    const uint64_t most = room / COUNTERS_PART;
    if (b->counter_bytes <= most)
        return b->counter_bytes;
    /* two values for each step of each track; the last step may be a part of one */
    const uint64_t values = most / (b->counter_most * (tracks ? tracks : 1) * 2);
    const uint64_t steps = values > 2 ? values - 1 : 1;
    b->left.step_ns = span_ns / steps + 1;
    return most;
}

void chrome_budget_decide(struct chrome_budget *b, uint64_t fixed_bytes, uint64_t span_ns, uint64_t tracks)
{
    uint64_t room = b->most_bytes > fixed_bytes ? b->most_bytes - fixed_bytes : 0;
    b->counter_room = decide_step(b, room, span_ns, tracks);
    room -= b->counter_room;
    const uint64_t slices = b->heap_bytes + (b->dropped ? b->most_bytes : 0);
    const uint64_t beside = room > slices ? room - slices : 0;
    b->instant_room = room / INSTANTS_PART > beside ? room / INSTANTS_PART : beside;
    b->instant_room = least_of(b->instant_room, b->instant_bytes);
    const uint64_t instants = b->instant_most ? b->instant_room / b->instant_most : 0;
    b->each = b->instant_bytes <= b->instant_room ? 1 : instants ? b->instants / instants + 1 : UINT64_MAX;
    fit(b, room - b->instant_room);
    vec_each (const struct slice, s, &b->heap)
        b->tie_room += b->dropped && s->duration_ns == b->dropped_ns ? s->bytes : 0;
    b->left.shortest_ns = b->dropped_ns;
}

/* ---- the second time ---- */

/* All that are longer than each one that was dropped fit. */
bool chrome_budget_take_slice(struct chrome_budget *b, uint64_t duration_ns, size_t bytes)
{
    const bool is_tie = b->dropped && duration_ns == b->dropped_ns;
    const bool fits = is_tie ? bytes <= b->tie_room : !b->dropped || duration_ns > b->dropped_ns;
    b->tie_room -= is_tie && fits ? bytes : 0;
    b->left.slices += !fits;
    return fits;
}

bool chrome_budget_take_instant(struct chrome_budget *b, size_t bytes)
{
    const bool fits = b->seen_instants++ % b->each == 0 && bytes <= b->instant_room;
    b->instant_room -= fits ? bytes : 0;
    b->left.instants += !fits;
    return fits;
}

bool chrome_budget_take_counter(struct chrome_budget *b, size_t bytes)
{
    const bool fits = bytes <= b->counter_room;
    b->counter_room -= fits ? bytes : 0;
    return fits;
}

uint64_t chrome_budget_step(const struct chrome_budget *b)
{
    return b->left.step_ns;
}

struct chrome_left_out chrome_budget_left_out(const struct chrome_budget *b)
{
    return b->left;
}
