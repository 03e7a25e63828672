/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/attach_process.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/source.h"

#define TIMEOUT_MS 10000u

static const struct option_doc options[] = {
    {"quiet", 0, NULL, "print only errors on stderr"},
    SOURCE_PID_OPTION,
    {NULL, 0, NULL, NULL},
};

static const char *const examples[] = {
    "allium detach 4711",
    "stop observing process 4711",
    NULL,
};

static int run(int argc, char **argv);

const struct command command_detach = {
    .name = "detach",
    .usage = "PID|-p PID [--quiet]",
    .summary = "leave a process that was attached to as it was",
    .examples = examples,
    .options = options,
    .run = run,
};

static int run(int argc, char **argv)
{
    struct arguments a;
    struct attached d;
    struct error e = {""};
    char stop[UNITS_TEXT_BYTES];
    pid_t pid;
    int code = command_parse(&command_detach, argc, argv, false, &a);
    if (code >= 0)
        return code;
    if (a.n_rest != 1)
        return command_misuse(&command_detach, "missing PID, or more than one: use allium detach PID");
    code = source_parse_pid(&command_detach, a.rest[0], &pid);
    if (code >= 0)
        return code;
    if (attach_end(pid, TIMEOUT_MS, &d, &e))
        return command_fail(EXIT_FAILED, "%s", e.text);
    if (!command_value(&command_detach, &a, "quiet"))
        command_fail(
            0,
            "detached from %s (pid %d): %u functions are as before, longest stop %s; the library stays "
            "mapped, and does nothing; see allium report %d",
            d.comm, (int)pid, d.functions, units_format_duration(stop, d.longest_stop_ns), (int)pid);
    return EXIT_DONE;
}
