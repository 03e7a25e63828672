/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/accounts_command.h"

#include <errno.h>
#include <stdlib.h>

#include "cli/accounts_show.h"
#include "cli/pager.h"
#include "cli/places_show.h"
#include "cli/words.h"
#include "collect/naming.h"
#include "collect/tags_file.h"

static const struct word groups[] = {{"place", ACCOUNT_BY_PLACE},     {"function", ACCOUNT_BY_FUNCTION},
                                     {"file", ACCOUNT_BY_FILE},       {"directory", ACCOUNT_BY_DIRECTORY},
                                     {"module", ACCOUNT_BY_MODULE},   {"class", ACCOUNT_BY_CLASS},
                                     {"process", ACCOUNT_BY_PROCESS}, {NULL, 0}};
static const struct word orders[] = {
    {"live", ACCOUNT_SORT_LIVE},           {"objects", ACCOUNT_SORT_OBJECTS},
    {"allocated", ACCOUNT_SORT_ALLOCATED}, {"allocations", ACCOUNT_SORT_ALLOCATIONS},
    {"failed", ACCOUNT_SORT_FAILED},       {NULL, 0}};

/* All that one call was asked for. */
struct request {
    const struct accounts_kind *kind;
    struct accounts_show show;
    struct query *query;
    const char *source;
    bool paged, sorted;
};

/* ---- options; each gives -1 to go on, or the exit code ---- */

static int parse_format(struct request *q, const struct arguments *a)
{
    static const char *const not_with_text[] = {"by", "sort", "top", NULL};
    const struct command *c = q->kind->command;
    bool json = command_value(c, a, "json"), allocinfo = command_value(c, a, "allocinfo");
    if (json && allocinfo)
        return command_misuse(c, "--json or --allocinfo, not both");
    for (int i = 0; allocinfo && not_with_text[i]; i++)
        if (command_value(c, a, not_with_text[i]))
            return command_misuse(c, "--allocinfo writes all places as they are: leave out --%s",
                                  not_with_text[i]);
    q->show.format = json ? ACCOUNTS_JSON : allocinfo ? ACCOUNTS_ALLOCINFO : ACCOUNTS_SCREEN;
    q->paged = !command_value(c, a, "no-pager");
    return -1;
}

static int parse_shape(struct request *q, const struct arguments *a)
{
    const struct command *c = q->kind->command;
    int group = ACCOUNT_BY_PLACE, sort = ACCOUNT_SORT_LIVE;
    uint32_t top = q->show.format == ACCOUNTS_SCREEN ? WORDS_TOP_DEFAULT : 0;
    q->sorted = command_value(c, a, "sort");
    int code = words_parse(c, "by", command_value(c, a, "by"), groups, &group);
    if (code < 0)
        code = words_parse(c, "sort", command_value(c, a, "sort"), orders, &sort);
    if (code < 0)
        code = words_parse_top(c, command_value(c, a, "top"), &top);
    q->show.shape = (struct account_shape){.schema = q->kind->schema,
                                           .group = (enum account_group)group,
                                           .sort = (enum account_order)sort,
                                           .top = top};
    q->show.group = words_name(groups, group);
    q->show.order = words_name(orders, sort);
    return code;
}

static int parse_query(struct request *q, const char *where)
{
    struct error e = {""};
    if (where && account_query_parse(&q->query, where, &e))
        return command_misuse(q->kind->command, "--where: %s", e.text);
    q->show.query = q->query;
    return -1;
}

static int parse_source(struct request *q, const struct arguments *a)
{
    if (a->n_rest != 1)
        return command_misuse(q->kind->command,
                              a->n_rest ? "one process at a time, not also %s" : "of which process?%s",
                              a->n_rest ? a->rest[1] : "");
    q->source = a->rest[0];
    return -1;
}

static int parse(struct request *q, int argc, char **argv)
{
    struct arguments a;
    int code = command_parse(q->kind->command, argc, argv, false, &a);
    if (code < 0)
        code = parse_format(q, &a);
    if (code < 0)
        code = parse_shape(q, &a);
    if (code < 0)
        code = parse_source(q, &a);
    if (code < 0)
        code = parse_query(q, command_value(q->kind->command, &a, "where"));
    return code;
}

/* ---- work ---- */

static int read_source(const struct request *q, struct accounts_reading *r, struct alloc_texts *texts,
                       struct symbols *symbols)
{
    struct error e = {""};
    char *end;
    errno = 0;
    long pid = strtol(q->source, &end, 10);
    if (errno || *end || pid <= 0 || pid > INT32_MAX)
        return command_misuse(q->kind->command, "%s is no process id", q->source);
    if (q->kind->read(&r->accounts, texts, (pid_t)pid, symbols, &e))
        return command_fail(EXIT_FAILED, "%s", e.text);
    return -1;
}

/* The source is a program that does not run: all that is asked for of it. */
static int show_binary(const struct request *q, struct alloc_texts *texts, struct symbols *symbols)
{
    const struct accounts_show *o = &q->show;
    const struct command *c = q->kind->command;
    struct places_show places = {.source = q->source,
                                 .group = o->shape.group,
                                 .group_word = o->group,
                                 .query = o->query,
                                 .top = o->shape.top,
                                 .json = o->format == ACCOUNTS_JSON,
                                 .paged = q->paged};
    struct accounts a = {0};
    struct error e = {""};
    if (q->sorted || o->format == ACCOUNTS_ALLOCINFO || o->shape.group == ACCOUNT_BY_PROCESS)
        return command_misuse(c, "%s is a file, in which nothing is counted: leave out --%s", q->source,
                              q->sorted                         ? "sort"
                              : o->format == ACCOUNTS_ALLOCINFO ? "allocinfo"
                                                                : "by process");
    int code = q->kind->read_binary(&a, texts, q->source, symbols, &e)
                   ? command_fail(EXIT_FAILED, "%s", e.text)
                   : places_show(&places, &a, texts);
    accounts_release(&a);
    return code;
}

static int show(const struct request *q, struct alloc_texts *texts, const struct accounts_reading *after)
{
    struct sink out = pager_sink(q->paged);
    bool fits = accounts_show(&out, &q->show, texts, NULL, after);
    int code = pager_written(&out, EXIT_DONE);
    accounts_say_losses(&after->accounts, q->kind->losses);
    if (!after->accounts.rows.len)
        command_fail(0, "%s", q->kind->none);
    else if (!fits)
        command_fail(0, "no place fits %s", query_text(q->query));
    return code;
}

int accounts_command(const struct accounts_kind *kind, int argc, char **argv)
{
    struct request q = {.kind = kind};
    struct accounts_reading after = {.label = NULL};
    struct alloc_texts texts = {.bytes = BUF_INIT};
    int code = parse(&q, argc, argv);
    if (code < 0) {
        char *cache = naming_cache_dir();
        struct symbols *symbols = symbols_new(cache);
        code = kind->read_binary && tags_file_is_binary(q.source) ? show_binary(&q, &texts, symbols)
                                                                  : read_source(&q, &after, &texts, symbols);
        symbols_free(symbols);
        free(cache);
    }
    if (code < 0)
        code = show(&q, &texts, &after);
    accounts_release(&after.accounts);
    alloc_texts_release(&texts);
    query_free(q.query);
    return code;
}
