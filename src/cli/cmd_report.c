/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>

#include "cli/command.h"
#include "cli/filter.h"
#include "cli/source.h"
#include "cli/terminal.h"
#include "cli/words.h"
#include "cli/wrapper_lists.h"
#include "view/report.h"
#include "view/report_json.h"

static const struct option_doc options[] = {
    {"by", 0, "GROUP", "stack (default), function, file, module, owner, thread, size or process"},
    {"sort", 0, "ORDER", "live (default), peak, allocated, allocations, temporary or age"},
    {"older-than", 0, "TIME", "only what is live and older than TIME: 30s, 5m, 1h"},
    {"where", 0, "QUERY", "only what fits: 'func:parse_* size>4k !comm:bash', see allium-query(7)"},
    {"raw", 0, NULL, "show wrappers such as xmalloc and operator new, too"},
    {"top", 0, "N", "so many rows (12); 0: all"},
    {"json", 0, NULL, "as JSON, see allium-json(5)"},
    {NULL, 0, NULL, NULL},
};

static const char *const examples[] = {
    "allium report",
    "who holds memory, in the newest recording here",
    "allium report server.4711.allium@10m --by function",
    "ten minutes after it began",
    "allium report 4711 --older-than 1h --top 5",
    "a running process: what has been there for an hour",
    NULL,
};

static int run(int argc, char **argv);

const struct command command_report = {
    .name = "report",
    .usage =
        "[SOURCE] [--by GROUP] [--sort ORDER] [--older-than TIME] [--where QUERY] [--raw] [--top N] [--json]",
    .summary = "who holds memory: from a recording, a moment in it, or a running process",
    .examples = examples,
    .options = options,
    .run = run,
};

static bool is_known(const struct word *order, const void *known)
{
    return rollup_sort_known((enum rollup_sort)order->value, known);
}

/* What is known of single objects is known of the live ones only; of the past it is less. */
static int check_combination(const struct filter *f, enum rollup_sort sort, const struct rollup_values *known)
{
    if (rollup_sort_known(sort, known))
        return -1;
    const char *order = words_name(words_orders, sort);
    char *list = words_list(words_orders, is_known, known);
    int code;
    if (!*list)
        code =
            command_misuse(&command_report,
                           "size and age of single objects are not known of a moment in the past: leave out "
                           "--older-than, and size and age in --where, or the @TIME");
    else if (f->samples)
        code = command_misuse(
            &command_report,
            "--sort %s does not go with --older-than, nor with size or age in --where, which are "
            "known of live objects only: it can be %s",
            order, list);
    else
        code = command_misuse(&command_report, "--sort %s is not known of a moment in the past: it can be %s",
                              order, list);
    free(list);
    return code;
}

static int write_report(const struct source *s, struct rollup_options *ro, const struct filter *f,
                        uint32_t top, bool json)
{
    struct rollup *r = rollup_new(s->profile, ro);
    struct sink out = sink_to_file(stdout);
    int code = check_combination(f, ro->sort, &r->total);
    if (code >= 0) {
        rollup_free(r);
        return code;
    }
    char *words = filter_words(f);
    if (json) {
        struct report_json_options o = {.source = s->label, .filter = words, .top = top};
        report_json_write(&out, r, &o);
    } else {
        struct report_options o = {.style = terminal_style(stdout),
                                   .source = s->label,
                                   .filter = words,
                                   .top = top,
                                   .frames = WORDS_FRAMES_DEFAULT};
        report_write(&out, r, &o);
    }
    free(words);
    rollup_free(r);
    return command_written(&out, EXIT_DONE);
}

static int run(int argc, char **argv)
{
    struct arguments a;
    struct error e = {""};
    struct filter f;
    struct source s;
    int group = ROLLUP_BY_STACK, sort = ROLLUP_SORT_LIVE;
    uint32_t top = WORDS_TOP_DEFAULT;
    int code = command_parse(&command_report, argc, argv, false, &a);
    if (code < 0)
        code = words_parse(&command_report, "by", command_value(&command_report, &a, "by"), words_groups,
                           &group);
    if (code < 0)
        code = words_parse(&command_report, "sort", command_value(&command_report, &a, "sort"), words_orders,
                           &sort);
    if (code < 0)
        code = words_parse_top(&command_report, command_value(&command_report, &a, "top"), &top);
    if (code < 0 && a.n_rest > 1)
        code = command_misuse(&command_report, "one source at a time, not also %s", a.rest[1]);
    if (code >= 0)
        return code;
    if (filter_init(&f, command_value(&command_report, &a, "where"),
                    command_value(&command_report, &a, "older-than"), &e))
        return command_misuse(&command_report, "%s", e.text);
    code = check_combination(&f, sort,
                             &(struct rollup_values){.unknown = f.samples ? ROLLUP_NOT_OF_SAMPLES : 0});
    if (code < 0 && source_open(&s, a.n_rest ? a.rest[0] : NULL, &e))
        code = command_fail(EXIT_FAILED, "%s", e.text);
    if (code < 0) {
        struct rollup_options ro = {.group = group, .sort = sort, .inclusive = group != ROLLUP_BY_STACK};
        filter_apply(&f, &ro);
        if (!command_value(&command_report, &a, "raw"))
            wrapper_lists_mark(s.profile);
        code = write_report(&s, &ro, &f, top, command_value(&command_report, &a, "json") != NULL);
        source_release(&s);
    }
    filter_release(&f);
    return code;
}
