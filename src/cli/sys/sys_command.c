/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/sys/sys_command.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/debuginfod.h"

#define HELP_COLUMNS 100

static const struct option_doc common[] = {
    {"pid", 'p', "PID", "show only this process, all its threads, not its children"},
    {"tid", 't', "TID", "show only this thread"},
    {"uid", 'u', "UID", "show only this user, a name or number"},
    {"comm", 0, "NAME", "show only threads with this name"},
    {"cgroup", 0, "PATH", "show only this cgroup and its descendants"},
    {"user", 0, "USER", "start CMD as this user"},
    {"duration", 0, "DURATION", "stop after DURATION"},
    {"count", 0, "N", "stop after N intervals"},
    {"explain", 0, NULL,
     "print what the tool hooks, costs, cannot show here, and which questions it answers"},
    {"attach", 0, "METHOD", "use only this way to attach, see allium doctor"},
    {"columns", 0, "LIST", "show only these columns: names, with commas between them"},
    {"wide", 0, NULL, "shorten nothing and leave out no column, whatever the terminal's width"},
    {"exact", 0, NULL, "print whole numbers: 2,621 in place of 2.62k"},
    {"json", 0, NULL, "print JSON, one object a line, see allium-json(5)"},
    {"output", 'o', "FILE", "record rows in FILE instead of printing them"},
    {"html", 0, "FILE", "write the rows as a page for any browser, too"},
    {"force", 0, NULL, "replace the FILE of -o or --html if it exists"},
    {"from", 0, "FILE", "show a recorded FILE"},
    {"where", 0, "QUERY", "show only matching rows, see allium-query(7); the fields are the columns"},
    {"alert", 0, "CONDITION", NULL},
    {"exec", 0, "CMD", "run CMD with sh at each alert; ALLIUM_ROW is the row, as JSON"},
    {"stacks", 0, "WHICH", "take user stacks, kernel stacks, both or none"},
    {"folded", 0, NULL, "print stacks as folded lines, for flame graphs"},
    {"stack-slots", 0, "N", "reserve room for about N different stacks (16384)"},
    {"quiet", 0, NULL, "print only errors and alerts on stderr"},
    {NULL, 0, NULL, NULL},
};

/* Of tools that take user stacks. */
static const struct option_doc of_samples[] = {
    {"sample", 0, "N", "copy the user stack of one event in N, for code without frame pointers"},
    {"sample-ring", 0, "SIZE", "reserve room for unread samples (8M), rounded up to a power of two"},
    {NULL, 0, NULL, NULL},
};

/* Of tools that name code of the kernel. */
static const struct option_doc of_kernel_code[] = {
    {"lines", 0, NULL, "print files and lines of the kernel's source"},
    {"vmlinux", 0, "FILE", "read the kernel's debug information from FILE"},
    {"source", 0, "PATH", "take files of code without it from PATH, the kernel's source or its archive"},
    DEBUGINFOD_OPTION,
    {NULL, 0, NULL, NULL},
};

static const struct option_doc of_rows[] = {
    {"interval", 0, "INTERVAL", "print a report at each INTERVAL; without it, one at the end"},
    {"by", 0, "PART", NULL},
    {"sort", 0, "COLUMN", "sort by COLUMN, largest first; with +COLUMN smallest first"},
    {"top", 0, "N", "print at most N rows (20, with --json all); 0: all"},
    {"rows", 0, "N", "reserve room for N rows, counted on each CPU (16384 for each of up to 4 CPUs)"},
    {NULL, 0, NULL, NULL},
};

/* Of tools whose rows free what others allocate. */
static const struct option_doc of_charge[] = {
    {"charge", 0, "WHO", "count a free in the row of the call that frees: freer (default), or allocator"},
    {"slab-account", 0, NULL,
     "print the table of the slab_account patches: total, slack, req, alloc/free, caller"},
    {NULL, 0, NULL, NULL},
};

/* Of tools that have rows by directory. */
static const struct option_doc of_directories[] = {
    {"depth", 0, "N", "with --by directory: count only the first N parts of its name"},
    {NULL, 0, NULL, NULL},
};

/* Of tools whose rows can be those of a trace. */
static const struct option_doc of_traces[] = {
    {"time", 0, "FROM..TO",
     "with --from: show what was allocated and freed in this time: 10s..20s, 10s.., ..20s"},
    {"kallsyms", 0, "FILE", "with --from TRACE: take names from FILE, a copy of /proc/kallsyms"},
    {"state", 0, "DIR", "with --from TRACE: take names of migrate types from DIR, see allium-sys-import(1)"},
    {"partial", 0, NULL, "with --from TRACE: show what can be read of a trace that is damaged or cut"},
    {NULL, 0, NULL, NULL},
};

static const struct option_doc of_events[] = {
    {"interval", 0, "INTERVAL", "keep events, and print them at each INTERVAL"},
    {"sort", 0, "COLUMN", "keep events, and sort them, largest first; with +COLUMN smallest first"},
    {"top", 0, "N", "keep events, and print the first N (20); 0: all"},
    {"rows", 0, "N", "reserve room to keep N events (16384)"},
    {"ring", 0, "SIZE", "reserve room for unread events, rounded up to a power of two"},
    {NULL, 0, NULL, NULL},
};

/* Of tools that measure something. */
static const struct option_doc of_measures[] = {
    {"hist", 0, NULL, NULL},
    {NULL, 0, NULL, NULL},
};

uint64_t sys_tool_histograms(const struct sys_tool *tool)
{
    uint64_t bits = 0;
    for (uint32_t i = 0; i < tool->n_columns; i++)
        bits |= (uint64_t)(tool->columns[i].type == TABLE_HISTOGRAM) << i;
    return bits;
}

static void add_options(struct sys_request *r, size_t *n, const struct option_doc *o)
{
    for (; o->name; o++) {
        assert(*n + 1 < SYS_OPTIONS_MAX); /* the last one marks the end */
        r->options[(*n)++] = *o;
    }
}

bool sys_tool_takes_user_stacks(const struct sys_tool *tool)
{
    return tool->parts ? tool->user_stack_at != 0 : tool->event != NULL;
}

/* Not of one that is to show what happens when there is no memory: debug information takes much. */
bool sys_tool_names_kernel_code(const struct sys_tool *tool)
{
    bool names = false;
    for (uint32_t i = 0; i < tool->n_columns; i++)
        names = names || !strcmp(tool->columns[i].name, "kernel_stack");
    return names && !tool->urgent;
}

/* What `--by` takes, as help says it: the parts' names. */
static char *parts_doc(const struct sys_tool *tool)
{
    struct buf b = BUF_INIT;
    for (const struct sys_part *p = tool->parts; p->name; p++) {
        const char *before = p == tool->parts                            ? "group rows by "
                             : p->recorded && !p[-1].recorded            ? ", and of recordings by "
                             : p[1].name && p[1].recorded == p->recorded ? ", "
                                                                         : " or ";
        buf_printf(&b, "%s%s", before, p->name);
    }
    return buf_detach(&b);
}

/* What --alert takes: a condition that this tool can have. */
static char *alert_doc(const struct sys_tool *tool)
{
    struct buf b = BUF_INIT;
    const struct table_column *c = &tool->columns[tool->weight];
    const char *much = c->unit == TABLE_BYTES ? "1G" : c->unit == TABLE_DURATION ? "100ms" : "1000";
    if (tool->parts)
        buf_printf(&b, "print a line when a row matches: '%s>%s', '%s>%s for 30s'", c->name, much, c->name,
                   much);
    else
        buf_printf(&b, "print a line for each event that matches: '%s>%s'", c->name, much);
    return buf_detach(&b);
}

/* What --hist shows of it. */
static char *measure_doc(const struct sys_tool *tool)
{
    struct buf b = BUF_INIT;
    buf_printf(&b, "show %s, as a histogram %s", tool->measure->doc,
               tool->parts ? "below each row" : "instead of events");
    return buf_detach(&b);
}

static const struct {
    const char *option;
    char *(*doc)(const struct sys_tool *tool);
} made[] = {{"by", parts_doc}, {"alert", alert_doc}, {"hist", measure_doc}};
#define MADE (sizeof(made) / sizeof(*made))

/* The number of the words that are made for this option; MADE: none are. */
static size_t made_for(const struct option_doc *o)
{
    size_t i = 0;
    while (i < MADE && strcmp(o->name, made[i].option) != 0)
        i++;
    return i;
}

/* Some words of help are about this tool. */
static void explain(struct option_doc *o, const struct sys_tool *tool)
{
    static char interval[64];
    if (made_for(o) < MADE) {
        o->doc = made[made_for(o)].doc(tool);
    } else if (!strcmp(o->name, "interval") && tool->interval_ns) {
        snprintf(interval, sizeof(interval), "print a report at each INTERVAL (%gs)",
                 (double)tool->interval_ns / 1e9);
        o->doc = interval;
    }
}

static const struct sys_tool *helped;

static void list_word(int *column, const char *word, const char *unit)
{
    int len = (int)(strlen(word) + (*unit ? strlen(unit) + 2 : 0));
    if (*column + 1 + len > HELP_COLUMNS)
        *column = printf("\n ") - 1;
    *column += printf(*unit ? " %s[%s]" : " %s%s", word, unit);
}

/* In --help, before the options: what some of them take. */
static void list_words(void)
{
    int column = 1;
    printf("\ncolumns, for --where, --columns, --sort and --alert; in JSON with the suffix in brackets:\n ");
    for (uint32_t i = 0; i < helped->n_columns; i++) {
        const struct table_column *c = &helped->columns[i];
        struct buf key = BUF_INIT;
        table_add_key(&key, c);
        size_t same = strncmp(buf_str(&key), c->name, strlen(c->name)) ? 0 : strlen(c->name);
        if (!c->report_text)
            list_word(&column, c->name, buf_str(&key) + same);
        buf_release(&key);
    }
    printf("\n\nways to attach, best first, for --attach:\n ");
    column = 1;
    for (const struct sys_attach_method *r = helped->methods; r->name; r++)
        if (r == helped->methods || strcmp(r[-1].name, r->name)) /* one for each of several kernels */
            list_word(&column, r->name, "");
    putchar('\n');
}

void sys_command_make(struct sys_request *r)
{
    size_t n = 0;
    const struct sys_tool *tool = r->tool;
    for (const struct sys_option *o = tool->options; o && o->name; o++)
        r->options[n++] = (struct option_doc){o->name, 0, o->value, o->doc, false};
    add_options(r, &n, tool->parts ? of_rows : of_events);
    if (tool->charge)
        add_options(r, &n, of_charge);
    if (tool->directory)
        add_options(r, &n, of_directories);
    if (tool->reads_traces)
        add_options(r, &n, of_traces);
    if (tool->measure)
        add_options(r, &n, of_measures);
    if (sys_tool_takes_user_stacks(tool))
        add_options(r, &n, of_samples);
    if (sys_tool_names_kernel_code(tool))
        add_options(r, &n, of_kernel_code);
    add_options(r, &n, common);
    for (size_t i = 0; i < n; i++)
        explain(&r->options[i], tool);
    struct buf words = BUF_INIT;
    sys_tool_add_words(&words, tool->name, strlen(tool->name));
    snprintf(r->name, sizeof(r->name), "%s", buf_str(&words));
    buf_release(&words);
    r->as_command = (struct command){
        .name = r->name,
        .usage = "[options] [-- CMD ARG...]",
        .summary = tool->summary,
        .examples = tool->examples,
        .options = r->options,
        .more = list_words,
        .own_columns = true,
    };
    helped = tool;
}

void sys_command_release(struct sys_request *r)
{
    for (size_t i = 0; r->options[i].name; i++)
        if (made_for(&r->options[i]) < MADE)
            free((char *)(uintptr_t)r->options[i].doc);
}

const char *sys_own_option(const struct sys_request *r, const char *name)
{
    for (size_t i = 0; r->tool->options && r->tool->options[i].name; i++)
        if (!strcmp(r->tool->options[i].name, name))
            return r->own[i];
    return NULL;
}
