/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_LIVE_FILTER_H
#define AGENT_LIVE_FILTER_H

/*
 * Lets every free decide with one load that its pointer is none of our samples.
 *
 * One byte counts the live samples within a stretch of 512 bytes of address space (modulo 4 GiB). Neighbouring
 * addresses share cache lines and pages of the filter, so that its footprint is a 512th of what the program touches.
 * Pages of it that no sample was ever counted in are the kernel's zero page.
 *
 * The filter is read-only at first: the kernel counts memory that is writable and private as data of the program
 * (VmData, RLIMIT_DATA). A piece of it, for 128 MiB of address space, is made writable before the first sample is
 * counted there.
 *
 * Runs in: target. Threads: any, signal handlers included.
 *
 * Invariant (no missed free): a sample's unit is added before the allocation that returns its address returns, and
 * taken away only by the one who took its entry out of the live table. A byte that reached 255 is never lowered again.
 * So a byte of 0 means: no live sample in any stretch that it stands for.
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

/* A bit for each writable piece: all before live_filter_begin(), and where mprotect() does not work. */
extern uint32_t live_filter_writable __attribute__((visibility("hidden")));

/** Makes the filter read-only. Called once, from boot. */
void live_filter_begin(void);
/** Makes the whole filter writable, whatever the limits of the program. False: no system call may be made. */
bool live_filter_open_all(void);
/** Makes the piece of that number writable. */
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
 * Makes the filter writable for a sample at this address. False: that takes a system call, and none may be made, or too
 * little of a limit of the program would be left.
 */
static inline bool live_filter_reach(uintptr_t address)
{
    uint32_t piece = (uint32_t)address >> LIVE_FILTER_PIECE_SHIFT;
    return likely(load_relaxed(&live_filter_writable) >> piece & 1) || live_filter_open_cold(piece);
}

/* Needs live_filter_reach() to have been true for this address. */
static inline void live_filter_add(uintptr_t address)
{
    uint8_t *at = live_filter_at(address), old;
    do {
        old = load_relaxed(at);
        if (old == LIVE_FILTER_STUCK)
            return;
    } while (!atomic_swap_if8(at, old, (uint8_t)(old + 1)));
}

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
