/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BENCH_KERNEL_SINKS_H
#define BENCH_KERNEL_SINKS_H

/*
 * The functions of the kernel's sinks, which the list in kernel_probe.c has; see struct kernel_probe_sink. Each group
 * is in the file of its name: perf_sink.c, ftrace_sink.c, bpf_sink.c.
 *
 * Runs in: the tool, as root. Threads: one.
 */

#include "bench/kernel/kernel_probe.h"

int perf_count_open(struct kernel_probe *p, struct error *e);
int perf_count_read(struct kernel_probe *p, struct kernel_probe_counts *out);
int perf_record_open(struct kernel_probe *p, struct error *e);
int perf_record_read(struct kernel_probe *p, struct kernel_probe_counts *out);
uint64_t perf_record_memory(const struct kernel_probe *p);
void perf_sink_close(struct kernel_probe *p);

int ftrace_sink_open(struct kernel_probe *p, struct error *e);
int ftrace_sink_read(struct kernel_probe *p, struct kernel_probe_counts *out);
uint64_t ftrace_sink_memory(const struct kernel_probe *p);
void ftrace_sink_close(struct kernel_probe *p);

int bpf_empty_open(struct kernel_probe *p, struct error *e);
int bpf_count_open(struct kernel_probe *p, struct error *e);
int bpf_ring_open(struct kernel_probe *p, struct error *e);
int bpf_sink_read(struct kernel_probe *p, struct kernel_probe_counts *out);
uint64_t bpf_sink_memory(const struct kernel_probe *p);
void bpf_sink_close(struct kernel_probe *p);

#endif
