/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "cli/command.h"
#include "cli/debuginfod.h"
#include "cli/intervals.h"
#include "cli/option_values.h"
#include "cli/profile_filter.h"
#include "cli/screen_options.h"
#include "cli/source.h"
#include "cli/watch_loop.h"
#include "cli/wrapper_lists.h"
#include "collect/process/proc.h"

/* Without --interval: several snapshots soon after the start, while the user looks, then one every ten minutes. */
static const uint32_t early_s[] = {10, 30, 60, 120, 300, 0};
static const struct intervals default_intervals = {.every_ns = 600000000000u, .early_s = early_s};

static const struct option_doc options[] = {
    INTERVALS_OPTIONS("take a snapshot at each INTERVAL (10m, and more often in the first ten minutes)",
                      "stop after N snapshots, not counting requested ones"),
    {"older-than", 0, "DURATION",
     "list live samples older than DURATION (half the age of the process, at most 5m)"},
    {"where", 0, "QUERY", "show only matching objects, see allium-query(7)"},
    {"top", 0, "N", "print N rows for each process (20, with --json all); 0: all"},
    {"once", 0, NULL, "take one snapshot, then exit: short for --count 1"},
    {"state", 0, "FILE", "store dismissed samples in FILE"},
    {"alert", 0, "CONDITION",
     "print a line when CONDITION becomes true: 'live>1G for 5m', growing, or both with \"or\""},
    {"exec", 0, "CMD", "run CMD with sh at each alert, see allium-watch(1) for its environment"},
    SCREEN_OPTIONS,
    {"json", 0, NULL, "print a line of JSON for each snapshot, see allium-json(5)"},
    DEBUGINFOD_OPTION,
    SOURCE_PID_OPTION,
    {NULL, 0, NULL, NULL},
};

static const char *const examples[] = {
    "allium watch",
    "list old memory of all processes with the agent: often in the first ten minutes, then every ten minutes",
    "allium watch 4711 --interval 1m --older-than 1h --state known",
    "watch one process; samples dismissed by the key d or SIGUSR1 stay so the next time",
    "allium watch --alert 'live>1G for 5m or growing for 2h' --exec 'mail -s \"$ALLIUM_ALERT\" me "
    "</dev/null'",
    "send a mail at each alert",
    NULL,
};

static int run(int argc, char **argv);

const struct command command_watch = {
    .name = "watch",
    .usage = "[SOURCE|-p PID] [--interval INTERVAL] [--count N] [--duration DURATION] [--once] "
             "[--older-than DURATION] [--where QUERY] [--top N] "
             "[--state FILE] "
             "[--alert CONDITION] [--exec CMD] [--debuginfod DURATION] " SCREEN_USAGE " [--json]",
    .summary = "show repeatedly which memory is held for long, what is new, and what grows",
    .source = "all processes of the user that have a ledger",
    .examples = examples,
    .options = options,
    .run = run,
};

/* All that the command line asks for. */
struct request {
    struct arguments a;
    struct intervals intervals;
    uint32_t top;
    struct profile_filter live;
    struct alert alert;
    struct wrappers wrappers;
    struct watch_options options;
};

static int parse_numbers(struct request *r)
{
    int code = intervals_parse(&r->intervals, &command_watch, &r->a, &default_intervals);
    if (code < 0)
        code = option_values_parse_time(&command_watch, "older-than",
                                        command_value(&command_watch, &r->a, "older-than"), 0,
                                        &r->options.older_than_ns);
    if (code >= 0)
        return code;
    if (command_value(&command_watch, &r->a, "once")) {
        if (r->intervals.count)
            return command_misuse(&command_watch, "--once and --count exclude each other: use one");
        r->intervals.count = 1;
    }
    r->top = command_value(&command_watch, &r->a, "json") ? 0 : OPTION_VALUES_TOP_DEFAULT;
    return option_values_parse_top(&command_watch, command_value(&command_watch, &r->a, "top"), &r->top);
}

static int parse(struct request *r)
{
    const char *where = command_value(&command_watch, &r->a, "where");
    const char *alert = command_value(&command_watch, &r->a, "alert");
    struct error e = {""};
    int code = parse_numbers(r);
    if (code >= 0)
        return code;
    if (r->a.n_rest > 1)
        return command_misuse(&command_watch, "too many sources: leave out %s", r->a.rest[1]);
    if (command_value(&command_watch, &r->a, "exec") && !alert)
        return command_misuse(&command_watch, "--exec needs --alert CONDITION, such as --alert 'live>1G'");
    if (alert && alert_parse(&r->alert, alert, &e, NULL))
        return command_misuse(&command_watch, "%s", e.text);
    if (profile_filter_init(&r->live, where, NULL, &e))
        return command_misuse(&command_watch, "%s", e.text);
    profile_filter_apply(&r->live, &r->options.live);
    r->options.named = where || command_value(&command_watch, &r->a, "json");
    r->options.servers = debuginfod_servers();
    r->options.alert = alert ? &r->alert : NULL;
    return -1;
}

/* A recording does not change, nor does what a process has left: one look. */
static int show_recording(const struct request *r, struct source *s)
{
    if (r->options.alert)
        return command_misuse(&command_watch, "--alert needs a running process: %s does not change any more",
                              s->label);
    bool json = command_value(&command_watch, &r->a, "json") != NULL;
    if (!s->profile->images.len && !json)
        return command_fail(EXIT_DONE, "nothing was sampled; `allium report %s` says why", s->label);
    struct watch_snapshot *l = watch_snapshot_of(&r->options, s->profile);
    s->profile = NULL; /* the look's */
    struct sink out = sink_to_file(stdout);
    watch_print(&out, l, r->top, json);
    watch_snapshot_free(l);
    return command_written(&out, EXIT_DONE);
}

static int watch(const struct request *r)
{
    const char *exec = command_value(&command_watch, &r->a, "exec");
    struct watch_loop loop = {.watch = watch_new(&r->options),
                              .dismissed = r->options.dismissed,
                              .exec = exec ? alert_exec_new(exec) : NULL,
                              .state = command_value(&command_watch, &r->a, "state"),
                              .pid = r->options.pid,
                              .intervals = r->intervals,
                              .top = r->top,
                              .json = command_value(&command_watch, &r->a, "json") != NULL};
    int code = watch_loop(&loop);
    watch_free(loop.watch);
    alert_exec_free(loop.exec);
    return code;
}

static bool has_past(const struct profile *p)
{
    vec_each (const struct profile_image, i, &p->images)
        if (i->past)
            return true;
    return false;
}

/* What a process id leads to, now or as soon as something of it is sampled; else 0. */
static int32_t running_pid(const char *text, const struct source *s)
{
    char *end;
    long pid = strtol(text, &end, 10);
    if (*end || pid <= 0 || pid > INT32_MAX)
        return 0;
    if (!s->profile)
        return proc_has_agent((pid_t)pid) ? (int32_t)pid : 0;
    return s->profile->images.at[0].state == PROFILE_IMAGE_RUNNING ? (int32_t)pid : 0;
}

static int watch_source(struct request *r, const char *text)
{
    bool once = r->intervals.count == 1;
    struct source s = {0};
    struct error e = {""};
    int bad = source_open(&s, text, &e);
    bool none_yet = bad == -ENOENT || bad == -EPROTO; /* or one that is just being made */
    r->options.pid = bad && (once || !none_yet) ? 0 : running_pid(text, &s);
    int code;
    if (r->options.pid) {
        if (bad)
            fprintf(stderr, "allium: process %s has no sample yet: it is watched from its first sample on\n",
                    text);
        code = watch(r);
    } else if (bad) {
        code = source_fail(bad, &e);
    } else if (has_past(s.profile)) {
        code = command_misuse(&command_watch,
                              "ages are not known for a moment in the past: leave out the @TIME");
    } else {
        code = show_recording(r, &s);
    }
    source_release(&s);
    return code;
}

static int start(struct request *r)
{
    const char *state = command_value(&command_watch, &r->a, "state");
    struct error e = {""};
    if (state && suppressions_load(r->options.dismissed, state, &e))
        return command_fail(EXIT_FAILED, "%s", e.text);
    return r->a.n_rest ? watch_source(r, r->a.rest[0]) : watch(r);
}

static int run(int argc, char **argv)
{
    struct request r = {0};
    int code = command_parse(&command_watch, argc, argv, false, &r.a);
    if (code >= 0)
        return code;
    r.options.older_than_ns = WATCH_OLDER_DEFAULT;
    r.options.dismissed = suppressions_new();
    r.options.wrappers = &r.wrappers;
    wrapper_lists_read(&r.wrappers);
    code = parse(&r);
    if (code < 0)
        code = start(&r);
    suppressions_free(r.options.dismissed);
    alert_release(&r.alert);
    wrappers_release(&r.wrappers);
    profile_filter_release(&r.live);
    return code;
}
