/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "cli/command.h"
#include "cli/pager.h"
#include "cli/terminal.h"
#include "cli/words.h"
#include "collect/naming.h"
#include "collect/tags.h"
#include "model/table.h"
#include "view/allocinfo.h"
#include "view/table_view.h"

static const struct option_doc options[] = {
    {"by", 0, "GROUP", "place (default), function, file, directory, module or class"},
    {"sort", 0, "ORDER", "live (default), objects, allocated, allocations or failed"},
    {"top", 0, "N", "so many rows (12; of JSON, all); 0: all"},
    {"json", 0, NULL, "as JSON, see allium-json(5)"},
    {"allocinfo", 0, NULL, "every place, in the format of the kernel's /proc/allocinfo"},
    {"no-pager", 0, NULL, "print a long screen at once, not through $PAGER"},
    {NULL, 0, NULL, NULL},
};

static const char *const examples[] = {
    "allium tags 4711",
    "what each place in the source of process 4711 holds, to the byte",
    "allium tags 4711 --by directory --sort allocations",
    "which part of the program allocates most often",
    NULL,
};

static int run(int argc, char **argv);

const struct command command_tags = {
    .name = "tags",
    .usage = "PID [--by GROUP] [--sort ORDER] [--top N] [--json|--allocinfo] [--no-pager]",
    .summary = "exact accounts of the places in a program that is built with <allium/tag.h>",
    .examples = examples,
    .options = options,
    .run = run,
};

enum { BY_PLACE, BY_FUNCTION, BY_FILE, BY_DIRECTORY, BY_MODULE, BY_CLASS };
static const struct word groups[] = {
    {"place", BY_PLACE},   {"function", BY_FUNCTION}, {"file", BY_FILE}, {"directory", BY_DIRECTORY},
    {"module", BY_MODULE}, {"class", BY_CLASS},       {NULL, 0}};

enum {
    C_LIVE,
    C_OBJECTS,
    C_ALLOCATED,
    C_ALLOCATIONS,
    C_FAILED,
    C_CLASS,
    C_NAME,
    C_FUNCTION,
    C_PLACE,
    C_MODULE
};
static const struct table_column columns[] = {
    {.name = "live", .unit = TABLE_BYTES, .type = TABLE_SIGNED},
    {.name = "live_objects", .unit = TABLE_PLAIN, .type = TABLE_SIGNED},
    {.name = "allocated", .unit = TABLE_BYTES, .type = TABLE_WHOLE},
    {.name = "allocations", .unit = TABLE_COUNT, .type = TABLE_WHOLE},
    {.name = "failed", .unit = TABLE_COUNT, .type = TABLE_WHOLE, .rare = true},
    {.name = "class", .type = TABLE_TEXT, .rare = true},
    {.name = "name", .type = TABLE_TEXT, .rare = true},
    {.name = "function", .type = TABLE_TEXT, .rare = true},
    {.name = "place", .type = TABLE_TEXT, .rare = true},
    {.name = "module", .type = TABLE_TEXT, .rare = true},
};
static const struct word orders[] = {{"live", C_LIVE},           {"objects", C_OBJECTS},
                                     {"allocated", C_ALLOCATED}, {"allocations", C_ALLOCATIONS},
                                     {"failed", C_FAILED},       {NULL, 0}};

struct request {
    int group, sort;
    uint32_t top;
    pid_t pid;
    bool json, allocinfo, paged;
};

/* What the row is called in that group; the caller frees it. */
static char *group_name(const struct tags_row *r, int group)
{
    struct buf b = BUF_INIT;
    const char *slash = strrchr(r->file, '/');
    if (group == BY_FUNCTION)
        buf_addstr(&b, r->function);
    else if (group == BY_MODULE)
        buf_addstr(&b, r->module);
    else if (group == BY_CLASS)
        buf_addstr(&b, r->class);
    else if (group == BY_DIRECTORY)
        buf_add(&b, r->file, slash ? (size_t)(slash - r->file) : 0);
    else
        buf_addstr(&b, r->file);
    if (group == BY_PLACE && r->line)
        buf_printf(&b, ":%u", r->line);
    return buf_detach(&b);
}

struct named {
    char *name;
    struct tags_row sum;
};

static int compare_named(const void *a, const void *b)
{
    return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

static void put_row(struct table *t, const struct tags_row *r)
{
    table_row(t);
    table_signed(t, C_LIVE, (int64_t)(r->made_bytes - r->gone_bytes));
    table_signed(t, C_OBJECTS, (int64_t)(r->made_calls - r->gone_calls));
    table_whole(t, C_ALLOCATED, r->made_bytes);
    table_whole(t, C_ALLOCATIONS, r->made_calls);
    if (r->failed)
        table_whole(t, C_FAILED, r->failed);
}

static void put_text(struct table *t, uint32_t column, const char *text)
{
    table_text(t, column, *text ? text : NULL);
}

static void put_places(struct table *t, const struct tags *tags)
{
    vec_each (const struct tags_row, r, &tags->rows) {
        char *place = group_name(r, BY_PLACE);
        put_row(t, r);
        put_text(t, C_CLASS, r->class);
        put_text(t, C_NAME, r->name);
        put_text(t, C_FUNCTION, r->function);
        put_text(t, C_PLACE, place);
        put_text(t, C_MODULE, r->module);
        free(place);
    }
}

static void put_groups(struct table *t, const struct tags *tags, int group)
{
    static const uint32_t column[] = {[BY_FUNCTION] = C_FUNCTION,
                                      [BY_FILE] = C_PLACE,
                                      [BY_DIRECTORY] = C_PLACE,
                                      [BY_MODULE] = C_MODULE,
                                      [BY_CLASS] = C_CLASS};
    struct VEC(struct named) all = {0};
    vec_each (const struct tags_row, r, &tags->rows) {
        struct named n = {group_name(r, group), *r};
        *vec_push(&all) = n;
    }
    qsort(all.at, all.len, sizeof(*all.at), compare_named);
    for (size_t i = 0; i < all.len; i++) {
        struct tags_row *r = &all.at[i].sum;
        if (i + 1 < all.len && !compare_named(&all.at[i], &all.at[i + 1])) {
            struct tags_row *next = &all.at[i + 1].sum;
            next->made_calls += r->made_calls;
            next->made_bytes += r->made_bytes;
            next->gone_calls += r->gone_calls;
            next->gone_bytes += r->gone_bytes;
            next->failed += r->failed;
        } else {
            put_row(t, r);
            put_text(t, column[group], all.at[i].name);
        }
        free(all.at[i].name);
    }
    vec_release(&all);
}

static void say(uint64_t n, const char *words)
{
    struct buf b = BUF_INIT;
    text_add_words(&b, n, words);
    if (n)
        command_fail(0, "%s", buf_str(&b));
    buf_release(&b);
}

static void say_losses(const struct tags *t)
{
    say(t->unkept_tags, "tag{s} {was|were} left out: the ledger has no room for more");
    say(t->unkept_objects, "object{s} {is|are} charged to nobody: there was no memory to follow {it|them}");
    say(t->unseen_frees,
        "object{s} {was|were} freed by code without tags, and live here until the address came again");
    say(t->damaged, "record{s} of the ledger {is|are} damaged");
    if (!t->rows.len)
        command_fail(0, "no tag of process %d was used yet", (int)t->pid);
}

static void write_allocinfo(struct sink *out, const struct tags *tags)
{
    allocinfo_write_head(out);
    vec_each (const struct tags_row, r, &tags->rows) {
        const char *slash = strrchr(r->module, '/');
        struct allocinfo_row row = {.bytes = (int64_t)(r->made_bytes - r->gone_bytes),
                                    .calls = r->made_calls - r->gone_calls,
                                    .file = r->file,
                                    .line = r->line,
                                    .module = *r->module ? (slash ? slash + 1 : r->module) : NULL,
                                    .function = r->function,
                                    .accurate = !tags->unkept_objects && !tags->unseen_frees};
        allocinfo_write_row(out, &row);
    }
}

/* "server (pid 4711), running", and what all its places hold together. */
static void write_heading(struct sink *out, const struct text_style *style, const struct tags *t)
{
    struct buf b = BUF_INIT;
    int64_t bytes = 0, objects = 0;
    vec_each (const struct tags_row, r, &t->rows) {
        bytes += (int64_t)(r->made_bytes - r->gone_bytes);
        objects += (int64_t)(r->made_calls - r->gone_calls);
    }
    text_add_name(&b, style, t->comm);
    buf_printf(&b, " (pid %d), %s: ", (int)t->pid, t->alive ? "running" : "ended");
    text_add_number(&b, t->rows.len, "place");
    buf_addstr(&b, t->rows.len == 1 ? " holds " : " hold ");
    table_view_add_quantity(&b, TABLE_BYTES, (double)bytes);
    buf_printf(&b, " in %lld object%s\n\n", (long long)objects, objects == 1 ? "" : "s");
    sink_text(out, buf_str(&b));
    buf_release(&b);
}

/* When the rows have been written: of a reader that has gone nothing is said. */
static void say_cut(struct sink *out, uint32_t shown, uint32_t all)
{
    struct buf b = BUF_INIT;
    if (shown == all || sink_finish(out))
        return;
    text_add_number(&b, shown, NULL);
    buf_addstr(&b, " of ");
    text_add_number(&b, all, "row");
    command_fail(0, "%s are shown; --top 0 shows all", buf_str(&b));
    buf_release(&b);
}

static int show(const struct request *q, const struct tags *tags)
{
    struct sink out = pager_sink(q->paged);
    struct text_style style = terminal_style(stdout);
    if (q->allocinfo) {
        write_allocinfo(&out, tags);
        int code = pager_written(&out, EXIT_DONE);
        say_losses(tags);
        return code;
    }
    struct table *t = table_new("tags", 1, columns, sizeof(columns) / sizeof(*columns));
    if (q->group == BY_PLACE)
        put_places(t, tags);
    else
        put_groups(t, tags, q->group);
    table_sort(t, (uint32_t)q->sort, TABLE_MOST_FIRST);
    uint32_t all = table_rows(t);
    if (q->top && all > q->top)
        table_cut(t, q->top);
    if (q->json) {
        table_view_json(&out, t);
    } else {
        write_heading(&out, &style, tags);
        if (all)
            table_view_text(&out, t, &style);
        say_cut(&out, table_rows(t), all);
    }
    table_free(t);
    int code = pager_written(&out, EXIT_DONE);
    say_losses(tags);
    return code;
}

static int parse_pid(struct request *q, const struct arguments *a)
{
    char *end;
    if (a->n_rest != 1)
        return command_misuse(&command_tags,
                              a->n_rest ? "one process at a time, not also %s" : "of which process?%s",
                              a->n_rest ? a->rest[1] : "");
    errno = 0;
    long pid = strtol(a->rest[0], &end, 10);
    if (errno || *end || pid <= 0 || pid > INT32_MAX)
        return command_misuse(&command_tags, "%s is no process id", a->rest[0]);
    q->pid = (pid_t)pid;
    return -1;
}

static int run(int argc, char **argv)
{
    const struct command *c = &command_tags;
    struct request q = {.top = WORDS_TOP_DEFAULT};
    struct arguments a;
    struct tags tags;
    struct error e = {""};
    int code = command_parse(c, argc, argv, false, &a);
    if (code < 0)
        code = words_parse(c, "by", command_value(c, &a, "by"), groups, &q.group);
    if (code < 0)
        code = words_parse(c, "sort", command_value(c, &a, "sort"), orders, &q.sort);
    if (code < 0 && command_value(c, &a, "json"))
        q.top = 0;
    if (code < 0)
        code = words_parse_top(c, command_value(c, &a, "top"), &q.top);
    if (code < 0)
        code = parse_pid(&q, &a);
    if (code >= 0)
        return code;
    q.json = command_value(c, &a, "json") != NULL;
    q.allocinfo = command_value(c, &a, "allocinfo") != NULL;
    if (q.json && q.allocinfo)
        return command_misuse(c, "--json or --allocinfo, not both");
    if (q.allocinfo &&
        (command_value(c, &a, "by") || command_value(c, &a, "sort") || command_value(c, &a, "top")))
        return command_misuse(
            c, "--allocinfo has every place, in no order: --by, --sort and --top do nothing with it");
    q.paged = !command_value(c, &a, "no-pager");
    char *cache = naming_cache_dir();
    struct symbols *symbols = symbols_new(cache);
    if (tags_read(&tags, q.pid, symbols, &e)) {
        code = command_fail(EXIT_FAILED, "%s", e.text);
    } else {
        code = show(&q, &tags);
        tags_release(&tags);
    }
    symbols_free(symbols);
    free(cache);
    return code;
}
