/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/set_tags.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "collect/container.h"
#include "collect/ledger_scan.h"
#include "collect/naming.h"
#include "collect/tags.h"

#define BIT(ask)    (1u << LEDGER_ASK_##ask)
#define CHANCE_UNIT 1000000.0

static void ask(struct set_tags *s, uint32_t clear, uint32_t set)
{
    s->change.clear |= clear;
    s->change.set = (s->change.set & ~clear) | set;
}

static bool parse_count(const char *text, uint32_t *n)
{
    char *end;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    *n = (uint32_t)value;
    return *text >= '0' && *text <= '9' && !*end && !errno && value && value <= UINT32_MAX;
}

static bool parse_chance(const char *text, uint32_t *n)
{
    char *end;
    double value = strtod(text, &end);
    *n = (uint32_t)lround(value * CHANCE_UNIT);
    return ((*text >= '0' && *text <= '9') || *text == '.') && !*end && value <= 1 && *n > 0;
}

static int parse_fail(struct set_tags *s, const char *how)
{
    struct asked_change *c = &s->change;
    c->n = 1;
    c->fail = LEDGER_FAIL_NTH;
    bool good = true;
    if (!strcmp(how, "off")) {
        ask(s, BIT(FAIL), 0);
        return 1;
    }
    if (!strncmp(how, "nth:", 4)) {
        good = parse_count(how + 4, &c->n);
    } else if (!strncmp(how, "every:", 6)) {
        c->fail = LEDGER_FAIL_EVERY;
        good = parse_count(how + 6, &c->n);
    } else if (!strncmp(how, "p:", 2)) {
        c->fail = LEDGER_FAIL_CHANCE;
        good = parse_chance(how + 2, &c->n);
    } else {
        good = !strcmp(how, "once");
    }
    if (!good) {
        command_fail(0,
                     "fail=%s: it can be once, nth:N, every:N, p:CHANCE (of 0.000001 to 1) or off; "
                     "`allium set --help` has examples",
                     how);
        return -1;
    }
    ask(s, BIT(FAIL), BIT(FAIL));
    return 1;
}

int set_tags_parse(struct set_tags *s, const char *action)
{
    static const struct {
        const char *text;
        uint32_t clear, set;
        bool only;
    } known[] = {
        {"on", BIT(ON) | BIT(OFF), BIT(ON), false},    {"off", BIT(ON) | BIT(OFF), BIT(OFF), false},
        {"stacks", BIT(STACKS), BIT(STACKS), true},    {"stacks=off", BIT(STACKS), 0, true},
        {"latency", BIT(LATENCY), BIT(LATENCY), true}, {"latency=off", BIT(LATENCY), 0, true},
    };
    int found = 0;
    for (size_t i = 0; i < sizeof(known) / sizeof(*known) && !found; i++)
        if (!strcmp(action, known[i].text)) {
            ask(s, known[i].clear, known[i].set);
            s->only |= known[i].only;
            found = 1;
        }
    if (!found && !strncmp(action, "fail=", 5)) {
        found = parse_fail(s, action + 5);
        s->only = true;
    }
    if (found > 0)
        buf_printf(&s->actions, "%s%s", s->actions.len ? ", " : "", action);
    return found;
}

/* The process's places as they were read; and the query last asked for. */
struct reading {
    const struct ledger_entry *entry;
    struct tags_reading r;
    struct alloc_texts texts;
    struct query *query;
};

static bool fits(void *arg, size_t place, const char *text)
{
    struct reading *of = arg;
    if (!of->query || strcmp(query_text(of->query), text)) {
        query_free(of->query);
        if (account_query_parse(&of->query, text, NULL))
            return false; /* of another version of allium */
    }
    return account_row_fits(&of->r.rows.at[place], of->query, &of->texts);
}

static size_t find_places(const struct set_tags *s, const struct reading *of, struct asked_places *places)
{
    const struct tags_reading *r = &of->r;
    size_t meant = 0;
    for (size_t i = 0; i < r->rows.len; i++) {
        uint32_t module = r->module.at[i];
        struct asked_place place = {.key = r->key.at[i],
                                    .module = module == LEDGER_NONE ? 0 : r->modules.at[module].key,
                                    .apart = !r->filed.at[i],
                                    .meant =
                                        !s->where || account_row_fits(&r->rows.at[i], s->where, &of->texts)};
        *vec_push(&places->at) = place;
        meant += place.meant;
    }
    vec_each (const struct tags_module, m, &r->modules)
        if (m->whole)
            *vec_push(&places->whole) = m->key;
    return meant;
}

/* The query for places that nobody knows yet. False: their process will not know either whether it fits. */
static bool compile(const struct set_tags *s, struct reading *of, struct buf *clause, struct asked_query *q)
{
    struct account_row process = {.key = {.pid = (uint32_t)of->entry->pid}};
    struct query *all = NULL;
    if (!s->where && account_query_parse(&all, "", NULL))
        return false;
    process.key.comm = alloc_texts_put(&of->texts, of->r.process.comm, strlen(of->r.process.comm));
    bool known = account_query_compile(s->where ? s->where : all, &process, &of->texts, clause);
    query_free(all);
    *q = (struct asked_query){s->where ? query_text(s->where) : "", clause->data, clause->len};
    return known && clause->len <= LEDGER_QUERY_CLAUSE && strlen(q->text) < LEDGER_QUERY_TEXT;
}

static void say(const struct set_tags *s, const struct reading *of, size_t meant, const char *later)
{
    printf("%d (%s): ", of->entry->pid, of->r.process.comm);
    if (meant)
        printf("%zu of %zu tags", meant, of->r.rows.len);
    else
        printf("no tag of %zu fits now", of->r.rows.len);
    printf(": %s%s\n", buf_str(&s->actions), later);
}

static int change_places(const struct set_tags *s, struct reading *of, struct error *e)
{
    static const char *const later[] = {
        [ASKED_NOT_KEPT] = "",
        [ASKED_KEPT] = "; kept for modules loaded later",
        [ASKED_TAKEN_BACK] = "; no longer kept for modules loaded later",
        [ASKED_FULL] =
            "; not for modules loaded later: no more queries can be kept (`allium ps` shows them)"};
    struct asked_places places = {.fits = fits, .arg = of};
    struct buf clause = BUF_INIT;
    struct asked_query query;
    enum asked_kept kept = ASKED_NOT_KEPT;
    size_t meant = find_places(s, of, &places);
    bool known = compile(s, of, &clause, &query);
    int bad =
        meant || known ? asked_of_places(of->entry, &places, &s->change, known ? &query : NULL, &kept, e) : 0;
    if (!bad && (meant || kept == ASKED_KEPT || kept == ASKED_TAKEN_BACK))
        say(s, of, meant,
            known ? later[kept]
                  : "; not for modules loaded later, which tell class, name, module, func and file alone");
    else if (!bad)
        bad = error_set(e, ENOENT, "no tag of process %d (%s) fits --where; `allium tags %d` shows them%s",
                        of->entry->pid, of->r.process.comm, of->entry->pid, later[kept]);
    vec_release(&places.at);
    vec_release(&places.whole);
    buf_release(&clause);
    return bad;
}

/* On or off, of all there are and will be. */
static int change_all(const struct set_tags *s, const struct ledger_entry *entry, const char *comm,
                      struct error *e)
{
    bool off = s->change.set & BIT(OFF);
    int bad = asked_of_all(entry, off, e);
    if (!bad)
        printf("%d (%s): all tags %s\n", entry->pid, comm, off ? "off" : "on");
    return bad;
}

/* Names take time: only if this command asks for any, or one before it may. */
static bool needs_names(const struct set_tags *s, const struct ledger_entry *entry)
{
    struct asked a = {0};
    struct error e;
    bool needs = s->where && account_query_needs_names(s->where);
    if (!needs && !asked_read(entry, &a, &e))
        needs = a.queries.len;
    asked_release(&a);
    return needs;
}

static int read_places(const struct set_tags *s, struct reading *of, struct symbols *symbols, struct error *e)
{
    const struct ledger_entry *entry = of->entry;
    struct container_roots roots = {0};
    int fd = ledger_entry_open(entry);
    of->r = (struct tags_reading){.idle = true, .unmet = true, .process = {.pid = entry->pid, .alive = true}};
    int bad = fd < 0 ? error_set(e, -fd, "%s: %s", entry->path, strerror(-fd))
                     : tags_read_places(&of->r, &of->texts, fd, needs_names(s, entry) ? symbols : NULL,
                                        container_root(&roots, entry->pid), e);
    vec_each (struct account_row, row, &of->r.rows)
        row->key.pid = (uint32_t)entry->pid;
    if (fd >= 0)
        close(fd);
    container_roots_release(&roots);
    return bad;
}

static int apply(const struct set_tags *s, struct reading *of, struct symbols *symbols,
                 bool (*process)(void *arg, const char *comm, int pid), void *arg, unsigned *processes,
                 struct error *e)
{
    int bad = read_places(s, of, symbols, e);
    if (bad || !process(arg, of->r.process.comm, of->entry->pid))
        return bad;
    ++*processes;
    return s->only || s->where ? change_places(s, of, e) : change_all(s, of->entry, of->r.process.comm, e);
}

int set_tags_apply(const struct set_tags *s, int pid, bool (*process)(void *arg, const char *comm, int pid),
                   void *arg, unsigned *processes)
{
    struct ledger_scan scan;
    struct error e = {""};
    int code = EXIT_DONE;
    char *cache = naming_cache_dir();
    struct symbols *symbols = symbols_new(cache);
    ledger_scan_all(&scan);
    vec_each (const struct ledger_entry, entry, &scan.tags) {
        struct reading of = {.entry = entry};
        if (!entry->alive || (pid && entry->pid != pid))
            continue;
        if (apply(s, &of, symbols, process, arg, processes, &e))
            code = command_fail(EXIT_FAILED, "%s", e.text);
        tags_reading_release(&of.r);
        alloc_texts_release(&of.texts);
        query_free(of.query);
    }
    ledger_scan_release(&scan);
    symbols_free(symbols);
    free(cache);
    return code;
}

void set_tags_release(struct set_tags *s)
{
    query_free(s->where);
    buf_release(&s->actions);
}
