/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>

#include "cli/command.h"
#include "cli/debuginfod.h"
#include "cli/option_values.h"
#include "cli/pager.h"
#include "cli/profile_filter.h"
#include "cli/screen_options.h"
#include "cli/source.h"
#include "cli/terminal.h"
#include "cli/wrapper_lists.h"
#include "view/profile/who_view.h"

static const struct option_doc options[] = {
    {"where", 0, "QUERY", "show only matching frees: 'func:close_* size>4k age<1ms', see allium-query(7)"},
    {"top", 0, "N", "print N rows (20, with --json all); 0: all"},
    SCREEN_OPTIONS,
    {"json", 0, NULL, "print JSON, see allium-json(5)"},
    DEBUGINFOD_OPTION,
    {"no-pager", 0, NULL, "print long output directly, not through $PAGER"},
    SOURCE_PID_OPTION,
    {NULL, 0, NULL, NULL},
};

static const char *const examples[] = {
    "allium frees",
    "show the last frees in the newest recording here",
    "allium frees 4711 --where 'func:parse_* age<1ms'",
    "show blocks of a running process that parse_*() allocated or freed within a millisecond",
    NULL,
};

static int run(int argc, char **argv);

const struct command command_frees = {
    .name = "frees",
    .usage = "[SOURCE|-p PID] [--where QUERY] [--top N] [--debuginfod DURATION] " SCREEN_USAGE
             " [--json] [--no-pager]",
    .summary = "list the blocks that were freed lately, and the functions that allocated and freed them",
    .examples = examples,
    .options = options,
    .run = run,
};

static int list(const struct source *s, struct profile_filter *f, uint32_t top, bool json, bool paged)
{
    const struct profile *p = s->profile;
    struct sink out = pager_sink(paged);
    uint32_t *order = address_info_latest_frees(p);
    size_t n = 0;
    for (size_t i = 0; i < p->frees.len; i++)
        if (profile_filter_keeps_free(f, p, order[i]))
            order[n++] = order[i];
    char *words = profile_filter_words(f);
    struct frees_options o = {
        .style = terminal_style(stdout), .source = s->label, .filter = words, .top = top};
    if (json)
        frees_json_write(&out, p, order, n, &o);
    else
        frees_write(&out, p, order, n, &o);
    free(words);
    free(order);
    return pager_written(&out, EXIT_DONE);
}

static int run(int argc, char **argv)
{
    struct arguments a;
    struct error e = {""};
    struct profile_filter f;
    struct source s;
    uint32_t top = OPTION_VALUES_TOP_DEFAULT;
    int code = command_parse(&command_frees, argc, argv, false, &a);
    if (code < 0 && command_value(&command_frees, &a, "json"))
        top = 0;
    if (code < 0)
        code = option_values_parse_top(&command_frees, command_value(&command_frees, &a, "top"), &top);
    if (code < 0 && a.n_rest > 1)
        code = command_misuse(&command_frees, "too many sources: leave out %s", a.rest[1]);
    if (code >= 0)
        return code;
    if (profile_filter_init(&f, command_value(&command_frees, &a, "where"), NULL, &e))
        return command_misuse(&command_frees, "%s", e.text);
    int bad = source_open_figures(&s, a.n_rest ? a.rest[0] : NULL, &e);
    if (bad) {
        code = source_fail(bad, &e);
    } else {
        wrapper_lists_mark(s.profile);
        code = list(&s, &f, top, command_value(&command_frees, &a, "json") != NULL,
                    !command_value(&command_frees, &a, "no-pager"));
        source_release(&s);
    }
    profile_filter_release(&f);
    return code;
}
