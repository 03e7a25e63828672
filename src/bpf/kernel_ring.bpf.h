/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_KERNEL_RING_BPF_H
#define BPF_KERNEL_RING_BPF_H

/*
 * Writes events into rings in a mappable array, which has the layout of the target's file of rings (ring_layout.h): one
 * reader serves both. As there, the head of a ring says which events are valid. But here an interrupt can come during a
 * write and run another program, which writes events of its own. So each CPU has two rings:
 *
 *   - The first ring belongs to the program that finds it idle. The program sets `busy`, writes the event in its place,
 *     stores the head, and clears `busy`. Programs that interrupt it see `busy`, and do not touch this ring; they are
 *     done before it goes on. So no step is atomic, and no event is copied.
 *   - The second ring takes the events of the programs that interrupt a write, and of programs that another thread may
 *     interrupt: probes, and on kernels where tracepoints are preemptible all of them.
 *
 * The second ring has many writers at a time, which need not be done in turns. They share a word, `reserved`, which has
 * the form of a head:
 *
 *   - A writer takes its place by one atomic exchange of `reserved`. The time is read after `reserved` was: if the
 *     exchange succeeds, nobody took a place in between, and times follow the places. If not, it reads both again.
 *   - `writers` counts the writers that are at work. The last one to leave makes all reserved events valid, by an
 *     exchange of the head, which fails only if a later writer has made more events valid meanwhile.
 *   - Whoever takes the first place in a packet writes its beginning, too. Its number and the count of events before it
 *     come from `reserved`: the packet before may be one that an interrupted writer has not begun yet.
 *
 * A thread whose program was preempted only delays the head of the second ring.
 *
 * Where rings are overwritten, the reader expects that only the packet behind that of the head may change. A writer
 * that would go further beyond the head loses its event. This happens only in the second ring, if interrupts fill a
 * whole packet during one write.
 *
 * Runs in: the kernel, in any context. A test that includes this has a `shape` of its own (KERNEL_RING_SHAPE).
 */

#include "bpf/sys.bpf.h"

#include "bpf/kernel_events.h"
#include "ring/ring_layout.h"

#ifndef KERNEL_RING_SHAPE
/* The layout of the array; set before loading. */
const volatile struct kernel_ring_shape shape = {0};
#endif

_Static_assert(sizeof(struct kernel_ring_cpu) == sizeof(struct ring_cpu), "one layout");
_Static_assert(__builtin_offsetof(struct kernel_ring_cpu, lost) == __builtin_offsetof(struct ring_cpu, lost),
               "one layout");

#define RING_TRIES 8 /* a writer that is interrupted this often, within ten instructions, loses its event */

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __uint(key_size, sizeof(uint32_t));
    __uint(value_size, 4096);
} rings SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __uint(key_size, sizeof(uint32_t));
    __uint(value_size, sizeof(struct kernel_ring_writer));
} ring_writers SEC(".maps");

/* A word that other programs read or change meanwhile. */
#define RING_WORD(x) (*(volatile __typeof__(x) *)&(x))

/* The compiler must not change a bound that the verifier is to see. */
#ifndef OPAQUE
#define OPAQUE(x) __asm__ volatile("" : "+r"(x))
#endif

/* What was stored before is there before what follows, as an interrupt on this CPU sees it, and on x86 a reader on
 * another one, too. */
#ifndef RING_STEP
#define RING_STEP() __asm__ volatile("" ::: "memory")
#endif

static __always_inline struct kernel_ring_cpu *ring_control(char *file, uint32_t ring)
{
    return (struct kernel_ring_cpu *)(file + sizeof(struct ring_header)) + ring;
}

/* The word at a position of a ring; the upper bits of a head do no harm. */
static __always_inline uint64_t *ring_word(char *file, uint32_t ring, uint64_t position)
{
    uint64_t at = position * 8;
    OPAQUE(at);
    at &= shape.ring_bytes - 8;
    return (uint64_t *)(file + shape.data_at + ring * shape.ring_bytes + at);
}

/* Returns the 64-bit number next to `near` whose lowest `bits` bits are those of `low`. */
static __always_inline uint64_t ring_extend(uint64_t low, uint64_t near, uint32_t bits)
{
    return near + ((int64_t)((low - near) << (64 - bits)) >> (64 - bits));
}

static __always_inline bool ring_fits(uint64_t position, const uint32_t words)
{
    const uint64_t packet = shape.packet_bytes / 8;
    return (position & (packet - 1)) + words < packet - 1;
}

static __always_inline uint64_t ring_next_packet(uint64_t position)
{
    return ((position | (shape.packet_bytes / 8 - 1)) + 1) & RING_POSITION_MASK;
}

/* Returns the head behind an event in the packet at `next`, which came after `old`. */
static __always_inline uint64_t ring_head_in(uint64_t next, uint64_t old, const uint32_t words)
{
    return ((old + RING_COUNT_ONE) & ~RING_POSITION_MASK) |
           ((next + RING_PACKET_WORDS + words) & RING_POSITION_MASK);
}

/* Returns whether the reader has taken what lies where the packet at `next` would. */
static __always_inline bool ring_was_read(char *file, uint32_t ring, uint64_t next)
{
    const volatile uint64_t *read = (const volatile uint64_t *)(file + shape.read_at) + ring;
    return ring_distance(*read & RING_POSITION_MASK, next) + shape.packet_bytes / 8 <= shape.ring_bytes / 8;
}

/* Writes the beginning of the packet at `next`, which came after `old`. `position` and `events`: of an earlier packet;
 * they are set to those of this one. */
static __always_inline void ring_begin_packet(struct ring_packet *p, __u64 *position, __u64 *events,
                                              uint64_t old, uint64_t next, uint64_t time,
                                              const uint64_t *lost)
{
    const uint64_t packet = shape.packet_bytes / 8;
    const uint64_t whole = ring_extend(next, *position, RING_POSITION_BITS);
    const uint64_t before = ring_extend(ring_count(old), *events, RING_COUNT_BITS);
    *position = whole;
    *events = before;
    p->magic = RING_PACKET_MAGIC;
    p->number = (whole - shape.ring_bytes / 8) / packet + 1;
    p->events_before = before;
    p->ticks = time;
    p->previous_words = whole == shape.ring_bytes / 8 ? 0 : ring_position(old) & (packet - 1);
    for (int k = 0; k < RING_LOSSES; k++)
        p->lost[k] = lost[k];
}

/* ---- the second ring ---- */

/* Returns RING_LOSSES if the packet at `next` may be begun while `reserved` is `old`, else why not. */
static __always_inline enum ring_loss
ring_may_begin(char *file, uint32_t ring, const struct kernel_ring_cpu *c, uint64_t old, uint64_t next)
{
    const bool may = shape.overwrites
                         ? !((old ^ RING_WORD(c->head)) & RING_POSITION_MASK & ~(shape.packet_bytes / 8 - 1))
                         : ring_was_read(file, ring, next);
    return may ? RING_LOSSES : RING_LOST_FULL;
}

/* Makes what is reserved valid if nobody else is at work. */
static __always_inline void ring_leave(struct kernel_ring_cpu *c, struct kernel_ring_writer *w)
{
    if (__sync_fetch_and_add(&w->writers, -1) != 1)
        return;
    const uint64_t head = RING_WORD(c->head), reserved = RING_WORD(w->reserved);
    if (!RING_WORD(w->writers))
        __sync_val_compare_and_swap(&c->head, head, reserved);
}

/* Takes a place for `words` words, and sets the first to the time. Returns RING_LOSSES, or why the event is lost. */
static __always_inline enum ring_loss ring_take(char *file, uint32_t ring, struct kernel_ring_writer *w,
                                                const uint32_t words, uint64_t **to)
{
    struct kernel_ring_cpu *c = ring_control(file, ring);
    for (int tries = 0; tries < RING_TRIES; tries++) {
        const uint64_t old = RING_WORD(w->reserved), position = ring_position(old);
        const bool fits = ring_fits(position, words);
        uint64_t next = position, now = old + RING_COUNT_ONE + words, lost[RING_LOSSES] = {0};
        /* The kernel's clock for any context may go back by nanoseconds when its rate is adjusted. */
        const uint64_t last = RING_WORD(w->time), clock = bpf_ktime_get_ns();
        const uint64_t time = clock < last ? last : clock;
        if (UNLIKELY(!fits)) {
            next = ring_next_packet(position);
            const enum ring_loss why = ring_may_begin(file, ring, c, old, next);
            if (why != RING_LOSSES)
                return why;
            for (int k = 0; k < RING_LOSSES; k++)
                lost[k] = RING_WORD(c->lost[k]);
            now = ring_head_in(next, old, words);
        }
        if (RING_WORD(w->time) < time) /* an interrupt may have stored a later one */
            w->time = time;
        if (__sync_val_compare_and_swap(&w->reserved, old, now) != old)
            continue;
        if (UNLIKELY(!fits)) {
            ring_begin_packet((struct ring_packet *)ring_word(file, ring, next), &w->position, &w->events,
                              old, next, time, lost);
            next += RING_PACKET_WORDS;
        }
        *to = ring_word(file, ring, next);
        **to = time;
        return RING_LOSSES;
    }
    return RING_LOST_NO_RING;
}

/* Counts an event of a CPU that has no rings. */
static __always_inline void ring_lose_elsewhere(char *file)
{
    __sync_fetch_and_add(&ring_control(file, 2 * shape.cpus)->lost[RING_LOST_NO_RING], 1);
}

/* As ring_begin(), in the second ring. */
static __attribute__((noinline)) uint64_t *ring_begin_shared(const uint32_t words)
{
    const uint32_t zero = 0, cpu = bpf_get_smp_processor_id();
    char *file = bpf_map_lookup_elem(&rings, &zero);
    struct kernel_ring_writer *w = bpf_map_lookup_elem(&ring_writers, &zero);
    uint64_t *to = NULL;
    if (!file || !w) /* there are always both */
        return NULL;
    if (UNLIKELY(cpu >= shape.cpus)) {
        ring_lose_elsewhere(file);
        return NULL;
    }
    __sync_fetch_and_add(&w->writers, 1);
    const uint32_t ring = shape.cpus + cpu;
    const enum ring_loss why = ring_take(file, ring, w, words, &to);
    if (LIKELY(why == RING_LOSSES))
        return to;
    struct kernel_ring_cpu *c = ring_control(file, ring);
    __sync_fetch_and_add(&c->lost[why], 1);
    ring_leave(c, w);
    return NULL;
}

static __attribute__((noinline)) int ring_end_shared(void)
{
    const uint32_t zero = 0, cpu = bpf_get_smp_processor_id();
    char *file = bpf_map_lookup_elem(&rings, &zero);
    struct kernel_ring_writer *w = bpf_map_lookup_elem(&ring_writers, &zero);
    if (file && w && cpu < shape.cpus)
        ring_leave(ring_control(file, shape.cpus + cpu), w);
    return 0;
}

/* ---- the first ring ---- */

/* Begins a packet, which becomes valid without events. Returns false if it has no place. */
static __attribute__((noinline)) bool ring_turn(char *file, uint32_t cpu, uint64_t time)
{
    struct kernel_ring_cpu *c = ring_control(file, cpu);
    const uint64_t old = c->head, next = ring_next_packet(ring_position(old));
    uint64_t lost[RING_LOSSES];
    if (!shape.overwrites && !ring_was_read(file, cpu, next))
        return false;
    for (int k = 0; k < RING_LOSSES; k++)
        lost[k] = c->lost[k];
    ring_begin_packet((struct ring_packet *)ring_word(file, cpu, next), &c->position, &c->events, old, next,
                      time, lost);
    RING_STEP();
    RING_WORD(c->head) = (old & ~RING_POSITION_MASK) | ((next + RING_PACKET_WORDS) & RING_POSITION_MASK);
    return true;
}

/*
 * Returns the place of an event of `words` words, a constant, whose first word is set to the time; the caller sets all
 * others, and then calls ring_end(). NULL: the event is lost, which is counted. `first`: receives the control of the
 * ring; NULL: it is the second one.
 */
static __always_inline uint64_t *ring_begin(struct kernel_ring_cpu **first, const uint32_t words)
{
    const uint32_t zero = 0, cpu = bpf_get_smp_processor_id();
    char *file = bpf_map_lookup_elem(&rings, &zero);
    *first = NULL;
    if (!file) /* it is always there */
        return NULL;
    if (UNLIKELY(cpu >= shape.cpus)) {
        ring_lose_elsewhere(file);
        return NULL;
    }
    struct kernel_ring_cpu *c = ring_control(file, cpu);
    OPAQUE(c);
    if (UNLIKELY(shape.preemptible || RING_WORD(c->busy)))
        return ring_begin_shared(words);
    RING_WORD(c->busy) = 1;
    RING_STEP();
    /* Only this program changes the ring from here on. The clock may go back, see ring_take(). */
    const uint64_t clock = bpf_ktime_get_ns(), last = c->time, time = clock < last ? last : clock;
    if (UNLIKELY(!ring_fits(c->head, words)) && !ring_turn(file, cpu, time)) {
        c->lost[RING_LOST_FULL]++;
        RING_STEP();
        RING_WORD(c->busy) = 0;
        return NULL;
    }
    uint64_t *to = ring_word(file, cpu, RING_WORD(c->head));
    c->time = time;
    to[0] = time;
    *first = c;
    return to;
}

static __always_inline void ring_end(struct kernel_ring_cpu *first, const uint32_t words)
{
    if (UNLIKELY(!first)) {
        ring_end_shared();
        return;
    }
    RING_STEP();
    RING_WORD(first->head) = first->head + RING_COUNT_ONE + words;
    RING_STEP();
    RING_WORD(first->busy) = 0;
}

/* Appends an event from elsewhere, of which the first word is left out: from a program that may be preempted. */
static __always_inline void ring_append(const uint64_t *event, const uint32_t words)
{
    uint64_t *to = ring_begin_shared(words);
    if (!to)
        return;
    for (uint32_t k = 1; k < words; k++)
        to[k] = event[k];
    ring_end_shared();
}

#endif
