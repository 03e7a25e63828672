/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RING_READ_H
#define RING_READ_H

/*
 * Reads the rings of a process image (ring_layout.h) while it writes them, or after its end. Nothing in the file is
 * trusted: the program may have written into it.
 *
 * Runs in: the tool. Threads: one for each reader. Owns: copies, until ring_reader_free(); the mapping is the caller's.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ring/ring_layout.h"

struct ring_reader;

/** Successive events of one packet: all of them, or those that are new since the last call. */
struct ring_piece {
    const uint64_t *words; /* the reader's copy, valid until the next ring_reader_next() */
    uint32_t n_words, n_events;
    uint64_t number;            /* of the packet, from 1 */
    uint64_t ticks;             /* when the packet began */
    uint64_t overwritten;       /* events that were overwritten before these */
    uint64_t lost[RING_LOSSES]; /* of this ring, before the packet; of the shared one, until now */
};

/**
 * Returns a reader of the mapped file, which must stay mapped until ring_reader_free(). NULL: it is not a complete file
 * of rings of this version, or there is no memory.
 */
struct ring_reader *ring_reader_new(const void *file, uint64_t bytes);
void ring_reader_free(struct ring_reader *r); /* NULL is allowed */
/** Returns the number of rings: one for each CPU, and as the last one the shared ring. */
uint32_t ring_reader_rings(const struct ring_reader *r);
const struct ring_header *ring_reader_header(const struct ring_reader *r);

/** Call this if another reader empties the rings: packets may then be overwritten before this reader takes them. */
void ring_reader_stand_by(struct ring_reader *r);
/** Call this when the image has ended: from then on events that are half written are skipped, not waited for. */
void ring_reader_end(struct ring_reader *r);
/**
 * Takes the next events of a ring. Returns 1; 0: there are none now; -EBADMSG: the ring is damaged, and all that it has
 * until now is skipped. With 1 a piece may have no events, and only report `overwritten` ones.
 */
int ring_reader_next(struct ring_reader *r, uint32_t ring, struct ring_piece *out);
/** Returns the last number of RING_CLOCK_COUNTER until now. */
uint64_t ring_reader_counter(const struct ring_reader *r);
/** Returns whether the shared ring has events that cannot be read yet, as an earlier one is half written. */
bool ring_reader_waits(const struct ring_reader *r);
/** Returns the position up to which a ring was read, for struct ring_positions. */
uint64_t ring_reader_position(const struct ring_reader *r, uint32_t cpu);
/** Returns how many events of a ring were lost until now for the reason `why`. */
uint64_t ring_reader_lost(const struct ring_reader *r, uint32_t ring, enum ring_loss why);

/**
 * Copies the anchors that the program has left, in the order of their times. Returns their number. Those that are half
 * written, or not later than the one before, are left out.
 */
uint32_t ring_reader_anchors(const struct ring_reader *r, struct ring_anchor out[static RING_ANCHORS]);

/** Returns the event at word *at, and moves *at behind it. NULL: the piece ends, or, if *bad is true, it is damaged. */
const struct ring_event *ring_piece_event(const struct ring_piece *p, uint32_t *at, bool *bad);

#endif
