/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/asked_note.h"

#include "collect/asked.h"

static const char *const names[LEDGER_ASKS] = {[LEDGER_ASK_OFF] = "off",
                                               [LEDGER_ASK_ON] = "on",
                                               [LEDGER_ASK_STACKS] = "stacks",
                                               [LEDGER_ASK_LATENCY] = "latency",
                                               [LEDGER_ASK_FAIL] = "fail"};

static void add_places(const struct asked *a, struct buf *note)
{
    uint32_t n[LEDGER_ASKS] = {0};
    vec_each (const struct ledger_action, action, &a->list)
        for (unsigned ask = 0; ask < LEDGER_ASKS; ask++)
            n[ask] += action->asked >> ask & 1;
    if (a->off)
        buf_addstr(note, "tags off");
    if (a->off && n[LEDGER_ASK_ON])
        buf_printf(note, " but for %u", n[LEDGER_ASK_ON]);
    if (!a->off && n[LEDGER_ASK_OFF])
        buf_printf(note, "%u tags off", n[LEDGER_ASK_OFF]);
    for (unsigned ask = LEDGER_ASK_STACKS; ask < LEDGER_ASKS; ask++)
        if (n[ask])
            buf_printf(note, "%s%s of %u tags", note->len ? "; " : "", names[ask], n[ask]);
}

static void add_query(const struct ledger_query *q, struct buf *note)
{
    const uint32_t either = 1u << LEDGER_ASK_OFF | 1u << LEDGER_ASK_ON;
    uint32_t clear = q->action.asked & either ? q->clear & ~either : q->clear;
    const char *before = "";
    for (unsigned ask = 0; ask < LEDGER_ASKS; ask++) {
        bool asked = q->action.asked >> ask & 1;
        if (!asked && !(clear >> ask & 1))
            continue;
        buf_printf(note, "%s%s%s", before, asked ? "" : "no ", names[ask]);
        before = ", ";
    }
    buf_printf(note, *q->text ? " where %s" : " everywhere", q->text);
}

void asked_note(const struct ledger_entry *entry, struct buf *note)
{
    struct asked a;
    struct error e;
    if (!entry->alive || asked_read(entry, &a, &e))
        return;
    add_places(&a, note);
    vec_each (const struct ledger_query, q, &a.queries) {
        buf_addstr(note, q > a.queries.at ? "; "
                         : note->len      ? "; of modules loaded later: "
                                          : "of modules loaded later: ");
        add_query(q, note);
    }
    asked_release(&a);
}
