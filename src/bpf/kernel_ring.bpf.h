/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_KERNEL_RING_BPF_H
#define BPF_KERNEL_RING_BPF_H

/*
 * Writes events into rings in a mappable array, which has the layout of the target's file of rings (ring_layout.h): one
 * reader serves both. As there, the head of a CPU's ring says which events are valid. But here an interrupt can come
 * during a write and run another program, which writes into the same ring. So each CPU has one more word, `reserved`,
 * which has the form of a head:
 *
 *   - A writer takes its place by one atomic exchange of `reserved`. The time is read after `reserved` was: if the
 *     exchange succeeds, nobody took a place in between, and times follow the places. If not, it reads both again.
 *   - `writers` counts the writers that are at work. The last one to leave makes all reserved events valid, by an
 *     exchange of the head, which fails only if a later writer has made more events valid meanwhile.
 *   - Whoever takes the first place in a packet writes its beginning, too. Its number and the count of events before it
 *     come from `reserved`: the packet before may be one that an interrupted writer has not begun yet.
 *
 * The interrupting writer need not be done before the interrupted one goes on: a thread whose program was preempted
 * only delays the head.
 *
 * Where rings are overwritten, the reader expects that only the packet behind that of the head may change. A writer
 * that would go further beyond the head loses its event. This happens only if interrupts fill a whole packet during one
 * write.
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

/* Reads a word that other writers change meanwhile. */
#define RING_READ(x) (*(volatile __typeof__(x) *)&(x))

/* The compiler must not change a bound that the verifier is to see. */
#ifndef OPAQUE
#define OPAQUE(x) __asm__ volatile("" : "+r"(x))
#endif

static __always_inline void ring_lose(char *file, uint32_t cpu, enum ring_loss why)
{
    struct ring_cpu *c = (struct ring_cpu *)(file + sizeof(struct ring_header)) + cpu;
    __sync_fetch_and_add(&c->lost[why], 1);
}

/* The word at a position of this CPU's ring. */
static __always_inline uint64_t *ring_word(char *file, uint32_t cpu, uint64_t position)
{
    uint64_t at = (position & (shape.ring_bytes / 8 - 1)) * 8;
    OPAQUE(at);
    at &= shape.ring_bytes - 8;
    return (uint64_t *)(file + shape.data_at + cpu * shape.ring_bytes + at);
}

/* Returns the 64-bit number next to `near` whose lowest `bits` bits are those of `low`. */
static __always_inline uint64_t ring_extend(uint64_t low, uint64_t near, uint32_t bits)
{
    return near + ((int64_t)((low - near) << (64 - bits)) >> (64 - bits));
}

/* Returns RING_LOSSES if the packet at `next` may be begun while `reserved` is `old`, else why not. */
static __always_inline enum ring_loss ring_may_begin(char *file, uint32_t cpu, const struct ring_cpu *c,
                                                     uint64_t old, uint64_t next)
{
    const uint64_t packet = shape.packet_bytes / 8;
    if (shape.overwrites)
        return ((old ^ RING_READ(c->head)) & RING_POSITION_MASK & ~(packet - 1)) ? RING_LOST_FULL
                                                                                 : RING_LOSSES;
    const volatile uint64_t *read = (const volatile uint64_t *)(file + shape.read_at) + cpu;
    return ring_distance(*read & RING_POSITION_MASK, next) + packet <= shape.ring_bytes / 8 ? RING_LOSSES
                                                                                            : RING_LOST_FULL;
}

/* Writes the beginning of the packet at `next`, which came after `old`. */
static __always_inline void ring_begin_packet(char *file, uint32_t cpu, struct kernel_ring_writer *w,
                                              uint64_t old, uint64_t next, uint64_t time,
                                              const uint64_t *lost)
{
    const uint64_t packet = shape.packet_bytes / 8, position = ring_position(old);
    const uint64_t whole = ring_extend(next, w->position, RING_POSITION_BITS);
    const uint64_t events = ring_extend(ring_count(old), w->events, RING_COUNT_BITS);
    struct ring_packet *p = (struct ring_packet *)ring_word(file, cpu, next);
    w->position = whole;
    w->events = events;
    p->magic = RING_PACKET_MAGIC;
    p->number = (whole - shape.ring_bytes / 8) / packet + 1;
    p->events_before = events;
    p->ticks = time;
    p->previous_words = whole == shape.ring_bytes / 8 ? 0 : position & (packet - 1);
    for (int k = 0; k < RING_LOSSES; k++)
        p->lost[k] = lost[k];
}

/* Makes what is reserved valid if nobody else is at work. */
static __always_inline void ring_leave(struct ring_cpu *c, struct kernel_ring_writer *w)
{
    if (__sync_fetch_and_add(&w->writers, -1) != 1)
        return;
    const uint64_t head = RING_READ(c->head), reserved = RING_READ(w->reserved);
    if (!RING_READ(w->writers))
        __sync_val_compare_and_swap(&c->head, head, reserved);
}

/* Takes a place for `words` words and writes them. Returns RING_LOSSES, or why the event is lost. */
static __always_inline enum ring_loss ring_take(char *file, uint32_t cpu, struct ring_cpu *c,
                                                struct kernel_ring_writer *w, uint64_t *event,
                                                const uint32_t words)
{
    const uint64_t packet = shape.packet_bytes / 8;
    for (int tries = 0; tries < RING_TRIES; tries++) {
        const uint64_t old = RING_READ(w->reserved), position = ring_position(old);
        const bool fits = (position & (packet - 1)) + words < packet - 1;
        uint64_t next = position, now = old + RING_COUNT_ONE + words, lost[RING_LOSSES] = {0};
        /* The kernel's clock for any context may go back by nanoseconds when its rate is adjusted. */
        const uint64_t last = RING_READ(w->time), clock = bpf_ktime_get_ns();
        const uint64_t time = clock < last ? last : clock;
        if (UNLIKELY(!fits)) {
            next = ((position | (packet - 1)) + 1) & RING_POSITION_MASK;
            const enum ring_loss why = ring_may_begin(file, cpu, c, old, next);
            if (why != RING_LOSSES)
                return why;
            for (int k = 0; k < RING_LOSSES; k++)
                lost[k] = RING_READ(c->lost[k]);
            now = ((old + RING_COUNT_ONE) & ~RING_POSITION_MASK) |
                  ((next + RING_PACKET_WORDS + words) & RING_POSITION_MASK);
        }
        if (RING_READ(w->time) < time) /* an interrupt may have stored a later one */
            w->time = time;
        if (__sync_val_compare_and_swap(&w->reserved, old, now) != old)
            continue;
        event[0] = time;
        if (UNLIKELY(!fits)) {
            ring_begin_packet(file, cpu, w, old, next, time, lost);
            next += RING_PACKET_WORDS;
        }
        uint64_t *to = ring_word(file, cpu, next);
        for (uint32_t k = 0; k < words; k++)
            to[k] = event[k];
        return RING_LOSSES;
    }
    return RING_LOST_NO_RING;
}

/* Appends an event of `words` words, a constant, and sets the first to the time; or counts the event as lost. */
static __always_inline void ring_append(uint64_t *event, const uint32_t words)
{
    uint32_t zero = 0, cpu = bpf_get_smp_processor_id();
    char *file = bpf_map_lookup_elem(&rings, &zero);
    struct kernel_ring_writer *w = bpf_map_lookup_elem(&ring_writers, &zero);
    if (!file || !w) /* there are always both */
        return;
    if (cpu >= shape.cpus) {
        ring_lose(file, shape.cpus, RING_LOST_NO_RING);
        return;
    }
    struct ring_cpu *c = (struct ring_cpu *)(file + sizeof(struct ring_header)) + cpu;
    __sync_fetch_and_add(&w->writers, 1);
    const enum ring_loss why = ring_take(file, cpu, c, w, event, words);
    if (UNLIKELY(why != RING_LOSSES))
        ring_lose(file, cpu, why);
    ring_leave(c, w);
}

#endif
