/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BENCH_EVENTS_H
#define BENCH_EVENTS_H

/*
 * The functions of the sinks that use rings, a count for each CPU, or files, for bench_sinks.c; see struct bench_sink.
 *
 * Runs in: the helper of `allium bench`. Threads: hits in any, all else in the first.
 */

#include "bench/hooks/bench_mechanism.h"

/** Where the walk of frame pointers ends: the frame of the function that called the loop, and ten others between. */
extern __thread const uintptr_t *bench_stack_end __attribute__((tls_model("initial-exec")));

#define BENCH_FRAMES 10u
/** Writes up to `most` return addresses of the caller's stack, by frame pointers; returns how many. */
static inline __attribute__((always_inline)) uint32_t bench_walk(uint64_t *to, uint32_t most)
{
    uint32_t n = 0;
    const uintptr_t *frame = __builtin_frame_address(0), *last = NULL;
    for (; frame > last && frame < bench_stack_end && n < most; n++) {
        to[n] = frame[1];
        last = frame;
        frame = (const uintptr_t *)frame[0];
    }
    return n;
}

#define BENCH_RING_BYTES  (4u << 20) /* as of a trace */
#define BENCH_RING_EVENTS (2 * BENCH_RING_BYTES / 32)

const char *bench_events_begin(unsigned threads);
const char *bench_events_begin_mono(unsigned threads);
const char *bench_events_begin_untimed(unsigned threads);
const char *bench_events_begin_full(unsigned threads); /* nothing reads the rings */
const char *bench_events_begin_read(unsigned threads); /* a thread reads them */
void bench_events_settle(uint64_t hits);               /* until that thread has seen so many */
void bench_events_hit(void *function, void *caller);
void bench_events_hit_untimed(void *function, void *caller);
void bench_events_hit_site(void *function, void *caller);
void bench_events_hit_payload(void *function, void *caller);
void bench_events_hit_frames(void *function, void *caller);
uint64_t bench_events_hits(void);
uint64_t bench_events_lost(void);
uint64_t bench_events_bytes(void);

const char *bench_cpu_begin(unsigned threads);
void bench_cpu_hit(void *function, void *caller);
uint64_t bench_cpu_hits(void);

/* ---- bench_files.c ---- */

const char *bench_shared_file_begin(unsigned threads);
void bench_file_hit(void *function, void *caller);
void bench_shared_file_hit(void *function, void *caller);
void bench_file_leave(void);
void bench_shared_file_leave(void);
uint64_t bench_file_hits(void);
uint64_t bench_file_bytes(void);

#endif
