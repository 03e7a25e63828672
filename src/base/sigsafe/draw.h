/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_SIGSAFE_DRAW_H
#define BASE_SIGSAFE_DRAW_H

/*
 * The arithmetic of the sampler: exponential gaps, and the weight of a sample. It uses only integers, because code in
 * the target must not change the program's floating-point flags, and must not call libm.
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

/** Returns ceil(E) >= 1, where E has an exponential distribution with mean `period`. `uniform`: a random word. */
uint64_t draw_gap(uint64_t uniform, uint64_t period);

struct draw_weight {
    uint64_t count_q; /* 1 / p, with DRAW_Q fraction bits */
    uint64_t bytes_q; /* size / p */
};

/** Returns the weight of a sampled object of `size` >= 1 bytes at `period` >= 2, where p = 1 - exp(-size / period). */
struct draw_weight draw_weigh(uint64_t size, uint64_t period);

#endif
