/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BENCH_UFTRACE_H
#define BENCH_UFTRACE_H

/*
 * The sink `uftrace`: `uftrace record` runs the helper, and its library records each function that was compiled with
 * -pg (bench_mcount_library.c), at entry and exit. See struct bench_sink.
 *
 * Runs in: the helper of `allium bench`. Threads: the first.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

const char *bench_uftrace_begin(unsigned threads);
void bench_uftrace_settle(uint64_t hits);
uint64_t bench_uftrace_hits(void);
uint64_t bench_uftrace_lost(void);
uint64_t bench_uftrace_bytes(void);

/* ---- bench_uftrace_data.c ---- */

struct bench_uftrace_counts {
    uint64_t records, lost;
    bool is_odd; /* something else than records of functions is there */
};

/** Adds the records of uftrace's file of a thread. Returns the bytes of whole records. */
size_t bench_uftrace_count(struct bench_uftrace_counts *c, const void *records, size_t bytes);
/** Returns what is recorded until now: in the folder, and in buffers (/dev/shm) that are not written there yet. */
struct bench_uftrace_counts bench_uftrace_read(const char *folder);

#endif
