/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/accounts/sites_summary.h"
#include "cli/command.h"
#include "cli/debuginfod.h"
#include "cli/launched.h"
#include "cli/option_values.h"
#include "cli/output_file.h"
#include "cli/profile_page.h"
#include "cli/terminal.h"
#include "cli/wrapper_lists.h"
#include "collect/process/program_check.h"
#include "run/record.h"
#include "store/profile_load.h"
#include "view/profile/report.h"
#include "view/profile/run_json.h"
#include "view/profile/profile_summary.h"
#include "view/profile/runtime_hint.h"

static const struct option_doc options[] = {
    {"period", 0, "SIZE", "take a sample for each SIZE bytes on average (512K); 1: every allocation, exact"},
    {"output", 'o', "FILE", "write the recording to FILE (NAME.PID.allium)"},
    {"force", 0, NULL, "replace FILE if it exists"},
    {"sites", 0, NULL, "also keep exact accounts of call sites, see allium-sites(1)"},
    {"wrapper", 0, "NAMES", "with --sites, charge these functions' callers, as for the lists of wrappers"},
    {"no-follow", 0, NULL, "do not observe processes that CMD starts"},
    {"no-args", 0, NULL, "do not keep command lines in the recording"},
    {"quiet", 0, NULL, "print no summary and no warning about CMD"},
    {"html", 0, "FILE", "also write a page for any browser to FILE: flame graph, treemap, timeline, tables"},
    {"json", 0, "FILE", "also write the summary as JSON to FILE (-: standard error; then use --quiet)"},
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
        "[--html FILE] [--json FILE] [--ledger-size SIZE] [--debuginfod DURATION] -- CMD ARG...",
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

/* Returns whether the recording has nothing that a user could look at. */
static bool is_empty(const struct profile *p, const char *path)
{
    struct recording_summary s;
    if (p->images.len || p->images_dropped || p->unobserved.len || recording_summarize(&s, path, NULL))
        return false;
    bool empty = !recording_accounts(&s, 0);
    recording_summary_release(&s);
    return empty;
}

/* NULL if nothing is hidden: the program got our environment. */
static const char *hidden_by_language(const struct profile *p)
{
    const uint32_t image = profile_summary_of(p).main_image;
    const char *hint = image == PROFILE_NONE ? NULL : runtime_hint_if_unread(p, image);
    const char *allocator = getenv("PYTHONMALLOC");
    bool by_malloc = allocator && !strncmp(allocator, "malloc", strlen("malloc"));
    return by_malloc && hint == runtime_hint_of("python") ? NULL : hint;
}

static void print_summary(const struct profile *p, const char *program, const char *path, bool kept)
{
    struct sink out = sink_to_file(stderr);
    struct text_style style = terminal_style(stderr);
    const char *hint = p->images.len            ? NULL
                       : program_is_go(program) ? runtime_hint_go
                                                : runtime_hint_of(program);
    summary_write(&out, p, &style, kept ? path : NULL, hidden_by_language(p));
    if (hint)
        text_paragraph(&out, &style, "", 2, hint);
    sink_finish(&out);
    if (kept)
        say_accounts(path);
}

/* A file that something goes to, beside the recording. */
struct other_file {
    const char *name; /* NULL: there is none */
    FILE *file;
    bool written;
};

/* What is written beside the recording: its summary as JSON, and a page. */
struct other_files {
    struct other_file json, html;
};

/* -1: fine. It is opened before the command runs, so that a name that cannot be used costs nobody a run. */
static int open_other(struct other_file *f, const char *option, const char *name,
                      const struct record_options *o)
{
    struct error e = {""};
    *f = (struct other_file){.name = name};
    if (!name)
        return -1;
    if (o->output && !strcmp(name, o->output))
        return command_misuse(&command_run, "--%s and -o name the same file: use two", option);
    f->file = output_file_open(name, o->force, &e);
    return f->file ? -1 : command_fail(EXIT_ALLIUM, "--%s: %s", option, e.text);
}

/* A file that nothing was written to, as the command could not be started, is not left behind. */
static void close_other(struct other_file *f)
{
    struct stat st;
    if (!f->file || f->file == stderr)
        return;
    if (!f->written && !fstat(fileno(f->file), &st) && S_ISREG(st.st_mode) && !st.st_size)
        unlink(f->name);
    if (fclose(f->file))
        command_fail(0, "%s: %s", f->name, strerror(errno));
}

static int open_others(struct other_files *f, const struct arguments *a, const struct record_options *o)
{
    const char *json = command_value(&command_run, a, "json"), *html = command_value(&command_run, a, "html");
    const bool on_stderr = json && !strcmp(json, "-");
    *f = (struct other_files){.json.name = NULL};
    if (json && html && !strcmp(json, html))
        return command_misuse(&command_run, "--json and --html name the same file: use two");
    int code = open_other(&f->json, "json", on_stderr ? NULL : json, o);
    if (on_stderr)
        f->json = (struct other_file){.name = json, .file = stderr};
    return code < 0 ? open_other(&f->html, "html", html, o) : code;
}

static void close_others(struct other_files *f)
{
    close_other(&f->json);
    close_other(&f->html);
}

/* What was in the file goes. */
static struct sink begin_other(struct other_file *f)
{
    if (f->file != stderr && ftruncate(fileno(f->file), 0) && errno != EINVAL) /* EINVAL: a pipe */
        command_fail(0, "%s: %s", f->name, strerror(errno));
    f->written = true;
    return sink_to_file(f->file);
}

static void end_other(struct other_file *f, struct sink *out)
{
    int bad = sink_finish(out);
    if (bad)
        command_fail(0, "%s: %s", f->name, strerror(-bad));
}

static void write_json(struct other_file *f, const struct profile *p, const struct run_json_options *o)
{
    struct sink out = begin_other(f);
    run_json_write(&out, p, o);
    sink_char(&out, '\n');
    end_other(f, &out);
}

static void write_html(struct other_file *f, struct profile *p, const char *recording)
{
    struct sink out = begin_other(f);
    const struct rollup_options all = {.group = ROLLUP_BY_STACK};
    profile_page_write(&out, p, &(struct profile_page){.label = recording, .like = &all});
    end_other(f, &out);
}

/* Tells what was recorded. A recording that has nothing, and that nobody named, is removed. */
static void tell(const struct record_options *o, const struct record_result *result, const char *program,
                 bool quiet, struct other_files *others)
{
    struct profile *p;
    struct error e = {""};
    const unsigned without =
        RECORDING_LIFETIMES | (others->html.file ? 0 : RECORDING_POINTS | RECORDING_MOMENTS);
    if (quiet && !others->json.file && !others->html.file && o->output)
        return;
    if (recording_load_without(&p, result->path, NULL, without, &e)) {
        command_fail(0, "%s", e.text);
        return;
    }
    bool kept = o->output || !is_empty(p, result->path) || unlink(result->path);
    if (!quiet) {
        wrapper_lists_mark(p);
        print_summary(p, program, result->path, kept);
    }
    if (others->html.file)
        write_html(&others->html, p, result->path);
    if (others->json.file)
        write_json(&others->json, p,
                   &(struct run_json_options){.wait_status = result->wait_status,
                                              .command = o->argv[0],
                                              .recording = kept ? result->path : NULL});
    profile_free(p);
    if (quiet)
        return;
    debuginfod_report();
    if (o->sites && kept)
        sites_summary_write(result->path);
}

static void say_started(pid_t pid, const char *recording)
{
    command_fail(0, "recording process %d into %s; to look at it meanwhile: allium report %d", (int)pid,
                 recording, (int)pid);
}

/* --sites and --wrapper. -1: fine. */
static int read_sites(const struct arguments *a, struct record_options *o, struct wrappers *wrappers)
{
    const char *named = command_value(&command_run, a, "wrapper");
    if (named && !command_value(&command_run, a, "sites"))
        return command_misuse(&command_run, "--wrapper needs --sites: use --sites --wrapper %s", named);
    if (!command_value(&command_run, a, "sites"))
        return -1;
    wrapper_lists_read(wrappers);
    if (named)
        wrapper_lists_add(wrappers, named);
    o->sites = wrappers;
    o->wrappers = wrapper_lists_for_agent(named);
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
    code = read_sites(&a, &o, &wrappers);
    if (code >= 0)
        return code;
    if (!quiet && isatty(STDERR_FILENO))
        o.started = say_started;
    o.servers = debuginfod_servers();
    o.argv = a.rest;
    char *path = NULL;
    struct other_files others;
    code = launched_check(a.rest[0], quiet, &o.own_allocator, &path);
    if (code < 0)
        code = open_others(&others, &a, &o);
    if (code >= 0) {
        free(path);
        return code;
    }
    struct record_result result;
    int bad = record_command(&o, &result, &e);
    if (bad)
        command_fail(0, "%s%s", e.text,
                     result.stage == RECORD_RAN ? "; the missing part is still in the ledgers: allium ps "
                                                  "lists them, allium snapshot PID stores one"
                                                : "");
    else
        tell(&o, &result, path, quiet, &others);
    free(path);
    close_others(&others);
    wrappers_release(&wrappers);
    free(o.wrappers);
    free(result.path);
    return launched_exit_code(&result);
}
