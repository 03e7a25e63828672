/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/kernel/seen_addresses.h"

#include <stdlib.h>

#include "base/mem.h"

#define BLOCKS_FIRST 1024u
#define BLOCK_SHIFT  11u /* 8 words of 64 bits, of 4 bytes each */

void seen_addresses_init(struct seen_addresses *s)
{
    *s = (struct seen_addresses){.blocks = mem_array(BLOCKS_FIRST, sizeof(*s->blocks)),
                                 .mask = BLOCKS_FIRST - 1};
}

void seen_addresses_release(struct seen_addresses *s)
{
    free(s->blocks);
    *s = (struct seen_addresses){.blocks = NULL};
}

static struct seen_block *slot_of(const struct seen_addresses *s, uint64_t number)
{
    size_t at = (size_t)((number * UINT64_C(0x9E3779B97F4A7C15)) >> 32) & s->mask;
    while (s->blocks[at].number && s->blocks[at].number != number)
        at = (at + 1) & s->mask;
    return &s->blocks[at];
}

static void grow(struct seen_addresses *s)
{
    const struct seen_addresses old = *s;
    s->mask = 2 * old.mask + 1;
    s->blocks = mem_array(s->mask + 1, sizeof(*s->blocks));
    for (size_t i = 0; i <= old.mask; i++)
        if (old.blocks[i].number)
            *slot_of(s, old.blocks[i].number) = old.blocks[i];
    free(old.blocks);
}

bool seen_addresses_add(struct seen_addresses *s, uint64_t address)
{
    const uint64_t number = (address >> BLOCK_SHIFT) + 1, bit = UINT64_C(1) << (address >> 2) % 64;
    struct seen_block *b = slot_of(s, number);
    if (!b->number) {
        if (2 * (s->n + 1) > s->mask) {
            grow(s);
            b = slot_of(s, number);
        }
        b->number = number;
        s->n++;
    }
    uint64_t *word = &b->bits[(address >> 8) % 8];
    const bool had = *word & bit;
    *word |= bit;
    return had;
}
