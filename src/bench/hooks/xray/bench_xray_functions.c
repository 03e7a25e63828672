/* SPDX-License-Identifier: BSD-2-Clause */
/* Compiled by clang with -fxray-instrument, also where all else is compiled by gcc. */
#include "bench/hooks/bench_mechanism.h"
#include "bench/hooks/xray/bench_xray.h"

BENCH_CODE uint64_t bench_xray_work(uint64_t x)
{
    BENCH_WORK(x);
    return x;
}

/* What is switched 1000 times: functions of three digits. */
#define MANY(n)                                                                                              \
    uint64_t bench_xray_many_##n(uint64_t x);                                                                \
    uint64_t bench_xray_many_##n(uint64_t x)                                                                 \
    {                                                                                                        \
        BENCH_WORK(x);                                                                                       \
        return x;                                                                                            \
    }
#define TEN(n)                                                                                               \
    MANY(n##0)                                                                                               \
    MANY(n##1) MANY(n##2) MANY(n##3) MANY(n##4) MANY(n##5) MANY(n##6) MANY(n##7) MANY(n##8) MANY(n##9)
#define HUNDRED(n)                                                                                           \
    TEN(n##0) TEN(n##1) TEN(n##2) TEN(n##3) TEN(n##4) TEN(n##5) TEN(n##6) TEN(n##7) TEN(n##8) TEN(n##9)
HUNDRED(0)
HUNDRED(1)
HUNDRED(2)
HUNDRED(3)
HUNDRED(4)
HUNDRED(5)
HUNDRED(6)
HUNDRED(7)
HUNDRED(8)
HUNDRED(9)
