/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/ledger/rules_write.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sigsafe/clock_ns.h"
#include "collect/ledger/control_write.h"

/* The control page, locked, and its contents. */
struct page {
    int fd;
    struct ledger_control control;
    struct rules now;
    struct VEC(uint64_t) resolved; /* keys of resolved modules, sorted */
};

/* Removes the actions that have expired. */
static void let_go(struct ledger_action *a, uint64_t now)
{
    for (unsigned ask = 0; ask < LEDGER_ACTION_KINDS; ask++)
        if (a->until_ns[ask] && a->until_ns[ask] <= now)
            a->actions &= ~(1u << ask);
    a->actions &= (1u << LEDGER_ACTION_KINDS) - 1;
}

static bool read_part(const struct page *p, void *to, size_t bytes, uint64_t at)
{
    return pread(p->fd, to, bytes, (off_t)at) == (ssize_t)bytes;
}

static int read_list(struct page *p)
{
    uint32_t count = ledger_listed_actions(p->control.listed);
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    if (count > LEDGER_ACTIONS_MOST)
        count = 0; /* invalid: the process ignores such a list, too */
    for (uint32_t i = 0; i < count; i++) {
        struct ledger_action a;
        if (!read_part(p, &a, sizeof(a), ledger_list_offset(p->control.listed) + i * sizeof(a)))
            return -EIO;
        let_go(&a, now);
        if (a.actions)
            *vec_push(&p->now.list) = a;
    }
    return 0;
}

static int compare_numbers(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static int read_deferred(struct page *p)
{
    uint32_t count = ledger_listed_queries(p->control.listed);
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    if (!count || count > LEDGER_QUERIES_MOST)
        return 0; /* as in read_list() */
    struct ledger_deferred *k = mem_alloc(sizeof(*k));
    bool done = read_part(p, k, LEDGER_DEFERRED_BYTES(count), ledger_deferred_offset(p->control.listed));
    for (uint64_t i = 0; done && i < k->n_resolved && i < LEDGER_RESOLVED_MOST; i++)
        *vec_push(&p->resolved) = k->resolved[i];
    for (uint32_t i = 0; done && i < count; i++) {
        struct ledger_query *q = &k->queries[i];
        q->text[sizeof(q->text) - 1] = '\0';
        let_go(&q->action, now);
        *vec_push(&p->now.queries) = *q;
    }
    free(k);
    if (p->resolved.len)
        qsort(p->resolved.at, p->resolved.len, sizeof(*p->resolved.at), compare_numbers);
    return done ? 0 : -EIO;
}

static int open_page(struct page *p, const struct ledger_entry *tags, struct error *e)
{
    *p = (struct page){.fd = control_open(tags, e)};
    if (p->fd < 0)
        return p->fd;
    int bad = flock(p->fd, LOCK_EX) || !read_part(p, &p->control, sizeof(p->control), 0) ? -EIO : 0;
    bad = bad ? bad : read_list(p);
    bad = bad ? bad : read_deferred(p);
    p->now.off = p->control.word & LEDGER_CONTROL_TAGS_OFF;
    return bad ? control_failed(tags, -bad, e) : 0;
}

static void close_page(struct page *p)
{
    if (p->fd >= 0)
        close(p->fd);
    rules_release(&p->now);
    vec_release(&p->resolved);
}

/* Allocates the pages before it writes them: the process reads them as memory, and would get SIGBUS without them. */
static int write_part(const struct page *p, const void *from, size_t bytes, uint64_t at)
{
    errno = 0;
    if (!bytes || (!fallocate(p->fd, 0, (off_t)at, (off_t)bytes) &&
                   pwrite(p->fd, from, bytes, (off_t)at) == (ssize_t)bytes))
        return 0;
    return errno ? -errno : -EIO;
}

static int write_deferred(const struct page *p, uint32_t side)
{
    struct ledger_deferred *k = mem_alloc(sizeof(*k));
    size_t n = p->now.queries.len;
    for (size_t i = 0; i < p->resolved.len && i < LEDGER_RESOLVED_MOST; i++)
        k->resolved[k->n_resolved++] = p->resolved.at[i];
    if (n)
        memcpy(k->queries, p->now.queries.at, n * sizeof(*k->queries));
    int bad = write_part(p, k, LEDGER_DEFERRED_BYTES(n), ledger_deferred_offset(side));
    free(k);
    return bad;
}

/* Returns the page's number after the next change: the next even number. Every tag compares its state with it. */
static int32_t next_state(const struct page *p)
{
    return (int32_t)((((uint32_t)p->control.state | 1) + 1) & INT32_MAX);
}

/* Writes the lists that are not in force, then puts them in force, and last writes the page's number, with which every
 * tag compares its state. */
static int write_page(struct page *p)
{
    struct ledger_control *c = &p->control;
    uint32_t side = ~c->listed & LEDGER_ACTIONS_SECOND;
    size_t before = offsetof(struct ledger_control, state), after = before + sizeof(c->state);
    int32_t state = next_state(p);
    int bad =
        write_part(p, p->now.list.at, p->now.list.len * sizeof(*p->now.list.at), ledger_list_offset(side));
    bad = bad ? bad : write_deferred(p, side);
    if (bad)
        return bad;
    c->magic = LEDGER_CONTROL_MAGIC;
    c->listed = (uint32_t)p->now.list.len | (uint32_t)p->now.queries.len << LEDGER_QUERIES_SHIFT | side;
    if (pwrite(p->fd, c, before, 0) != (ssize_t)before ||
        pwrite(p->fd, (char *)c + after, sizeof(*c) - after, (off_t)after) != (ssize_t)(sizeof(*c) - after) ||
        pwrite(p->fd, &state, sizeof(state), (off_t)before) != sizeof(state))
        return -EIO;
    return 0;
}

static int compare_keys(const void *a, const void *b)
{
    const struct ledger_action *x = a, *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

/* Applies a change to the rules of the places with these keys, once for each key, even if several places have it. Rules
 * without actions are removed. */
static void change_list(struct page *p, uint64_t *keys, size_t n, const struct ledger_query *change)
{
    struct rules_list *list = &p->now.list;
    size_t known = list->len, stored = 0;
    if (n)
        qsort(keys, n, sizeof(*keys), compare_numbers);
    for (size_t i = 0; i < n; i++) {
        const struct ledger_action sought = {.key = keys[i]};
        struct ledger_action *a =
            known ? bsearch(&sought, list->at, known, sizeof(*list->at), compare_keys) : NULL;
        if (i && keys[i] == keys[i - 1])
            continue;
        if (!a)
            *(a = vec_push(list)) = sought;
        ledger_action_change(a, change);
    }
    vec_each (const struct ledger_action, a, list)
        if (a->actions)
            list->at[stored++] = *a;
    list->len = stored;
    if (stored)
        qsort(list->at, stored, sizeof(*list->at), compare_keys);
}

static bool is_resolved(const struct page *p, uint64_t module)
{
    return p->resolved.len &&
           bsearch(&module, p->resolved.at, p->resolved.len, sizeof(module), compare_numbers);
}

/* Applies the stored queries to the known places of modules that are not resolved yet, because they were loaded later.
 * Then modules of which all places are known count as resolved. */
static void resolve_places(struct page *p, const struct rules_places *places)
{
    vec_each (const struct ledger_query, q, &p->now.queries) {
        struct VEC(uint64_t) keys = {0};
        for (size_t i = 0; i < places->at.len; i++)
            if (!is_resolved(p, places->at.at[i].module) && places->fits(places->arg, i, q->text))
                *vec_push(&keys) = places->at.at[i].key;
        change_list(p, keys.at, keys.len, q);
        vec_release(&keys);
    }
    size_t known = p->resolved.len;
    vec_each (const uint64_t, module, &places->whole)
        if (!known || !bsearch(module, p->resolved.at, known, sizeof(*module), compare_numbers))
            *vec_push(&p->resolved) = *module;
    if (p->resolved.len)
        qsort(p->resolved.at, p->resolved.len, sizeof(*p->resolved.at), compare_numbers);
}

/*
 * Adds a rule without actions for each place for which the process cannot evaluate queries, unless the place has a rule
 * already. Because it has a rule, the process does not apply its stored queries to it.
 */
static void note_apart(struct page *p, const struct rules_places *places)
{
    struct rules_list *list = &p->now.list;
    size_t known = list->len;
    vec_each (const struct rule_target, place, &places->at) {
        const struct ledger_action idle = {.key = place->key};
        bool noted = known && bsearch(&idle, list->at, known, sizeof(idle), compare_keys);
        if (place->apart && !noted && list->len < LEDGER_ACTIONS_MOST)
            *vec_push(list) = idle;
    }
    if (list->len)
        qsort(list->at, list->len, sizeof(*list->at), compare_keys);
}

/* Removes from each query the actions to clear that no query before it sets, and then the queries that do nothing any
 * more. `off`: places without a rule are off. */
static void drop_idle(struct rules_queries *queries, bool off)
{
    uint32_t actions = off ? 1u << LEDGER_ACTION_OFF : 0;
    size_t stored = 0;
    vec_each (struct ledger_query, q, queries) {
        q->clear &= actions;
        if (!(actions >> LEDGER_ACTION_OFF & 1))
            q->action.actions &= ~(1u << LEDGER_ACTION_ON); /* they are on already */
        actions |= q->action.actions;
        if (q->clear || q->action.actions)
            queries->at[stored++] = *q;
    }
    queries->len = stored;
}

/* Stores a query. Its actions replace those of an earlier query with the same text; a query for all places ("")
 * replaces those of all earlier queries. If there is no room, the stored queries stay as they are. */
static enum rules_stored store_query(struct page *p, const struct ledger_query *change,
                                     const struct rules_query *query)
{
    struct rules_queries next = {0};
    struct ledger_query q = *change;
    uint32_t taken_back = 0;
    vec_each (struct ledger_query, earlier, &p->now.queries) {
        struct ledger_query *kept = vec_push(&next);
        *kept = *earlier;
        if (!*query->text || !strcmp(earlier->text, query->text)) {
            taken_back |= earlier->action.actions & (q.clear | q.action.actions);
            kept->action.actions &= ~(q.clear | q.action.actions);
            kept->clear &= ~(q.clear | q.action.actions);
        }
    }
    memcpy(q.text, query->text, strlen(query->text) + 1);
    memcpy(q.clause, query->clause, query->clause_bytes);
    q.clause_bytes = (uint32_t)query->clause_bytes;
    *vec_push(&next) = q;
    drop_idle(&next, p->now.off);
    if (next.len > LEDGER_QUERIES_MOST) {
        vec_release(&next);
        return RULES_FULL;
    }
    vec_release(&p->now.queries);
    p->now.queries = next;
    if (next.len && !strcmp(next.at[next.len - 1].text, q.text))
        return RULES_STORED;
    return taken_back ? RULES_TAKEN_BACK : RULES_NOT_STORED;
}

/* Returns the change as a query without a text. It gets a serial of its own, so that calls are counted from 0, even if
 * an earlier rule on the same place counted calls. */
static struct ledger_query change_of(const struct page *p, const struct rules_change *c)
{
    struct ledger_query q = {.clear = c->clear,
                             .action = {.actions = c->set,
                                        .fail = (uint16_t)c->fail,
                                        .n = c->n,
                                        .serial = (uint16_t)(next_state(p) / 2)}};
    for (unsigned ask = 0; ask < LEDGER_ACTION_KINDS; ask++)
        q.action.until_ns[ask] = c->until_ns;
    return q;
}

int rules_of_places(const struct ledger_entry *tags, const struct rules_places *places,
                    const struct rules_change *c, const struct rules_query *query, enum rules_stored *stored,
                    struct error *e)
{
    struct VEC(uint64_t) keys = {0};
    struct page p;
    *stored = RULES_NOT_STORED;
    int bad = open_page(&p, tags, e);
    if (!bad) {
        struct ledger_query change = change_of(&p, c);
        resolve_places(&p, places);
        vec_each (const struct rule_target, place, &places->at)
            if (place->meant)
                *vec_push(&keys) = place->key;
        change_list(&p, keys.at, keys.len, &change);
        if (query)
            *stored = store_query(&p, &change, query);
        if (p.now.list.len > LEDGER_ACTIONS_MOST)
            bad = error_set(e, E2BIG, "%zu places would have rules; at most %u can: use a narrower --where",
                            p.now.list.len, LEDGER_ACTIONS_MOST);
        else if (p.now.queries.len)
            note_apart(&p, places);
        if (!bad && (bad = write_page(&p)))
            control_failed(tags, -bad, e);
    }
    vec_release(&keys);
    close_page(&p);
    return bad;
}

int rules_of_all(const struct ledger_entry *tags, bool off, struct error *e)
{
    const struct ledger_query change = {.clear = 1u << LEDGER_ACTION_OFF | 1u << LEDGER_ACTION_ON};
    struct page p;
    int bad = open_page(&p, tags, e);
    if (!bad) {
        struct VEC(uint64_t) keys = {0};
        vec_each (const struct ledger_action, a, &p.now.list)
            *vec_push(&keys) = a->key;
        change_list(&p, keys.at, keys.len, &change);
        vec_release(&keys);
        vec_each (struct ledger_query, q, &p.now.queries)
            q->action.actions &= ~change.clear;
        drop_idle(&p.now.queries, off);
        p.control.word = (p.control.word & ~LEDGER_CONTROL_TAGS_OFF) | (off ? LEDGER_CONTROL_TAGS_OFF : 0);
        bad = write_page(&p);
        if (bad)
            control_failed(tags, -bad, e);
    }
    close_page(&p);
    return bad;
}

int rules_read(const struct ledger_entry *tags, struct rules *a, struct error *e)
{
    struct page p;
    int bad = open_page(&p, tags, e);
    *a = (struct rules){0};
    if (!bad) {
        drop_idle(&p.now.queries, p.now.off);
        *a = p.now;
        p.now = (struct rules){0};
    }
    close_page(&p);
    return bad;
}

void rules_release(struct rules *a)
{
    vec_release(&a->list);
    vec_release(&a->queries);
}
