/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "attach/attach_process.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/option_values.h"
#include "cli/source.h"
#include "run/launch.h"
#include "run/record.h"

#define TIMEOUT_DEFAULT_NS 10000000000ull

static const struct option_doc options[] = {
    {"period", 0, "SIZE", "take a sample for each SIZE bytes on average (512K); 1: every allocation, exact"},
    {"ledger-size", 0, "SIZE", "limit the ledger of the process (64M; 2G with --period 1)"},
    {"timeout", 0, "DURATION", "give up when no thread was at a safe point for DURATION (10s)"},
    {"quiet", 0, NULL, "print only errors on stderr"},
    SOURCE_PID_OPTION,
    {NULL, 0, NULL, NULL},
};

static const char *const examples[] = {
    "allium attach 4711 && sleep 60 && allium report 4711",
    "observe process 4711 from now on, and show what it holds of a minute's allocations",
    "allium detach 4711",
    "leave the process as it was",
    NULL,
};

static int run(int argc, char **argv);

const struct command command_attach = {
    .name = "attach",
    .usage = "PID|-p PID [--period SIZE] [--ledger-size SIZE] [--timeout DURATION] [--quiet]",
    .summary = "observe a process that is running already",
    .examples = examples,
    .options = options,
    .run = run,
};

static int fail(int bad, const struct error *e)
{
    return command_fail(bad == -ENOSYS ? EXIT_IMPOSSIBLE : EXIT_FAILED, "%s", e->text);
}

static int attach(pid_t pid, struct attach_options *o, bool quiet)
{
    struct attached a;
    struct error e = {""};
    char stop[UNITS_TEXT_BYTES], now[16];
    char *agent;
    int bad = launch_find_agent_file(LAUNCH_AGENT_FULL, &agent, &e);
    if (bad)
        return fail(bad, &e);
    o->agent = agent;
    bad = attach_begin(pid, o, &a, &e);
    free(agent);
    if (bad)
        return fail(bad, &e);
    const time_t seconds = time(NULL);
    struct tm local;
    strftime(now, sizeof(now), "%H:%M:%S", localtime_r(&seconds, &local));
    if (!quiet)
        command_fail(
            0,
            "attached to %s (pid %d): %u thread%s, longest stop %s, %u functions of %s; monitoring began at "
            "%s; see allium report %d",
            a.comm, (int)pid, a.threads, a.threads == 1 ? "" : "s",
            units_format_duration(stop, a.longest_stop_ns), a.functions, a.library, now, (int)pid);
    return EXIT_DONE;
}

static int run(int argc, char **argv)
{
    struct arguments a;
    struct attach_options o = {.period_bytes = RECORD_PERIOD_DEFAULT_BYTES, .dir = getenv("ALLIUM_DIR")};
    uint64_t timeout_ns = TIMEOUT_DEFAULT_NS;
    pid_t pid;
    int code = command_parse(&command_attach, argc, argv, false, &a);
    if (code >= 0)
        return code;
    if (a.n_rest != 1)
        return command_misuse(&command_attach, "missing PID, or more than one: use allium attach PID");
    code = source_parse_pid(&command_attach, a.rest[0], &pid);
    if (code < 0)
        code =
            option_values_parse_size(&command_attach, "period", command_value(&command_attach, &a, "period"),
                                     1, RECORD_PERIOD_MAX_BYTES, &o.period_bytes);
    if (code < 0)
        code = option_values_parse_size(&command_attach, "ledger-size",
                                        command_value(&command_attach, &a, "ledger-size"), 1 << 20,
                                        1ull << 40, &o.limit_bytes);
    if (code < 0)
        code = option_values_parse_time(&command_attach, "timeout",
                                        command_value(&command_attach, &a, "timeout"), 1000000, &timeout_ns);
    if (code >= 0)
        return code;
    o.timeout_ms = (unsigned)(timeout_ns / 1000000);
    return attach(pid, &o, command_value(&command_attach, &a, "quiet"));
}
