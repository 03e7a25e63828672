/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/bench_explain.h"

#include <string.h>

/* A pair that is measured besides; "": that of the row. NULL: none. */
struct other {
    const char *mechanism, *sink;
};

/* What a sink of the kernel does: by a tracepoint, less the same with a program that does nothing. */
#define RECORDED(sink, label)                                                                                \
    {                                                                                                        \
        sink, label, "tracepoint", sink, 1, {"", "bpf-empty"},                                               \
        {                                                                                                    \
            "tracepoint", "bpf-empty"                                                                        \
        }                                                                                                    \
    }
#define PROBED(mechanism, label)                                                                             \
    {                                                                                                        \
        mechanism, label, mechanism, "bpf-empty", 1,                                                         \
        {                                                                                                    \
            NULL, NULL                                                                                       \
        }                                                                                                    \
    }

static const struct part {
    const char *of; /* a mechanism or a sink */
    const char *label;
    const char *mechanism, *sink; /* the part alone */
    double count;                 /* of it in a call; for a sink: in an event */
    struct other without;         /* the row without the part */
    struct other less;            /* is subtracted from the part alone */
} list[] = {
    {"none", "call", "none", "empty", 1, {NULL, NULL}},
    {"branch", "branch and call", "branch", "empty", 1, {"none", ""}},
    {"nop", "jump and call", "nop", "empty", 1, {"none", ""}},
    {"instrument-functions", "two calls of the compiler", "instrument-functions", "off", 1, {NULL, NULL}},
    {"instrument-functions", "two calls of the sink", "none", "empty", 2, {NULL, NULL}},
    {"patchable-entry", "call", "none", "empty", 1, {NULL, NULL}},
    {"patchable-entry", "register save", "part-save", "off", 1, {"none", ""}},
    {"fentry", "call of __fentry__", "fentry", "off", 1, {NULL, NULL}},
    {"fentry", "call of the sink", "none", "empty", 1, {NULL, NULL}},
    {"fentry", "register save", "part-save", "off", 1, {"none", ""}},
    {"xray", "two calls of XRay's handler", "xray", "empty", 1, {NULL, NULL}},
    {"jump", "jumps and call", "jump", "empty", 1, {"none", ""}},
    {"jump-save", "jumps and call", "jump", "empty", 1, {NULL, NULL}},
    {"jump-save", "register save", "part-save", "off", 1, {NULL, NULL}},
    {"jump-save", "save of vector registers", "part-save-vectors", "off", 1, {"jump", ""}},
    {"plt", "wrapper", "plt", "off", 1, {"none", ""}},
    {"plt", "call", "none", "empty", 1, {NULL, NULL}},
    {"int3", "trap and signal", "part-trap", "off", 1, {"none", ""}},
    {"int3", "call", "none", "empty", 1, {NULL, NULL}},
    {"ptrace", "switch to another process, and back", "part-switches", "off", 1, {NULL, NULL}},
    {"ptrace", "system calls of the tracer", "syscall", "none", 4, {NULL, NULL}},
    {"ptrace", "call", "none", "empty", 1, {NULL, NULL}},
    {"sum", "search for the key", "part-sum-find", "off", 1, {NULL, NULL}},
    {"sum", "atomic additions", "part-sum-count", "off", 1, {NULL, NULL}},
    {"count-thread", "addition", "part-add", "off", 1, {"", "empty"}},
    {"count-cpu", "restartable sequence", "part-sequence", "off", 1, {"", "empty"}},
    {"count-shared", "atomic addition", "part-atomic", "off", 1, {"", "count-thread"}},
    {"event", "restartable sequence", "part-sequence", "off", 1, {NULL, NULL}},
    {"event", "time stamp", "rdtsc", "none", 1, {"", "event-untimed"}},
    {"event", "copy", "part-copy", "off", 1, {NULL, NULL}},
    {"event-untimed", "restartable sequence", "part-sequence", "off", 1, {NULL, NULL}},
    {"event-untimed", "copy", "part-copy", "off", 1, {NULL, NULL}},
    {"event-site", "restartable sequence", "part-sequence", "off", 1, {NULL, NULL}},
    {"event-site", "time stamp", "rdtsc", "none", 1, {NULL, NULL}},
    {"event-site", "copy", "part-copy", "off", 1.25, {NULL, NULL}},
    {"event-clock", "restartable sequence", "part-sequence", "off", 1, {NULL, NULL}},
    {"event-clock", "CLOCK_MONOTONIC", "clock", "none", 1, {NULL, NULL}},
    {"event-clock", "copy", "part-copy", "off", 1, {NULL, NULL}},
    {"event-frames", "restartable sequence", "part-sequence", "off", 1, {NULL, NULL}},
    {"event-frames", "time stamp", "rdtsc", "none", 1, {NULL, NULL}},
    {"event-frames", "walk of the stack", "part-walk", "off", 1, {NULL, NULL}},
    {"event-frames", "copy", "part-copy", "off", 3.5, {NULL, NULL}},
    {"event-read", "restartable sequence", "part-sequence", "off", 1, {NULL, NULL}},
    {"event-read", "time stamp", "rdtsc", "none", 1, {NULL, NULL}},
    {"event-read", "copy", "part-copy", "off", 1, {NULL, NULL}},
    {"event-full", "restartable sequences", "part-sequence", "off", 2, {"", "empty"}},
    {"event-payload", "restartable sequence", "part-sequence", "off", 1, {NULL, NULL}},
    {"event-payload", "time stamp", "rdtsc", "none", 1, {NULL, NULL}},
    {"event-payload", "copies", "part-copy", "off", 2, {NULL, NULL}},
    {"lttng", "CLOCK_MONOTONIC", "clock", "none", 1, {NULL, NULL}},
    {"lttng", "copy", "part-copy", "off", 22.0 / 32, {NULL, NULL}},
    {"mcount", "call of mcount()", "mcount", "off", 1, {NULL, NULL}},
    {"uftrace", "CLOCK_MONOTONIC", "clock", "none", 1, {NULL, NULL}},
    {"uftrace", "copy", "part-copy", "off", 16.0 / 32, {NULL, NULL}},
    {"trace-marker", "formatting", "part-format", "off", 1, {NULL, NULL}},
    {"trace-marker", "system call", "syscall", "none", 1, {NULL, NULL}},
    {"fprintf", "formatting", "part-format", "off", 1, {"", "empty"}},
    {"fprintf", "system call for each 4096 bytes", "part-write", "off", 34.0 / 4096, {NULL, NULL}},
    {"fprintf-shared", "formatting", "part-format", "off", 1, {"", "empty"}},
    {"fprintf-shared", "system call for each 4096 bytes", "part-write", "off", 34.0 / 4096, {NULL, NULL}},
    PROBED("uprobe-nop", "trap, and a program that does nothing"),
    PROBED("uprobe-push", "trap, emulation, and a program that does nothing"),
    PROBED("uprobe-step", "two traps, and a program that does nothing"),
    PROBED("uretprobe", "two traps, and a program that does nothing"),
    PROBED("usdt", "trap, and a program that does nothing"),
    PROBED("kprobe", "jump or trap, and a program that does nothing"),
    PROBED("kernel-fentry", "call of a program that does nothing"),
    {"tracepoint", "system call", "syscall", "none", 1, {NULL, NULL}},
    {"tracepoint",
     "call of a program that does nothing",
     "tracepoint",
     "bpf-empty",
     1,
     {NULL, NULL},
     {"syscall", "none"}},
    RECORDED("perf-count", "count"),
    RECORDED("perf-record", "record, with time stamp"),
    RECORDED("ftrace", "record, with time stamp"),
    RECORDED("bpf-count", "look-up and addition"),
    RECORDED("bpf-ring", "record, with CLOCK_MONOTONIC"),
};

/* Returns the number of the row, which is measured once. */
static size_t add_pair(struct bench_options *o, const char *mechanism, const char *sink)
{
    for (size_t i = 0; i < o->pairs.len; i++)
        if (!strcmp(o->pairs.at[i].mechanism, mechanism) && !strcmp(o->pairs.at[i].sink, sink))
            return i;
    *vec_push(&o->pairs) = (struct bench_pair){.mechanism = mechanism, .sink = sink};
    return o->pairs.len - 1;
}

static const char *or_own(const char *name, const char *own)
{
    return *name ? name : own;
}

void bench_explain_plan(struct bench_options *o, struct bench_parts *parts, const struct bench_mechanism *m,
                        const struct bench_sink_doc *s)
{
    *vec_push(&o->pairs) =
        (struct bench_pair){.mechanism = m->name, .sink = s->name, .floor = bench_floor_of(m, s)};
    for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++) {
        const struct part *p = &list[i];
        const bool is_of_sink = !strcmp(p->of, s->name);
        if (strcmp(p->of, m->name) != 0 && !is_of_sink)
            continue;
        struct bench_part *to = vec_push(&parts->list);
        to->label = p->label;
        to->count = p->count;
        to->is_for_each_event = is_of_sink;
        to->alone = add_pair(o, p->mechanism, p->sink);
        if (p->less.mechanism)
            to->less = add_pair(o, p->less.mechanism, p->less.sink);
        if (p->without.mechanism)
            to->without =
                add_pair(o, or_own(p->without.mechanism, m->name), or_own(p->without.sink, s->name));
    }
}
