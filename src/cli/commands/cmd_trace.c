/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "cli/command.h"
#include "cli/launched.h"
#include "cli/option_values.h"
#include "cli/source.h"
#include "cli/trace/trace_agent_options.h"
#include "cli/trace/trace_allocator.h"
#include "cli/trace/trace_clock.h"
#include "cli/trace/trace_filter.h"
#include "cli/trace/trace_functions.h"
#include "cli/trace/trace_process.h"
#include "cli/trace/trace_sum.h"
#include "cli/trace/trace_summary.h"
#include "collect/ledger/control_events.h"
#include "run/record.h"

static const struct option_doc options[] = {
    {"output", 'o', "DIR", "write the trace into the new folder DIR (NAME.PID.trace)"},
    {"force", 0, NULL, "replace DIR if it is a trace"},
    {"events", 0, "LIST",
     "record alloc, begin, tag, user, 'PROVIDER:NAME' (* and ? match); '!...' excludes (alloc)"},
    {"where", 0, "QUERY", "record only matching events: 'size>1M', see --where in allium-trace(1)"},
    {"kernel", 0, "LIST", "record events of the kernel, too: faults,sched,... (root)"},
    {"kernel-all", 0, NULL, "record all events of the kernel, too (root)"},
    {"kernel-buffer", 0, "SIZE",
     "memory for each of the two rings of the kernel's events that a CPU has (4M)"},
    {"function", 0, "FUNCTION",
     "record calls of a function: LIB:NAME, :NAME, usdt:PROVIDER:NAME; see --function in allium-trace(1) "
     "(root)",
     true},
    {"buffer", 0, "SIZE", "memory for the events of each CPU, a power of two (4M)"},
    {"clock", 0, "CLOCK",
     "time events by tsc (the CPU's), every:N (each Nth by it), mono (CLOCK_MONOTONIC), counter (1, 2, ...) "
     "or none (tsc)"},
    {"stacks", 0, "WHAT",
     "record with each event none, site (the call) or full (of an allocation the whole stack) (site)"},
    {"limit", 0, "SIZE", "stop when DIR has SIZE (4G, or a quarter of the free space if that is less)"},
    {"duration", 0, "DURATION", "stop after DURATION; CMD runs on"},
    {"flight", 0, NULL, "keep the last events in memory; write them at a crash, or at a trigger"},
    {"snapshot-on", 0, "TRIGGER",
     "with --flight, write also at exit!=0, every:DURATION, 'live>1G', growing, 'event:NAME where QUERY'",
     true},
    {"period", 0, "SIZE", "also take a heap sample for each SIZE bytes on average, see allium-run(1) (512K)"},
    {"no-follow", 0, NULL, "do not observe processes that CMD starts"},
    {"no-args", 0, NULL, "do not keep command lines in the recording"},
    {"quiet", 0, NULL, "print no summary"},
    TRACE_SUM_OPTIONS,
    SOURCE_PID_OPTION,
    {NULL, 0, NULL, NULL},
};

static const char *const examples[] = {
    "allium trace -o t -- ./server --port 8080",
    "record every allocation and free in order, into the folder t",
    "babeltrace2 t/ust",
    "print the events of the program",
    "sudo allium trace --kernel faults,sched -o t -- ./server",
    "record also page faults, and which thread took the CPU",
    "sudo allium trace --function libc.so.6:getenv --function :handle_request -o t -- ./server",
    "record also each call of two functions, with arguments, result and duration",
    "allium trace --stacks full --events begin -o t -- ./server",
    "record the whole stack of each call, and when each call began",
    "allium trace --events 'alloc,shop:*,!shop:noisy' -- ./server",
    "record also the program's own events of shop, except shop:noisy; see allium-events(7)",
    "allium trace --where 'size>=64k' -o t -- ./server",
    "record only large blocks, with their frees",
    "allium trace --flight --snapshot-on 'exit!=0' -- ./server",
    "keep the last events; if the server crashes or fails, store them in a folder in server.PID.trace",
    "allium trace --duration 10s 4711",
    "trace, for 10 s, a process that was started with `allium env --trace`",
    "allium trace --events 'shop:*' 4711",
    "record the own events of a process that uses liballium.so, however it was started",
    "sudo allium trace --kernel faults,sched 4711",
    "record what the kernel does for any process, and for its children",
    "allium trace --sum malloc.size,by=site -- ./server",
    "record nothing, and add up the sizes for each call of malloc",
    "sudo allium trace --sum kernel:page_fault_begin,by=class -- ./server",
    "record nothing, and count the page faults by the class of memory",
    "allium trace --sum alloc.size,by=site --interval 10s 4711",
    "the same for a process that runs already",
    NULL,
};

static int run(int argc, char **argv);

const struct command command_trace = {
    .name = "trace",
    .usage = "[-o DIR] [--force] [--events LIST] [--where QUERY] [--buffer SIZE] [--clock CLOCK] "
             "[--stacks WHAT] [--limit SIZE] [--duration DURATION] [--flight [--snapshot-on TRIGGER]...] "
             "[--kernel LIST|--kernel-all] [--kernel-buffer SIZE] [--function FUNCTION]... [--period SIZE] "
             "[--no-follow] [--no-args] "
             "[--quiet] -- CMD ARG...\n"
             "[-o DIR] [--force] [--events LIST] [--where QUERY] [--kernel LIST|--kernel-all] "
             "[--kernel-buffer SIZE] [--function FUNCTION]... [--limit SIZE] [--duration DURATION] [--quiet] "
             "PID|-p PID\n"
             "--sum EVENT[.FIELD][,by=FIELD...] [-o FILE] [--force] [--interval INTERVAL] [--top N] "
             "[--histogram] [--alert QUERY [--exec COMMAND]] [--json] [--period SIZE] [--no-follow] "
             "[--kernel-buffer SIZE] [--quiet] -- CMD ARG...\n"
             "--sum EVENT[.FIELD][,by=FIELD...] [-o FILE] [--force] [--interval INTERVAL] [--top N] "
             "[--histogram] [--alert QUERY [--exec COMMAND]] [--json] [--duration DURATION] "
             "[--kernel-buffer SIZE] [--quiet] PID|-p PID",
    .summary = "run a program, or attach to a process, and record each of its allocations and frees in order",
    .examples = examples,
    .options = options,
    .run = run,
};

/* Returns an exit code, or -1. */
static int take_kernel(const struct arguments *a, struct record_trace *t)
{
    struct error e = {""};
    const char *list = command_value(&command_trace, a, "kernel"), *bad;
    const char *buffer = command_value(&command_trace, a, "kernel-buffer");
    t->kernel_ring_bytes = KERNEL_FOLLOW_RING_BYTES;
    const bool all = command_value(&command_trace, a, "kernel-all") != NULL;
    const bool functions = command_value(&command_trace, a, "function") != NULL;
    if (all && list)
        return command_misuse(&command_trace, "--kernel-all has all of --kernel: leave one out");
    if (!list && !all && !functions)
        return buffer ? command_misuse(&command_trace, "--kernel-buffer is for --kernel and --function") : -1;
    t->kernel_groups = all ? KERNEL_FOLLOW_ALL : list ? kernel_follow_groups(list, &bad) : 0;
    if (list && !t->kernel_groups)
        return command_misuse(&command_trace, "unknown events in --kernel: %.*s: use %s",
                              (int)strcspn(bad, ","), bad, kernel_follow_group_names());
    const int code =
        option_values_parse_size(&command_trace, "kernel-buffer", buffer, KERNEL_FOLLOW_RING_LEAST,
                                 KERNEL_FOLLOW_RING_MOST, &t->kernel_ring_bytes);
    if (code >= 0)
        return code;
    return kernel_follow_check(&e) ? command_fail(EXIT_IMPOSSIBLE, "%s", e.text) : -1;
}

/* -1: fine; else the exit code. */
static int parse_values(const struct arguments *a, struct record_options *o, struct record_trace *t)
{
    int code = option_values_parse_size(&command_trace, "period", command_value(&command_trace, a, "period"),
                                        1, RECORD_PERIOD_MAX_BYTES, &o->period_bytes);
    if (code < 0)
        code = option_values_parse_size(&command_trace, "limit", command_value(&command_trace, a, "limit"), 1,
                                        UINT64_MAX, &t->limit_bytes);
    if (code < 0)
        code = option_values_parse_time(&command_trace, "duration",
                                        command_value(&command_trace, a, "duration"), 1, &t->duration_ns);
    if (code < 0)
        code = trace_filter_parse_clock(&command_trace, a, &t->clock);
    if (code < 0)
        code = trace_filter_parse(&command_trace, a, t->clock, &t->where);
    if (code < 0)
        code = take_kernel(a, t);
    t->events = command_value(&command_trace, a, "events");
    const char *of_rings = command_value(&command_trace, a, "buffer")   ? "buffer"
                           : command_value(&command_trace, a, "clock")  ? "clock"
                           : command_value(&command_trace, a, "stacks") ? "stacks"
                                                                        : NULL;
    if (code < 0 && of_rings && t->events && !event_list_has_agent(t->events))
        code = command_misuse(&command_trace, "--%s is for the rings of the agent: use --events alloc,%s",
                              of_rings, t->events);
    const char *mistake = t->events ? event_list_mistake(t->events) : NULL;
    if (code < 0 && mistake)
        code = command_misuse(&command_trace, "--events %s: %s", t->events, mistake);
    t->folder = command_value(&command_trace, a, "output");
    o->trace = t;
    o->argv = a->rest;
    o->force = command_value(&command_trace, a, "force") != NULL;
    o->keep_args = !command_value(&command_trace, a, "no-args");
    o->follow = !command_value(&command_trace, a, "no-follow");
    return code;
}

/* --flight and --snapshot-on. *events: receives the list of events, which the caller frees. -1: fine; else the exit
 * code. */
static int parse_flight(const struct arguments *a, struct record_trace *t, struct trace_triggers *triggers,
                        char **events)
{
    struct error e = {""};
    const bool flight = command_value(&command_trace, a, "flight");
    const char *snapshot_on = command_value(&command_trace, a, "snapshot-on");
    if (snapshot_on && !flight)
        return command_misuse(&command_trace, "--snapshot-on needs --flight: use --flight --snapshot-on %s",
                              snapshot_on);
    if (flight && t->events && !event_list_has_agent(t->events))
        return command_misuse(&command_trace, "--flight needs alloc in --events: --events alloc,%s",
                              t->events);
    if (flight && t->duration_ns)
        return command_misuse(&command_trace, "--flight and --duration exclude each other: use one");
    for (int i = 0; i < a->n_many; i++)
        if (!strcmp(a->many_of[i], "snapshot-on") && trace_triggers_add(triggers, a->many[i], &e))
            return command_misuse(&command_trace, "--snapshot-on: %s", e.text);
    t->flight = flight ? triggers : NULL;
    if (!flight)
        return -1;
    t->events = *events = trace_triggers_events(triggers, t->events);
    const char *mistake = event_list_mistake(t->events);
    if (mistake)
        return command_misuse(&command_trace, "--events %s: %s", t->events, mistake);
    return -1;
}

static void print_summary(const struct arguments *a, const struct record_trace *t,
                          const struct record_result *result)
{
    if (t->flight)
        trace_summary_print_flight(&result->flown, result->folder);
    else
        trace_summary_print(&result->traced, result->folder);
    const char *clock = command_value(&command_trace, a, "clock");
    if (!clock || strcmp(clock, "mono") != 0)
        trace_clock_tell(t->flight ? result->flown.mono_images : result->traced.mono_images);
    if (t->kernel_groups || t->probes)
        trace_summary_print_kernel(t, &result->kernel, result->flown.kernel_events);
    if (t->kernel_groups && t->events && !t->flight)
        trace_allocator_print(result->folder, result->traced.events + result->kernel.events);
}

static int run(int argc, char **argv)
{
    struct arguments a;
    struct error e = {""};
    struct record_trace trace = {.folder = NULL};
    struct trace_triggers triggers = {.n_alerts = 0};
    char *path = NULL, *events = NULL;
    struct record_options o = {.period_bytes = RECORD_PERIOD_DEFAULT_BYTES};
    int code = command_parse(&command_trace, argc, argv, true, &a);
    if (code >= 0)
        return code;
    if (command_value(&command_trace, &a, "sum"))
        return trace_sum_run(&command_trace, &a);
    code = trace_sum_check_absent(&command_trace, &a);
    if (code >= 0)
        return code;
    if (!a.n_rest)
        return command_misuse(&command_trace, "missing command or PID: use allium trace -- CMD ARG...");
    code = parse_values(&a, &o, &trace);
    code = code >= 0 ? code : parse_flight(&a, &trace, &triggers, &events);
    if (code >= 0)
        return code;
    if (source_kind(a.rest[0]) == SOURCE_PROCESS)
        return trace_process_run(&command_trace, &a, &o);
    const bool quiet = command_value(&command_trace, &a, "quiet") != NULL;
    code = launched_check(a.rest[0], quiet, &o.own_allocator, &path);
    struct probe_list *functions = NULL;
    code = code >= 0 ? code : trace_functions_parse(&a, &(struct probe_target){.program = path}, &functions);
    free(path);
    trace.probes = functions;
    trace.priced = quiet ? NULL : trace_functions_print_price;
    struct buf agent_options = BUF_INIT;
    code = code >= 0 ? code : trace_agent_options_add(&command_trace, &a, &agent_options);
    if (code >= 0) {
        buf_release(&agent_options);
        probe_list_free(functions);
        return code;
    }
    trace_filter_add_options(trace.where, &agent_options);
    trace.options = buf_str(&agent_options);
    struct record_result result;
    const int bad = record_command(&o, &result, &e);
    const bool of_kernel = trace.kernel_groups || trace.probes;
    const bool impossible = bad == -EOPNOTSUPP || (bad == -EPERM && of_kernel);
    if (bad)
        command_fail(0, "%s", e.text);
    if (!quiet && result.stage == RECORD_RAN)
        print_summary(&a, &trace, &result);
    trace_triggers_release(&triggers);
    probe_list_free(functions);
    buf_release(&agent_options);
    free(events);
    free(result.path);
    free(result.folder);
    return result.stage == RECORD_NOT_STARTED && impossible ? EXIT_IMPOSSIBLE : launched_exit_code(&result);
}
