/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BENCH_ATTACH_H
#define BENCH_ATTACH_H

/* The attachments of this folder (bench_catalogue.h), which bench_catalogue.c lists. */

#include "bench/bench_catalogue.h"

extern const struct bench_attachment bench_perf_count_nop, bench_perf_count_push, bench_perf_count_step,
    bench_perf_count_return;

#endif
