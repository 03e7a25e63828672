/* SPDX-License-Identifier: BSD-2-Clause */
#include <stddef.h>

#include "unwind/cfi.h"
#include "unwind/expr.h"
#include "unwind/module.h"
#include "unwind/walk_state.h"

#define STACK_SWITCH_MAX 8

bool walk_enter_interrupted(struct walk *k, struct position *at)
{
    uintptr_t frame = at->sp;
    if (!stack_holds(k->stack, frame, frame + 8, k->sealed) ||
        !stack_holds(k->stack, frame + 8, frame + SIGFRAME_BYTES, k->sealed))
        return false;
    at->sp = word_at(frame + SIGFRAME_RSP_OFFSET);
    at->pc = word_at(frame + SIGFRAME_RIP_OFFSET);
    at->fp_at = (const uintptr_t *)(frame + SIGFRAME_RBP_OFFSET);
    at->exact = true;
    /* The interrupted frame is above the signal frame, unless the handler runs on another stack (sigaltstack()). */
    if (at->sp < k->stack->low || at->sp >= k->stack->high || at->sp <= frame)
        return ++k->switches <= STACK_SWITCH_MAX && stack_enter(k->stack, at->sp, false, k->sealed);
    return true;
}

/* The memory that the expressions of a frame may read: the stack from the frame's stack pointer upwards. */
struct frame_memory {
    struct walk *walk;
    uint64_t from;
};

static bool read_frame_memory(void *memory, uint64_t at, uint64_t *value)
{
    const struct frame_memory *m = memory;
    if (at < m->from || at & 7 || !stack_holds(m->walk->stack, at, at + 8, m->walk->sealed))
        return false;
    __builtin_memcpy(value, (const void *)at, 8);
    return true;
}

/* Computes the value of one register in the caller. False: the rule is invalid, or the saved value is not readable. */
static bool restore(struct walk *k, const struct unwind_module *m, const struct cfi_row *row, int slot,
                    const uint64_t *regs, uint64_t cfa, bool exact, uint64_t *value)
{
    struct frame_memory memory = {k, regs[REG_RSP]};
    struct expr_context ctx = {.regs = regs, .read = read_frame_memory, .memory = &memory};
    uint64_t at = cfa + (uint64_t)(int64_t)row->value[slot];
    switch ((enum cfi_how)row->how[slot]) {
    case CFI_SAME:
    case CFI_UNDEFINED:
        *value = regs[regs_of_slot(slot)];
        return true;
    case CFI_IS:
        *value = at;
        return true;
    case CFI_REGISTER:
        if (row->value[slot] < 0 || row->value[slot] >= REG_COUNT)
            return false;
        *value = regs[row->value[slot]];
        return true;
    case CFI_IS_EXPR:
        return expr_eval(m, row->value[slot], &ctx, &cfa, value);
    case CFI_AT_EXPR:
        if (!expr_eval(m, row->value[slot], &ctx, &cfa, &at))
            return false;
        break;
    case CFI_AT:
        break;
    }
    if (at < regs[REG_RSP] - (exact ? RED_ZONE : 0) || at & 7 ||
        !stack_holds(k->stack, at, at + 8, k->sealed))
        return false;
    *value = word_at(at);
    return true;
}

/* Replaces the registers of a frame by those of its caller, by the rules in `row`. False: this is not possible. */
static bool leave_frame_full(struct walk *k, const struct unwind_module *m, const struct cfi_row *row,
                             bool exact, uint64_t *regs)
{
    struct frame_memory memory = {k, regs[REG_RSP]};
    struct expr_context ctx = {.regs = regs, .read = read_frame_memory, .memory = &memory};
    uint64_t cfa, next[SLOT_COUNT];
    if (row->cfa_expr) {
        if (!expr_eval(m, row->cfa_expr, &ctx, NULL, &cfa))
            return false;
    } else if (row->cfa_register < REG_COUNT) {
        cfa = regs[row->cfa_register] + (uint64_t)(int64_t)row->cfa_offset;
    } else {
        return false;
    }
    if (cfa <= regs[REG_RSP] || !stack_holds(k->stack, regs[REG_RSP], cfa, k->sealed))
        return false;
    for (int i = 0; i < SLOT_COUNT; i++)
        if (!restore(k, m, row, i, regs, cfa, exact, &next[i]))
            return false;
    next[SLOT_RSP] = cfa;
    for (int i = 0; i < SLOT_COUNT; i++)
        regs[regs_of_slot(i)] = next[i];
    return true;
}

static bool enter_interrupted_full(struct walk *k, uint64_t *regs)
{
    struct position at = {.sp = regs[REG_RSP]};
    uintptr_t frame = at.sp;
    if (!walk_enter_interrupted(k, &at))
        return false;
    regs_from_sigframe(regs, (const uint64_t *)(frame + SIGFRAME_GREG(0)));
    return true;
}

/* Stores the frame's number if `counts`, and goes to the caller. False: the walk ends, and *end is the reason. */
static bool step_full(struct walk *k, uint64_t *regs, bool *exact, bool counts, enum walk_end *end)
{
    uintptr_t pc = regs[REG_RA], lookup = *exact ? pc : pc - 1;
    uint32_t module = module_find(lookup);
    const struct unwind_module *m = &unwind_modules.at[module == MODULE_NONE ? 0 : module];
    struct cfi_row row;
    *end = WALK_WHOLE;
    if (!pc)
        return false;
    if (counts) {
        *end = WALK_CUT;
        if (k->count == k->max)
            return false;
        uint32_t id = k->w->name(k->w->arg, module, pc, *exact);
        *end = WALK_NO_ROOM;
        if (id > WALK_ID_MAX)
            return false;
        k->ids[k->count++] = id;
    }
    *end = module == MODULE_NONE ? WALK_NO_CODE : WALK_NO_RULE;
    if (module == MODULE_NONE || !cfi_find(m, lookup, *exact, &row))
        return false;
    *end = WALK_WHOLE;
    if (row.how[SLOT_RA] == CFI_UNDEFINED)
        return false;
    *end = WALK_BROKEN;
    if (row.signal_frame && pc + 9 <= m->end && regs_is_sigreturn((const uint8_t *)pc)) {
        *exact = true;
        return enter_interrupted_full(k, regs);
    }
    bool interrupted = *exact;
    *exact = row.signal_frame;
    return leave_frame_full(k, m, &row, interrupted, regs);
}

/* The walk begins in this function. Frames inside of the frame `start` get no numbers and are not stored. */
enum walk_end walk_full(struct walk *k, const struct walk_start *start)
{
    uint64_t regs[REG_COUNT] = {0};
    enum walk_end end = WALK_BROKEN;
    bool exact = true, counts = false;
    regs_capture(regs);
    k->count = 0;
    stack_enter(k->stack, regs[REG_RSP], true, k->sealed); /* the first walk may have gone to another stack */
    if (regs[REG_RSP] < k->stack->low || regs[REG_RSP] > start->sp)
        return WALK_BROKEN;
    do {
        if (!counts && regs[REG_RSP] > start->sp)
            return WALK_BROKEN;
        counts = counts || (regs[REG_RSP] == start->sp && regs[REG_RA] == start->pc);
    } while (step_full(k, regs, &exact, counts, &end));
    return end;
}
