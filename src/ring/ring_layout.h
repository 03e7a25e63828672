/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RING_LAYOUT_H
#define RING_LAYOUT_H

/*
 * The layout of a file of rings: events of one process image, in the order in which each CPU wrote them. The target
 * writes it (ring_write.h), the tool reads it (ring_read.h).
 *
 * The file begins with a header and one struct ring_cpu for each CPU. Behind them each CPU has a ring of `ring_bytes`,
 * which is divided into packets of `packet_bytes`, both powers of two. A packet begins with a struct ring_packet, and
 * has events behind it; an event lies in one packet. Positions count words of 8 bytes since the ring was made, modulo
 * 2^RING_POSITION_BITS; the place in the ring is the position modulo its size.
 *
 * The head of a CPU's ring is the position behind its last event, and in the upper bits the number of events. One store
 * of the head makes an event, or a new packet, valid: whatever lies behind the head was never written, or is older by
 * one lap of the ring, or is garbage of a sequence that was aborted.
 *
 * Threads that cannot run restartable sequences share one ring more, behind those of the CPUs. It has slots of 64
 * bytes instead of packets; its head counts slots that writers have taken, by an atomic operation. A slot's first and
 * last word tell the lap and whether its writer is done. A slot whose writer sleeps is not taken again until that
 * writer is done. So each event that is read is complete, and each event that found no free slot is counted as lost.
 *
 * Runs in: target, tool. Pure data.
 */

#include <stdint.h>

#define RING_MAGIC   UINT64_C(0x31474e4952414c41) /* "ALARING1" */
#define RING_VERSION 1u

#define RING_POSITION_BITS 36
#define RING_POSITION_MASK ((UINT64_C(1) << RING_POSITION_BITS) - 1)
#define RING_COUNT_BITS    (64 - RING_POSITION_BITS)
#define RING_COUNT_MASK    ((UINT64_C(1) << RING_COUNT_BITS) - 1)
#define RING_COUNT_ONE     (UINT64_C(1) << RING_POSITION_BITS)

#define RING_CPUS_MAX         4096u
#define RING_PACKET_BYTES_MIN 8192u
#define RING_RING_BYTES_MAX   (UINT64_C(1) << 32)
#define RING_EVENT_WORDS_MAX  512u /* 4 KiB */

/* Why events are not in the ring. */
enum ring_loss {
    RING_LOST_FULL,    /* the reader has not yet taken the packet that would be written next */
    RING_LOST_NO_ROOM, /* there is no memory for a packet */
    RING_LOST_NO_RING, /* no ring could be written to: of a CPU that came later, for example */
    RING_LOST_FILTERED,
    RING_LOSSES
};

struct ring_header {
    uint64_t magic; /* stored last */
    uint32_t version, cpus;
    uint64_t packet_bytes, ring_bytes;
    uint64_t data_at;    /* offset of the first CPU's ring; a multiple of the page size */
    uint32_t overwrites; /* 1: a full ring overwrites its oldest packet; 0: it discards events */
    uint32_t clock;
    uint64_t image_id;
    uint64_t aborted; /* sequences that were aborted, and begun again */
    /* the image: when it began; of which image it is the fork child (0: of none), and when it was forked */
    uint64_t began_ticks, parent_image_id, forked_ticks;
    int32_t pid, parent_pid;
    uint64_t anchored; /* anchors that were written: the last RING_ANCHORS of them are there */
    uint64_t unused[3];
};

/*
 * The counter of the file's times, and CLOCK_MONOTONIC, at one moment. The program writes one when it begins, and
 * others when it does something slow, so that what it leaves can be read when it has ended. They lie behind the last
 * struct ring_cpu; number n is at n modulo RING_ANCHORS.
 */
#define RING_ANCHORS 64u
struct ring_anchor {
    uint64_t ticks, ns;
    uint64_t width_ticks; /* between the readings of the counter before and after that of the clock */
    uint64_t number;      /* n + 1, stored last; 0: it is being written */
};

struct ring_cpu {
    uint64_t head;
    uint64_t ready_bytes; /* of the ring: this many are backed with memory */
    uint64_t written;     /* of the shared ring: its events */
    uint64_t unused[5];
    uint64_t lost[8]; /* events, by enum ring_loss */
};
_Static_assert(sizeof(struct ring_header) == 128 && sizeof(struct ring_cpu) == 128,
               "whole lines of the cache");
_Static_assert(sizeof(struct ring_anchor) == 32, "half a line");
_Static_assert(RING_LOSSES <= 8, "each loss has a counter");

#define RING_PACKET_MAGIC UINT64_C(0x74656b636170616c) /* "lapacket" */

/* What is known when a packet begins. It is as large as the beginning of a packet of CTF, which takes its place. */
struct ring_packet {
    uint64_t magic;
    uint64_t number;        /* packets of this CPU before this one, plus 1 */
    uint64_t events_before; /* of this CPU, in those packets */
    uint64_t ticks;
    uint64_t previous_words; /* of the packet before, its header included; 0: this is the first */
    uint64_t lost[RING_LOSSES];
    uint64_t unused[3];
};
#define RING_PACKET_WORDS 12u
_Static_assert(sizeof(struct ring_packet) == 8 * RING_PACKET_WORDS, "whole words");

/* The first words of each event: its time, and what it is. */
struct ring_event {
    uint64_t ticks;
    uint16_t id;
    uint16_t size; /* the lower RING_SIZE_BITS: words, these two included; the upper: enum ring_flag */
    uint32_t thread;
};
#define RING_EVENT_WORDS 2u
enum ring_flag {
    RING_FLAG_LATER =
        1, /* of the shared ring: it happened before the time that it has, which is that of the event before */
    RING_FLAG_CUT = 2, /* a text is not there to its end */
};
#define RING_SIZE_BITS 10
#define RING_SIZE_MASK ((1u << RING_SIZE_BITS) - 1)

/* ---- the shared ring ---- */

enum ring_slot_state {
    RING_SLOT_FREE,
    RING_SLOT_BUSY, /* its writer is at work */
    RING_SLOT_DONE, /* an event begins here */
    RING_SLOT_MORE, /* an event goes on here */
    RING_SLOT_VOID, /* its event was lost */
};

#define RING_SLOT_WORDS 6u
struct ring_slot {
    uint64_t first;                  /* ring_slot_mark() */
    uint64_t words[RING_SLOT_WORDS]; /* of an event, which goes on in the next slots */
    uint64_t last;                   /* the same once the words are written */
};
_Static_assert(sizeof(struct ring_slot) == 64, "a line of the cache");

/** The mark of the slot that is number `position` since the ring was made, of a ring with so many slots. */
static inline uint64_t ring_slot_mark(uint64_t position, uint64_t slots, enum ring_slot_state state)
{
    return (position / slots + 1) << 3 | state;
}

static inline enum ring_slot_state ring_slot_state(uint64_t mark)
{
    return (enum ring_slot_state)(mark & 7);
}

/** Returns how many slots an event of so many words takes. */
static inline uint32_t ring_slots_of(uint32_t words)
{
    return (words + RING_SLOT_WORDS - 1) / RING_SLOT_WORDS;
}

/* Up to where the tool has read: a file of its own, which the target maps without being able to write to it. */
struct ring_positions {
    uint64_t magic;
    uint64_t read[]; /* by CPU: a position; then of the shared ring: slots */
};

static inline uint64_t ring_position(uint64_t head)
{
    return head & RING_POSITION_MASK;
}

static inline uint64_t ring_count(uint64_t head)
{
    return head >> RING_POSITION_BITS;
}

/** Returns how many words lie between two positions. */
static inline uint64_t ring_distance(uint64_t from, uint64_t to)
{
    return (to - from) & RING_POSITION_MASK;
}

/**
 * Returns the head of a ring without a packet: at the last word of one, which no event ever takes. Nothing fits behind
 * it, so that the first event begins a packet.
 */
static inline uint64_t ring_first_head(uint64_t ring_bytes)
{
    return ring_bytes / 8 - 1;
}

#endif
