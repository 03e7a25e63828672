/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/ledger_stacks.h"

#include <stddef.h>
#include <string.h>

#include "base/sigsafe/str.h"
#include "unwind/module.h"
#include "unwind/walk_cache.h"

#define HASH_FACTOR 0x9e3779b97f4a7c15u

#define AT(s, table, type, index) ledger_at((s)->ledger, table, type, index)

uint32_t ledger_stacks_add_string(struct ledger *l, const char *text)
{
    size_t len = text_length(text);
    if (len > LEDGER_STACKS_STRING_MAX)
        len = LEDGER_STACKS_STRING_MAX;
    uint32_t at = ledger_append(l, LEDGER_STRINGS, (uint32_t)len + 1);
    if (at == LEDGER_NONE)
        return 0;
    text_copy(ledger_at(l, LEDGER_STRINGS, char, at), len + 1, text);
    return at;
}

static void add_module(struct ledger_stacks *s, struct unwind_module *m)
{
    uint32_t at = ledger_append(s->ledger, LEDGER_MODULES, 1);
    if (at == LEDGER_NONE || at >= LEDGER_MODULE_UNKNOWN)
        return;
    struct ledger_module *row = AT(s, LEDGER_MODULES, struct ledger_module, at);
    row->start = m->start;
    row->end = m->end;
    row->bias = m->bias;
    row->path = m->name[0] ? ledger_stacks_add_string(s->ledger, m->name) : s->ledger->header->exe;
    for (uint32_t i = 0; i < m->build_id_len && i < LEDGER_BUILD_ID_BYTES; i++)
        row->build_id[i] = m->build_id[i];
    row->build_id_len =
        (uint8_t)(m->build_id_len < LEDGER_BUILD_ID_BYTES ? m->build_id_len : LEDGER_BUILD_ID_BYTES);
    store_release(&m->ledger_id, at + 1);
}

/* The key that same_frame() compares with a record. */
struct frame_key {
    const struct ledger_stacks *in;
    uint64_t frame;
};

static bool same_frame(const void *key, uint32_t number)
{
    const struct frame_key *k = key;
    return *AT(k->in, LEDGER_FRAMES, uint64_t, number) == k->frame;
}

uint32_t ledger_stacks_name_frame(void *stacks, uint32_t module, uintptr_t pc, bool exact)
{
    struct ledger_stacks *s = stacks;
    uint64_t frame = (uint64_t)LEDGER_MODULE_UNKNOWN << LEDGER_FRAME_MODULE_SHIFT;
    if (module != MODULE_NONE) {
        struct unwind_module *m = &unwind_modules.at[module];
        if (!load_acquire(&m->ledger_id))
            add_module(s, m);
        if (m->ledger_id)
            frame = (uint64_t)(m->ledger_id - 1) << LEDGER_FRAME_MODULE_SHIFT |
                    ((pc - m->bias) & LEDGER_FRAME_OFFSET_MASK) | (exact ? LEDGER_FRAME_EXACT : 0);
    }
    uint32_t hash = (uint32_t)(frame * HASH_FACTOR >> 32);
    uint32_t at = intern_find(&s->frames, hash, same_frame, &(struct frame_key){s, frame});
    if (at != INTERN_NONE)
        return at;
    at = ledger_append(s->ledger, LEDGER_FRAMES, 1);
    if (at > WALK_ID_MAX)
        return WALK_NO_ID;
    *AT(s, LEDGER_FRAMES, uint64_t, at) = frame;
    intern_add(&s->frames, hash, at);
    return at;
}

struct stack_key {
    const struct ledger_stacks *in;
    const uint32_t *ids;
    uint32_t depth;
    uint32_t hash;
    enum ledger_stack_end end;
};

static bool same_stack(const void *key, uint32_t number)
{
    const struct stack_key *k = key;
    const struct ledger_stack *s = AT(k->in, LEDGER_STACKS, struct ledger_stack, number);
    if (s->depth != k->depth || s->end != k->end)
        return false;
    const uint32_t *ids = AT(k->in, LEDGER_STACK_FRAMES, uint32_t, s->first);
    return !memcmp(ids, k->ids, k->depth * sizeof(*ids));
}

static uint32_t add_stack(struct ledger_stacks *s, const struct stack_key *k)
{
    uint32_t first = ledger_append(s->ledger, LEDGER_STACK_FRAMES, k->depth);
    if (first == LEDGER_NONE)
        return LEDGER_NONE;
    uint32_t *ids = AT(s, LEDGER_STACK_FRAMES, uint32_t, first);
    for (uint32_t i = 0; i < k->depth; i++)
        ids[i] = k->ids[i];
    uint32_t at = ledger_append(s->ledger, LEDGER_STACKS, 1);
    if (at == LEDGER_NONE)
        return LEDGER_NONE;
    *AT(s, LEDGER_STACKS, struct ledger_stack, at) = (struct ledger_stack){
        .hash = k->hash, .first = first, .depth = (uint16_t)k->depth, .end = (uint8_t)k->end};
    intern_add(&s->stacks, k->hash, at);
    return at;
}

static enum ledger_stack_end stack_end(const struct ledger_stacks *s, enum walk_end end)
{
    switch (end) {
    case WALK_WHOLE:
        return LEDGER_STACK_WHOLE;
    case WALK_CUT:
        s->lost(LEDGER_LOST_STACK_CUT);
        return LEDGER_STACK_CUT;
    case WALK_NO_CODE:
        s->lost(LEDGER_LOST_STACK_BROKEN);
        return LEDGER_STACK_NO_CODE;
    case WALK_NO_RULE:
        s->lost(LEDGER_LOST_STACK_BROKEN);
        return LEDGER_STACK_NO_RULE;
    default:
        s->lost(LEDGER_LOST_STACK_BROKEN);
        return LEDGER_STACK_BROKEN;
    }
}

uint64_t ledger_stacks_hash(const uint32_t *ids, unsigned depth)
{
    uint64_t h = 0;
    for (unsigned i = depth; i-- > 0;)
        h = walk_cache_hash(h, ids[i]);
    return h;
}

uint32_t ledger_stacks_number(struct ledger_stacks *s, const uint32_t *ids, unsigned depth, uint64_t hash,
                              enum walk_end end)
{
    if (unlikely(end == WALK_NO_ROOM))
        return LEDGER_NONE;
    struct stack_key key = {.in = s, .ids = ids, .depth = depth, .hash = (uint32_t)hash};
    key.end = likely(end == WALK_WHOLE) ? LEDGER_STACK_WHOLE : stack_end(s, end);
    uint32_t at = intern_find(&s->stacks, key.hash, same_stack, &key);
    return likely(at != INTERN_NONE) ? at : add_stack(s, &key);
}

void ledger_stacks_reset(struct ledger_stacks *s)
{
    intern_reset(&s->frames);
    intern_reset(&s->stacks);
    word_cache_forget(s->rules);
    for (uint32_t i = 0; i < unwind_modules.used && i < MODULE_MAX; i++)
        unwind_modules.at[i].ledger_id = 0;
}

void ledger_stacks_take_room(struct ledger_stacks *s, uint64_t slots)
{
    intern_take_room(&s->frames, slots);
    intern_take_room(&s->stacks, slots);
}
