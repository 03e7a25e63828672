/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BENCH_CHAIN_H
#define BENCH_CHAIN_H

/*
 * Call chains as a large program has them: 256 functions with frames of different sizes and registers, four calls in
 * each, so 1,024 return addresses. chain.c is compiled twice, as real programs are and with frame pointers.
 */

#include <stdint.h>

/** Each word of the path says which function is called next, and from where; the last one calls `end`. */
void chain_plain(const uint16_t *path, unsigned length, void (*end)(void));
/** Its twin: every function keeps its frame pointer. */
void chain_framed(const uint16_t *path, unsigned length, void (*end)(void));

#endif
