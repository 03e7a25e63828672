/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/kernel/kernel_probe.h"

#include <stddef.h>

#include "bench/kernel/kernel_sinks.h"

#define PERF .read = perf_record_read, .memory = perf_record_memory, .close = perf_sink_close
#define BPF  .read = bpf_sink_read, .memory = bpf_sink_memory, .close = bpf_sink_close
#define FTRACE                                                                                               \
    .open = ftrace_sink_open, .read = ftrace_sink_read, .memory = ftrace_sink_memory,                        \
    .close = ftrace_sink_close

const struct kernel_probe_sink kernel_probe_sinks[] = {
    {"perf-count", .knows_hits = true, .open = perf_count_open, .read = perf_count_read,
     .close = perf_sink_close},
    {"perf-record", .knows_hits = true, .records = true, .open = perf_record_open, PERF},
    {"ftrace", .knows_hits = true, .records = true, FTRACE},
    {"bpf-empty", .open = bpf_empty_open, BPF},
    {"bpf-count", .knows_hits = true, .open = bpf_count_open, BPF},
    {"bpf-ring", .knows_hits = true, .records = true, .open = bpf_ring_open, BPF},
    {.name = NULL},
};

int kernel_probe_open(struct kernel_probe *p, const struct kernel_probe_sink *sink,
                      const struct kernel_probe_target *target, struct error *e)
{
    *p = (struct kernel_probe){.sink = sink, .target = *target};
    return sink->open(p, e);
}

int kernel_probe_read(struct kernel_probe *p, struct kernel_probe_counts *out)
{
    *out = (struct kernel_probe_counts){0};
    return p->sink->read(p, out);
}

uint64_t kernel_probe_memory(const struct kernel_probe *p)
{
    return p->sink->memory ? p->sink->memory(p) : 0;
}

void kernel_probe_close(struct kernel_probe *p)
{
    p->sink->close(p);
    p->own = NULL;
}
