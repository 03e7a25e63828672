/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/intern_table.h"

#include <stddef.h>

#define FIRST_SLOTS 512u

static bool grow(struct intern *in, uint32_t count)
{
    if (count == INTERN_TABLES)
        return false;
    struct intern_table *t = &in->tables[count];
    uint64_t slots = (uint64_t)FIRST_SLOTS << count;
    if (!load_acquire(&t->slots)) {
        uint64_t *p = ledger_private(in->ledger, slots * 8), *expected = NULL;
        if (!p)
            return false;
        if (!__atomic_compare_exchange_n(&t->slots, &expected, p, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            ledger_give_back(in->ledger, p, slots * 8);
    }
    store_relaxed(&t->mask, slots - 1);
    __atomic_compare_exchange_n(&in->count, &count, count + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    return true;
}

bool intern_add(struct intern *in, uint32_t hash, uint32_t number)
{
    uint64_t entry = (uint64_t)hash << 32 | (number + 1);
    for (;;) {
        uint32_t count = load_acquire(&in->count);
        struct intern_table *t = &in->tables[count ? count - 1 : 0];
        if (count && load_relaxed(&t->used) * 2 <= t->mask) {
            for (uint64_t i = hash & t->mask, n = 0; n < INTERN_PROBES; i = (i + 1) & t->mask, n++) {
                if (load_relaxed(&t->slots[i]) == entry)
                    return true;
                if (!load_relaxed(&t->slots[i]) && atomic_swap_if64(&t->slots[i], 0, entry)) {
                    atomic_add64(&t->used, 1);
                    return true;
                }
            }
        }
        if (!grow(in, count))
            return false;
    }
}

void intern_take_room(struct intern *in, uint64_t slots)
{
    uint32_t count;
    while ((count = load_acquire(&in->count)) < INTERN_TABLES && (FIRST_SLOTS << count >> 1) < slots)
        if (!grow(in, count))
            return;
}

void intern_reset(struct intern *in)
{
    *in = (struct intern){.ledger = in->ledger};
}
