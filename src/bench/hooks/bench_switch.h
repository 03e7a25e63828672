/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BENCH_SWITCH_H
#define BENCH_SWITCH_H

/*
 * Sites of a mechanism that are switched on and off, and are not called otherwise: a program has many.
 *
 * Runs in: the helper of `allium bench`. Threads: the first.
 */

#include <stdbool.h>
#include <stdint.h>

#define BENCH_SITES_MOST 1000u
#define BENCH_SITE_BYTES 16u /* from one site to the next, in code */

/** Switch the first `n` sites. Return whether that is possible. */
bool bench_switch_flags(uint32_t n, bool on); /* a flag of each */
bool bench_switch_jumps(uint32_t n, bool on); /* a nop of 5 bytes, which becomes a jump */
bool bench_switch_traps(uint32_t n, bool on); /* a byte, which becomes int3 */

/** Sites to which others attach: a nop of 1 byte each, and the same with a declaration of USDT. */
extern const char bench_switch_nops[] __attribute__((visibility("hidden")));
extern const char bench_switch_probes[] __attribute__((visibility("hidden")));

#endif
