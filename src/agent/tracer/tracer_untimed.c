/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/tracer/tracer_untimed.h"

#include "agent/clock.h"
#include "agent/hooks/cold.h"
#include "agent/hooks/next.h"
#include "agent/process.h"
#include "agent/tracer/tracer_clock.h"
#include "agent/tracer/tracer_general.h"
#include "agent/tracer/tracer_options.h"
#include "agent/tracer/tracer_put.h"
#include "agent/tracer/tracer_rings.h"
#include "base/sigsafe/atomic.h"
#include "ring/ring_write.h"

#define CALLER ((uintptr_t)__builtin_return_address(0))
#define ALWAYS static inline __attribute__((always_inline))

typedef enum sequence_result sequence(const struct sequence_rings *r, ptrdiff_t area, unsigned words,
                                      uint64_t what, uint64_t a, uint64_t b, uint64_t c);

/* Returns the offset of struct rseq if this thread may run a sequence, and the clock has not been stopped; else 0. */
ALWAYS ptrdiff_t area_of(uint32_t thread)
{
    const ptrdiff_t area = load_relaxed(&tracer_hot.untimed_area);
    return likely((int32_t)thread > 0) && likely(clock_is_tsc) ? area : 0;
}

ALWAYS bool is_off(void)
{
    return unlikely(load_relaxed(&process.ledger.control->word) & LEDGER_CONTROL_ALLOC_BITS);
}

/* As put() of tracer.c. `run` is a constant. */
ALWAYS void put(sequence *const run, const uint32_t words, enum event_id id, uint64_t a, uint64_t b,
                uintptr_t site)
{
    const uint32_t thread = tracer_thread;
    const ptrdiff_t area = area_of(thread);
    const uint64_t what = ring_what((uint16_t)id, words, thread);
    enum sequence_result done = SEQUENCE_NO_FIT;
    if (likely(area)) {
        if (is_off())
            return;
        if (likely(load_relaxed(tracer_site_place(site)) == site))
            done = run(&tracer_hot.rings, area, words, what, a, words == 4 ? site : b, site);
        if (likely(done == SEQUENCE_DONE))
            return;
    }
    tracer_put_cold(done, what, a, b, site);
}

#define HOOKS(kind)                                                                                          \
    static HOT void *kind##_malloc(size_t size)                                                              \
    {                                                                                                        \
        void *p = tracer_real.malloc(size);                                                                  \
        put(sequence_put_##kind, 5, EVENT_malloc, (uintptr_t)p, size, CALLER);                               \
        return p;                                                                                            \
    }                                                                                                        \
    static HOT void kind##_free(void *p)                                                                     \
    {                                                                                                        \
        if (likely(p))                                                                                       \
            put(sequence_put_##kind, 4, EVENT_free, (uintptr_t)p, 0, CALLER);                                \
        tracer_real.free(p);                                                                                 \
    }                                                                                                        \
    static HOT void *kind##_calloc(size_t count, size_t each)                                                \
    {                                                                                                        \
        void *p = tracer_real.calloc(count, each);                                                           \
        put(sequence_put_##kind, 5, EVENT_calloc, (uintptr_t)p, count *each, CALLER);                        \
        return p;                                                                                            \
    }                                                                                                        \
    static void *kind##_realloc(void *old, size_t size)                                                      \
    {                                                                                                        \
        put(sequence_put_##kind, 4, EVENT_realloc_begin, (uintptr_t)old, 0, CALLER);                         \
        void *p = tracer_real.realloc(old, size);                                                            \
        put(sequence_put_##kind, 5, EVENT_realloc_end, (uintptr_t)p, size, CALLER);                          \
        return p;                                                                                            \
    }                                                                                                        \
    static void kind##_begin(void)                                                                           \
    {                                                                                                        \
        next_hot.malloc = kind##_malloc;                                                                     \
        next_hot.free = kind##_free;                                                                         \
        next_hot.calloc = kind##_calloc;                                                                     \
        next_hot.realloc = kind##_realloc;                                                                   \
    }
HOOKS(some)
HOOKS(counted)
#undef HOOKS

void tracer_untimed_begin(void)
{
    const enum ring_clock clock = tracer_clock();
    if (clock == RING_CLOCK_COUNTER)
        counted_begin();
    else if (clock == RING_CLOCK_NONE || clock == RING_CLOCK_EVERY)
        some_begin();
}

void tracer_untimed_publish(void)
{
    const struct ring_header *h = tracer_ring.header;
    const bool is_counter = h->clock == RING_CLOCK_COUNTER;
    if (!is_counter && h->clock != RING_CLOCK_NONE && h->clock != RING_CLOCK_EVERY)
        return;
    tracer_hot.rings.stamps = ring_stamps(h->packet_bytes, tracer_options.untimed ? 0 : tracer_options.every);
    tracer_hot.rings.counter = is_counter ? &tracer_ring.header->counter : NULL;
    store_release(&tracer_hot.untimed_area, tracer_ring.at.area);
}

/* Runs the sequence of the clock. The event's words after the second are a, b and c. */
static enum sequence_result run(ptrdiff_t area, uint32_t words, uint64_t what, uint64_t a, uint64_t b,
                                uint64_t c)
{
    const struct sequence_rings *r = &tracer_hot.rings;
#define WITH(name)                                                                                           \
    (words == 3   ? name(r, area, 3, what, a, b, c)                                                          \
     : words == 4 ? name(r, area, 4, what, a, b, c)                                                          \
                  : name(r, area, 5, what, a, b, c))
    return tracer_options.counts ? WITH(sequence_put_counted) : WITH(sequence_put_some);
#undef WITH
}

bool tracer_untimed_put(enum sequence_result *before, uint64_t what, uint64_t a, uint64_t b, uintptr_t site)
{
    const ptrdiff_t area = area_of(tracer_thread);
    const uint32_t words = what >> 16 & RING_SIZE_MASK;
    if (!area || (!is_off() && load_relaxed(tracer_site_place(site)) != site))
        return false;
    *before = is_off() ? SEQUENCE_DONE : run(area, words, what, a, words == 4 ? site : b, site);
    return *before == SEQUENCE_DONE;
}

bool tracer_untimed_put_bare(enum sequence_result *before, uint64_t what, uint64_t a, uint64_t b)
{
    const ptrdiff_t area = area_of(tracer_thread);
    if (!area)
        return false;
    *before = is_off() ? SEQUENCE_DONE : run(area, what >> 16 & RING_SIZE_MASK, what, a, b, 0);
    return *before == SEQUENCE_DONE;
}
