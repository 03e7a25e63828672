/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/overview/mapping.h"

#include <stdlib.h>

enum column { ADDRESS, SIZE, RSS, PSS, ANON, SWAP, DIRTY, HUGE, LOCKED, ACCESS, NAME };

static const struct table_column columns[] = {
    [ADDRESS] = {"address", TABLE_PLAIN, TABLE_ADDRESS},
    [SIZE] = {"size", TABLE_BYTES, TABLE_WHOLE},
    [RSS] = {"rss", TABLE_BYTES, TABLE_WHOLE},
    [PSS] = {"pss", TABLE_BYTES, TABLE_WHOLE, .drop_rank = 2},
    [ANON] = {"anon", TABLE_BYTES, TABLE_WHOLE, .drop_rank = 1},
    [SWAP] = {"swap", TABLE_BYTES, TABLE_WHOLE},
    [DIRTY] = {"dirty", TABLE_BYTES, TABLE_WHOLE, .drop_rank = 3},
    [HUGE] = {"huge", TABLE_BYTES, TABLE_WHOLE, .hide_if_empty = true, .drop_rank = 4},
    [LOCKED] = {"locked", TABLE_BYTES, TABLE_WHOLE, .hide_if_empty = true, .drop_rank = 5},
    [ACCESS] = {"access", TABLE_PLAIN, TABLE_TEXT},
    [NAME] = {"name", TABLE_PLAIN, TABLE_TEXT},
};

void mappings_release(struct mappings *m)
{
    vec_each (struct mapping, p, m)
        free(p->name);
    vec_release(m);
}

static int compare(const void *left, const void *right)
{
    const struct mapping *a = left, *b = right;
    uint64_t one = a->rss_bytes + a->swap_bytes, other = b->rss_bytes + b->swap_bytes;
    if (one != other)
        return one < other ? 1 : -1;
    return (a->start > b->start) - (a->start < b->start);
}

void mappings_sort(struct mappings *m)
{
    if (m->len)
        qsort(m->at, m->len, sizeof(*m->at), compare);
}

static void add_row(struct table *t, const struct mapping *p)
{
    table_row(t);
    table_whole(t, ADDRESS, p->start);
    table_whole(t, SIZE, p->end - p->start);
    table_whole(t, RSS, p->rss_bytes);
    table_whole(t, PSS, p->pss_bytes);
    table_whole(t, ANON, p->anon_bytes);
    table_whole(t, SWAP, p->swap_bytes);
    table_whole(t, DIRTY, p->dirty_bytes);
    if (p->huge_bytes)
        table_whole(t, HUGE, p->huge_bytes);
    if (p->locked_bytes)
        table_whole(t, LOCKED, p->locked_bytes);
    table_text(t, ACCESS, p->access);
    table_text(t, NAME, *p->name ? p->name : "[anonymous]");
}

struct table *mappings_table(const struct mappings *m, uint32_t top, struct mapping *sum)
{
    struct table *t = table_new("sys-mappings", 1, columns, sizeof(columns) / sizeof(*columns));
    uint32_t shown = 0;
    *sum = (struct mapping){.start = 0};
    vec_each (const struct mapping, p, m) {
        sum->end += p->end - p->start;
        sum->rss_bytes += p->rss_bytes;
        sum->pss_bytes += p->pss_bytes;
        sum->anon_bytes += p->anon_bytes;
        sum->swap_bytes += p->swap_bytes;
        sum->dirty_bytes += p->dirty_bytes;
        sum->huge_bytes += p->huge_bytes;
        sum->locked_bytes += p->locked_bytes;
        if (!top || shown++ < top)
            add_row(t, p);
    }
    return t;
}
