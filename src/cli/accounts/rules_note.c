/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/accounts/rules_note.h"

#include <string.h>

#include "collect/ledger/rules_write.h"

/* On a screen. */
#define QUERIES_MOST    4u
#define TEXT_BYTES_MOST 40u

static const char *const names[LEDGER_ACTION_KINDS] = {[LEDGER_ACTION_OFF] = "off",
                                                       [LEDGER_ACTION_ON] = "on",
                                                       [LEDGER_ACTION_STACKS] = "stacks",
                                                       [LEDGER_ACTION_LATENCY] = "latency",
                                                       [LEDGER_ACTION_FAIL] = "fail"};

static void add_places(const struct rules *a, const char *noun, struct buf *note)
{
    uint32_t n[LEDGER_ACTION_KINDS] = {0};
    vec_each (const struct ledger_action, action, &a->list)
        for (unsigned ask = 0; ask < LEDGER_ACTION_KINDS; ask++)
            n[ask] += action->actions >> ask & 1;
    if (a->off)
        buf_addstr(note, "tags off");
    if (a->off && n[LEDGER_ACTION_ON])
        buf_printf(note, " but for %u", n[LEDGER_ACTION_ON]);
    if (!a->off && n[LEDGER_ACTION_OFF])
        buf_printf(note, "%u tags off", n[LEDGER_ACTION_OFF]);
    for (unsigned ask = LEDGER_ACTION_STACKS; ask < LEDGER_ACTION_KINDS; ask++)
        if (n[ask])
            buf_printf(note, "%s%s of %u %s", note->len ? "; " : "", names[ask], n[ask], noun);
}

static void add_query(const struct ledger_query *q, bool whole, struct buf *note)
{
    const uint32_t either = 1u << LEDGER_ACTION_OFF | 1u << LEDGER_ACTION_ON;
    uint32_t clear = q->action.actions & either ? q->clear & ~either : q->clear;
    const char *before = "";
    for (unsigned ask = 0; ask < LEDGER_ACTION_KINDS; ask++) {
        bool asked = q->action.actions >> ask & 1;
        if (!asked && !(clear >> ask & 1))
            continue;
        buf_printf(note, "%s%s%s", before, asked ? "" : "no ", names[ask]);
        before = ", ";
    }
    int most = TEXT_BYTES_MOST;
    bool cut = !whole && strlen(q->text) > TEXT_BYTES_MOST;
    while (cut && (q->text[most] & 0xc0) == 0x80) /* within a character */
        most--;
    if (*q->text)
        buf_printf(note, " where %.*s%s", cut ? most : -1, q->text, cut ? "..." : "");
    else
        buf_addstr(note, " everywhere");
}

void rules_note(const struct ledger_entry *entry, bool tags, bool sites, bool whole, struct buf *note)
{
    struct rules a;
    struct error e;
    if (!entry->alive || rules_read(entry, &a, &e))
        return;
    add_places(&a, !sites ? "tags" : tags ? "tags and sites" : "sites", note);
    size_t most = whole || a.queries.len <= QUERIES_MOST ? a.queries.len : QUERIES_MOST - 1;
    for (size_t i = 0; i < most; i++) {
        buf_printf(note, "%s%s", note->len ? "; " : "",
                   i       ? ""
                   : sites ? "sites first called later: "
                           : "modules loaded later: ");
        add_query(&a.queries.at[i], whole, note);
    }
    if (most < a.queries.len)
        buf_printf(note, "; and %zu more queries", a.queries.len - most);
    rules_release(&a);
}
