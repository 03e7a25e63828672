/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/sites/site_tables.h"

#include "agent/sites/site_slots.h"
#include "agent/sites/sites.h"
#include "target/vm_reserve.h"

static struct tables {
    struct sites_slot slots[SITES_SLOTS];
    uint32_t tags[SITES_MOST];
} * all, *own;
static bool tags_are_writable; /* own->tags has been made writable */

bool site_tables_take(uint32_t generation)
{
    struct tables *mine = &all[generation % SITES_GENERATIONS];
    if (!vm_reserve_open(mine->slots, SITES_SLOTS_LEAST * sizeof(*mine->slots)))
        return false;
    sites_slots_begin(mine->slots);
    store_relaxed(&tags_are_writable, false);
    own = mine;
    return true;
}

bool site_tables_begin(uint32_t generation)
{
    all = vm_reserve(SITES_GENERATIONS * sizeof(*all), true);
    return all && site_tables_take(generation);
}

uint32_t *site_tables_of_tag(uint32_t account)
{
    if (account >= SITES_MOST)
        return NULL;
    if (!load_relaxed(&tags_are_writable)) {
        if (!vm_reserve_open(own->tags, sizeof(own->tags)))
            return NULL;
        store_relaxed(&tags_are_writable, true);
    }
    return &own->tags[account];
}
