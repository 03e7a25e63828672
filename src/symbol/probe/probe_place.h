/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_PROBE_PLACE_H
#define SYMBOL_PROBE_PLACE_H

/*
 * Chooses the instruction of a function on which a uprobe costs least. The kernel replaces the instruction by a trap.
 * It emulates some instructions (a nop of one byte, push, jumps, calls); it executes all others elsewhere, in single
 * steps, which costs a second trap and much more time.
 *
 * Runs in: the tool. Threads: any. Pure. x86-64 only.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum probe_place_kind { PROBE_PLACE_NOP, PROBE_PLACE_EMULATED, PROBE_PLACE_STEPPED, PROBE_PLACE_KINDS };

struct probe_place {
    uint64_t after; /* bytes from the function's entry */
    enum probe_place_kind kind;
    const char *instruction; /* "push"; "stepped": any other */
};

/** Returns what the kernel does with the instruction that begins there. */
struct probe_place probe_place_at(const uint8_t *code, size_t bytes);

/**
 * Returns whether a nop of five bytes is there. Linux 6.18 may replace it by a call, which overwrites memory below the
 * stack pointer: a function that calls no others may have values there.
 */
bool probe_place_is_unsafe(const uint8_t *code, size_t bytes);

/**
 * Returns the cheapest place that is reached from the entry alone, and where the stack pointer and the registers with
 * arguments are as at the entry. If no place is cheap, it is the entry. There even a nop of five bytes is safe: the
 * function has no values below the stack pointer yet. `code`: all that may jump into the function, of `bytes`; `entry`:
 * where in it the function begins; `size`: bytes of the function, 0: not known.
 */
struct probe_place probe_place_choose(const uint8_t *code, size_t bytes, size_t entry, size_t size);

#endif
