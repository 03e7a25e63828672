/* SPDX-License-Identifier: BSD-2-Clause */
#include "ring/ring_write.h"

#include <string.h>

#include "base/sigsafe/atomic.h"
#include "ring/ring_shared.h"

#define PAGE_BYTES 4096u
#define TRIES      16u /* a debugger that steps through the program aborts each sequence */

static uint64_t page_up(uint64_t bytes)
{
    return (bytes + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1);
}

static uint64_t positions_at(uint32_t cpus)
{
    return page_up(sizeof(struct ring_header) + (cpus + 1ull) * sizeof(struct ring_cpu) +
                   RING_ANCHORS * sizeof(struct ring_anchor));
}

static uint64_t header_bytes(uint32_t cpus)
{
    return positions_at(cpus) + page_up(sizeof(struct ring_positions) + (cpus + 1ull) * sizeof(uint64_t));
}

uint64_t ring_file_bytes(uint32_t cpus, uint64_t ring_bytes)
{
    return header_bytes(cpus) + (cpus + 1ull) * ring_bytes;
}

void ring_begin(struct ring *ring, struct ring_header *header, uint32_t cpus, uint64_t packet_bytes,
                uint64_t ring_bytes, ptrdiff_t area)
{
    struct ring_cpu *control = (struct ring_cpu *)(header + 1);
    header->version = RING_VERSION;
    header->cpus = cpus;
    header->packet_bytes = packet_bytes;
    header->ring_bytes = ring_bytes;
    header->data_at = header_bytes(cpus);
    for (uint32_t cpu = 0; cpu < cpus; cpu++)
        control[cpu].head = ring_first_head(ring_bytes);
    ring->header = header;
    ring->is_hot = ring->is_tsc && area;
    ring->at = (struct sequence_rings){.area = area,
                                       .cpus = area ? cpus : 0,
                                       .control = (char *)control,
                                       .data = (char *)header + header->data_at,
                                       .ring_bytes = ring_bytes,
                                       .packet_mask = packet_bytes / 8 - 1,
                                       .ring_mask = ring_bytes / 8 - 1};
    store_release(&header->magic, RING_MAGIC);
}

void ring_begin_positions(struct ring_positions *p, uint32_t cpus, uint64_t ring_bytes)
{
    for (uint32_t cpu = 0; cpu < cpus; cpu++)
        p->read[cpu] = ring_bytes / 8; /* where the first packet begins */
    p->read[cpus] = 0;
    p->magic = RING_MAGIC;
}

void ring_begin_reader(struct ring *ring, struct ring_header *header, uint32_t cpus, uint64_t ring_bytes)
{
    struct ring_positions *p = (struct ring_positions *)((char *)header + positions_at(cpus));
    header->read_at = positions_at(cpus);
    ring_begin_positions(p, cpus, ring_bytes);
    ring->read = p;
}

void ring_add_anchor(struct ring *ring, uint64_t ticks, uint64_t ns, uint64_t width_ticks)
{
    struct ring_anchor *anchors =
        (struct ring_anchor *)((struct ring_cpu *)ring->at.control + ring->header->cpus + 1);
    const uint64_t n = atomic_fetch_add64(&ring->header->anchored, 1);
    struct ring_anchor *a = &anchors[n % RING_ANCHORS];
    store_release(&a->number, 0);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    store_relaxed(&a->ticks, ticks);
    store_relaxed(&a->ns, ns);
    store_relaxed(&a->width_ticks, width_ticks);
    store_release(&a->number, n + 1);
}

static struct ring_cpu *control_of(const struct ring *ring, uint32_t cpu)
{
    return (struct ring_cpu *)ring->at.control + cpu;
}

static uint64_t *word_at(const struct ring *ring, uint32_t cpu, uint64_t position)
{
    return (uint64_t *)(ring->at.data + cpu * ring->at.ring_bytes) + (position & ring->at.ring_mask);
}

static bool is_done(struct ring *ring, enum sequence_result r)
{
    if (r == SEQUENCE_ABORTED)
        atomic_add64(&ring->header->aborted, 1);
    return r == SEQUENCE_DONE;
}

void ring_count_lost(struct ring *ring, enum ring_loss why)
{
    const size_t at = offsetof(struct ring_cpu, lost) + why * sizeof(uint64_t);
    for (unsigned k = 0; ring->at.area && k < TRIES; k++)
        if (is_done(ring, sequence_count(&ring->at, at)))
            return;
    ring_shared_count_lost(ring, why);
}

/* The packet in which the position lies, or NULL: the ring has none yet. */
static const struct ring_packet *packet_of(const struct ring *ring, uint32_t cpu, uint64_t position)
{
    if (position == ring_first_head(ring->at.ring_bytes))
        return NULL;
    return (const struct ring_packet *)word_at(ring, cpu, position & ~ring->at.packet_mask);
}

/* True: the reader has taken what lies where the packet at `position` will be. */
static bool is_free(const struct ring *ring, uint32_t cpu, uint64_t position)
{
    if (!ring->read)
        return true;
    const uint64_t unread =
        ring_distance(load_acquire(&ring->read->read[cpu]) & RING_POSITION_MASK, position);
    return unread + ring->at.packet_mask + 1 <= ring->at.ring_mask + 1;
}

bool ring_reach(struct ring *ring, uint32_t cpu, uint64_t place, uint64_t end)
{
    struct ring_cpu *c = control_of(ring, cpu);
    if (likely(end <= load_acquire(&c->ready_bytes)))
        return true;
    if (!ring->reach(ring->at.data + cpu * ring->at.ring_bytes + place, end - place))
        return false;
    /* Threads that come here together make the same memory ready. */
    uint64_t ready = load_relaxed(&c->ready_bytes);
    while (ready < end && !atomic_swap_if64(&c->ready_bytes, ready, end))
        ready = load_relaxed(&c->ready_bytes);
    return true;
}

static bool is_ready(struct ring *ring, uint32_t cpu, uint64_t position)
{
    const uint64_t place = (position & ring->at.ring_mask) * 8;
    return ring_reach(ring, cpu, place, place + (ring->at.packet_mask + 1) * 8);
}

/*
 * Begins the packet behind the one in which `head` lies. Returns RING_LOSSES: it has begun, or another thread was
 * faster; else why it cannot.
 */
static enum ring_loss begin_packet(struct ring *ring, uint32_t cpu, uint64_t head)
{
    struct ring_cpu *c = control_of(ring, cpu);
    const uint64_t position = ring_position(head),
                   next = ((position | ring->at.packet_mask) + 1) & RING_POSITION_MASK;
    if (!is_free(ring, cpu, next))
        return RING_LOST_FULL;
    if (!is_ready(ring, cpu, next))
        return RING_LOST_NO_ROOM;
    const struct ring_packet *old = packet_of(ring, cpu, position);
    struct ring_packet packet = {.magic = RING_PACKET_MAGIC, .number = 1, .ticks = ring->ticks()};
    if (old) {
        packet.number = old->number + 1;
        packet.events_before =
            old->events_before + ((ring_count(head) - old->events_before) & RING_COUNT_MASK);
        packet.previous_words = position & ring->at.packet_mask;
    }
    for (unsigned k = 0; k < RING_LOSSES; k++)
        packet.lost[k] = load_relaxed(&c->lost[k]);
    const uint64_t after = (head & ~RING_POSITION_MASK) | ((next + RING_PACKET_WORDS) & RING_POSITION_MASK);
    is_done(ring, sequence_copy(ring->at.area, cpu, &c->head, head, after, word_at(ring, cpu, next), &packet,
                                RING_PACKET_WORDS));
    return RING_LOSSES;
}

bool ring_append(struct ring *ring, uint64_t *event, uint32_t words)
{
    for (unsigned tries = 0; ring->at.area && tries < TRIES; tries++) {
        const uint32_t cpu = sequence_cpu(ring->at.area);
        if (cpu >= ring->at.cpus)
            break;
        struct ring_cpu *c = control_of(ring, cpu);
        const uint64_t head = load_relaxed(&c->head), position = ring_position(head);
        if ((position & ring->at.packet_mask) + words < ring->at.packet_mask) {
            event[0] = ring->ticks();
            if (is_done(ring, sequence_copy(ring->at.area, cpu, &c->head, head, head + RING_COUNT_ONE + words,
                                            word_at(ring, cpu, position), event, words)))
                return true;
            continue;
        }
        const enum ring_loss why = begin_packet(ring, cpu, head);
        if (why != RING_LOSSES) {
            ring_count_lost(ring, why);
            return false;
        }
    }
    return ring_shared_append(ring, event, words);
}

void ring_append_cold(struct ring *ring, enum sequence_result before, uint64_t *event, uint32_t words)
{
    is_done(ring, before);
    ring_append(ring, event, words);
}

void ring_put_cold(struct ring *ring, enum sequence_result before, uint64_t what, uint64_t a, uint64_t b,
                   uint64_t c)
{
    uint64_t event[] = {0, what, a, b, c};
    ring_append_cold(ring, before, event, what >> 16 & RING_SIZE_MASK);
}
