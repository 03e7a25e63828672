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
#include "collect/ledger/control_events.h"
#include "run/record.h"

#define BUFFER_LEAST (UINT64_C(64) << 10)
#define BUFFER_MOST  (UINT64_C(4) << 30)

static const struct option_doc options[] = {
    {"output", 'o', "DIR", "write the trace into the new folder DIR (NAME.PID.trace)"},
    {"kernel", 0, "LIST", "record events of the kernel, too: faults,sched,... (root)"},
    {"kernel-all", 0, NULL, "all of them"},
    {"kernel-buffer", 0, "SIZE", "the kernel's ring of each CPU (4M)"},
    {"buffer", 0, "SIZE", "memory for the events of each CPU, a power of two (4M)"},
    {"clock", 0, "CLOCK", "time of events: tsc (the CPU's counter, fast) or mono (CLOCK_MONOTONIC) (tsc)"},
    {"events", 0, "LIST", "record these: alloc, user, 'PROVIDER:NAME' with * and ?, '!...' not (alloc)"},
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
    "sudo allium trace --kernel faults,sched -o t -- ./server",
    "with page faults, and who took the CPU",
    "allium trace --events 'alloc,shop:*,!shop:noisy' -- ./server",
    "record also the program's own events of shop, see allium-events(7), and not shop:noisy",
    NULL,
};

static int run(int argc, char **argv);

const struct command command_trace = {
    .name = "trace",
    .usage = "[-o DIR] [--events LIST] [--buffer SIZE] [--clock CLOCK] [--kernel LIST|--kernel-all] "
             "[--kernel-buffer SIZE] [--period SIZE] [--no-follow] [--no-args] [--quiet] -- CMD ARG...",
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

static void tell_kernel(const struct kernel_follow_counts *n)
{
    struct buf b = BUF_INIT;
    if (n->missed) /* the kernel does not tell whose they were */
        buf_printf(&b, "; of all processes %" PRIu64 " were missed amid others", n->missed);
    if (n->counted)
        buf_printf(&b, "; %" PRIu64 " counted apart", n->counted);
    if (n->untraced)
        buf_printf(&b, "; %" PRIu64 " processes were not traced: more than 32768 ran at a time", n->untraced);
    command_fail(0, "%" PRIu64 " events of the kernel, %" PRIu64 " lost%s", n->events, n->lost, buf_str(&b));
    buf_release(&b);
}

/* Returns an exit code, or -1. */
static int take_kernel(const struct arguments *a, struct record_options *o)
{
    struct error e = {""};
    const char *list = command_value(&command_trace, a, "kernel"), *bad;
    const char *buffer = command_value(&command_trace, a, "kernel-buffer");
    o->kernel_ring_bytes = KERNEL_FOLLOW_RING_BYTES;
    const bool all = command_value(&command_trace, a, "kernel-all") != NULL;
    if (all && list)
        return command_misuse(&command_trace, "--kernel-all has all of --kernel: leave one out");
    if (!list && !all)
        return buffer ? command_misuse(&command_trace, "--kernel-buffer is for --kernel") : -1;
    o->kernel_groups = all ? KERNEL_FOLLOW_ALL : kernel_follow_groups(list, &bad);
    if (!o->kernel_groups)
        return command_misuse(&command_trace, "unknown events in --kernel: %.*s: use %s",
                              (int)strcspn(bad, ","), bad, kernel_follow_group_names());
    const int code =
        option_values_parse_size(&command_trace, "kernel-buffer", buffer, KERNEL_FOLLOW_RING_LEAST,
                                 KERNEL_FOLLOW_RING_MOST, &o->kernel_ring_bytes);
    if (code >= 0)
        return code;
    return kernel_follow_check(&e) ? command_fail(EXIT_IMPOSSIBLE, "%s", e.text) : -1;
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
    o.events = command_value(&command_trace, &a, "events");
    const char *mistake = o.events ? event_list_mistake(o.events) : NULL;
    if (mistake)
        return command_misuse(&command_trace, "--events %s: %s", o.events, mistake);
    code = take_kernel(&a, &o);
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
    if (!quiet && result.stage == RECORD_RAN && o.kernel_groups)
        tell_kernel(&result.kernel);
    if (!quiet && n->user.cut)
        command_fail(0, "%" PRIu64 " of the program's own events have a text that was cut", n->user.cut);
    if (!quiet && n->user.unknown)
        command_fail(0,
                     "%" PRIu64 " of the program's own events were left out: it damaged their descriptions",
                     n->user.unknown);
    code = launched_exit_code(&result);
    if (result.stage == RECORD_NOT_STARTED && bad == -EOPNOTSUPP)
        code = EXIT_IMPOSSIBLE;
    free(result.path);
    buf_release(&folder);
    buf_release(&agent_options);
    buf_release(&recording);
    return code;
}
