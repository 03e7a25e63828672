/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "cli/command.h"
#include "cli/launched.h"
#include "cli/option_values.h"
#include "cli/trace/trace_summary.h"
#include "run/record.h"

static const struct option_doc options[] = {
    {"output", 'o', "DIR", "write the trace into the new folder DIR (NAME.PID.trace)"},
    {"force", 0, NULL, "replace DIR if it is a trace"},
    {"limit", 0, "SIZE", "stop when DIR has SIZE (4G, or a quarter of the free space if that is less)"},
    {"duration", 0, "DURATION", "stop after DURATION; CMD runs on"},
    {"period", 0, "SIZE", "sample the heap beside, see allium-run(1) (512K)"},
    {"no-follow", 0, NULL, "do not observe processes that CMD starts"},
    {"no-args", 0, NULL, "do not keep command lines in the recording"},
    {"quiet", 0, NULL, "print no summary"},
    {NULL, 0, NULL, NULL},
};

static const char *const examples[] = {
    "allium trace -o t -- ./server --port 8080",
    "record every allocation and free in order, into the folder t",
    "babeltrace2 t/ust",
    "print them",
    NULL,
};

static int run(int argc, char **argv);

const struct command command_trace = {
    .name = "trace",
    .usage =
        "[-o DIR] [--force] [--limit SIZE] [--duration DURATION] [--period SIZE] [--no-follow] [--no-args] "
        "[--quiet] -- CMD ARG...",
    .summary = "run a program, record each of its allocations and frees in order",
    .examples = examples,
    .options = options,
    .run = run,
};

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
    t->folder = command_value(&command_trace, a, "output");
    o->trace = t;
    o->argv = a->rest;
    o->force = command_value(&command_trace, a, "force") != NULL;
    o->keep_args = !command_value(&command_trace, a, "no-args");
    o->follow = !command_value(&command_trace, a, "no-follow");
    return code;
}

static int run(int argc, char **argv)
{
    struct arguments a;
    struct error e = {""};
    struct record_trace trace = {.folder = NULL};
    struct record_options o = {.period_bytes = RECORD_PERIOD_DEFAULT_BYTES};
    int code = command_parse(&command_trace, argc, argv, true, &a);
    if (code >= 0)
        return code;
    if (!a.n_rest)
        return command_misuse(&command_trace, "missing command: allium trace -- CMD ARG...");
    code = parse_values(&a, &o, &trace);
    if (code >= 0)
        return code;
    const bool quiet = command_value(&command_trace, &a, "quiet") != NULL;
    char *path = NULL;
    code = launched_check(a.rest[0], quiet, &o.own_allocator, &path);
    free(path);
    if (code >= 0)
        return code;
    struct record_result result;
    const int bad = record_command(&o, &result, &e);
    if (bad)
        command_fail(0, "%s", e.text);
    if (!quiet && result.stage == RECORD_RAN)
        trace_summary_print(&result.traced, result.folder);
    free(result.path);
    free(result.folder);
    return launched_exit_code(&result);
}
