/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/tracer/tracer.h"

#include "agent/clock.h"
#include "agent/hooks/cold.h"
#include "agent/ledger_writer.h"
#include "agent/process.h"
#include "agent/reentry.h"
#include "agent/sites_link.h"
#include "agent/tracer/tracer_clock.h"
#include "agent/tracer/tracer_general.h"
#include "agent/tracer/tracer_life.h"
#include "agent/tracer/tracer_options.h"
#include "agent/tracer/tracer_put.h"
#include "agent/tracer/tracer_rings.h"
#include "agent/tracer/tracer_sum.h"
#include "agent/tracer/tracer_untimed.h"
#include "base/sigsafe/atomic.h"
#include "base/sigsafe/syscall.h"
#include "target/rseq_thread.h"
#include "wire/event_schema.h"

uint32_t tracer_on;
static bool general; /* the hooks of tracer_general.h are installed */

__thread uint32_t tracer_thread __attribute__((tls_model("initial-exec")));

bool tracer_know_thread(void)
{
    if ((tracer_thread & ~TRACER_UNREGISTERED) || !ledger_may_call(&process.ledger))
        return false;
    const uint32_t id = (uint32_t)sys_call(SYS_gettid, 0);
    tracer_thread |= id | (rseq_thread_is_registered(tracer_rings_area()) ? 0 : TRACER_UNREGISTERED);
    return true;
}

/* Adds the address, and the module that it is in, to the ledger: the tool finds its name there. */
static COLD void add_site(uintptr_t site, uintptr_t *place)
{
    if (writer_caller(site) == LEDGER_NONE)
        return;
    tracer_life_site(site);
    store_relaxed(&tracer_hot.has_sites, 1);
    store_relaxed(place, site);
}

COLD void tracer_count_lost(void)
{
    if (!tracer_rings_made()) /* by this process; once they are, publish() has taken early_lost, and takes no more */
        atomic_add64(&tracer_hot.early_lost, 1);
    else if (tracer_thread & TRACER_UNREGISTERED) /* a child that shares the memory of its parent */
        ring_shared_count_lost(&tracer_ring, RING_LOST_NO_RING);
    else
        ring_count_lost(&tracer_ring, RING_LOST_NO_RING);
}

COLD bool tracer_begin_cold(struct thread *t, uint8_t *outside)
{
    if (ledger_enter_own(t, outside)) {
        if (process_open_ledger() && tracer_rings_made()) {
            if (tracer_know_thread())
                tracer_life_thread_begins();
            return true;
        }
        ledger_exit(t, *outside);
    }
    tracer_count_lost();
    return false;
}

void tracer_end_cold(struct thread *t, uint8_t outside)
{
    tracer_clock_anchor();
    ledger_exit(t, outside);
}

/* Returns whether the user has switched events of the allocator off. The control page is there once the ledger is. */
static inline bool is_off(void)
{
    return unlikely(load_relaxed(&process.ledger.control->word) & LEDGER_CONTROL_ALLOC_BITS);
}

bool tracer_is_off(void)
{
    return is_off();
}

bool tracer_is_all_off(void)
{
    return unlikely(load_relaxed(&process.ledger.control->word) & LEDGER_CONTROL_TRACE_OFF);
}

/*
 * Writes an event that a sequence has not written, as `before` tells. If a signal handler interrupts this function and
 * forks, it goes on in the child with pointers to the parent's rings, where the child then has memory of its own
 * (tracer_before_fork()). The event is the parent's.
 */
COLD void tracer_put_cold(enum sequence_result before, uint64_t what, uint64_t a, uint64_t b, uintptr_t site)
{
    struct thread *t = &thread_self;
    uint8_t outside;
    if (tracer_sum_on)
        return tracer_sum_add((enum event_id)(uint16_t)what, b, site);
    if (before == SEQUENCE_NO_FIT && tracer_untimed_put(&before, what, a, b, site))
        return;
    if (!tracer_begin_cold(t, &outside))
        return;
    if (!is_off()) {
        if (site && load_relaxed(tracer_site_place(site)) != site)
            add_site(site, tracer_site_place(site));
        const uint32_t words = what >> 16 & RING_SIZE_MASK, thread = tracer_thread;
        uint64_t event[] = {0, ring_what((uint16_t)what, words, thread & ~TRACER_UNREGISTERED), a,
                            words == 4 ? site : b, site};
        if (thread & TRACER_UNREGISTERED)
            ring_shared_append(&tracer_ring, event, words);
        else
            ring_append_cold(&tracer_ring, before, event, words);
    }
    tracer_end_cold(t, outside);
}

/*
 * In a fork child tracer_hot is zero, from the first instruction on: if a signal handler forks amid this function, the
 * child goes on with it, finds no CPU's ring, and takes the cold way.
 */
static inline __attribute__((always_inline)) void put(const uint32_t words, enum event_id id, uint64_t a,
                                                      uint64_t b, uintptr_t site)
{
    const uint32_t thread = tracer_thread;
    const ptrdiff_t area = load_relaxed(&tracer_hot.rings.area);
    const uint64_t what = ring_what((uint16_t)id, words, thread);
    enum sequence_result done = SEQUENCE_NO_FIT;
    if (likely((int32_t)thread > 0) && likely(area) && likely(clock_is_tsc)) {
        if (is_off())
            return;
        if (likely(load_relaxed(tracer_site_place(site)) == site))
            done = sequence_put(&tracer_hot.rings, area, words, what, a, words == 4 ? site : b, site);
        if (likely(done == SEQUENCE_DONE))
            return;
    }
    tracer_put_cold(done, what, a, b, site);
}

void tracer_see_site(uintptr_t site)
{
    if (load_relaxed(tracer_site_place(site)) != site)
        add_site(site, tracer_site_place(site));
}

void tracer_put_pair(enum event_id id, uint64_t a, uint64_t b, uintptr_t site)
{
    put(5, id, a, b, site);
}

void tracer_put_one(enum event_id id, uint64_t a, uintptr_t site)
{
    put(4, id, a, 0, site);
}

void tracer_append_cold(uint64_t *event, uint32_t words)
{
    const uint32_t thread = tracer_thread;
    event[1] |= (uint64_t)(thread & ~TRACER_UNREGISTERED) << 32;
    if (tracer_is_all_off())
        return; /* nobody reads the rings */
    if (thread & TRACER_UNREGISTERED)
        ring_shared_append(&tracer_ring, event, words);
    else
        ring_append(&tracer_ring, event, words);
}

static COLD void put_bare_cold(enum sequence_result before, uint64_t what, uint64_t a, uint64_t b)
{
    struct thread *t = &thread_self;
    uint8_t outside;
    if (before == SEQUENCE_NO_FIT && tracer_untimed_put_bare(&before, what, a, b))
        return;
    if (!tracer_begin_cold(t, &outside))
        return;
    uint64_t event[] = {0, (uint32_t)what, a, b};
    if (before == SEQUENCE_ABORTED)
        atomic_add64(&tracer_ring.header->aborted, 1);
    if (!is_off())
        tracer_append_cold(event, what >> 16 & RING_SIZE_MASK);
    tracer_end_cold(t, outside);
}

void tracer_put_bare(enum event_id id, uint64_t a, uint64_t b, uint32_t words)
{
    const uint32_t thread = tracer_thread;
    const ptrdiff_t area = load_relaxed(&tracer_hot.rings.area);
    const uint64_t what = ring_what((uint16_t)id, words, thread);
    enum sequence_result done = SEQUENCE_NO_FIT;
    if (likely((int32_t)thread > 0) && likely(area) && likely(clock_is_tsc)) {
        if (is_off())
            return;
        done = words == 3 ? sequence_put(&tracer_hot.rings, area, 3, what, a, b, 0)
                          : sequence_put(&tracer_hot.rings, area, 4, what, a, b, 0);
        if (likely(done == SEQUENCE_DONE))
            return;
    }
    put_bare_cold(done, what, a, b);
}

static COLD void count_filtered_cold(void)
{
    struct thread *t = &thread_self;
    uint8_t outside;
    if (!tracer_begin_cold(t, &outside))
        return;
    struct ring_cpu *shared = (struct ring_cpu *)tracer_ring.at.control + tracer_ring.header->cpus;
    if (!is_off())
        atomic_add64(&shared->lost[RING_LOST_FILTERED], 1);
    tracer_end_cold(t, outside);
}

void tracer_count_filtered(void)
{
    const size_t at = offsetof(struct ring_cpu, lost) + RING_LOST_FILTERED * sizeof(uint64_t);
    const ptrdiff_t area = load_relaxed(&tracer_hot.rings.area);
    if (likely((int32_t)tracer_thread > 0) && likely(area)) {
        if (is_off())
            return;
        if (likely(sequence_count_hot(&tracer_hot.rings, area, at) == SEQUENCE_DONE))
            return;
    }
    count_filtered_cold();
}

void tracer_forget_sites(void)
{
    if (load_relaxed(&tracer_hot.has_sites))
        __builtin_memset(tracer_hot.sites, 0, sizeof(tracer_hot.sites));
}

#define CALLER ((uintptr_t)__builtin_return_address(0))

static HOT void *trace_malloc(size_t size)
{
    void *p = tracer_real.malloc(size);
    put(5, EVENT_malloc, (uintptr_t)p, size, CALLER);
    return p;
}

static HOT void trace_free(void *p)
{
    if (likely(p))
        put(4, EVENT_free, (uintptr_t)p, 0, CALLER);
    tracer_real.free(p);
}

static HOT void *trace_calloc(size_t count, size_t each)
{
    void *p = tracer_real.calloc(count, each);
    put(5, EVENT_calloc, (uintptr_t)p, count * each, CALLER);
    return p;
}

static void *trace_realloc(void *old, size_t size)
{
    put(4, EVENT_realloc_begin, (uintptr_t)old, 0, CALLER);
    void *p = tracer_real.realloc(old, size);
    put(5, EVENT_realloc_end, (uintptr_t)p, size, CALLER);
    return p;
}

static int trace_posix_memalign(void **out, size_t alignment, size_t size)
{
    int error = tracer_real.posix_memalign(out, alignment, size);
    put(5, EVENT_memalign, error ? 0 : (uintptr_t)*out, size, CALLER);
    return error;
}

#define ALIGNED(name, parameters, arguments)                                                                 \
    static void *trace_##name parameters                                                                     \
    {                                                                                                        \
        void *p = tracer_real.name arguments;                                                                \
        put(5, EVENT_memalign, (uintptr_t)p, size, CALLER);                                                  \
        return p;                                                                                            \
    }
ALIGNED(aligned_alloc, (size_t alignment, size_t size), (alignment, size))
ALIGNED(memalign, (size_t alignment, size_t size), (alignment, size))
ALIGNED(valloc, (size_t size), (size))
ALIGNED(pvalloc, (size_t size), (size))
#undef ALIGNED

void *tracer_book(uintptr_t site, void *p, size_t size)
{
    put(5, EVENT_malloc, (uintptr_t)p, size, site);
    return p;
}

void tracer_release(uintptr_t site, const void *p)
{
    if (p)
        put(4, EVENT_free, (uintptr_t)p, 0, site);
}

void tracer_allocated(const struct walk_start *from, const void *p, size_t size)
{
    if (general) {
        tracer_general_allocated(from, p, size);
        return;
    }
    put(5, tracer_general_call(), (uintptr_t)p, size, from->pc);
}

void tracer_released(const struct walk_start *from, const void *p)
{
    if (general) {
        tracer_general_released(from, p);
        return;
    }
    if (p)
        put(4, EVENT_free, (uintptr_t)p, 0, from->pc);
}

void tracer_realloc_begins(const struct walk_start *from, const void *old)
{
    if (general) {
        tracer_general_realloc_begins(from, old);
        return;
    }
    put(4, EVENT_realloc_begin, (uintptr_t)old, 0, from->pc);
}

void tracer_realloc_ends(const struct walk_start *from, const void *p, size_t size)
{
    if (general) {
        tracer_general_realloc_ends(from, p, size);
        return;
    }
    put(5, EVENT_realloc_end, (uintptr_t)p, size, from->pc);
}

void tracer_begin(void)
{
    const struct ledger_control *initial = process.config.initial_control;
    if (!tracer_rings_begin())
        return;
    if (process.config.sites & LEDGER_WITH_TRACE_LATER)
        process_control_at_start((initial ? initial->word : 0) | LEDGER_CONTROL_TRACE_OFF);
    tracer_life_begin();
    tracer_on = sites_on = 1;
    tracer_general_note_calls();
    if (tracer_sum_begin())
        return;
    general = tracer_options_are_general();
    if (general) {
        tracer_general_begin();
        return;
    }
    next_hot = (struct next_hot){.malloc = trace_malloc,
                                 .calloc = trace_calloc,
                                 .realloc = trace_realloc,
                                 .free = trace_free,
                                 .posix_memalign = trace_posix_memalign,
                                 .aligned_alloc = trace_aligned_alloc,
                                 .memalign = trace_memalign,
                                 .valloc = trace_valloc,
                                 .pvalloc = trace_pvalloc};
    tracer_untimed_begin();
}

void tracer_begin_thread(void)
{
    tracer_thread &= TRACER_UNREGISTERED;
}
