/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RING_LAYOUT_H
#define RING_LAYOUT_H

/*
 * The layout of a file of rings: events of one process image, in the order in which each CPU wrote them. The target
 * writes it (ring_write.h), the tool reads it (ring_read.h). BPF programs write an array of the same layout
 * (bpf/kernel_ring.bpf.h).
 *
 * The file begins with a header and one struct ring_cpu for each CPU. On pages of their own follow the positions up to
 * which the tool has read, the only words that the tool writes. Behind them each CPU has a ring of `ring_bytes`,
 * which is divided into packets of `packet_bytes`, both powers of two. A packet begins with a struct ring_packet, and
 * has events behind it; an event lies in one packet. Positions count words of 8 bytes since the ring was made, modulo
 * 2^RING_POSITION_BITS; the place in the ring is the position modulo the ring's number of words.
 *
 * The head of a CPU's ring has two parts: the position behind the last event, and in the upper bits the number of
 * events. One store of the head makes an event, or a new packet, valid. Words behind the head are not valid: they were
 * never written, are one lap of the ring older, or were left by a sequence that was aborted.
 *
 * Threads that cannot run restartable sequences share one more ring, which lies behind those of the CPUs. It has slots
 * of 64 bytes instead of packets. Its head counts the slots that writers have taken, each by an atomic operation. The
 * first and the last word of a slot tell the lap, and whether the slot's writer is done. A slot whose writer sleeps is
 * not taken again until that writer is done. So each event that is read is complete, and each event that found no free
 * slot is counted as lost.
 *
 * Runs in: target, tool. Pure data.
 */

#include <stdint.h>

#define RING_MAGIC   UINT64_C(0x31474e4952414c41) /* "ALARING1" */
#define RING_VERSION 2u

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
    RING_LOST_NO_RING, /* the rings are not made yet, this CPU has none, or a slot's earlier writer sleeps */
    RING_LOST_FILTERED,
    RING_LOSSES
};

/* The meaning of the times of events. */
enum ring_clock {
    RING_CLOCK_MONOTONIC, /* ns */
    RING_CLOCK_TSC,       /* the time stamp counter */
    RING_CLOCK_COUNTER,   /* numbers, from 1: one order of all events; some may be left out */
    RING_CLOCK_NONE,      /* always 0 */
    RING_CLOCK_EVERY,     /* the time stamp counter for each Nth event of a ring, 0 for most others */
};

/** Returns whether times of the clock are of the time stamp counter: a reader needs anchors to compute ns of them. */
static inline int ring_clock_has_ticks(uint32_t clock)
{
    return clock == RING_CLOCK_TSC || clock == RING_CLOCK_EVERY;
}

struct ring_header {
    uint64_t magic; /* stored last */
    uint32_t version, cpus;
    uint64_t packet_bytes, ring_bytes;
    uint64_t data_at;    /* offset of the first CPU's ring; a multiple of the page size */
    uint32_t overwrites; /* 1: a full ring overwrites its oldest packet; 0: it discards events */
    uint32_t clock;      /* enum ring_clock */
    uint64_t image_id;
    uint64_t aborted; /* sequences that were aborted, and begun again */
    /* the image: when it began; the image whose fork child it is (0: none), and when it was forked */
    uint64_t began_ticks, parent_image_id, forked_ticks;
    int32_t pid, parent_pid; /* 0: rings that liballium.so has made */
    uint64_t anchored;       /* anchors ever written; the file has the last RING_ANCHORS of them */
    uint64_t counter;        /* of RING_CLOCK_COUNTER: the last number */
    uint32_t begins;         /* 1: calls of the allocator have an event at their beginning, too */
    uint32_t unused_half;
    uint64_t read_at; /* offset of struct ring_positions; 0: there are none, and nobody empties the rings */
};

/*
 * An anchor: the time stamp counter and CLOCK_MONOTONIC at one moment. From anchors a reader computes the time of each
 * event, also after the program has ended. The agent writes one when it makes the rings, and others on slow paths;
 * rings of another clock, and those that liballium.so makes, have none. Anchors lie behind the last struct ring_cpu;
 * anchor n, counted from 0, is at the index n modulo RING_ANCHORS.
 */
#define RING_ANCHORS 64u
struct ring_anchor {
    uint64_t ticks, ns;
    uint64_t width_ticks; /* from the reading of the counter before that of the clock to the one after it */
    uint64_t number;      /* n + 1, stored last; 0: it is being written */
};

struct ring_cpu {
    uint64_t head;
    uint64_t ready_bytes; /* of the ring, from its beginning on, that are backed with memory */
    uint64_t written;     /* only in the shared ring: events that were written */
    uint64_t unused[5];
    uint64_t lost[8]; /* events, by enum ring_loss */
};
_Static_assert(sizeof(struct ring_header) == 128 && sizeof(struct ring_cpu) == 128,
               "whole lines of the cache");
_Static_assert(sizeof(struct ring_anchor) == 32, "half a line");
_Static_assert(RING_LOSSES <= 8, "each loss has a counter");

#define RING_PACKET_MAGIC UINT64_C(0x74656b636170616c) /* "lapacket" */

/* The head of a packet: what is known when the packet begins. */
struct ring_packet {
    uint64_t magic;
    uint64_t number;        /* packets of this CPU before this one, plus 1 */
    uint64_t events_before; /* of this CPU, in those packets */
    uint64_t ticks;
    uint64_t previous_words; /* used by the packet before, its head included; 0: this is the first */
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
    RING_FLAG_LATER = 1, /* in the shared ring: it was older, and got the time of the event before it */
    RING_FLAG_CUT = 2,   /* a text of the event was cut */
    RING_FLAG_INTERPOLATED = 4, /* set by the reader: the time is computed, not read (RING_CLOCK_EVERY) */
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

/** Returns the mark of slot number `position`, counted since the ring was made. The ring has `slots` slots. */
static inline uint64_t ring_slot_mark(uint64_t position, uint64_t slots, enum ring_slot_state state)
{
    return (position / slots + 1) << 3 | state;
}

static inline enum ring_slot_state ring_slot_state(uint64_t mark)
{
    return (enum ring_slot_state)(mark & 7);
}

/** Returns how many slots an event of `words` words takes. */
static inline uint32_t ring_slots_of(uint32_t words)
{
    return (words + RING_SLOT_WORDS - 1) / RING_SLOT_WORDS;
}

/* How far the tool has read. The target only reads them. */
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
 * Returns the head of a new ring, which has no packet yet. It is at the last word of a packet, which no event ever
 * takes. Nothing fits behind it, so the first event begins a packet.
 */
static inline uint64_t ring_first_head(uint64_t ring_bytes)
{
    return ring_bytes / 8 - 1;
}

#endif
