/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/units.h"
#include "cli/accounts/sites_summary.h"
#include "cli/command.h"
#include "cli/debuginfod.h"
#include "cli/option_values.h"
#include "cli/terminal.h"
#include "cli/wrapper_lists.h"
#include "collect/process/program_check.h"
#include "run/record.h"
#include "store/profile_load.h"
#include "view/profile/report.h"

static const struct option_doc options[] = {
    {"period", 0, "SIZE", "take a sample for each SIZE bytes on average (512K); 1: every allocation, exact"},
    {"output", 'o', "FILE", "write the recording to FILE (NAME.PID.allium)"},
    {"force", 0, NULL, "replace FILE if it exists"},
    {"sites", 0, NULL, "also keep exact accounts of call sites, see allium-sites(1)"},
    {"wrapper", 0, "NAMES", "with --sites, charge these functions' callers, as for the lists of wrappers"},
    {"no-follow", 0, NULL, "do not observe processes that CMD starts"},
    {"no-args", 0, NULL, "do not keep command lines in the recording"},
    {"quiet", 0, NULL, "print no summary and no warning about CMD"},
    {"ledger-size", 0, "SIZE", "limit the ledger of each process (64M; 2G with --period 1)"},
    DEBUGINFOD_OPTION,
    {NULL, 0, NULL, NULL},
};

static const char *const examples[] = {
    "allium run -- ./server --port 8080",
    "sample its heap, print which code held memory, keep server.PID.allium",
    "allium run --period 1 -o exact.allium -- python3 script.py",
    "record every single allocation",
    "allium run --sites -- ./server",
    "also count the allocations of each call site, for allium sites",
    NULL,
};

static int run(int argc, char **argv);

const struct command command_run = {
    .name = "run",
    .usage =
        "[--period SIZE] [-o FILE] [--force] [--sites] [--wrapper NAMES] [--no-follow] [--no-args] [--quiet] "
        "[--ledger-size SIZE] [--debuginfod DURATION] -- CMD ARG...",
    .summary = "run a program, sample its heap, print which code held memory, keep a recording",
    .examples = examples,
    .options = options,
    .run = run,
};

static void say_accounts(const char *path)
{
    struct recording_summary s;
    const char *kind;
    if (recording_summarize(&s, path, NULL))
        return;
    for (size_t i = 0; (kind = recording_accounts(&s, i)); i++)
        command_fail(0, "exact accounts, too: allium %s %s", kind, path);
    recording_summary_release(&s);
}

static void print_summary(const char *path)
{
    struct profile *p;
    struct error e = {""};
    if (recording_load_without(&p, path, NULL, RECORDING_POINTS | RECORDING_LIFETIMES, &e)) {
        command_fail(0, "%s", e.text);
        return;
    }
    wrapper_lists_mark(p);
    struct sink out = sink_to_file(stderr);
    struct text_style style = terminal_style(stderr);
    summary_write(&out, p, &style, path);
    sink_finish(&out);
    profile_free(p);
    say_accounts(path);
}

static int exit_code(const struct record_result *r)
{
    switch (r->stage) {
    case RECORD_NOT_FOUND:
        return EXIT_NOT_FOUND;
    case RECORD_NOT_EXECUTABLE:
        return EXIT_CANNOT_RUN;
    case RECORD_NOT_STARTED:
        return EXIT_ALLIUM;
    case RECORD_RAN:
        break;
    }
    return WIFSIGNALED(r->wait_status) ? 128 + WTERMSIG(r->wait_status) : WEXITSTATUS(r->wait_status);
}

/* Looks at the program first. -1: go on. */
static int check_program(const char *cmd, bool quiet, bool *own_allocator)
{
    enum program_kind kind;
    struct error e = {""};
    int bad = program_check(cmd, NULL, &kind, &e);
    if (bad)
        return command_fail(bad == -ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN, "%s", e.text);
    if (kind == PROGRAM_REFUSED)
        return command_fail(EXIT_ALLIUM, "%s", e.text);
    *own_allocator = kind == PROGRAM_OWN_MALLOC;
    if (*own_allocator && !quiet)
        command_fail(0, "%s", e.text);
    return -1;
}

static int run(int argc, char **argv)
{
    struct arguments a;
    struct error e = {""};
    struct record_options o = {.period_bytes = RECORD_PERIOD_DEFAULT_BYTES};
    int code = command_parse(&command_run, argc, argv, true, &a);
    if (code >= 0)
        return code;
    if (!a.n_rest)
        return command_misuse(&command_run, "missing command: allium run -- CMD ARG...");
    code = option_values_parse_size(&command_run, "period", command_value(&command_run, &a, "period"), 1,
                                    RECORD_PERIOD_MAX_BYTES, &o.period_bytes);
    if (code < 0)
        code = option_values_parse_size(&command_run, "ledger-size",
                                        command_value(&command_run, &a, "ledger-size"), 1 << 20, 1ull << 40,
                                        &o.ledger_limit_bytes);
    if (code >= 0)
        return code;
    bool quiet = command_value(&command_run, &a, "quiet") != NULL;
    o.output = command_value(&command_run, &a, "output");
    o.force = command_value(&command_run, &a, "force") != NULL;
    o.follow = !command_value(&command_run, &a, "no-follow");
    o.keep_args = !command_value(&command_run, &a, "no-args");
    struct wrappers wrappers = {0};
    const char *named = command_value(&command_run, &a, "wrapper");
    if (command_value(&command_run, &a, "sites")) {
        wrapper_lists_read(&wrappers);
        if (named)
            wrapper_lists_add(&wrappers, named);
        o.sites = &wrappers;
        o.wrappers = wrapper_lists_for_agent(named);
    } else if (named) {
        return command_misuse(&command_run, "--wrapper needs --sites: use --sites --wrapper %s", named);
    }
    o.servers = debuginfod_servers();
    o.argv = a.rest;
    code = check_program(a.rest[0], quiet, &o.own_allocator);
    if (code >= 0)
        return code;
    struct record_result result;
    int bad = record_command(&o, &result, &e);
    if (bad)
        command_fail(0, "%s%s", e.text,
                     result.stage == RECORD_RAN ? "; the missing part is still in the ledgers: allium ps "
                                                  "lists them, allium snapshot PID stores one"
                                                : "");
    else if (!quiet) {
        print_summary(result.path);
        debuginfod_report();
        if (o.sites)
            sites_summary_write(result.path);
    }
    wrappers_release(&wrappers);
    free(o.wrappers);
    free(result.path);
    return exit_code(&result);
}
