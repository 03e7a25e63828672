/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/hooks/bench_mechanism.h"

#define NAMED(name) &BENCH_NAME(name),

const struct bench_mechanism_code *const bench_mechanisms[] = {BENCH_EACH(NAMED) NULL};
