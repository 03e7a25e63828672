/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/sys/event_buffer.h"

#define SORTED_EVERY 1024u /* rows, at least: then sorting is a small part of what an event costs */

static uint32_t most(const struct sys_kept *k)
{
    return k->top && k->top < k->room ? k->top : k->room;
}

/* Those that are out go: whatever comes later can only push others out. */
static void trim(struct sys_kept *k)
{
    table_sort(k->table, k->sort, k->order);
    table_cut(k->table, most(k));
}

void sys_kept_add(struct sys_kept *k, struct table *t)
{
    k->come += table_rows(t);
    table_move_rows(k->table, t);
    if (table_rows(k->table) >= SORTED_EVERY && table_rows(k->table) / 2 >= most(k))
        trim(k);
}

void sys_kept_settle(struct sys_kept *k)
{
    trim(k);
    uint64_t wanted = k->top && k->top < k->come ? k->top : k->come;
    k->not_kept += wanted - table_rows(k->table);
}

void sys_kept_clear(struct sys_kept *k)
{
    table_clear(k->table);
    k->come = 0;
}

void sys_kept_release(struct sys_kept *k)
{
    table_free(k->table);
    *k = (struct sys_kept){0};
}
