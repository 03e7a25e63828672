/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BENCH_SUM_H
#define BENCH_SUM_H

/*
 * The functions of the sink `sum`: the table of `allium trace --sum` (sum/sum_table.h), by the return address; see
 * struct bench_sink.
 *
 * Runs in: the helper of `allium bench`. Threads: hits in any, all else in the first.
 */

#include <stdint.h>

const char *bench_sum_begin(unsigned threads);
void bench_sum_hit(void *function, void *caller);
uint64_t bench_sum_hits(void);

/** The two parts of a hit. */
uint32_t bench_sum_find(void);
void bench_sum_count(void);

#endif
