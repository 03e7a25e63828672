/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RING_WRITE_H
#define RING_WRITE_H

/*
 * Writes events into the rings of this process image (ring_layout.h). The caller has made the file and mapped it; its
 * pages are made ready packet by packet. A thread writes into the ring of the CPU on which it runs, by a restartable
 * sequence (sequence_x86_64.h): no lock, no atomic operation, and an event is either whole or not there. Within a ring
 * times never go back, because nothing runs on the CPU between the reading of the clock and the store of the head.
 *
 * Each event that is not written is counted, in struct ring_cpu.lost: the written events and the lost events together
 * are all events that happened.
 *
 * Runs in: target. Threads: any, signal handlers included; no malloc, no lock. A system call is made only by `reach`.
 * Owns: nothing; the memory is the caller's.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/sigsafe/compiler.h"
#include "ring/ring_layout.h"
#include "ring/sequence_x86_64.h"

struct ring {
    struct sequence_rings at;
    struct ring_header *header;
    const struct ring_positions *read; /* NULL: no reader, rings are overwritten */
    bool is_tsc;                       /* the clock is the time stamp counter */
    bool is_hot;                       /* is_tsc, and libc registers threads for sequences */
    /** Returns the time, in the unit of the file's times. */
    uint64_t (*ticks)(void);
    /** Backs memory of the file with pages, and does not change it. Returns whether it may be touched now. */
    bool (*reach)(char *from, uint64_t bytes);
};

/**
 * Fills in the header of a new file of zeros, whose first `header->data_at` bytes are backed, and `ring`, whose other
 * members are set before. `packet_bytes` and `ring_bytes` are powers of two. `area`: the offset of struct rseq; 0:
 * threads are not registered.
 */
void ring_begin(struct ring *ring, struct ring_header *header, uint32_t cpus, uint64_t packet_bytes,
                uint64_t ring_bytes, ptrdiff_t area);
/** Returns the size of the file in bytes, all of which is mapped. */
uint64_t ring_file_bytes(uint32_t cpus, uint64_t ring_bytes);
/** Called before ring_begin(), for rings that a reader empties: makes `ring->read` the positions in the file. */
void ring_begin_reader(struct ring *ring, struct ring_header *header, uint32_t cpus, uint64_t ring_bytes);
/** Fills in new positions. */
void ring_begin_positions(struct ring_positions *p, uint32_t cpus, uint64_t ring_bytes);

/**
 * Appends an event of `words` words, and sets the first of them to the time. Returns false if the event is lost; then
 * it is counted.
 */
bool ring_append(struct ring *ring, uint64_t *event, uint32_t words);
/** As ring_append(), after a sequence that did not write the event; `before` is the result of that sequence. */
void ring_append_cold(struct ring *ring, enum sequence_result before, uint64_t *event, uint32_t words);
/** Counts an event that is not written. Children that share memory (ring_shared.h) call ring_shared_count_lost(). */
void ring_count_lost(struct ring *ring, enum ring_loss why);
/** Stores an anchor of the clock, struct ring_anchor, in the place of the oldest one. */
void ring_add_anchor(struct ring *ring, uint64_t ticks, uint64_t ns, uint64_t width_ticks);

/**
 * Returns `stamps` (sequence_x86_64.h) for rings in which each `every`-th event has a time. `every`: a power of two; 0:
 * no event has a time.
 */
static inline uint64_t ring_stamps(uint64_t packet_bytes, uint64_t every)
{
    return every ? (every - 1) * RING_COUNT_ONE
                 : packet_bytes / 8 - 1; /* no event is at a packet's first word */
}

/** Returns the second word of an event. */
static inline uint64_t ring_what(uint16_t id, uint32_t words, uint32_t thread)
{
    return (uint64_t)thread << 32 | (uint64_t)words << 16 | id;
}

/** The slow path of ring_put(), whose sequence returned `before` and wrote nothing. */
void ring_put_cold(struct ring *ring, enum sequence_result before, uint64_t what, uint64_t a, uint64_t b,
                   uint64_t c);

/** Appends an event of 4 or 5 words, `words` being a constant: the time, what it is, a, b, and perhaps c. */
static inline void ring_put(struct ring *ring, const uint32_t words, uint64_t what, uint64_t a, uint64_t b,
                            uint64_t c)
{
    const enum sequence_result done =
        likely(ring->is_hot) ? sequence_put(&ring->at, ring->at.area, words, what, a, b, c) : SEQUENCE_NO_FIT;
    if (likely(done == SEQUENCE_DONE))
        return;
    ring_put_cold(ring, done, what, a, b, c);
}

/**
 * As ring_put(), for rings in which only some events have times. The caller has called ring_begin() with is_tsc false,
 * and has then set ring->at.stamps.
 */
static inline void ring_put_some(struct ring *ring, const uint32_t words, uint64_t what, uint64_t a,
                                 uint64_t b, uint64_t c)
{
    const enum sequence_result done = likely(ring->at.area)
                                          ? sequence_put_some(&ring->at, ring->at.area, words, what, a, b, c)
                                          : SEQUENCE_NO_FIT;
    if (likely(done == SEQUENCE_DONE))
        return;
    ring_put_cold(ring, done, what, a, b, c);
}

#endif
