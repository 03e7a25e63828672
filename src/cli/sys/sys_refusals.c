/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/sys/sys_refusals.h"

#include <string.h>

#include "base/buf.h"
#include "cli/intervals.h"
#include "cli/sys/sys_columns.h"

enum shape { ROWS = 1, EVENTS = 2, ANY = ROWS | EVENTS };

/* Options that do nothing beside another one. */
static const struct {
    const char *option, *beside;
    enum shape of; /* tools */
    const char *why;
} idle[] = {
    {"columns", "json", ANY, "--json prints all columns: leave out --columns"},
    {"wide", "json", ANY, "--json shortens nothing: leave out --wide"},
    {"exact", "json", ANY, "--json prints whole numbers: leave out --exact"},
    {"columns", "folded", ANY, "--folded prints only stacks: leave out --columns"},
    {"wide", "folded", ANY, "--folded shortens nothing: leave out --wide"},
    {"exact", "folded", ANY, "--folded prints whole numbers: leave out --exact"},
    {"json", "folded", ANY, "--folded and --json exclude each other: leave out one"},
    {"hist", "folded", ANY, "--folded prints only stacks: leave out --hist"},
    {"json", "slab-account", ROWS, "--slab-account prints a text: leave out --json"},
    {"folded", "slab-account", ROWS, "--slab-account prints a text: leave out --folded"},
    {"columns", "slab-account", ROWS, "--slab-account has columns of its own: leave out --columns"},
    {"top", "slab-account", ROWS, "--slab-account lists all calls, whose sums come first: leave out --top"},
    {"by", "slab-account", ROWS, "--slab-account is by site: leave out --by"},
    {"output", "charge", ROWS, "-o records rows as they are, and --from can charge them: leave out --charge"},
    {"output", "slab-account", ROWS, "-o records rows and prints none: leave out --slab-account"},
    {"charge", "time", ROWS, "--time shows the frees of that time, whatever they free: leave out --charge"},
    {"slab-account", "time", ROWS, "--slab-account is about all frees: leave out --time"},
    {"columns", "hist", EVENTS, "--hist shows no events: leave out --columns"},
    {"sort", "hist", EVENTS, "--hist shows no events: leave out --sort"},
    {"top", "hist", EVENTS, "--hist shows no events: leave out --top"},
    {"rows", "hist", EVENTS, "--hist keeps no events: leave out --rows"},
};

/* Options that do nothing without one of the others. */
static const struct {
    const char *option, *without[3];
    enum shape of;
    const char *why;
} lonely[] = {
    {"sample-ring", {"sample"}, ANY, "--sample-ring needs --sample"},
    {"rows", {"interval", "sort", "top"}, EVENTS, "--rows needs --interval, --sort or --top"},
    {"force", {"output", "html"}, ANY, "--force needs -o or --html: it replaces the file that they name"},
};

static const char *value(const struct sys_request *r, const struct arguments *a, const char *name)
{
    return command_value(&r->as_command, a, name);
}

static enum shape shape_of(const struct sys_request *r)
{
    return r->tool->parts ? ROWS : EVENTS;
}

/* Refuses each of them. -1: there are none. */
static int find_idle(const struct sys_request *r, const struct arguments *a)
{
    int code = -1;
    for (size_t i = 0; i < sizeof(idle) / sizeof(*idle); i++)
        if (idle[i].of & shape_of(r) && value(r, a, idle[i].option) && value(r, a, idle[i].beside))
            code = command_misuse(&r->as_command, "%s", idle[i].why);
    for (size_t i = 0; i < sizeof(lonely) / sizeof(*lonely); i++) {
        bool helped = !(lonely[i].of & shape_of(r)) || !value(r, a, lonely[i].option);
        for (size_t j = 0; j < 3 && lonely[i].without[j]; j++)
            helped = helped || value(r, a, lonely[i].without[j]);
        if (!helped)
            code = command_misuse(&r->as_command, "%s", lonely[i].why);
    }
    bool source = r->settings.lines || (r->settings.part && r->settings.part->source);
    if (value(r, a, "debuginfod") && !source)
        code = command_misuse(&r->as_command, "--debuginfod needs --lines, or rows by file or directory");
    if (value(r, a, "user") && !r->command)
        code = command_misuse(&r->as_command, "--user needs a command to start: write it after --");
    return code;
}

/* Options about stacks, where there are none. */
static int about_stacks(const struct sys_request *r, const struct arguments *a)
{
    static const char *const options[] = {"stacks", "folded", "stack-slots"};
    for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
        if (!value(r, a, options[i]))
            continue;
        int code = sys_columns_check_stacks(r, options[i]);
        if (code >= 0)
            return code;
        if (i && !r->from && !r->settings.config.stacks) /* --stacks none is a choice by itself */
            return command_misuse(&r->as_command, "--%s needs stacks: use --stacks kernel, user or both",
                                  options[i]);
    }
    return -1;
}

/* What was recorded is shown as it was observed: what is about observing would do nothing. */
static int about_recorded(const struct sys_request *r, const struct arguments *a)
{
    static const char *const shows[] = {"from",     "json",  "by",     "folded",       "where", "sort",
                                        "top",      "hist",  "quiet",  "columns",      "wide",  "exact",
                                        "html",     "force", "charge", "slab-account", "depth", "time",
                                        "kallsyms", "state", "partial"};
    struct buf idle_ones = BUF_INIT;
    if (!r->from)
        return -1;
    const char *selects = sys_tool_option(r->tool->name);
    for (const struct option_doc *o = r->options; o->name; o++) {
        bool fits = (selects && !strcmp(o->name, selects)) ||
                    (!strcmp(o->name, "rows") && !r->tool->parts) || /* room for events that are sorted */
                    (r->tool->reads_traces && (!strcmp(o->name, "vmlinux") || !strcmp(o->name, "source")));
        for (size_t i = 0; i < sizeof(shows) / sizeof(*shows); i++)
            fits = fits || !strcmp(o->name, shows[i]);
        if (!fits && value(r, a, o->name))
            buf_printf(&idle_ones, "%s--%s", idle_ones.len ? ", " : "", o->name);
    }
    int code = -1;
    if (idle_ones.len)
        code = command_misuse(&r->as_command, "--from shows a recording: leave out %s", buf_str(&idle_ones));
    if (r->command)
        code =
            command_misuse(&r->as_command, "--from shows a recording and runs no command: leave out -- CMD");
    buf_release(&idle_ones);
    return code;
}

static int about_intervals(const struct sys_request *r, const struct arguments *a)
{
    const char *interval = value(r, a, "interval"), *duration = value(r, a, "duration");
    return interval && duration ? intervals_check_fit(&r->as_command, r->show.interval_ns,
                                                      r->show.duration_ns, interval, duration)
                                : -1;
}

int sys_refusals_check(const struct sys_request *r, const struct arguments *a)
{
    int code = about_recorded(r, a);
    if (code < 0)
        code = about_intervals(r, a);
    if (code < 0)
        code = find_idle(r, a);
    return code < 0 ? about_stacks(r, a) : code;
}
