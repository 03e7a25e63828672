/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/expr.h"

#include <stddef.h>

#include "unwind/cursor.h"
#include "unwind/dwarf.h"

#define EXPR_STEPS_MAX 128
#define EXPR_DEPTH     16

struct stack_machine {
    uint64_t at[EXPR_DEPTH];
    unsigned depth;
    bool bad;
};

static void push(struct stack_machine *s, uint64_t v)
{
    if (s->depth == EXPR_DEPTH)
        s->bad = true;
    else
        s->at[s->depth++] = v;
}

static uint64_t pop(struct stack_machine *s)
{
    if (!s->depth) {
        s->bad = true;
        return 0;
    }
    return s->at[--s->depth];
}

static uint64_t peek(struct stack_machine *s, unsigned below)
{
    if (below >= s->depth) {
        s->bad = true;
        return 0;
    }
    return s->at[s->depth - 1 - below];
}

static uint64_t apply(uint8_t op, uint64_t a, uint64_t b, struct stack_machine *s)
{
    int64_t sa = (int64_t)a, sb = (int64_t)b;
    switch (op) {
    case DW_OP_and:
        return a & b;
    case DW_OP_or:
        return a | b;
    case DW_OP_xor:
        return a ^ b;
    case DW_OP_plus:
        return a + b;
    case DW_OP_minus:
        return a - b;
    case DW_OP_mul:
        return a * b;
    case DW_OP_shl:
        return b < 64 ? a << b : 0;
    case DW_OP_shr:
        return b < 64 ? a >> b : 0;
    case DW_OP_shra:
        return (uint64_t)(sa >> (b < 64 ? b : 63));
    case DW_OP_eq:
        return a == b;
    case DW_OP_ne:
        return a != b;
    case DW_OP_ge:
        return sa >= sb;
    case DW_OP_gt:
        return sa > sb;
    case DW_OP_le:
        return sa <= sb;
    case DW_OP_lt:
        return sa < sb;
    }
    s->bad = true; /* unknown or unsupported; a division could trap, and call frame information has none */
    return 0;
}

static bool step_constant(struct cursor *c, struct stack_machine *s, uint8_t op)
{
    if (op >= DW_OP_lit0 && op <= DW_OP_lit31)
        push(s, op - DW_OP_lit0);
    else if (op >= DW_OP_const1u && op <= DW_OP_const8s && !(op & 1))
        push(s, cursor_bytes(c, 1u << ((op - DW_OP_const1u) / 2)));
    else if (op >= DW_OP_const1u && op <= DW_OP_const8s)
        push(s, (uint64_t)cursor_signed(c, 1u << ((op - DW_OP_const1u) / 2)));
    else if (op == DW_OP_constu)
        push(s, cursor_uleb(c));
    else if (op == DW_OP_consts)
        push(s, (uint64_t)cursor_sleb(c));
    else if (op == DW_OP_addr)
        push(s, cursor_bytes(c, 8));
    else
        return false;
    return true;
}

static bool step_stack(struct cursor *c, struct stack_machine *s, uint8_t op)
{
    uint64_t a, b, d;
    switch (op) {
    case DW_OP_dup:
        push(s, peek(s, 0));
        return true;
    case DW_OP_drop:
        pop(s);
        return true;
    case DW_OP_over:
        push(s, peek(s, 1));
        return true;
    case DW_OP_pick:
        push(s, peek(s, (unsigned)cursor_bytes(c, 1)));
        return true;
    case DW_OP_swap:
        a = pop(s), b = pop(s);
        push(s, a), push(s, b);
        return true;
    case DW_OP_rot:
        a = pop(s), b = pop(s), d = pop(s);
        push(s, a), push(s, d), push(s, b);
        return true;
    }
    return false;
}

static void read_memory(const struct expr_context *ctx, struct stack_machine *s)
{
    uint64_t at = pop(s), v;
    if (s->bad || !ctx->read || !ctx->read(ctx->memory, at, &v)) {
        s->bad = true;
        return;
    }
    push(s, v);
}

static void jump(struct cursor *c, const uint8_t *begin, bool taken)
{
    int64_t by = cursor_signed(c, 2);
    if (!taken)
        return;
    if (by < begin - c->at || by > c->end - c->at)
        c->overrun = true;
    else
        c->at += by;
}

static void step(struct cursor *c, const uint8_t *begin, const struct expr_context *ctx,
                 struct stack_machine *s)
{
    uint8_t op = (uint8_t)cursor_bytes(c, 1);
    if (step_constant(c, s, op) || step_stack(c, s, op) || op == DW_OP_nop)
        return;
    if ((op >= DW_OP_breg0 && op <= DW_OP_breg31) || op == DW_OP_bregx) {
        uint64_t reg = op == DW_OP_bregx ? cursor_uleb(c) : (uint64_t)(op - DW_OP_breg0);
        uint64_t offset = (uint64_t)cursor_sleb(c);
        if (reg >= REG_COUNT)
            s->bad = true;
        else
            push(s, ctx->regs[reg] + offset);
    } else if (op == DW_OP_deref) {
        read_memory(ctx, s);
    } else if (op == DW_OP_plus_uconst) {
        push(s, pop(s) + cursor_uleb(c));
    } else if (op == DW_OP_neg) {
        push(s, -pop(s));
    } else if (op == DW_OP_not) {
        push(s, ~pop(s));
    } else if (op == DW_OP_skip) {
        jump(c, begin, true);
    } else if (op == DW_OP_bra) {
        jump(c, begin, pop(s) != 0);
    } else {
        uint64_t b = pop(s), a = pop(s);
        push(s, apply(op, a, b, s));
    }
}

bool expr_eval(const struct unwind_module *m, int32_t block, const struct expr_context *ctx,
               const uint64_t *first, uint64_t *result)
{
    struct cursor c = {.at = (const uint8_t *)(m->start + (uintptr_t)(intptr_t)block),
                       .end = (const uint8_t *)m->rules_end};
    struct stack_machine s = {.depth = 0, .bad = false};
    uint64_t length = cursor_uleb(&c);
    if (!cursor_has(&c, length))
        return false;
    c.end = c.at + length;
    const uint8_t *begin = c.at;
    if (first)
        push(&s, *first);
    for (int steps = 0; c.at < c.end; steps++) {
        if (steps == EXPR_STEPS_MAX)
            return false;
        step(&c, begin, ctx, &s);
        if (c.overrun || s.bad)
            return false;
    }
    *result = pop(&s);
    return !s.bad;
}
