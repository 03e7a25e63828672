/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_LIVE_FILTER_H
#define AGENT_LIVE_FILTER_H

/*
 * The filter in front of the live table: by one load, free() finds out that a pointer is not the address of a sample.
 *
 * Each byte counts the live samples in a stretch of 512 bytes of address space (modulo 4 GiB). Neighbouring stretches
 * share cache lines and pages of the filter, so that the footprint of the filter is a 512th of the memory that the
 * program uses. A page of the filter in which no sample was ever counted is the kernel's zero page.
 *
 * The filter is read-only at first, because the kernel counts writable private memory as data of the program (VmData,
 * RLIMIT_DATA). A piece of the filter, for 128 MiB of address space, is made writable before the first sample is
 * counted in it.
 *
 * Runs in: target. Threads: any, signal handlers included.
 *
 * Invariant (no missed free): the hook counts a sample in its byte before it returns the address to the program, and
 * only the thread that has removed the sample from the live table subtracts it again. A byte that has reached 255 stays
 * 255. So if a byte is 0, there is no live sample in any of its stretches.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/sigsafe/atomic.h"

#define LIVE_FILTER_BYTES         (1u << 23)
#define LIVE_FILTER_STRETCH_SHIFT 9
#define LIVE_FILTER_STUCK         255
#define LIVE_FILTER_PIECE_SHIFT   27u /* a piece stands for 128 MiB of address space */
#define LIVE_FILTER_PIECE_BYTES   (1u << (LIVE_FILTER_PIECE_SHIFT - LIVE_FILTER_STRETCH_SHIFT))

extern uint8_t live_filter_counts[LIVE_FILTER_BYTES] __attribute__((visibility("hidden")));

/* A bit for each writable piece. All bits are set before live_filter_begin(), and stay set if its mprotect() fails. */
extern uint32_t live_filter_writable __attribute__((visibility("hidden")));

/** Makes the filter read-only. Called once, by boot_agent(). */
void live_filter_begin(void);
/**
 * Makes the whole filter writable, without a check of the program's limits. False: no system call may be made, or
 * mprotect() has failed.
 */
bool live_filter_open_all(void);
/** Makes the piece with the number `piece` writable. False: as for live_filter_reach(). */
ONE_COPY bool live_filter_open_cold(uint32_t piece);

static inline uint8_t *live_filter_at(uintptr_t address)
{
    return &live_filter_counts[(uint32_t)address >> LIVE_FILTER_STRETCH_SHIFT];
}

static inline bool live_filter_may_hold(const void *p)
{
    return load_relaxed(live_filter_at((uintptr_t)p)) != 0;
}

/**
 * Makes the byte for this address writable. False: no system call may be made, the process would come too close to
 * RLIMIT_DATA, or mprotect() has failed.
 */
static inline bool live_filter_reach(uintptr_t address)
{
    uint32_t piece = (uint32_t)address >> LIVE_FILTER_PIECE_SHIFT;
    return likely(load_relaxed(&live_filter_writable) >> piece & 1) || live_filter_open_cold(piece);
}

/* Counts a sample in the byte for its address. live_filter_reach() must have returned true for this address. */
static inline void live_filter_add(uintptr_t address)
{
    uint8_t *at = live_filter_at(address), old;
    do {
        old = load_relaxed(at);
        if (old == LIVE_FILTER_STUCK)
            return;
    } while (!atomic_swap_if8(at, old, (uint8_t)(old + 1)));
}

/* Subtracts a sample that live_filter_add() has counted. */
static inline void live_filter_remove(uintptr_t address)
{
    uint8_t *at = live_filter_at(address), old;
    do {
        old = load_relaxed(at);
        if (old == LIVE_FILTER_STUCK)
            return;
    } while (!atomic_swap_if8(at, old, (uint8_t)(old - 1)));
}

#endif
