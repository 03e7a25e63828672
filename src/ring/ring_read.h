/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RING_READ_H
#define RING_READ_H

/*
 * Reads the rings of a process image (ring_layout.h) while it writes them, or after its end. Nothing in the file is
 * trusted: the program may have written into it.
 *
 * Runs in: the tool. Threads: one. Owns: copies, until ring_reader_free(); the mapping is the caller's.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ring/ring_layout.h"

struct ring_reader;

/** Events of one packet that lie behind one another: all of it, or what came since the last time. */
struct ring_piece {
    const uint64_t *words; /* valid until the next call */
    uint32_t n_words, n_events;
    uint64_t number;            /* of the packet, from 1 */
    uint64_t ticks;             /* when the packet began */
    uint64_t overwritten;       /* events that were overwritten before these */
    uint64_t lost[RING_LOSSES]; /* of this ring, before the packet; of the shared one, until now */
};

/** Returns NULL if the bytes are no file of rings of this version, or not all of it. */
struct ring_reader *ring_reader_new(const void *file, uint64_t bytes);
void ring_reader_free(struct ring_reader *r); /* NULL is allowed */
/** Returns the number of rings: one for each CPU, and at last the one that threads share. */
uint32_t ring_reader_rings(const struct ring_reader *r);
const struct ring_header *ring_reader_header(const struct ring_reader *r);

/** To be called if another reader empties the rings: packets are overwritten as in rings that nobody empties. */
void ring_reader_stand_by(struct ring_reader *r);
/** To be called when the image has ended: what is half written stays so, and nothing waits for it. */
void ring_reader_end(struct ring_reader *r);
/**
 * Takes the next events of a ring. Returns 1; 0: there are none now; -EBADMSG: the ring is not as it should be, and
 * what it has until now is skipped.
 */
int ring_reader_next(struct ring_reader *r, uint32_t ring, struct ring_piece *out);
/** Returns the position up to which a ring was read, for struct ring_positions. */
uint64_t ring_reader_position(const struct ring_reader *r, uint32_t cpu);
/** Returns how many events of a ring were lost, for this reason, until now. */
uint64_t ring_reader_lost(const struct ring_reader *r, uint32_t ring, enum ring_loss why);

/**
 * Copies the anchors that the program has left, in the order of their times. Returns their number. Those that are half
 * written, or not later than the one before, are left out.
 */
uint32_t ring_reader_anchors(const struct ring_reader *r, struct ring_anchor out[static RING_ANCHORS]);

/** Returns the event at *at, and moves *at behind it. NULL: the end of the piece; or no event, then `*bad` is set. */
const struct ring_event *ring_piece_event(const struct ring_piece *p, uint32_t *at, bool *bad);

#endif
