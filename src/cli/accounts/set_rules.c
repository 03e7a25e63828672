/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/accounts/set_rules.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/wrapper_lists.h"
#include "collect/accounts/site_accounts.h"
#include "collect/accounts/tag_accounts.h"
#include "collect/ledger/ledger_scan.h"
#include "collect/ledger/profile_names.h"
#include "collect/process/container.h"

#define BIT(action) (1u << LEDGER_ACTION_##action)
#define CHANCE_UNIT 1000000.0

static void request_change(struct set_rules *s, uint32_t clear, uint32_t set)
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

static int parse_fail(struct set_rules *s, const char *how)
{
    struct rules_change *c = &s->change;
    c->n = 1;
    c->fail = LEDGER_FAIL_NTH;
    bool good = true;
    if (!strcmp(how, "off")) {
        request_change(s, BIT(FAIL), 0);
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
                     "invalid fail=%s: use once, nth:N, every:N, p:CHANCE (0.000001 to 1) or off; `allium "
                     "set --help` has examples",
                     how);
        return -1;
    }
    request_change(s, BIT(FAIL), BIT(FAIL));
    return 1;
}

int set_rules_parse(struct set_rules *s, const char *action)
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
            request_change(s, known[i].clear, known[i].set);
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

/* What names are made with. */
struct names {
    struct symbols *symbols;
    struct wrappers wrappers;
};

/* The tags or call sites of the process, and the query that was stored last. */
struct reading {
    const struct ledger_entry *entry;
    bool of_sites;
    struct tags_reading tags;
    struct sites_reading sites; /* or these */
    struct alloc_texts texts;
    struct query *query;
};

static const struct account_rows *rows_of(const struct reading *of)
{
    return of->of_sites ? &of->sites.rows : &of->tags.rows;
}

static const char *comm_of(const struct reading *of)
{
    return of->of_sites ? of->sites.process.comm : of->tags.process.comm;
}

static bool fits(void *arg, size_t place, const char *text)
{
    struct reading *of = arg;
    if (!of->query || strcmp(query_text(of->query), text)) {
        query_free(of->query);
        if (account_query_parse(&of->query, text, NULL))
            return false; /* of another version of allium */
    }
    return account_row_fits(&rows_of(of)->at[place], of->query, &of->texts);
}

/* The place a rule is for; `apart`: the process cannot find it by itself, or knows less of it than the query needs. */
static struct rule_target place_of(const struct reading *of, size_t i)
{
    const struct tags_reading *r = &of->tags;
    if (of->of_sites)
        return (struct rule_target){.key = of->sites.key.at[i], .apart = true};
    uint32_t module = r->module.at[i];
    return (struct rule_target){.key = r->key.at[i],
                                .module = module == LEDGER_NONE ? 0 : r->modules.at[module].key,
                                .apart = !r->filed.at[i]};
}

static size_t find_places(const struct set_rules *s, const struct reading *of, struct rules_places *places)
{
    const struct account_rows *rows = rows_of(of);
    size_t meant = 0;
    for (size_t i = 0; i < rows->len; i++) {
        struct rule_target place = place_of(of, i);
        place.meant = place.key && (!s->where || account_row_fits(&rows->at[i], s->where, &of->texts));
        *vec_push(&places->at) = place;
        meant += place.meant;
    }
    vec_each (const struct account_module, m, &of->tags.modules)
        if (m->whole)
            *vec_push(&places->whole) = m->key;
    return meant;
}

/* The query for places that nobody knows yet. False: their process will not know either whether it fits. */
static bool compile(const struct set_rules *s, struct reading *of, struct buf *clause, struct rules_query *q)
{
    struct account_row process = {.key = {.pid = (uint32_t)of->entry->pid}};
    struct query *all = NULL;
    if (!s->where && account_query_parse(&all, "", NULL))
        return false;
    process.key.comm = alloc_texts_put(&of->texts, comm_of(of), strlen(comm_of(of)));
    bool known = account_query_compile(s->where ? s->where : all, &process, &of->texts, clause);
    query_free(all);
    *q = (struct rules_query){s->where ? query_text(s->where) : "", clause->data, clause->len};
    return known && clause->len <= LEDGER_QUERY_CLAUSE && strlen(q->text) < LEDGER_QUERY_TEXT;
}

static void say(const struct set_rules *s, const struct reading *of, size_t meant, const char *later)
{
    const char *noun = of->of_sites ? "site" : "tag";
    printf("%d (%s): ", of->entry->pid, comm_of(of));
    if (meant)
        printf("%zu of %zu %ss", meant, rows_of(of)->len, noun);
    else
        printf("no %s of %zu matches now", noun, rows_of(of)->len);
    printf(": %s%s\n", buf_str(&s->actions), later);
}

/* Whether the query was stored for modules that are loaded later, and for call sites that are first called later. */
static const char *stored_note(const struct reading *of, enum rules_stored stored, bool known)
{
    static const char *const tags[] = {
        [RULES_NOT_STORED] = "",
        [RULES_STORED] = "; stored for modules loaded later",
        [RULES_TAKEN_BACK] = "; no longer stored for modules loaded later",
        [RULES_FULL] = "; not for modules loaded later: no room for more queries (`allium ps` shows them)"};
    static const char *const sites[] = {
        [RULES_NOT_STORED] = "",
        [RULES_STORED] = "; stored for sites first called later",
        [RULES_TAKEN_BACK] = "; no longer stored for sites first called later",
        [RULES_FULL] =
            "; not for sites first called later: no room for more queries (`allium ps` shows them)"};
    if (!known)
        return of->of_sites ? "; not for sites first called later, of which only module and func are known"
                            : "; not for modules loaded later, of which only class, name, module, func and "
                              "file are known";
    return of->of_sites ? sites[stored] : tags[stored];
}

static int change_places(const struct set_rules *s, struct reading *of, struct error *e)
{
    struct rules_places places = {.fits = fits, .arg = of};
    struct buf clause = BUF_INIT;
    struct rules_query query;
    enum rules_stored stored = RULES_NOT_STORED;
    size_t meant = find_places(s, of, &places);
    bool known = compile(s, of, &clause, &query);
    int bad = meant || known
                  ? rules_of_places(of->entry, &places, &s->change, known ? &query : NULL, &stored, e)
                  : 0;
    if (!bad && (meant || stored == RULES_STORED || stored == RULES_TAKEN_BACK))
        say(s, of, meant, stored_note(of, stored, known));
    else if (!bad)
        bad = error_set(e, ENOENT, "no %s of process %d (%s) fits --where; `allium %ss %d` shows them%s",
                        of->of_sites ? "site" : "tag", of->entry->pid, comm_of(of),
                        of->of_sites ? "site" : "tag", of->entry->pid, stored_note(of, stored, true));
    vec_release(&places.at);
    vec_release(&places.whole);
    buf_release(&clause);
    return bad;
}

/* On or off, of all there are and will be. */
static int change_all(const struct set_rules *s, const struct ledger_entry *entry, const char *comm,
                      struct error *e)
{
    bool off = s->change.set & BIT(OFF);
    int bad = rules_of_all(entry, off, e);
    if (!bad)
        printf("%d (%s): all tags %s\n", entry->pid, comm, off ? "off" : "on");
    return bad;
}

/* Names take time: only if this command asks for any, or one before it may. */
static bool needs_names(const struct set_rules *s, const struct ledger_entry *entry)
{
    struct rules a = {0};
    struct error e;
    bool needs = s->where && account_query_needs_names(s->where);
    if (!needs && !rules_read(entry, &a, &e))
        needs = a.queries.len;
    rules_release(&a);
    return needs;
}

static int read_places(const struct set_rules *s, struct reading *of, const struct names *names,
                       struct error *e)
{
    const struct ledger_entry *entry = of->entry;
    struct account_process process = {.pid = entry->pid, .alive = true};
    struct container_roots roots = {0};
    int fd = ledger_entry_open(entry);
    const char *root = container_root(&roots, entry->pid);
    of->tags = (struct tags_reading){.idle = true, .unmet = true, .process = process};
    of->sites = (struct sites_reading){.idle = true, .process = process};
    int bad = fd < 0 ? error_set(e, -fd, "%s: %s", entry->path, strerror(-fd))
              : of->of_sites
                  ? sites_read_places(&of->sites, &of->texts, fd, names->symbols, &names->wrappers, root, e)
                  : tags_read_places(&of->tags, &of->texts, fd, needs_names(s, entry) ? names->symbols : NULL,
                                     root, e);
    vec_each (struct account_row, row, &of->tags.rows)
        row->key.pid = (uint32_t)entry->pid;
    if (fd >= 0)
        close(fd);
    container_roots_release(&roots);
    return bad;
}

static int apply(const struct set_rules *s, struct reading *of, const struct names *names,
                 bool (*process)(void *arg, const char *comm, int pid), void *arg, unsigned *processes,
                 struct error *e)
{
    int bad = read_places(s, of, names, e);
    if (bad || !process(arg, comm_of(of), of->entry->pid))
        return bad;
    ++*processes;
    return s->only || s->where ? change_places(s, of, e) : change_all(s, of->entry, comm_of(of), e);
}

/* Does the process keep accounts of call sites, of which stacks can be asked? */
static bool has_sites(const struct ledger_entry *entry)
{
    struct ledger_header h;
    struct error e;
    int fd = ledger_entry_open(entry);
    bool has = fd >= 0 && !ledger_copy_header(fd, &h, &e) && h.regions[LEDGER_SITES].limit_bytes;
    if (fd >= 0)
        close(fd);
    return has;
}

/* All there is to do: to a process's tags, or to its call sites. */
static int apply_to(const struct set_rules *s, struct reading *of, const struct names *names,
                    bool (*process)(void *arg, const char *comm, int pid), void *arg, unsigned *processes,
                    struct error *e)
{
    int bad = apply(s, of, names, process, arg, processes, e);
    tags_reading_release(&of->tags);
    sites_reading_release(&of->sites);
    alloc_texts_release(&of->texts);
    query_free(of->query);
    return bad;
}

int set_rules_apply(const struct set_rules *s, int pid, bool (*process)(void *arg, const char *comm, int pid),
                    void *arg, unsigned *processes)
{
    const bool stacks_alone = !((s->change.clear | s->change.set) & ~BIT(STACKS));
    struct ledger_scan scan;
    struct VEC(uint64_t) done = {0}; /* of these ledgers' sites, so that their tags may lack what is meant */
    int code = EXIT_DONE;
    char *cache = profile_names_cache_dir();
    struct names names = {.symbols = symbols_new(cache)};
    wrapper_lists_read(&names.wrappers);
    pid ? ledger_scan_process(&scan, pid) : ledger_scan_all(&scan);
    for (int sites = stacks_alone; sites >= 0; sites--)
        vec_each (const struct ledger_entry, entry, sites ? &scan.list : &scan.tags) {
            struct error e = {""};
            struct reading of = {.entry = entry, .of_sites = sites};
            bool fine = false;
            if (!entry->alive || (pid && entry->pid != pid) || (sites && !has_sites(entry)))
                continue;
            int bad = apply_to(s, &of, &names, process, arg, processes, &e);
            vec_each (const uint64_t, image, &done)
                fine |= *image == entry->image_id && bad == -ENOENT;
            if (!bad && sites)
                *vec_push(&done) = entry->image_id;
            if (bad && !fine)
                code = command_fail(EXIT_FAILED, "%s", e.text);
        }
    ledger_scan_release(&scan);
    vec_release(&done);
    wrappers_release(&names.wrappers);
    symbols_free(names.symbols);
    free(cache);
    return code;
}

void set_rules_release(struct set_rules *s)
{
    query_free(s->where);
    buf_release(&s->actions);
}
