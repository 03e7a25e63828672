/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/sigsafe/draw.h"

typedef unsigned __int128 u128;

/*
 * ln(1 + i/256) in units of 2^-32. The compiler computes the table from the series of 2 atanh(z), with z = x / (2 + x)
 * <= 1/3. The error after nine terms is at most 1e-10.
 */
#define Z(i) ((i) / (512.0 + (i)))
#define S(z)                                                                                                 \
    (2 * (z) *                                                                                               \
     (1 + (z) * (z) *                                                                                        \
              (1 / 3.0 +                                                                                     \
               (z) * (z) *                                                                                   \
                   (1 / 5.0 +                                                                                \
                    (z) * (z) *                                                                              \
                        (1 / 7.0 +                                                                           \
                         (z) * (z) *                                                                         \
                             (1 / 9.0 +                                                                      \
                              (z) * (z) *                                                                    \
                                  (1 / 11.0 +                                                                \
                                   (z) * (z) * (1 / 13.0 + (z) * (z) * (1 / 15.0 + (z) * (z) / 17.0)))))))))
#define L1(i)   (uint32_t)(S(Z(i)) * 4294967296.0 + 0.5)
#define L4(i)   L1(i), L1((i) + 1), L1((i) + 2), L1((i) + 3)
#define L16(i)  L4(i), L4((i) + 4), L4((i) + 8), L4((i) + 12)
#define L64(i)  L16(i), L16((i) + 16), L16((i) + 32), L16((i) + 48)
#define LN2_Q32 2977044472u /* ln 2 */

static const uint32_t ln_table[257] = {L64(0), L64(64), L64(128), L64(192), LN2_Q32};

uint64_t draw_gap(uint64_t uniform, uint64_t period)
{
    /* u = uniform / 2^64 in (0, 1]; E = -ln u = leading_zeros * ln 2 + ln 2 - ln(mantissa in [1, 2)). */
    if (!uniform)
        uniform = 1;
    int zeros = __builtin_clzll(uniform);
    uint64_t mantissa = uniform << zeros; /* top bit set */
    uint32_t cell = (uint32_t)(mantissa >> 55) & 255;
    uint32_t within = (uint32_t)(mantissa >> 23); /* 32 bits below the cell's 8 */
    uint64_t ln = ln_table[cell] + (((uint64_t)(ln_table[cell + 1] - ln_table[cell]) * within) >> 32);
    uint64_t e_q32 = (uint64_t)(zeros + 1) * LN2_Q32 - ln;
    uint64_t gap = (uint64_t)(((u128)e_q32 * period) >> 32) + 1;
    return gap;
}

/* 2^-(i/64) in Q32, as exp(-y), y < ln 2, by Horner's rule. The error after twelve terms is at most 3e-11. */
#define Y(i) ((i) * (0.69314718055994530942 / 64))
#define E_(y)                                                                                                \
    (1 -                                                                                                     \
     (y) * (1 -                                                                                              \
            (y) / 2 *                                                                                        \
                (1 -                                                                                         \
                 (y) / 3 *                                                                                   \
                     (1 - (y) / 4 *                                                                          \
                              (1 - (y) / 5 *                                                                 \
                                       (1 - (y) / 6 *                                                        \
                                                (1 - (y) / 7 *                                               \
                                                         (1 - (y) / 8 *                                      \
                                                                  (1 - (y) / 9 *                             \
                                                                           (1 - (y) / 10 *                   \
                                                                                    (1 - (y) / 11)))))))))))
#define X1(i)  (uint64_t)(E_(Y(i)) * 4294967296.0 + 0.5)
#define X4(i)  X1(i), X1((i) + 1), X1((i) + 2), X1((i) + 3)
#define X16(i) X4(i), X4((i) + 4), X4((i) + 8), X4((i) + 12)

static const uint64_t exp_table[64] = {X16(0), X16(16), X16(32), X16(48)};

/* exp(-x) in Q32, for x < 32 in Q32, as 2^-(steps/64) * exp(-d): a shift, exp_table, and four Taylor terms for d. */
static uint64_t exp_minus(uint64_t x)
{
    uint64_t step = LN2_Q32 / 64;
    uint64_t steps = x / step; /* the compiler multiplies: step is a constant */
    uint64_t d = x - steps * step;
    uint64_t d2 = d * d >> 32;
    uint64_t small = (1ull << 32) - d + d2 / 2 - (d2 * d >> 32) / 6;
    return (uint64_t)((u128)exp_table[steps & 63] * small >> 32) >> (steps >> 6);
}

/* h(x) = x / (1 - exp(-x)) in Q32, for x in Q32. */
static uint64_t bernoulli(uint64_t x)
{
    if (x >= 32ull << 32)
        return x;
    if (x >= 1ull << 32) {
        uint64_t rest = (1ull << 32) - exp_minus(x);
        return (x << 26) / rest << 6;
    }
    /* 1 + x/2 + x^2/12 - x^4/720 + x^6/30240 - x^8/1209600: the next term is below 3e-8. */
    uint64_t x2 = (u128)x * x >> 32, x4 = (u128)x2 * x2 >> 32, x6 = (u128)x4 * x2 >> 32;
    uint64_t x8 = (u128)x4 * x4 >> 32;
    return (1ull << 32) + x / 2 + x2 / 12 - x4 / 720 + x6 / 30240 - x8 / 1209600;
}

struct draw_weight draw_weigh(uint64_t size, uint64_t period)
{
    struct draw_weight w;
    if (size >= 32 * period || size >= 1ull << 55 >> DRAW_Q)
        return (struct draw_weight){.count_q = 1u << DRAW_Q, .bytes_q = size << DRAW_Q};
    /* x = size / period in Q32. If size < period / 2^32, x is 0 and h is 1, which is exact enough. */
    uint64_t x = size < 1ull << 32 ? (size << 32) / period : (uint64_t)(((u128)size << 32) / period);
    uint64_t h = bernoulli(x);
    w.bytes_q = (uint64_t)((u128)h * period >> (32 - DRAW_Q));
    if (w.bytes_q < size << DRAW_Q)
        w.bytes_q = size << DRAW_Q;
    w.count_q = (w.bytes_q + size / 2) / size;
    return w;
}
