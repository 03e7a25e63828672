/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "cli/command.h"
#include "cli/debuginfod.h"
#include "cli/option_values.h"
#include "cli/pager.h"
#include "cli/profile_filter.h"
#include "cli/profile_page.h"
#include "cli/screen_options.h"
#include "cli/source.h"
#include "cli/sys/import/boot_report.h"
#include "cli/terminal.h"
#include "cli/trace/events_page.h"
#include "cli/wrapper_lists.h"
#include "model/profile/nearest.h"
#include "query/query.h"
#include "store/profile_load.h"
#include "view/profile/report.h"
#include "view/profile/report_json.h"

static const struct option_doc options[] = {
    {"by", 0, "GROUP",
     "group rows by stack (default), function, file, directory, module, owner, thread, size or process"},
    {"sort", 0, "ORDER",
     "sort by live (default), peak, allocated, allocations, temporary, age; of the kernel requested, slack"},
    {"older-than", 0, "DURATION", "show only live objects of this age or older: 30s, 5m, 1h"},
    {"where", 0, "QUERY",
     "show only matching objects: 'func:parse_* size>4k !comm:bash', see allium-query(7)"},
    {"callers", 0, "FUNC", "print the callers of FUNC (a name, or a pattern such as 'parse_*') as a tree"},
    {"callees", 0, "FUNC", "print the callees of FUNC, down to the function that allocated, as a tree"},
    {"temporary", 0, NULL, "show memory that was freed at once: short for --sort temporary"},
    {"raw", 0, NULL, "show wrappers such as xmalloc and operator new"},
    {"top", 0, "N", "print N rows (20, 30 of a tree of calls; with --json all); 0: all"},
    SCREEN_OPTIONS,
    {"html", 0, "FILE", "also write a page for any browser to FILE, see allium-export(1)"},
    {"force", 0, NULL, "replace the FILE of --html if it exists"},
    {"json", 0, NULL, "print JSON, see allium-json(5)"},
    DEBUGINFOD_OPTION,
    {"no-pager", 0, NULL, "print long output directly, not through $PAGER"},
    SOURCE_PID_OPTION,
    {NULL, 0, NULL, NULL},
};

static const char *const examples[] = {
    "allium report",
    "show which code holds memory, in the newest recording here",
    "allium report server.4711.allium@10m --by function",
    "show which functions held memory ten minutes after the recording began",
    "allium report 4711 --older-than 1h --top 5",
    "show objects of a running process that are an hour old or older",
    "allium report --callers 'g_hash_table_*'",
    "show the callers that create hash tables",
    NULL,
};

static int run(int argc, char **argv);

const struct command command_report = {
    .name = "report",
    .usage =
        "[SOURCE|-p PID] [--by GROUP|--callers FUNC|--callees FUNC] [--sort ORDER|--temporary] [--older-than "
        "DURATION] "
        "[--where QUERY] [--raw] [--top N] [--debuginfod DURATION] " SCREEN_USAGE " [--json] [--html FILE] "
        "[--force] [--no-pager]",
    .summary = "show which code holds memory, from a recording, a moment in it, or a process",
    .examples = examples,
    .options = options,
    .run = run,
};

static bool is_known(const struct word *order, const void *known)
{
    return rollup_sort_known((enum rollup_sort)order->value, known);
}

/* What is known of single objects is known of the live ones only; of the past it is less. */
static int check_combination(const struct profile_filter *f, enum rollup_sort sort,
                             const struct rollup_values *known)
{
    if (rollup_sort_known(sort, known))
        return -1;
    const char *order = option_values_name(option_values_orders, sort);
    char *list = option_values_list(option_values_orders, is_known, known);
    int code;
    if (!*list)
        code = command_misuse(&command_report,
                              "size and age of single objects are not known for a moment in the past: leave "
                              "out --older-than, and size and age in --where, or the @TIME");
    else if (f->samples)
        code = command_misuse(&command_report,
                              "--sort %s cannot be used with --older-than, nor with size or age in --where, "
                              "which are known for live objects only: use %s",
                              order, list);
    else if (sort == ROLLUP_SORT_REQUESTED || sort == ROLLUP_SORT_SLACK)
        code = command_misuse(&command_report,
                              "--sort %s is not known here, but for the kernel (of a program, allocated is "
                              "what it requested): use %s",
                              order, list);
    else
        code = command_misuse(
            &command_report,
            "--sort %s is not known for a moment in the past, and age and temporary not for the "
            "kernel: use %s",
            order, list);
    free(list);
    return code;
}

/* The options of one call. */
struct request {
    const char *source; /* NULL: the newest recording */
    int group, sort;
    uint32_t top;
    bool json, raw, no_pager, force;
    const char *html;  /* NULL: no page */
    const char *focus; /* of --callers or --callees, which are groups here; else NULL */
    struct profile_filter filter;
};

static const char *value_of(const struct arguments *a, const char *name)
{
    return command_value(&command_report, a, name);
}

/* -1: fine; else the exit code. */
static int parse_rows(struct request *q, const struct arguments *a)
{
    const char *callers = value_of(a, "callers"), *callees = value_of(a, "callees");
    bool temporary = value_of(a, "temporary");
    q->focus = callers ? callers : callees;
    int code = option_values_parse(&command_report, "by", value_of(a, "by"), option_values_groups, &q->group);
    if (code < 0)
        code =
            option_values_parse(&command_report, "sort", value_of(a, "sort"), option_values_orders, &q->sort);
    if (code >= 0)
        return code;
    if ((callers != NULL) + (callees != NULL) + (value_of(a, "by") != NULL) > 1)
        return command_misuse(&command_report, "--by, --callers and --callees exclude each other: use one");
    if (q->focus && !*q->focus)
        return command_misuse(&command_report, "--%s needs the name of a function",
                              callers ? "callers" : "callees");
    if (temporary && value_of(a, "sort") && q->sort != ROLLUP_SORT_TEMPORARY)
        return command_misuse(&command_report, "--temporary means --sort temporary: leave out --sort %s",
                              value_of(a, "sort"));
    if (temporary)
        q->sort = ROLLUP_SORT_TEMPORARY;
    if (q->focus)
        q->group = callers ? ROLLUP_BY_CALLERS : ROLLUP_BY_CALLEES;
    q->top = value_of(a, "json") ? 0 : q->focus ? OPTION_VALUES_TREE_DEFAULT : OPTION_VALUES_TOP_DEFAULT;
    return option_values_parse_top(&command_report, value_of(a, "top"), &q->top);
}

/* As above; on success the filter is to be released. */
static int parse(struct request *q, int argc, char **argv)
{
    struct arguments a;
    struct error e = {""};
    *q = (struct request){.group = ROLLUP_BY_STACK, .sort = ROLLUP_SORT_LIVE};
    int code = command_parse(&command_report, argc, argv, false, &a);
    if (code < 0)
        code = parse_rows(q, &a);
    if (code < 0 && a.n_rest > 1)
        code = command_misuse(&command_report, "too many sources: leave out %s", a.rest[1]);
    if (code >= 0)
        return code;
    q->source = a.n_rest ? a.rest[0] : NULL;
    q->json = value_of(&a, "json") != NULL;
    q->html = value_of(&a, "html");
    q->force = value_of(&a, "force") != NULL;
    if (q->force && !q->html)
        return command_misuse(&command_report,
                              "--force needs --html: it replaces the file that --html names");
    q->raw = value_of(&a, "raw") != NULL;
    q->no_pager = value_of(&a, "no-pager") != NULL;
    if (profile_filter_init(&q->filter, value_of(&a, "where"), value_of(&a, "older-than"), &e))
        return command_misuse(&command_report, "%s", e.text);
    const struct rollup_values known = {.unknown = q->filter.samples ? ROLLUP_NOT_OF_SAMPLES : 0};
    code = check_combination(&q->filter, q->sort, &known);
    if (code >= 0)
        profile_filter_release(&q->filter);
    return code;
}

/* There is no function of that name: -1 if there is. */
static int check_focus(const struct profile *p, const char *focus)
{
    uint32_t nearest[NEAREST_MAX];
    struct text_style style = terminal_style(stderr);
    struct buf names = BUF_INIT;
    if (nearest_fits_any(p, focus))
        return -1;
    size_t n = nearest_functions(p, focus, nearest);
    for (size_t i = 0; i < n; i++) {
        buf_addstr(&names, i ? ", " : "; similar names: ");
        text_add_name(&names, &style, profile_text(p, nearest[i]));
    }
    int code = command_fail(EXIT_FAILED, "no function %s is on any stack%s", focus,
                            n ? buf_str(&names) : " (allium report --by function --top 0 lists them)");
    buf_release(&names);
    return code;
}

static char *words_of(const struct request *q)
{
    struct buf b = BUF_INIT;
    char *words = profile_filter_words(&q->filter);
    if (!q->focus)
        return words;
    buf_printf(&b, "%s%sin %s and its callees", words ? words : "", words ? ", " : "", q->focus);
    free(words);
    return buf_detach(&b);
}

/* Of a recording of a boot: how much came before its first event. `leads`: above the report, where that matters. */
static void write_before(struct sink *out, const char *path, bool leads)
{
    struct recording_summary s;
    struct error ignored;
    int64_t matters = 0;
    if (!path || recording_summarize(&s, path, &ignored))
        return;
    const char *line = recording_text(&s, BOOT_REPORT_LINE),
               *details = recording_text(&s, BOOT_REPORT_DETAILS);
    recording_number(&s, BOOT_REPORT_LEADS, &matters);
    if (line && (matters != 0) == leads)
        sink_printf(out, leads ? "%s\n\n" : "\n%s\n", line);
    if (details && !leads)
        sink_printf(out, "%s%s", matters ? "\nbefore the first event:\n" : "", details);
    recording_summary_release(&s);
}

static int write_report(const struct request *q, const struct rollup *r, const struct source *s)
{
    struct sink out = pager_sink(!q->no_pager);
    const char *source = s->label;
    char *words = words_of(q);
    if (q->json) {
        struct report_json_options o = {.source = source, .filter = words, .top = q->top};
        report_json_write(&out, r, &o);
    } else {
        struct report_options o = {.style = terminal_style(stdout),
                                   .source = source,
                                   .filter = words,
                                   .top = q->top,
                                   .frames = OPTION_VALUES_FRAMES_DEFAULT};
        write_before(&out, s->path, true);
        report_write(&out, r, &o);
        write_before(&out, s->path, false);
    }
    free(words);
    return pager_written(&out, EXIT_DONE);
}

/* Returns whether no sample is in any figure of the report. */
static bool is_nothing(const struct rollup *r)
{
    for (int metric = 0; metric < ROLLUP_METRICS; metric++)
        if (rollup_known(&r->total, metric) && r->total.of[metric].bytes.samples)
            return false;
    return true;
}

static int say_no_match(const struct request *q)
{
    const char *where = q->filter.query ? query_text(q->filter.query) : "";
    bool whole_name = strstr(where, "func:") && !strpbrk(where, "*?");
    char *words = words_of(q);
    int code = command_fail(EXIT_DONE, "no sample matches: %s%s", words,
                            whole_name ? "; func: compares whole names: use * for any text" : "");
    free(words);
    return code;
}

/* -1: fine. */
static int write_page(struct request *q, const struct source *s)
{
    struct error e = {""};
    struct rollup_options like = {.group = ROLLUP_BY_STACK};
    profile_filter_apply(&q->filter, &like);
    char *words = profile_filter_words(&q->filter);
    struct html_events *events = NULL;
    int bad = events_page_read(&events, q->source, s->profile, &q->filter, 0, &e);
    const struct profile_page page = {.label = s->label, .filter = words, .like = &like, .events = events};
    bad = bad ? bad : profile_page_save(q->html, q->force, s->profile, &page, &e);
    html_events_free(events);
    free(words);
    return bad ? command_fail(EXIT_FAILED, "--html: %s", e.text) : -1;
}

static int report(struct request *q, const struct source *s)
{
    struct rollup_options ro = {.group = (enum rollup_group)q->group,
                                .sort = (enum rollup_sort)q->sort,
                                .inclusive = q->focus || q->group == ROLLUP_BY_DIRECTORY,
                                .focus = q->focus};
    profile_filter_apply(&q->filter, &ro);
    if (!q->raw)
        wrapper_lists_mark(s->profile);
    struct rollup *r = rollup_new(s->profile, &ro);
    int code = check_combination(&q->filter, ro.sort, &r->total);
    if (code < 0 && q->focus && !r->rows.len)
        code = check_focus(s->profile, q->focus);
    bool filtered = q->filter.query || q->filter.older_than_ns;
    if (code < 0 && filtered && !q->json && is_nothing(r) && s->profile->cells.len)
        code = say_no_match(q);
    if (code < 0 && q->html)
        code = write_page(q, s);
    if (code < 0)
        code = write_report(q, r, s);
    rollup_free(r);
    return code;
}

static int run(int argc, char **argv)
{
    struct request q;
    struct source s;
    struct error e = {""};
    int code = parse(&q, argc, argv);
    if (code >= 0)
        return code;
    int bad = q.html ? source_open_moments(&s, q.source, &e) : source_open_figures(&s, q.source, &e);
    if (bad) {
        code = source_fail(bad, &e);
    } else {
        code = report(&q, &s);
        source_release(&s);
    }
    profile_filter_release(&q.filter);
    return code;
}
