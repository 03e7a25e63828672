/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "base/buf.h"
#include "cli/command.h"
#include "cli/debuginfod.h"
#include "cli/option_values.h"
#include "cli/process_record.h"
#include "cli/source.h"
#include "cli/trace/trace_store.h"

static const struct option_doc options[] = {
    {"output", 'o', "FILE", "write the recording to FILE (NAME.PID.snapshot.allium)"},
    {"force", 0, NULL, "replace FILE if it exists"},
    {"trace", 0, NULL, "store also the events in the rings of the process: FILE is the folder of a trace"},
    {"last", 0, "DURATION", "with --trace, store only events of the last DURATION"},
    DEBUGINFOD_OPTION,
    SOURCE_PID_OPTION,
    {NULL, 0, NULL, NULL},
};

static const char *const examples[] = {
    "allium snapshot 4711 && allium report",
    "store the memory of process 4711 now, and show it",
    "allium snapshot 4711 --trace --last 5s -o t && babeltrace2 t/ust",
    "store and print its allocations of the last 5 s, see allium-trace(1)",
    NULL,
};

static int run(int argc, char **argv);

const struct command command_snapshot = {
    .name = "snapshot",
    .usage = "PID|-p PID [-o FILE] [--force] [--trace [--last DURATION]] [--debuginfod DURATION]",
    .summary = "store the ledger of a process, running or ended, in a recording; also its last events",
    .examples = examples,
    .options = options,
    .run = run,
};

static int store_snapshot(const struct process_record *f, pid_t pid, const char *output, bool force)
{
    struct buf path = BUF_INIT;
    struct error e = {""};
    int code = EXIT_DONE;
    const struct profile *p = f->profile;
    const struct accounts *a =
        &f->accounts[f->accounts[PROCESS_RECORD_TAGS].processes.len ? PROCESS_RECORD_TAGS
                                                                    : PROCESS_RECORD_SITES];
    if (output)
        buf_addstr(&path, output);
    else
        buf_printf(&path, "%s.%d.snapshot.allium",
                   p ? profile_text(p, p->images.at[0].comm) : a->processes.at[0].comm, (int)pid);
    if (process_record_store(f, buf_str(&path), force, &e))
        code = command_fail(EXIT_FAILED, "%s", e.text);
    else
        command_fail(0, "wrote %s; show it with: allium %s %s", buf_str(&path),
                     p ? "report" : process_record_kinds[a - f->accounts], buf_str(&path));
    buf_release(&path);
    return code;
}

/* The events of a process, and beside them its recording, if there is one. */
static int store_trace(const struct arguments *a, pid_t pid, uint64_t last_ns)
{
    struct process_record f;
    struct buf path = BUF_INIT;
    struct error e = {""};
    char *folder;
    int code = trace_store_write(
        &(struct trace_store_options){.pid = pid,
                                      .output = command_value(&command_snapshot, a, "output"),
                                      .force = command_value(&command_snapshot, a, "force"),
                                      .last_ns = last_ns},
        &folder);
    if (code != EXIT_DONE)
        return code;
    buf_printf(&path, "%s/profile.allium", folder);
    if (!process_record_read(&f, pid, &e) && process_record_store(&f, buf_str(&path), false, &e))
        code = command_fail(EXIT_FAILED, "%s", e.text);
    process_record_release(&f);
    buf_release(&path);
    free(folder);
    return code;
}

static int run(int argc, char **argv)
{
    struct arguments a;
    struct error e = {""};
    struct process_record f;
    int code = command_parse(&command_snapshot, argc, argv, false, &a);
    if (code >= 0)
        return code;
    if (a.n_rest != 1)
        return command_misuse(&command_snapshot, "missing PID, or more than one: use allium snapshot PID");
    pid_t pid;
    code = source_parse_pid(&command_snapshot, a.rest[0], &pid);
    if (code >= 0)
        return code;
    const char *last = command_value(&command_snapshot, &a, "last");
    uint64_t last_ns = 0;
    code = option_values_parse_time(&command_snapshot, "last", last, 1, &last_ns);
    if (code >= 0)
        return code;
    if (command_value(&command_snapshot, &a, "trace"))
        return store_trace(&a, pid, last_ns);
    if (last)
        return command_misuse(&command_snapshot, "--last needs --trace: use --trace --last %s", last);
    if (process_record_read(&f, pid, &e)) {
        process_record_release(&f);
        return command_fail(EXIT_FAILED, "%s", e.text);
    }
    code = store_snapshot(&f, pid, command_value(&command_snapshot, &a, "output"),
                          command_value(&command_snapshot, &a, "force") != NULL);
    process_record_release(&f);
    return code;
}
