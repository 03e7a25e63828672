/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/tracer/tracer_general.h"

#include "agent/clock.h"
#include "agent/hooks/cold.h"
#include "agent/ledger_writer.h"
#include "agent/reentry.h"
#include "agent/tracer/tracer_life.h"
#include "agent/tracer/tracer_options.h"
#include "agent/tracer/tracer_put.h"
#include "agent/tracer/tracer_rings.h"
#include "base/sigsafe/atomic.h"
#include "ring/ring_write.h"

struct next tracer_real;

/*
 * Puts the event of an allocation with the number of its stack, when there are no rings, or a sequence cannot write to
 * them. False: the ledger has no room for the stack.
 */
static COLD bool put_full_cold(enum event_id id, uint64_t a, uint64_t b, const struct walk_start *from)
{
    struct thread *t = &thread_self;
    uint8_t outside;
    if (!tracer_begin_cold(t, &outside))
        return true; /* it was counted */
    if (tracer_is_off()) {
        tracer_end_cold(t, outside);
        return true;
    }
    tracer_see_site(from->pc);
    const uint32_t stack = writer_stack_of_each(t, from);
    tracer_life_modules_loaded();
    if (stack != LEDGER_NONE)
        tracer_append_cold((uint64_t[]){0, ring_what((uint16_t)id, 6, 0), a, b, from->pc, stack}, 6);
    tracer_end_cold(t, outside);
    return stack != LEDGER_NONE;
}

static inline void put_hot(ptrdiff_t area, uint64_t what, uint64_t a, uint64_t b, uintptr_t site,
                           uint32_t stack)
{
    const enum sequence_result done = sequence_put_six(&tracer_hot.rings, area, what, a, b, site, stack);
    if (unlikely(done != SEQUENCE_DONE))
        ring_append_cold(&tracer_ring, done, (uint64_t[]){0, what, a, b, site, stack}, 6);
}

/*
 * As put_full_cold(), but by a sequence if there are rings for sequences. If there are, this process has a ledger, and
 * knows the thread. `area` is read after ledger_enter(): if a signal handler forks before the read, the child finds no
 * rings here; if it forks later, the event is the parent's (tracer_put_cold()).
 */
static bool put_full(enum event_id id, uint64_t a, uint64_t b, const struct walk_start *from)
{
    struct thread *t = &thread_self;
    const uint8_t outside = ledger_enter(t);
    const uint32_t thread = tracer_thread;
    const ptrdiff_t area = load_relaxed(&tracer_hot.rings.area);
    if (unlikely((int32_t)thread <= 0) || unlikely(!area) || unlikely(!clock_is_tsc)) {
        ledger_exit(t, outside);
        return put_full_cold(id, a, b, from);
    }
    bool has_room = true;
    if (likely(!tracer_is_off())) {
        tracer_see_site(from->pc);
        const uint32_t stack = writer_stack_of_each(t, from);
        tracer_life_modules_loaded();
        has_room = stack != LEDGER_NONE;
        if (likely(has_room))
            put_hot(area, ring_what((uint16_t)id, 6, thread), a, b, from->pc, stack);
    }
    ledger_exit(t, outside);
    return has_room;
}

static bool has(const struct tracer_ranges *r, uint64_t value)
{
    for (uint32_t k = 0; k < r->n; k++)
        if (value >= r->at[k].low && value <= r->at[k].high)
            return true;
    return !r->n;
}

/* Counts the event of an allocation if the user's filter excludes it. The reader judges each written event again. */
static bool is_filtered(enum event_id id, uint64_t size)
{
    const struct tracer_options *o = &tracer_options;
    const uint32_t thread = tracer_thread & ~TRACER_UNREGISTERED;
    if (likely(!o->sizes.n && !o->threads.n) || id == EVENT_realloc_end)
        return false;
    /* the reader compares signed numbers */
    if (has(&o->sizes, size < INT64_MAX ? size : INT64_MAX) && (!thread || has(&o->threads, thread)))
        return false;
    tracer_count_filtered();
    return true;
}

static COLD void note_pair(enum event_id id, uint64_t a, uint64_t b, const struct walk_start *from)
{
    if (is_filtered(id, b))
        return;
    const enum event_id full = id == EVENT_realloc_end
                                   ? EVENT_full_realloc_end
                                   : (enum event_id)(id + (EVENT_full_malloc - EVENT_malloc));
    if (tracer_options.stacks == TRACER_STACKS_NONE)
        tracer_put_bare(EVENT_NONE(id), a, b, 4);
    else if (tracer_options.stacks == TRACER_STACKS_SITE || !put_full(full, a, b, from))
        tracer_put_pair(id, a, b, from->pc);
}

static COLD void note_one(enum event_id id, uint64_t a, const struct walk_start *from)
{
    if (tracer_options.stacks == TRACER_STACKS_NONE)
        tracer_put_bare(EVENT_NONE(id), a, 0, 3);
    else
        tracer_put_one(id, a, from->pc);
}

static void note_begin(enum event_id id, uint64_t a, const struct walk_start *from)
{
    if (tracer_options.begins && (id == EVENT_free_end || !is_filtered(id, a)))
        note_one(id, a, from);
}

/* ---- the functions of next_hot ---- */

static void *general_malloc(size_t size)
{
    const struct walk_start from = COLD_CALLER();
    note_begin(EVENT_malloc_begin, size, &from);
    void *p = tracer_real.malloc(size);
    note_pair(EVENT_malloc, (uintptr_t)p, size, &from);
    return p;
}

static void general_free(void *p)
{
    const struct walk_start from = COLD_CALLER();
    if (likely(p))
        note_one(EVENT_free, (uintptr_t)p, &from);
    tracer_real.free(p);
    if (likely(p))
        note_begin(EVENT_free_end, (uintptr_t)p, &from);
}

static void *general_calloc(size_t count, size_t each)
{
    const struct walk_start from = COLD_CALLER();
    note_begin(EVENT_calloc_begin, count * each, &from);
    void *p = tracer_real.calloc(count, each);
    note_pair(EVENT_calloc, (uintptr_t)p, count * each, &from);
    return p;
}

static void *general_realloc(void *old, size_t size)
{
    const struct walk_start from = COLD_CALLER();
    note_one(EVENT_realloc_begin, (uintptr_t)old, &from);
    void *p = tracer_real.realloc(old, size);
    note_pair(EVENT_realloc_end, (uintptr_t)p, size, &from);
    return p;
}

static int general_posix_memalign(void **out, size_t alignment, size_t size)
{
    const struct walk_start from = COLD_CALLER();
    note_begin(EVENT_memalign_begin, size, &from);
    const int error = tracer_real.posix_memalign(out, alignment, size);
    note_pair(EVENT_memalign, error ? 0 : (uintptr_t)*out, size, &from);
    return error;
}

#define ALIGNED(name, parameters, arguments)                                                                 \
    static void *general_##name parameters                                                                   \
    {                                                                                                        \
        const struct walk_start from = COLD_CALLER();                                                        \
        note_begin(EVENT_memalign_begin, size, &from);                                                       \
        thread_self.traced_inside = true;                                                                    \
        void *p = tracer_real.name arguments;                                                                \
        thread_self.traced_inside = false;                                                                   \
        note_pair(EVENT_memalign, (uintptr_t)p, size, &from);                                                \
        return p;                                                                                            \
    }
ALIGNED(aligned_alloc, (size_t alignment, size_t size), (alignment, size))
ALIGNED(memalign, (size_t alignment, size_t size), (alignment, size))
ALIGNED(valloc, (size_t size), (size))
ALIGNED(pvalloc, (size_t size), (size))
#undef ALIGNED

/* ---- the functions of `next` ---- */

/* Writes an event of the group `begin` for the program's call of the function of the agent that has called `inner`. */
static COLD void note_outer(enum event_id id, uint64_t a, struct walk_start inner)
{
    struct thread *t = &thread_self;
    uint8_t outside;
    if (!tracer_options.begins || thread_self.traced_inside || (id != EVENT_free_end && is_filtered(id, a)))
        return;
    bool found = false;
    if (ledger_enter_own(t, &outside)) {
        found = process_open_ledger() && !tracer_is_off() && writer_walk_out(t, &inner);
        ledger_exit(t, outside);
    }
    if (!found)
        inner.pc = 0;
    note_one(id, a, &inner);
}

/* The real function may be one of the agent's (boot.c), which calls another one of `next`. */
#define OUTER(type, name, kind, parameters, size, call)                                                      \
    static type outer_##name parameters                                                                      \
    {                                                                                                        \
        const struct walk_start from = COLD_CALLER();                                                        \
        const bool before = thread_self.traced_inside;                                                       \
        note_outer(EVENT_##kind##_begin, size, from);                                                        \
        thread_self.traced_inside = true;                                                                    \
        type result = call;                                                                                  \
        thread_self.traced_inside = before;                                                                  \
        thread_self.traced_call = EVENT_##kind;                                                              \
        return result;                                                                                       \
    }
OUTER(void *, malloc, malloc, (size_t size), size, tracer_real.malloc(size))
OUTER(void *, calloc, calloc, (size_t count, size_t each), count *each, tracer_real.calloc(count, each))
OUTER(int, posix_memalign, memalign, (void **out, size_t alignment, size_t size), size,
      tracer_real.posix_memalign(out, alignment, size))
OUTER(void *, aligned_alloc, memalign, (size_t alignment, size_t size), size,
      tracer_real.aligned_alloc(alignment, size))
OUTER(void *, memalign, memalign, (size_t alignment, size_t size), size,
      tracer_real.memalign(alignment, size))
OUTER(void *, valloc, memalign, (size_t size), size, tracer_real.valloc(size))
OUTER(void *, pvalloc, memalign, (size_t size), size, tracer_real.pvalloc(size))
#undef OUTER

/* An operator calls no function of `next`, and it may throw: so these functions do not set `traced_inside`. */
#define X(field, symbol)                                                                                     \
    static void *outer_##field(size_t size, size_t second, size_t third)                                     \
    {                                                                                                        \
        const struct walk_start from = COLD_CALLER();                                                        \
        note_outer(EVENT_malloc_begin, size, from);                                                          \
        void *p = next_operators.field(size, second, third);                                                 \
        thread_self.traced_call = EVENT_malloc;                                                              \
        return p;                                                                                            \
    }
NEXT_NEW_FORMS(X)
#undef X

static void outer_free(void *p)
{
    const struct walk_start from = COLD_CALLER();
    tracer_real.free(p);
    if (p)
        note_outer(EVENT_free_end, (uintptr_t)p, from);
}

#define X(field, symbol)                                                                                     \
    static void outer_##field(void *p, size_t second, size_t third)                                          \
    {                                                                                                        \
        const struct walk_start from = COLD_CALLER();                                                        \
        next_operators.field(p, second, third);                                                              \
        if (p)                                                                                               \
            note_outer(EVENT_free_end, (uintptr_t)p, from);                                                  \
    }
NEXT_DELETE_FORMS(X)
#undef X

struct next_operators tracer_general_operators = {
#define X(field, symbol) .field = outer_##field,
    NEXT_NEW_FORMS(X) NEXT_DELETE_FORMS(X)
#undef X
};

void tracer_general_note_calls(void)
{
    tracer_real = next;
    next.malloc = outer_malloc;
    next.calloc = outer_calloc;
    next.posix_memalign = outer_posix_memalign;
    next.aligned_alloc = outer_aligned_alloc;
    next.memalign = outer_memalign;
    next.valloc = outer_valloc;
    next.pvalloc = outer_pvalloc;
}

void tracer_general_begin(void)
{
    next.free = outer_free;
#define X(name) .name = general_##name,
    next_hot = (struct next_hot){NEXT_FAMILY(X)};
#undef X
}

/* ---- cold halves ---- */

enum event_id tracer_general_call(void)
{
    return thread_self.traced_call ? (enum event_id)thread_self.traced_call : EVENT_malloc;
}

void tracer_general_allocated(const struct walk_start *from, const void *p, size_t size)
{
    note_pair(tracer_general_call(), (uintptr_t)p, size, from);
}

void tracer_general_released(const struct walk_start *from, const void *p)
{
    if (p)
        note_one(EVENT_free, (uintptr_t)p, from);
}

void tracer_general_realloc_begins(const struct walk_start *from, const void *old)
{
    note_one(EVENT_realloc_begin, (uintptr_t)old, from);
}

void tracer_general_realloc_ends(const struct walk_start *from, const void *p, size_t size)
{
    note_pair(EVENT_realloc_end, (uintptr_t)p, size, from);
}
