/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/table/event_buffer.h"

#define SORTED_EVERY 1024u /* least number of rows to sort, so that sorting costs little for each event */

static uint32_t most(const struct event_buffer *k)
{
    return k->top && k->top < k->room ? k->top : k->room;
}

/* Sorts the rows and drops those beyond the limit. They can never come back: later rows only displace more rows. */
static void trim(struct event_buffer *k)
{
    table_sort(k->table, k->sort, k->order);
    table_cut(k->table, most(k));
}

void event_buffer_add(struct event_buffer *k, struct table *t)
{
    k->come += table_rows(t);
    table_move_rows(k->table, t);
    if (table_rows(k->table) >= SORTED_EVERY && table_rows(k->table) / 2 >= most(k))
        trim(k);
}

void event_buffer_sort(struct event_buffer *k)
{
    trim(k);
    uint64_t wanted = k->top && k->top < k->come ? k->top : k->come;
    k->not_stored += wanted - table_rows(k->table);
}

void event_buffer_clear(struct event_buffer *k)
{
    table_clear(k->table);
    k->come = 0;
}

void event_buffer_release(struct event_buffer *k)
{
    table_free(k->table);
    *k = (struct event_buffer){0};
}
