/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/debuginfod.h"
#include "cli/condition.h"
#include "cli/diff_page.h"
#include "cli/profile_filter.h"
#include "cli/profile_page.h"
#include "cli/pager.h"
#include "cli/screen_options.h"
#include "cli/source.h"
#include "cli/terminal.h"
#include "cli/option_values.h"
#include "cli/wrapper_lists.h"
#include "model/profile/diff_power.h"
#include "view/profile/diff_view.h"

static const struct option_doc options[] = {
    {"by", 0, "GROUP",
     "group rows by stack (default), function, file, module, owner, thread, size or process"},
    {"sort", 0, "ORDER",
     "sort by the change of live, peak, allocated, allocations or temporary (live, or what --fail-if is "
     "about)"},
    {"where", 0, "QUERY", "compare only matching objects: 'func:parse_* !comm:bash', see allium-query(7)"},
    {"fail-if", 0, "CONDITION",
     "exit with 4 if it grew by more, 3 if that is undecided: peak+10%, live+50MiB; may be repeated",
     .many = true},
    {"coarse", 0, NULL, "let a condition pass that so few samples cannot decide, instead of exiting with 3"},
    {"raw", 0, NULL, "show wrappers such as xmalloc and operator new"},
    {"top", 0, "N", "print N rows (20, with --json all); 0: all"},
    SCREEN_OPTIONS,
    {"json", 0, NULL, "print JSON, see allium-json(5)"},
    {"html", 0, "FILE", "also write a page for any browser to FILE, coloured by what changed"},
    {"html-size", 0, "SIZE", "limit the data of the page (20M), see allium-export(1)"},
    {"force", 0, NULL, "replace the FILE of --html if it exists"},
    DEBUGINFOD_OPTION,
    {"no-pager", 0, NULL, "print long output directly, not through $PAGER"},
    {NULL, 0, NULL, NULL},
};

static const char *const examples[] = {
    "allium diff server.4711.allium@10m 4711",
    "show what a running process holds more than ten minutes after it began",
    "allium diff old.allium new.allium --sort allocations --by function",
    "show which functions call malloc more often in the new version",
    "allium diff main.allium branch.allium --fail-if peak+10% --fail-if allocations+20%",
    "check in CI that a branch does not take more memory (record both by allium run --period 1)",
    NULL,
};

static int run(int argc, char **argv);

const struct command command_diff = {
    .name = "diff",
    .usage = "SOURCE SOURCE [--by GROUP] [--sort ORDER] [--where QUERY] [--fail-if CONDITION]... "
             "[--coarse] [--raw] [--top N] [--debuginfod DURATION] " SCREEN_USAGE " [--json] "
             "[--html FILE] [--html-size SIZE] [--force] [--no-pager]",
    .summary = "show what grew and what shrank, between two moments or two runs",
    .examples = examples,
    .options = options,
    .run = run,
};

/* The options of one call. */
struct request {
    const char *source[PROFILE_PAIR_SIDES];
    int group, sort;
    uint32_t top;
    bool json, raw, no_pager, coarse;
    struct diff_page page; /* without a path: none */
    struct profile_filter filter;
    struct condition conditions[CONDITIONS_MAX];
    int n_conditions;
};

/* A process and a recording are compared by that process alone: a recording may have others. Else `where` is as it
 * is. */
static char *narrowed(const struct request *q, const char *where)
{
    struct buf b = BUF_INIT;
    pid_t pid[PROFILE_PAIR_SIDES];
    for (int side = 0; side < PROFILE_PAIR_SIDES; side++)
        pid[side] = source_kind(q->source[side]) == SOURCE_PROCESS ? source_pid(q->source[side]) : 0;
    if (!pid[PROFILE_PAIR_BEFORE] == !pid[PROFILE_PAIR_AFTER])
        return where ? mem_strdup(where) : NULL;
    if (where)
        buf_printf(&b, "(%s) ", where);
    buf_printf(&b, "pid:%d", pid[PROFILE_PAIR_BEFORE] + pid[PROFILE_PAIR_AFTER]);
    return buf_detach(&b);
}

static int parse_filter(struct request *q, const char *where)
{
    struct error e = {""};
    if (profile_filter_init(&q->filter, where, NULL, &e)) /* as it was typed: errors name a column */
        return command_misuse(&command_diff, "%s", e.text);
    profile_filter_release(&q->filter);
    char *query = narrowed(q, where);
    int bad = profile_filter_init(&q->filter, query, NULL, &e);
    free(query);
    if (bad)
        return command_misuse(&command_diff, "%s", e.text);
    if (!q->filter.samples)
        return -1;
    profile_filter_release(&q->filter);
    return command_misuse(&command_diff, "size and age in --where select single objects, but diff compares "
                                         "sums: leave them out, or use --by size");
}

/* Two sources that have accounts and nothing else are compared place by place, by the command for that. -1: they are
 * no such ones. */
static int compare_accounts(const struct arguments *a, int argc, char **argv)
{
    static const char *const not_of_them[] = {"coarse", "raw", "html-size", DEBUGINFOD_OPTION_NAME, NULL};
    const char *kind = a->n_rest == PROFILE_PAIR_SIDES ? source_accounts_alone(a->rest[0]) : NULL;
    const char *other = kind ? source_accounts_alone(a->rest[1]) : NULL;
    if (!other || strcmp(kind, other) != 0)
        return -1;
    for (int i = 0; not_of_them[i]; i++)
        if (command_value(&command_diff, a, not_of_them[i]))
            return command_misuse(&command_diff, "%s and %s have accounts of %s alone: leave out --%s",
                                  a->rest[0], a->rest[1], kind, not_of_them[i]);
    return (strcmp(kind, "sites") ? &command_tags : &command_sites)->run(argc, argv);
}

static int parse_page(struct diff_page *page, const struct arguments *a)
{
    const struct command *c = &command_diff;
    const char *size = command_value(c, a, "html-size");
    page->path = command_value(c, a, "html");
    page->force = command_value(c, a, "force") != NULL;
    if (!page->path && (page->force || size))
        return command_misuse(c, "--%s needs --html", size ? "html-size" : "force");
    return option_values_parse_size(c, "html-size", size, PROFILE_PAGE_LEAST, UINT64_C(1) << 40,
                                    &page->most_bytes);
}

/* As above; on success the filter is to be released. */
static int parse(struct request *q, int argc, char **argv)
{
    struct arguments a;
    const struct command *c = &command_diff;
    *q = (struct request){
        .group = ROLLUP_BY_STACK, .sort = ROLLUP_SORT_LIVE, .top = OPTION_VALUES_TOP_DEFAULT};
    int code = command_parse(c, argc, argv, false, &a);
    if (code < 0 && command_value(c, &a, "json"))
        q->top = 0;
    if (code < 0)
        code = compare_accounts(&a, argc, argv);
    if (code < 0)
        code = option_values_parse(c, "by", command_value(c, &a, "by"), option_values_groups, &q->group);
    if (code < 0)
        code =
            option_values_parse(c, "sort", command_value(c, &a, "sort"), option_values_diff_orders, &q->sort);
    if (code < 0 && q->sort == ROLLUP_SORT_AGE)
        code =
            command_misuse(c, "diff has no --sort age: use live, peak, allocated, allocations or temporary");
    if (code < 0)
        code = option_values_parse_top(c, command_value(c, &a, "top"), &q->top);
    if (code < 0)
        code = condition_parse_all(q->conditions, &q->n_conditions, c, &a, &condition_of_samples);
    if (code < 0 && q->n_conditions && !command_value(c, &a, "sort"))
        q->sort = q->conditions[0].metric; /* rows show what the condition is about */
    if (code < 0 && command_value(c, &a, "coarse") && !q->n_conditions)
        code = command_misuse(c, "--coarse needs --fail-if");
    if (code < 0)
        code = parse_page(&q->page, &a);
    if (code < 0 && a.n_rest != 2)
        code = command_misuse(c,
                              a.n_rest > 2 ? "too many sources: leave out %s"
                              : a.n_rest   ? "missing second source: %s, and the source to compare it with"
                                           : "missing sources: give two%s",
                              a.n_rest > 2 ? a.rest[2]
                              : a.n_rest   ? a.rest[0]
                                           : "");
    if (code >= 0)
        return code;
    q->source[PROFILE_PAIR_BEFORE] = a.rest[0];
    q->source[PROFILE_PAIR_AFTER] = a.rest[1];
    q->json = command_value(c, &a, "json") != NULL;
    q->raw = command_value(c, &a, "raw") != NULL;
    q->coarse = command_value(c, &a, "coarse") != NULL;
    q->no_pager = command_value(c, &a, "no-pager") != NULL;
    return parse_filter(q, command_value(c, &a, "where"));
}

/* ---- conditions ---- */

/* -1: both sources have the figures that the options need. */
static int check_known(const struct request *q, const struct diff *d)
{
    const char *word = NULL;
    if (!diff_known(d, rollup_sort_metric((enum rollup_sort)q->sort)))
        word = option_values_name(option_values_diff_orders, q->sort);
    for (int i = 0; i < q->n_conditions && !word; i++)
        if (!diff_known(d, rollup_sort_metric((enum rollup_sort)q->conditions[i].metric)))
            word = option_values_name(option_values_diff_orders, q->conditions[i].metric);
    if (!word || (d->unknown == ~0u && !q->n_conditions)) /* a screen says so itself */
        return -1;
    if (d->unknown == ~0u)
        return command_fail(EXIT_FAILED, "nothing was sampled in one of the two, and its period is not "
                                         "known: --fail-if cannot be checked");
    return command_misuse(
        &command_diff,
        "%s is not known for a moment in the past, and temporary not for the kernel: use live, "
        "allocated or allocations",
        word);
}

/* -1: conditions can be checked: both programs ran, and the older moment is the first. */
static int check_sides(const struct request *q, const struct diff *d, const struct source *of)
{
    char text[UNITS_TEXT_BYTES];
    if (!q->n_conditions)
        return -1;
    for (int side = 0; side < PROFILE_PAIR_SIDES; side++)
        if (profile_silent_period(of[side].profile) == 1 && !q->coarse)
            return command_fail(
                EXIT_IMPOSSIBLE,
                "%s has every allocation, and there was none: did the program start? --fail-if "
                "cannot be checked (--coarse lets it pass)",
                q->source[side]);
    if (diff_is_of_moments(d) && diff_apart_ns(d) < 0)
        return command_misuse(&command_diff, "%s is %s earlier than %s: give the older one first",
                              q->source[PROFILE_PAIR_AFTER],
                              units_format_duration(text, -(double)diff_apart_ns(d)),
                              q->source[PROFILE_PAIR_BEFORE]);
    return -1;
}

/* Says that the samples are too few for the condition, and names a period with which they are enough. */
static void add_undecided(struct buf *b, const struct condition *c, const struct diff *d, bool coarse)
{
    bool count = diff_counts((enum rollup_sort)c->metric);
    char text[UNITS_TEXT_BYTES];
    const struct diff_value *v = condition_value(c, d);
    double permitted = condition_permitted(c, d), smallest = diff_smallest_growth(v, count);
    uint64_t period = diff_period_for(v, count, permitted);
    buf_printf(b, "undecided: it permits %s",
               count ? units_format_count(text, permitted) : units_format_size(text, permitted));
    if (isinf(smallest)) {
        buf_addstr(b, ", and nothing was sampled");
    } else {
        buf_printf(b, ", and so few samples detect only growth of %s or more",
                   count ? units_format_count(text, smallest) : units_format_size(text, smallest));
    }
    buf_addstr(b, ": record both with --period ");
    buf_printf(b, period < 1024 ? "%" PRIu64 : "%" PRIu64 "K", period < 1024 ? period : period / 1024);
    buf_addstr(b, coarse ? "; it passes because of --coarse; the measured growth is "
                         : ", or let it pass with --coarse; the measured growth is ");
}

/* One line for each condition that is met, or may be. */
static void say_verdict(const struct condition *c, const struct diff *d, enum condition_answer answer,
                        bool coarse)
{
    bool count = diff_counts((enum rollup_sort)c->metric);
    enum text_unit unit = count ? TEXT_COUNT : TEXT_BYTES;
    const struct diff_value *v = condition_value(c, d);
    struct diff_change change = diff_change(v, count);
    const struct estimate *before = count ? &v->of[DIFF_BEFORE].count : &v->of[DIFF_BEFORE].bytes;
    struct buf b = BUF_INIT;
    if (answer == CONDITION_NOT_MET)
        return;
    buf_printf(&b, "%s: ", c->text);
    if (answer == CONDITION_UNDECIDED)
        add_undecided(&b, c, d, coarse);
    else
        buf_addstr(&b, answer == CONDITION_MET ? "met: " : "not certain, so it counts as not met: ");
    text_add_change(&b, change.value, unit);
    if (change.interval.low != change.interval.high) {
        buf_addstr(&b, " (");
        text_add_change_interval(&b, change.interval.low, change.interval.high, unit);
        buf_addch(&b, ')');
    }
    text_add_base(&b, change.value, before, unit);
    command_fail(0, "%s", buf_str(&b));
    buf_release(&b);
}

/* A program that frees all memory in the end grows in its peak alone: says so if a condition is about live memory. */
static void hint_at_peak(const struct request *q, const struct diff *d)
{
    const struct rollup_value *live = d->total[ROLLUP_LIVE].of, *peak = d->total[ROLLUP_PEAK].of;
    bool asks_live = false, asks_peak = false;
    for (int i = 0; i < q->n_conditions; i++) {
        asks_live = asks_live || q->conditions[i].metric == ROLLUP_SORT_LIVE;
        asks_peak = asks_peak || q->conditions[i].metric == ROLLUP_SORT_PEAK;
    }
    if (!asks_live || asks_peak || !diff_known(d, ROLLUP_PEAK))
        return;
    for (int side = DIFF_BEFORE; side <= DIFF_AFTER; side++)
        if (live[side].bytes.value * 10 >= peak[side].bytes.value)
            return;
    command_fail(0, "both hold less than a tenth of their peak: peak+10%% compares the peaks");
}

/* The exit code: one condition that is met is enough, else one that is undecided. */
static int judge(const struct request *q, const struct diff *d, struct diff_verdict *verdicts)
{
    bool met = false, undecided = false;
    for (int i = 0; i < q->n_conditions; i++) {
        const struct condition *c = &q->conditions[i];
        enum condition_answer answer = condition_ask(c, d);
        struct diff_verdict *v = &verdicts[i];
        *v = (struct diff_verdict){c->text, answer == CONDITION_MET, answer == CONDITION_UNDECIDED, 0};
        if (v->undecided)
            v->period_bytes = diff_period_for(condition_value(c, d), diff_counts((enum rollup_sort)c->metric),
                                              condition_permitted(c, d));
        met |= v->met;
        undecided |= v->undecided && !q->coarse;
    }
    return met ? EXIT_CONDITION : undecided ? EXIT_IMPOSSIBLE : EXIT_DONE;
}

/* -1: there is a page, or none is wanted. */
static int write_page(const struct request *q, struct diff *d, const struct diff_view_options *o)
{
    struct error e = {""};
    if (!q->page.path)
        return -1;
    if (d->unknown == ~0u)
        return command_fail(EXIT_FAILED,
                            "--html: nothing was sampled in one of the two, and its period is not "
                            "known: there is no change to show");
    return diff_page_save(&q->page, d, o, &e) ? command_fail(EXIT_FAILED, "--html: %s", e.text) : -1;
}

static int write_diff(const struct request *q, struct diff *d, const struct source *of)
{
    struct diff_verdict verdicts[CONDITIONS_MAX];
    char *words = profile_filter_words(&q->filter);
    int verdict = judge(q, d, verdicts);
    struct diff_view_options o = {.style = terminal_style(stdout),
                                  .source = {of[PROFILE_PAIR_BEFORE].label, of[PROFILE_PAIR_AFTER].label},
                                  .filter = words,
                                  .top = q->top,
                                  .frames = OPTION_VALUES_FRAMES_DEFAULT,
                                  .verdicts = verdicts,
                                  .n_verdicts = (size_t)q->n_conditions};
    int failed = write_page(q, d, &o);
    if (failed >= 0) {
        free(words);
        return failed;
    }
    struct sink out = pager_sink(!q->no_pager);
    if (q->json)
        diff_json_write(&out, d, &o);
    else
        diff_write(&out, d, &o);
    free(words);
    int code = pager_written(&out, verdict);
    for (int i = 0; i < q->n_conditions; i++)
        say_verdict(&q->conditions[i], d, condition_ask(&q->conditions[i], d), q->coarse);
    hint_at_peak(q, d);
    return code;
}

/* Prints a line if no sample matches --where. Returns an exit code, or -1 to go on: a sample matches, both sides are
 * exact, or the output is JSON. */
static int check_match(const struct request *q, const struct diff *d)
{
    const struct rollup_value *of = d->total[ROLLUP_ALLOCATED].of;
    const struct estimate *before = &of[DIFF_BEFORE].bytes, *after = &of[DIFF_AFTER].bytes;
    if (before->samples || after->samples)
        return -1;
    char *words = profile_filter_words(&q->filter);
    bool exact = rollup_exact(before) && rollup_exact(after);
    int code = command_fail(q->n_conditions ? EXIT_FAILED : EXIT_DONE,
                            "no sample of either source matches: %s", words);
    free(words);
    return exact || q->json ? -1 : code;
}

static int compare(struct request *q, const struct source *of)
{
    struct rollup_options ro = {.keep = NULL};
    profile_filter_apply(&q->filter, &ro);
    struct diff_options o = {.group = (enum rollup_group)q->group,
                             .sort = (enum rollup_sort)q->sort,
                             .keep = ro.keep,
                             .arg = ro.arg};
    struct diff *d = diff_new(of[PROFILE_PAIR_BEFORE].profile, of[PROFILE_PAIR_AFTER].profile, &o);
    int code = check_known(q, d);
    if (code < 0)
        code = check_sides(q, d, of);
    if (code < 0 && q->filter.query)
        code = check_match(q, d);
    if (code < 0)
        code = write_diff(q, d, of);
    diff_free(d);
    return code;
}

static int run(int argc, char **argv)
{
    struct request q;
    struct source of[PROFILE_PAIR_SIDES] = {{0}};
    struct error e = {""};
    int code = parse(&q, argc, argv);
    if (code >= 0)
        return code;
    for (int side = 0; side < PROFILE_PAIR_SIDES && code < 0; side++) {
        int bad = source_open_figures(&of[side], q.source[side], &e);
        if (bad)
            code = source_fail(bad, &e);
    }
    for (int side = 0; side < PROFILE_PAIR_SIDES && code < 0 && !q.raw; side++)
        wrapper_lists_mark(of[side].profile);
    if (code < 0)
        code = compare(&q, of);
    for (int side = 0; side < PROFILE_PAIR_SIDES; side++)
        source_release(&of[side]);
    profile_filter_release(&q.filter);
    return code;
}
