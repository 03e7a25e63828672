/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_CTF_METADATA_H
#define COLLECT_CTF_METADATA_H

/*
 * The text of CTF 1.8 that describes a folder of events: written, and read again. Only what this writes is read.
 *
 * Runs in: the tool. Threads: one. Pure.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/vec.h"
#include "base/sigsafe/event_class.h"

/** The beginning of each packet, as the metadata describes it. */
struct __attribute__((packed)) ctf_packet {
    uint32_t magic;
    uint8_t uuid[16];
    uint32_t stream_id;
    uint64_t begin_ns, end_ns;
    uint64_t content_bits, packet_bits;
    uint64_t number; /* of this stream, from 1 */
    uint64_t lost;   /* events of the stream that were lost up to the packet's end */
    uint32_t cpu, pid;
    uint64_t image_id;
};
#define CTF_PACKET_MAGIC 0xC1FC1FC1u
_Static_assert(sizeof(struct ctf_packet) % 8 == 0, "events behind it begin at whole words");

/* A smaller change of CLOCK_REALTIME - CLOCK_MONOTONIC may be the time between two readings. */
#define CTF_STEP_LEAST_NS 100000

/* A reading of the clocks while the trace was recorded. */
struct ctf_clocks {
    uint64_t time_ns;     /* CLOCK_MONOTONIC */
    uint64_t offset_ns;   /* CLOCK_REALTIME - CLOCK_MONOTONIC */
    uint64_t residual_ns; /* the largest residual of struct tick_clock until then; 0: no time was converted */
};

struct ctf_trace {
    uint8_t uuid[16];
    char domain[16];   /* "ust" or "kernel" */
    const char *where; /* the query that its events match (block_filter.h); NULL: it has all */
    /* "counter", "none": the times are numbers of events, in this order, and nanoseconds in name only; "every:N": some
     * are interpolated; NULL: they are times */
    const char *clock;
    uint64_t offset_ns; /* CLOCK_REALTIME - CLOCK_MONOTONIC when the trace began */
    struct VEC(struct event_class) classes;
    struct VEC(struct ctf_clocks) clocks; /* as time went on */
    struct VEC(void *) owned;             /* of what was read: names, fields and labels */
};

/** Appends the text without the events. */
void ctf_metadata_begin(struct buf *b, const struct ctf_trace *t);
/** Appends an event. */
void ctf_metadata_class(struct buf *b, const struct event_class *c);
/** Appends a reading of the clocks, which other readers take for a comment. */
void ctf_metadata_clocks(struct buf *b, const struct ctf_clocks *c);
/**
 * Reads the whole text. Returns 0, or -EINVAL with a line: it is not what this writes. In both cases `t` is to be
 * released.
 */
int ctf_metadata_read(struct ctf_trace *t, const char *text, struct error *e);
void ctf_trace_release(struct ctf_trace *t);

#endif
