/* SPDX-License-Identifier: BSD-2-Clause */
/* The sinks of the kernel as rows of `allium bench`. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "bench/bench_catalogue.h"
#include "bench/kernel/kernel_probe.h"

struct attached {
    struct kernel_probe probe;
    struct kernel_probe_counts sums;
};

static const struct kernel_probe_sink *find_sink(const char *name)
{
    const struct kernel_probe_sink *sink = kernel_probe_sinks;
    while (strcmp(sink->name, name))
        sink++;
    return sink;
}

static enum kernel_probe_kind kind_of(const char *mechanism)
{
    return !strcmp(mechanism, "tracepoint")      ? KERNEL_PROBE_CALL
           : !strcmp(mechanism, "kprobe")        ? KERNEL_PROBE_KPROBE
           : !strcmp(mechanism, "kernel-fentry") ? KERNEL_PROBE_FENTRY
           : !strcmp(mechanism, "uretprobe")     ? KERNEL_PROBE_RETURN
                                                 : KERNEL_PROBE_ENTRY;
}

static int attach(const struct bench_attachment *a, const struct bench_target *to, void **state,
                  struct error *e)
{
    const struct kernel_probe_target target = {kind_of(to->mechanism), to->pid, to->helper, to->site_offset};
    struct attached *own = mem_alloc(sizeof(*own));
    if (kernel_probe_open(&own->probe, find_sink(a->sink), &target, e)) {
        free(own);
        return -ENOTSUP;
    }
    *state = own;
    return 0;
}

/* Events that cannot be read are shown as missing hits. */
static uint64_t read_hits(void *state)
{
    struct attached *own = state;
    struct kernel_probe_counts now;
    kernel_probe_read(&own->probe, &now);
    own->sums.seen += now.seen;
    own->sums.lost += now.lost;
    own->sums.bytes += now.bytes;
    return own->sums.seen;
}

static uint64_t known_lost(void *state)
{
    return ((const struct attached *)state)->sums.lost;
}

static uint64_t known_bytes(void *state)
{
    return ((const struct attached *)state)->sums.bytes;
}

static uint64_t known_memory(void *state)
{
    return kernel_probe_memory(&((const struct attached *)state)->probe);
}

static void detach(void *state)
{
    struct attached *own = state;
    kernel_probe_close(&own->probe);
    free(own);
}

#define KEPT   .attach = attach, .detach = detach, .memory = known_memory
#define COUNTS KEPT, .hits = read_hits, .lost = known_lost, .bytes = known_bytes

const struct bench_attachment bench_attachments[] = {
    {"perf-count", COUNTS}, {"perf-record", COUNTS}, {"ftrace", COUNTS}, {"bpf-empty", KEPT},
    {"bpf-count", COUNTS},  {"bpf-ring", COUNTS},    {.sink = NULL},
};
