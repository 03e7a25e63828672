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

/* The keys of the places that are meant; how many there are in all. */
static size_t find_places(const struct set_tags *s, const struct tags_reading *r,
                          const struct alloc_texts *texts, struct asked_keys *keys)
{
    for (size_t i = 0; i < r->rows.len; i++)
        if (!s->where || account_row_fits(&r->rows.at[i], s->where, texts))
            *vec_push(keys) = r->key.at[i];
    return r->rows.len;
}

static int change_places(const struct set_tags *s, const struct ledger_entry *entry,
                         const struct tags_reading *r, const struct alloc_texts *texts, struct error *e)
{
    struct asked_keys keys = {0};
    size_t all = find_places(s, r, texts, &keys), meant = keys.len;
    int bad = meant ? asked_of_places(entry, &keys, &s->change, e) : 0;
    if (!bad && meant)
        printf("%d (%s): %zu of %zu tags: %s\n", entry->pid, r->process.comm, meant, all,
               buf_str((struct buf *)&s->actions));
    else if (!bad)
        bad = error_set(e, ENOENT, "no tag of process %d (%s) fits --where; `allium tags %d` shows them",
                        entry->pid, r->process.comm, entry->pid);
    vec_release(&keys);
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

static int read_places(const struct set_tags *s, const struct ledger_entry *entry, struct tags_reading *r,
                       struct alloc_texts *texts, struct symbols *symbols, struct error *e)
{
    struct container_roots roots = {0};
    bool names = s->where && account_query_needs_names(s->where);
    int fd = ledger_entry_open(entry);
    *r = (struct tags_reading){.idle = true, .unmet = true, .process = {.pid = entry->pid, .alive = true}};
    int bad = fd < 0 ? error_set(e, -fd, "%s: %s", entry->path, strerror(-fd))
                     : tags_read_places(r, texts, fd, names ? symbols : NULL,
                                        container_root(&roots, entry->pid), e);
    if (fd >= 0)
        close(fd);
    container_roots_release(&roots);
    return bad;
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
        struct alloc_texts texts = {0};
        struct tags_reading r;
        if (!entry->alive || (pid && entry->pid != pid))
            continue;
        int bad = read_places(s, entry, &r, &texts, symbols, &e);
        if (!bad && process(arg, r.process.comm, entry->pid)) {
            ++*processes;
            bad = s->only || s->where ? change_places(s, entry, &r, &texts, &e)
                                      : change_all(s, entry, r.process.comm, &e);
        }
        if (bad)
            code = command_fail(EXIT_FAILED, "%s", e.text);
        tags_reading_release(&r);
        alloc_texts_release(&texts);
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
