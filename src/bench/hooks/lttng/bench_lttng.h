/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BENCH_LTTNG_H
#define BENCH_LTTNG_H

/*
 * The sink `lttng`: an event of LTTng-UST, with a session daemon of its own (bench_lttng_daemon.c), whose trace is
 * counted (bench_lttng_trace.c).
 *
 * Runs in: the helper of `allium bench`. Threads: hits in any, all else in the first. Owns: a process that ends the
 * daemon when the helper has ended.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* This many events in a row touch all memory of a buffer, while the consumer daemon empties it. */
#define BENCH_LTTNG_WARM_EVENTS ((4u << 20) / 22)

const char *bench_lttng_begin(unsigned threads);
void bench_lttng_hit_event(void *function, void *caller);
void bench_lttng_settle(uint64_t hits);
uint64_t bench_lttng_hits(void);
uint64_t bench_lttng_lost(void);
uint64_t bench_lttng_bytes(void);
/** One event is switched: its places share a flag. */
bool bench_lttng_set(uint32_t sites, bool on);

/* ---- bench_lttng_daemon.c ---- */

/**
 * Starts a session daemon that no other program can see, and lets it record. Returns NULL, or why that is not possible
 * and the way out. To be called while there is one thread.
 */
const char *bench_lttng_daemon_start(void);
/** Starts or stops recording. The trace has all events some time after the stop. Returns whether that was possible. */
bool bench_lttng_daemon_record(bool on);
/** Enables or disables the event. */
void bench_lttng_daemon_enable(bool on);

/* ---- bench_lttng_trace.c ---- */

struct bench_lttng_counts {
    uint64_t events, bytes; /* recorded; without the headers of packets */
    uint64_t discarded;     /* until the end of the last packet */
    bool is_odd;            /* something else than packets of these events is there */
};

/**
 * Adds a packet, or as much of one as there is, to the counts. Returns the bytes of the packet; 0: it is not whole, or
 * no packet of LTTng-UST 2.13 with events of `payload` bytes.
 */
size_t bench_lttng_trace_packet(struct bench_lttng_counts *c, const unsigned char *packet, size_t len,
                                size_t payload);
/** Adds what has come to the trace in the folder since the previous call. */
void bench_lttng_trace_read(struct bench_lttng_counts *c, const char *folder, size_t payload);

#endif
