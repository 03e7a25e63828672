/* SPDX-License-Identifier: BSD-2-Clause */
#include "ring/ring_shared.h"

#include <string.h>

#include "base/sigsafe/atomic.h"

#define READY_BYTES (64u << 10)

static struct ring_cpu *control_of(const struct ring *ring)
{
    return (struct ring_cpu *)ring->at.control + ring->header->cpus;
}

static uint64_t slots_of(const struct ring *ring)
{
    return ring->at.ring_bytes / sizeof(struct ring_slot);
}

static struct ring_slot *slot_at(const struct ring *ring, uint64_t position)
{
    struct ring_slot *slots = (struct ring_slot *)(ring->at.data + ring->header->cpus * ring->at.ring_bytes);
    return &slots[position & (slots_of(ring) - 1)];
}

static bool is_ready(struct ring *ring, uint64_t position, uint32_t n)
{
    const uint64_t place = (position & (slots_of(ring) - 1)) * sizeof(struct ring_slot);
    const uint64_t end = place + n * sizeof(struct ring_slot);
    if (end > ring->at.ring_bytes) /* the ring has been filled before */
        return true;
    const uint64_t from = place & ~(uint64_t)(READY_BYTES - 1);
    return ring_reach(ring, ring->header->cpus, from, (end + READY_BYTES - 1) & ~(uint64_t)(READY_BYTES - 1));
}

/* Takes `n` slots, from *position on. Returns RING_LOSSES, or why it cannot. */
static enum ring_loss take(struct ring *ring, uint32_t n, uint64_t *position)
{
    struct ring_cpu *c = control_of(ring);
    uint64_t head;
    do {
        head = load_relaxed(&c->head);
        if (ring->read && head + n - load_acquire(&ring->read->read[ring->header->cpus]) > slots_of(ring))
            return RING_LOST_FULL;
        if (!is_ready(ring, head, n))
            return RING_LOST_NO_ROOM;
    } while (
        !__atomic_compare_exchange_n(&c->head, &head, head + n, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
    *position = head;
    return RING_LOSSES;
}

/* Makes the slot this thread's. False: it is another writer's, which sleeps in the lap before, or is a lap ahead. */
static bool claim(struct ring *ring, uint64_t position)
{
    struct ring_slot *s = slot_at(ring, position);
    const uint64_t mine = ring_slot_mark(position, slots_of(ring), RING_SLOT_BUSY);
    uint64_t old = load_acquire(&s->first);
    return ring_slot_state(old) != RING_SLOT_BUSY && old < mine &&
           __atomic_compare_exchange_n(&s->first, &old, mine, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static void finish(struct ring *ring, uint64_t position, enum ring_slot_state state)
{
    struct ring_slot *s = slot_at(ring, position);
    const uint64_t mark = ring_slot_mark(position, slots_of(ring), state);
    store_release(&s->last, mark);
    store_release(&s->first, mark);
}

void ring_shared_count_lost(struct ring *ring, enum ring_loss why)
{
    atomic_add64(&control_of(ring)->lost[why], 1);
}

bool ring_shared_append(struct ring *ring, uint64_t *event, uint32_t words)
{
    const uint32_t n = ring_slots_of(words);
    uint64_t position;
    enum ring_loss why = take(ring, n, &position);
    uint32_t claimed = 0;
    while (why == RING_LOSSES && claimed < n && claim(ring, position + claimed))
        claimed++;
    if (why == RING_LOSSES && claimed < n)
        why = RING_LOST_NO_RING;
    if (why != RING_LOSSES) {
        for (uint32_t k = 0; k < claimed; k++)
            finish(ring, position + k, RING_SLOT_VOID);
        ring_shared_count_lost(ring, why);
        return false;
    }
    event[0] = ring->ticks();
    for (uint32_t k = n; k-- > 0;) { /* the first slot at last: then all of the event is there */
        const uint32_t from = k * RING_SLOT_WORDS, left = words - from;
        memcpy(slot_at(ring, position + k)->words, event + from,
               (left < RING_SLOT_WORDS ? left : RING_SLOT_WORDS) * sizeof(*event));
        finish(ring, position + k, k ? RING_SLOT_MORE : RING_SLOT_DONE);
    }
    __atomic_fetch_add(&control_of(ring)->written, 1, __ATOMIC_RELEASE);
    return true;
}
