/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_SIGSAFE_DRAW_H
#define BASE_SIGSAFE_DRAW_H

/*
 * The arithmetic of the sampler, in integers: exponential gaps, and the weight of a sample. Code in the target must
 * leave the floating-point flags of the program alone, and must not call libm.
 *
 * Runs in: target. Threads: any; the state of a generator belongs to one thread.
 */

#include <stdint.h>

/** Fixed point of weights and weighted bytes: 8 fraction bits. */
#define DRAW_Q 8

/** One step of splitmix64 (Steele, Lea, Flood 2014). Any state is valid, also as a seed. */
static inline uint64_t draw_next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/** ceil(E) for E exponential with mean `period` bytes, from one uniform 64-bit word; at least 1. */
uint64_t draw_gap(uint64_t uniform, uint64_t period);

struct draw_weight {
    uint64_t count_q; /* 1 / p, with DRAW_Q fraction bits */
    uint64_t bytes_q; /* size / p */
};

/** Weight of a sampled object of `size` bytes (>= 1) at `period` >= 2, where p = 1 - exp(-size / period). */
struct draw_weight draw_weigh(uint64_t size, uint64_t period);

#endif
