/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_SAMPLED_BYTES_BPF_H
#define BPF_SAMPLED_BYTES_BPF_H

/*
 * Sampling by bytes: an object of n bytes is sampled with probability 1 - exp(-n / period), apart from all others, as
 * model/profile/estimate.h expects. Each object is decided by a random number of its own and not by a counter of bytes:
 * a counter would be wrong after an interrupt that allocates while it is being changed.
 *
 * Runs in: the kernel. Programs that were interrupted share nothing.
 */

#include "bpf/sys.bpf.h"

/* Both are set before the programs are loaded. 1: every object is taken. */
const volatile __u64 period_bytes = 1;
const volatile __u64 parts_of_byte = 1ull << 40; /* 2^40 / period_bytes */

#define SAMPLED_ONE   (1ull << 32)
#define SAMPLED_SMALL (SAMPLED_ONE >> 6)
#define SAMPLED_SURE  (22ull << 32) /* exp(-22) is less than one of 2^31 */

/* exp(-2^i) for i of -6 to 4, times 2^32. */
static const __u64 sampled_powers[] = {4228380000ull, 4162825044ull, 4034748382ull, 3790295335ull,
                                       3344923893ull, 2605029347ull, 1580030169ull, 581260615ull,
                                       78665070ull,   1440801ull,    483ull};

/* Returns exp(-x) for an x below 1/64, all times 2^32, by the first terms of its series: the next is below 2^-28. */
static __always_inline __u64 sampled_exp_small(__u64 x)
{
    const __u64 square = x * x >> 32;
    return SAMPLED_ONE - x + square / 2 - (square * x >> 32) / 6;
}

/* Returns exp(-x) for an x below 22, all times 2^32. */
GLOBAL __u64 sampled_exp(__u64 x)
{
    __u64 product = sampled_exp_small(x & (SAMPLED_SMALL - 1));
    for (__u32 i = 0; i < sizeof(sampled_powers) / sizeof(*sampled_powers); i++)
        if (x & SAMPLED_SMALL << i)
            product = product * sampled_powers[i] >> 32;
    return product;
}

/* Returns whether an object of so many bytes, which are below 2^23, is sampled. */
static __always_inline bool sampled(__u64 bytes)
{
    if (period_bytes <= 1)
        return true;
    const __u64 x = bytes * parts_of_byte >> 8;
    const __u64 draw = bpf_get_prandom_u32();
    if (LIKELY(draw >= x)) /* 1 - exp(-x) is less than x */
        return false;
    return x >= SAMPLED_SURE || draw < SAMPLED_ONE - sampled_exp(x);
}

#endif
