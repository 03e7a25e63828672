/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/launched.h"
#include "cli/option_values.h"
#include "run/record.h"

#define BUFFER_LEAST (UINT64_C(64) << 10)
#define BUFFER_MOST  (UINT64_C(4) << 30)

static const struct option_doc options[] = {
    {"output", 'o', "DIR", "write the trace into the new folder DIR (NAME.PID.trace)"},
    {"buffer", 0, "SIZE", "memory for the events of each CPU, a power of two (4M)"},
    {"clock", 0, "CLOCK", "time of events: tsc (the CPU's counter, fast) or mono (CLOCK_MONOTONIC) (tsc)"},
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
    .usage = "[-o DIR] [--buffer SIZE] [--clock CLOCK] [--period SIZE] [--no-follow] [--no-args] [--quiet] "
             "-- CMD ARG...",
    .summary = "run a program, record each of its allocations and frees in order",
    .examples = examples,
    .options = options,
    .run = run,
};

/* Appends what --buffer and --clock ask of the agent. Returns -1, or the exit code after a line. */
static int add_options(const struct arguments *a, struct buf *out)
{
    static const struct word clocks[] = {{"tsc", 0}, {"mono", 1}, {NULL, 0}};
    int clock = 0;
    uint64_t bytes = 0;
    int code = option_values_parse_size(&command_trace, "buffer", command_value(&command_trace, a, "buffer"),
                                        BUFFER_LEAST, BUFFER_MOST, &bytes);
    if (code < 0)
        code = option_values_parse(&command_trace, "clock", command_value(&command_trace, a, "clock"), clocks,
                                   &clock);
    if (bytes)
        buf_printf(out, ",buffer=%" PRIu64, bytes);
    if (clock)
        buf_addstr(out, ",clock=mono");
    return code;
}

static int run(int argc, char **argv)
{
    struct arguments a;
    struct error e = {""};
    struct record_options o = {.period_bytes = RECORD_PERIOD_DEFAULT_BYTES};
    int code = command_parse(&command_trace, argc, argv, true, &a);
    if (code >= 0)
        return code;
    if (!a.n_rest)
        return command_misuse(&command_trace, "missing command: allium trace -- CMD ARG...");
    code = option_values_parse_size(&command_trace, "period", command_value(&command_trace, &a, "period"), 1,
                                    RECORD_PERIOD_MAX_BYTES, &o.period_bytes);
    if (code >= 0)
        return code;
    struct buf agent_options = BUF_INIT;
    code = add_options(&a, &agent_options);
    if (code >= 0) {
        buf_release(&agent_options);
        return code;
    }
    o.trace_options = buf_str(&agent_options);
    o.argv = a.rest;
    o.keep_args = !command_value(&command_trace, &a, "no-args");
    o.follow = !command_value(&command_trace, &a, "no-follow");
    const bool quiet = command_value(&command_trace, &a, "quiet") != NULL;
    char *path = NULL;
    code = launched_check(a.rest[0], quiet, &o.own_allocator, &path);
    free(path);
    if (code >= 0) {
        buf_release(&agent_options);
        return code;
    }
    struct buf folder = BUF_INIT, recording = BUF_INIT;
    const char *named = command_value(&command_trace, &a, "output"), *slash = strrchr(a.rest[0], '/');
    if (named)
        buf_addstr(&folder, named);
    else
        buf_printf(&folder, "%s.%d.trace", slash ? slash + 1 : a.rest[0], (int)getpid());
    if (mkdir(buf_str(&folder), 0700))
        return command_fail(EXIT_ALLIUM, "%s: %s", buf_str(&folder), strerror(errno));
    buf_printf(&recording, "%s/profile.allium", buf_str(&folder));
    o.trace = buf_str(&folder);
    o.output = buf_str(&recording);
    struct record_result result;
    const int bad = record_command(&o, &result, &e);
    if (bad)
        command_fail(0, "%s", e.text);
    const struct ring_follow_counts *n = &result.traced;
    if (!quiet && result.stage == RECORD_RAN)
        command_fail(0, "%" PRIu64 " events of %" PRIu64 " process%s in %s, %" PRIu64 " lost", n->events,
                     n->images, n->images == 1 ? "" : "es", buf_str(&folder), n->lost);
    code = launched_exit_code(&result);
    free(result.path);
    buf_release(&folder);
    buf_release(&agent_options);
    buf_release(&recording);
    return code;
}
