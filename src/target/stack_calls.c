/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/stack_calls.h"

#define AT(s, index) ledger_at((s)->known.ledger, LEDGER_TAG_STACKS, struct ledger_tag_stack, index)

struct call_key {
    const struct stack_calls *in;
    uint32_t account, stack;
};

static bool same_call(const void *key, uint32_t number)
{
    const struct call_key *k = key;
    const struct ledger_tag_stack *s = AT(k->in, number);
    return s->account == k->account && s->stack == k->stack;
}

static struct ledger_tag_stack *record_of(struct stack_calls *s, uint32_t account, uint32_t stack)
{
    const struct call_key key = {s, account, stack};
    uint32_t hash = (uint32_t)(((uint64_t)account << 32 | stack) * 0x9e3779b97f4a7c15u >> 32);
    uint32_t at = intern_find(&s->known, hash, same_call, &key);
    if (at == INTERN_NONE) {
        at = ledger_append(s->known.ledger, LEDGER_TAG_STACKS, 1);
        if (at == LEDGER_NONE)
            return NULL;
        struct ledger_tag_stack *new = AT(s, at);
        new->stack = stack;
        store_release(&new->account, account);
        intern_add(&s->known, hash, at);
    }
    return AT(s, at);
}

bool stack_calls_add(struct stack_calls *s, uint32_t account, uint32_t stack, size_t bytes)
{
    struct ledger_tag_stack *of = stack == LEDGER_NONE ? NULL : record_of(s, account, stack);
    if (!of)
        return false;
    __atomic_fetch_add(&of->calls, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&of->bytes, bytes, __ATOMIC_RELAXED);
    return true;
}

void stack_calls_reset(struct stack_calls *s)
{
    intern_reset(&s->known);
}
