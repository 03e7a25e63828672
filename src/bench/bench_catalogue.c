/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/bench_catalogue.h"

#include <string.h>

/* Their keys are the names of loops in bench/hooks/bench_floors.c. */
const struct bench_floor bench_floor_list[] = {
    {"empty loop", "loop", 1},
    {"call", "call", 1},
    {"rdtsc", "rdtsc", 1},
    {"CLOCK_MONOTONIC", "clock", 1},
    {"step of the clock", "step", 1},
    {"null system call", "syscall", 1},
    {"ping-pong of two CPUs", "ping-pong", 2},
    {NULL, NULL, 0},
};

const struct bench_mechanism bench_mechanism_list[] = {
    {"none", "call", false, BENCH_IN_PROGRAM, true, BENCH_NEEDS_REBUILD, "the source calls the sink"},
    {"branch", "call", false, BENCH_IN_PROGRAM, true, BENCH_NEEDS_REBUILD,
     "the source tests a flag, then calls the sink"},
    {"nop", "call", false, BENCH_IN_PROGRAM, true, BENCH_NEEDS_REBUILD,
     "a nop of 5 bytes in the source, patched to a jump while it is on"},
    {"instrument-functions", "call", false, BENCH_IN_PROGRAM, true, BENCH_NEEDS_REBUILD,
     "the compiler's calls at entry and exit of each function: two events a call"},
    {"patchable-entry", "call", false, BENCH_IN_PROGRAM, false, BENCH_NEEDS_REBUILD,
     "nops at the entry of a function, patched to a call"},
    {"fentry", "call", false, BENCH_IN_PROGRAM, false, BENCH_NEEDS_REBUILD,
     "-pg -mfentry: a call at the entry of each function, which tests a flag"},
    {"mcount", "call", false, BENCH_IN_PROGRAM, false, BENCH_NEEDS_REBUILD,
     "-pg: a call at the entry of each function, as uftrace takes it: two events a call"},
    {"xray", "call", false, BENCH_IN_PROGRAM, false, BENCH_NEEDS_REBUILD,
     "XRay of clang: nops at entry and exit of each function, patched to jumps: two events a call"},
    {"jump", "call", false, BENCH_IN_PROGRAM, true, BENCH_NEEDS_NOTHING,
     "a jump over a function's first instructions to a wrapper"},
    {"jump-save", "call", false, BENCH_IN_PROGRAM, false, BENCH_NEEDS_NOTHING,
     "the same to code that saves all registers"},
    {"plt", "call", false, BENCH_IN_PROGRAM, true, BENCH_NEEDS_NOTHING,
     "a function of a library, wrapped as by LD_PRELOAD"},
    {"int3", "syscall", true, BENCH_IN_PROGRAM, true, BENCH_NEEDS_NOTHING,
     "a breakpoint of 1 byte, and a handler of SIGTRAP"},
    {"ptrace", "syscall", true, BENCH_IN_PROGRAM, false, BENCH_NEEDS_NOTHING,
     "a breakpoint that another process serves, as a debugger does"},
    {"uprobe-nop", "syscall", true, BENCH_FROM_KERNEL, true, BENCH_NEEDS_ROOT, "uprobe on a nop of 1 byte"},
    {"uprobe-push", "syscall", true, BENCH_FROM_KERNEL, false, BENCH_NEEDS_ROOT,
     "uprobe on a push, which the kernel emulates"},
    {"uprobe-step", "syscall", true, BENCH_FROM_KERNEL, false, BENCH_NEEDS_ROOT,
     "uprobe on an instruction that is stepped"},
    {"uretprobe", "syscall", true, BENCH_FROM_KERNEL, false, BENCH_NEEDS_ROOT,
     "uprobe on the return from a function"},
    {"usdt", "syscall", true, BENCH_FROM_KERNEL, false, BENCH_NEEDS_ROOT,
     "uprobe on a probe that the source declares"},
    {"tracepoint", "syscall", true, BENCH_FROM_KERNEL, true, BENCH_NEEDS_ROOT | BENCH_OF_KERNEL,
     "tracepoint of a system call, which is part of the figure"},
    {"kprobe", "call", false, BENCH_FROM_KERNEL, false, BENCH_NEEDS_ROOT | BENCH_OF_KERNEL,
     "kprobe at the entry of a function of the kernel"},
    {"kernel-fentry", "call", false, BENCH_FROM_KERNEL, false, BENCH_NEEDS_ROOT | BENCH_OF_KERNEL,
     "a BPF program at the entry of a function of the kernel, without a trap"},
    {NULL, NULL, false, BENCH_IN_PROGRAM, false, 0, NULL},
};

const struct bench_sink_doc bench_sink_list[] = {
    {"none", NULL, BENCH_IN_PROGRAM, false, BENCH_KEEPS_NOTHING, NULL,
     "the mechanism is not there: how far equal code differs"},
    {"off", NULL, BENCH_IN_PROGRAM, true, BENCH_KEEPS_NOTHING, NULL,
     "the mechanism is there, and switched off"},
    {"empty", NULL, BENCH_IN_PROGRAM, true, BENCH_KEEPS_NOTHING, NULL, "a function that does nothing"},
    {"count-thread", NULL, BENCH_IN_PROGRAM, true, BENCH_KEEPS_SUMS, NULL, "add 1 to a number of the thread"},
    {"count-cpu", NULL, BENCH_IN_PROGRAM, false, BENCH_KEEPS_SUMS, NULL,
     "add 1 to a number of the CPU, in a restartable sequence"},
    {"count-shared", NULL, BENCH_IN_PROGRAM, false, BENCH_KEEPS_SUMS, NULL,
     "add 1 to a number that all threads share"},
    {"sum", NULL, BENCH_IN_PROGRAM, true, BENCH_KEEPS_SUMS, NULL,
     "count, sum, least, most and histogram of a value, by caller: `allium trace --sum`"},
    {"event", "rdtsc", BENCH_IN_PROGRAM, true, BENCH_KEEPS_ORDER, "tsc",
     "write an event of 32 bytes into this CPU's ring, with the time stamp counter"},
    {"event-untimed", NULL, BENCH_IN_PROGRAM, false, BENCH_KEEPS_NOTHING, NULL,
     "the same without the time stamp"},
    {"event-full", NULL, BENCH_IN_PROGRAM, false, BENCH_KEEPS_NOTHING, "tsc",
     "write an event while the ring is full and nothing reads it: all are lost"},
    {"event-read", "rdtsc", BENCH_IN_PROGRAM, false, BENCH_KEEPS_ORDER, "tsc",
     "write an event while a thread of the program reads the rings, as `allium trace` does"},
    {"event-clock", "clock", BENCH_IN_PROGRAM, false, BENCH_KEEPS_ORDER, "mono",
     "write an event, with CLOCK_MONOTONIC"},
    {"event-site", "rdtsc", BENCH_IN_PROGRAM, false, BENCH_KEEPS_ORDER, "tsc",
     "write an event of 40 bytes: a return address more"},
    {"event-frames", "rdtsc", BENCH_IN_PROGRAM, false, BENCH_KEEPS_ORDER, "tsc",
     "write an event with 10 frames of the stack, by frame pointers"},
    {"lttng", "rdtsc", BENCH_IN_PROGRAM, true, BENCH_KEEPS_ORDER, "mono",
     "an event of LTTng-UST with two addresses, and a session daemon of its own"},
    {"uftrace", "clock", BENCH_IN_PROGRAM, false, BENCH_KEEPS_ORDER, "mono",
     "`uftrace record` runs the program; only with mcount"},
    {"trace-marker", "syscall", BENCH_IN_PROGRAM, false, BENCH_KEEPS_ORDER, "local",
     "write a line into the buffer of ftrace (trace_marker), as root"},
    {"event-payload", "rdtsc", BENCH_IN_PROGRAM, false, BENCH_KEEPS_ORDER, "tsc",
     "write an event with the bytes of --payload"},
    {"fprintf", NULL, BENCH_IN_PROGRAM, true, BENCH_KEEPS_ORDER, NULL,
     "print a line into a file of the thread, in memory"},
    {"fprintf-shared", NULL, BENCH_IN_PROGRAM, false, BENCH_KEEPS_ORDER, NULL,
     "print a line into a file that all threads share"},
    {"perf-count", NULL, BENCH_FROM_KERNEL, false, BENCH_KEEPS_SUMS, NULL,
     "the kernel counts, as for perf stat"},
    {"perf-record", NULL, BENCH_FROM_KERNEL, true, BENCH_KEEPS_ORDER, "local",
     "a record in the ring of perf, as for perf record"},
    {"ftrace", NULL, BENCH_FROM_KERNEL, false, BENCH_KEEPS_ORDER, "local",
     "a record in the buffer of ftrace"},
    {"bpf-empty", NULL, BENCH_FROM_KERNEL, false, BENCH_KEEPS_NOTHING, NULL,
     "a BPF program that does nothing"},
    {"bpf-count", NULL, BENCH_FROM_KERNEL, true, BENCH_KEEPS_SUMS, NULL,
     "a BPF program that adds 1 to a number of the CPU"},
    {"bpf-ring", NULL, BENCH_FROM_KERNEL, true, BENCH_KEEPS_ORDER, "mono",
     "a BPF program that fills a record of a ring buffer, without wake-up"},
    {NULL, NULL, BENCH_IN_PROGRAM, false, BENCH_KEEPS_NOTHING, NULL, NULL},
};

const struct bench_attachment *bench_find_attachment(const char *sink)
{
    for (const struct bench_attachment *a = bench_attachments; a->sink; a++)
        if (!strcmp(a->sink, sink))
            return a;
    return NULL;
}

bool bench_has_payload(const struct bench_sink_doc *s)
{
    static const char *const with[] = {"event-payload", "fprintf", "fprintf-shared", "lttng"};
    for (size_t i = 0; i < sizeof(with) / sizeof(*with); i++)
        if (!strcmp(s->name, with[i]))
            return true;
    return false;
}

/* Without a sink that has a function of its own. */
static bool is_without(const struct bench_sink_doc *s)
{
    return !strcmp(s->name, "none") || !strcmp(s->name, "off");
}

bool bench_makes_row(const struct bench_mechanism *m, const struct bench_sink_doc *s)
{
    if (m->side != s->side)
        return false;
    const bool is_mcount = !strcmp(m->name, "mcount"), is_uftrace = !strcmp(s->name, "uftrace");
    if (is_mcount || is_uftrace) /* uftrace has the function that is called, and records there */
        return is_mcount && (is_uftrace || is_without(s));
    if (!strcmp(m->name, "kernel-fentry"))
        return !strncmp(s->name, "bpf-", 4);
    if (!strcmp(m->name, "ptrace")) /* a tracer does not run on the stack that is recorded */
        return strcmp(s->name, "event-frames") != 0;
    /* Without a mechanism there is nothing to switch off. */
    return strcmp(m->name, "none") != 0 || strcmp(s->name, "off") != 0;
}

const char *bench_floor_of(const struct bench_mechanism *m, const struct bench_sink_doc *s)
{
    return s->floor && !m->is_trap ? s->floor : m->floor;
}
