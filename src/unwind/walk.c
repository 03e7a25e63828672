/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/walk.h"

#include <stddef.h>

#include "base/sigsafe/atomic.h"
#include "unwind/cfi.h"
#include "unwind/expr.h"
#include "unwind/module.h"
#include "unwind/rule.h"

#define EXACT_BIT        (1ull << 63)
#define STACK_SWITCH_MAX 8
#define FAKE_RSP         0x700000001000u

_Static_assert(MODULE_MAX < RULE_MODULE_NONE, "module numbers fit a rule");

struct walk {
    const struct walker *w;
    struct stack_bounds *stack;
    uint32_t *ids;
    unsigned count, max, switches;
    bool sealed;
    uint64_t checked; /* modules (below 64) found current on this walk */
};

static inline uint64_t word_at(uintptr_t at)
{
    return *(const uint64_t *)at;
}

/*
 * A CFA expression that only adds to rsp by what the pc says (PLT stubs) is a constant once the pc is known: it must
 * follow a moved stack pointer exactly, and may not read memory.
 */
static bool fold_expression(const struct unwind_module *m, int32_t block, uintptr_t pc, struct rule_parts *p)
{
    uint64_t regs[REG_COUNT] = {[REG_RSP] = FAKE_RSP, [REG_RA] = pc}, first, second;
    struct expr_context ctx = {.regs = regs};
    if (!expr_eval(m, block, &ctx, NULL, &first))
        return false;
    regs[REG_RSP] += 4096;
    for (int i = 0; i < REG_RA; i++)
        if (i != REG_RSP)
            regs[i] = 0x1000; /* it must not depend on these */
    if (!expr_eval(m, block, &ctx, NULL, &second) || second - first != 4096)
        return false;
    *p = (struct rule_parts){.kind = RULE_RSP, .cfa_offset = (int32_t)(first - FAKE_RSP)};
    return true;
}

/* Is the block `DW_OP_breg6 offset` alone, or followed by DW_OP_deref? */
static bool is_rbp_plus(const struct unwind_module *m, int32_t block, bool deref, int32_t *offset)
{
    const uint8_t *b = (const uint8_t *)(m->start + (uintptr_t)(intptr_t)block);
    unsigned length = deref ? 3 : 2;
    if ((uintptr_t)b + 4 > m->rules_end || b[0] != length || b[1] != 0x76 || (b[2] & 0x80) ||
        (deref && b[3] != 0x06))
        return false;
    *offset = (b[2] & 0x40) ? (int32_t)b[2] - 0x80 : b[2];
    return true;
}

static struct rule_parts simplify(const struct unwind_module *m, const struct cfi_row *row, uintptr_t pc)
{
    struct rule_parts p = {.kind = RULE_GENERAL};
    int32_t rbp_offset;
    if (row->how[SLOT_RA] == CFI_UNDEFINED)
        return (struct rule_parts){.kind = RULE_LAST};
    if (row->signal_frame)
        return pc + 9 <= m->end && regs_is_sigreturn((const uint8_t *)pc)
                   ? (struct rule_parts){.kind = RULE_SIGNAL}
                   : p;
    if (row->how[SLOT_RA] != CFI_AT || row->value[SLOT_RA] != -8)
        return p;
    if (row->cfa_expr && is_rbp_plus(m, row->cfa_expr, true, &p.cfa_offset)) {
        if (row->how[SLOT_RBP] == CFI_AT_EXPR && is_rbp_plus(m, row->value[SLOT_RBP], false, &rbp_offset) &&
            !rbp_offset)
            p.kind = RULE_RBP_DEREF;
        return p;
    }
    if (row->cfa_expr) {
        if (!fold_expression(m, row->cfa_expr, pc, &p))
            return (struct rule_parts){.kind = RULE_GENERAL};
    } else if (row->cfa_register == REG_RSP || row->cfa_register == REG_RBP) {
        p.kind = row->cfa_register == REG_RSP ? RULE_RSP : RULE_RBP;
        p.cfa_offset = row->cfa_offset;
    }
    if (p.cfa_offset % 8 || p.cfa_offset <= 0 || p.cfa_offset > INT16_MAX * 8)
        p.kind = RULE_GENERAL;
    if (row->how[SLOT_RBP] == CFI_AT && row->value[SLOT_RBP] < 0 && row->value[SLOT_RBP] % 8 == 0 &&
        -row->value[SLOT_RBP] / 8 <= RULE_SLOT_MAX)
        p.rbp_slot = (uint32_t)(-row->value[SLOT_RBP] / 8);
    else if (row->how[SLOT_RBP] != CFI_SAME)
        p.kind = RULE_GENERAL;
    return p;
}

/*
 * In an interrupted function a register may have been popped already while its rule still names the slot, now below the
 * stack pointer: the ABI's red zone of 128 bytes keeps it. EXACT_BIT moved down is just that.
 */
static inline uintptr_t red_zone(uint64_t exact_bit)
{
    return exact_bit >> 56;
}

static inline uint64_t set_of(uint64_t key)
{
    return (key ^ key >> 12) & (WALK_SETS - 1);
}

static struct walk_cache_entry *cache_set(struct walk_cache *cache, uint64_t key)
{
    return cache->at[set_of(key)];
}

/* Where an entry goes if it can, and is looked for first. */
static inline unsigned first_way(uint64_t key)
{
    return (unsigned)(key >> 2) % WALK_WAYS;
}

/* Compiles the rule for pc and puts it into the cache; 0 when the frame could not be named. */
static __attribute__((noinline)) uint64_t compile_cold(const struct walker *w, uintptr_t pc, bool exact)
{
    uintptr_t lookup = exact ? pc : pc - 1;
    uint32_t module = module_find(lookup);
    struct rule_parts parts = {.kind = RULE_MISSING};
    if (module != MODULE_NONE) {
        struct cfi_row row;
        const struct unwind_module *m = &unwind_modules.at[module];
        if (cfi_find(m, lookup, &row))
            parts = simplify(m, &row, pc);
    }
    uint32_t id = w->name(w->arg, module, pc, exact);
    if (id > WALK_ID_MAX)
        return RULE_NONE;
    if (parts.kind == RULE_GENERAL || parts.kind == RULE_LAST || parts.kind == RULE_MISSING)
        parts.cfa_offset = 0, parts.rbp_slot = 0;
    uint64_t rule = rule_pack(parts, module == MODULE_NONE ? RULE_MODULE_NONE : module, id);
    uint64_t key = pc | (exact ? EXACT_BIT : 0);
    if (module == MODULE_NONE)
        return rule; /* code that comes and goes unseen is not remembered */
    struct walk_cache_entry *set = cache_set(w->cache, key);
    unsigned way = first_way(key);
    for (unsigned n = 0, i = way; n < WALK_WAYS; n++, i = (i + 1) % WALK_WAYS) {
        uint64_t old = load_relaxed(&set[i].rule);
        if (old == RULE_NONE || (load_relaxed(&set[i].check) ^ old) == key) {
            way = i;
            break;
        }
    }
    store_relaxed(&set[way].rule, rule);
    store_relaxed(&set[way].check, key ^ rule);
    return rule;
}

/* Beyond the first way: the others, then a rule that is compiled now. */
static __attribute__((noinline)) uint64_t rule_cold(struct walk *k, uint64_t key)
{
    const struct walk_cache_entry *set = cache_set(k->w->cache, key);
    for (unsigned i = 0; i < WALK_WAYS; i++) {
        uint64_t r = load_relaxed(&set[i].rule);
        if ((load_relaxed(&set[i].check) ^ r) == key)
            return r;
    }
    return compile_cold(k->w, key & ~EXACT_BIT, (key & EXACT_BIT) != 0);
}

/* The rule is of a module not looked at on this walk: is it the one that is loaded there now? */
static __attribute__((noinline)) uint64_t recheck_cold(struct walk *k, uint64_t key, uint64_t rule)
{
    uintptr_t pc = key & ~EXACT_BIT;
    bool exact = (key & EXACT_BIT) != 0;
    uint32_t module = rule_module(rule);
    if (module == RULE_MODULE_NONE)
        return rule;
    if (!module_is_current(module, exact ? pc : pc - 1))
        return compile_cold(k->w, pc, exact);
    if (module < 64)
        k->checked |= 1ull << module;
    return rule;
}

/* One past the frame: the new pc, sp and fp. False: the walk ends, `end` says why. */
struct position {
    uintptr_t pc, sp, fp;
    bool exact;
};

static bool enter_interrupted(struct walk *k, struct position *at)
{
    if (!stack_holds(k->stack, at->sp, at->sp + SIGFRAME_BYTES, k->sealed))
        return false;
    uintptr_t sp = word_at(at->sp + SIGFRAME_RSP_OFFSET);
    at->fp = word_at(at->sp + SIGFRAME_RBP_OFFSET);
    at->pc = word_at(at->sp + SIGFRAME_RIP_OFFSET);
    at->exact = true;
    /* The interrupted stack is another one with sigaltstack; on the same one it lies above. */
    if (sp < k->stack->low || sp >= k->stack->high || sp <= at->sp) {
        if (++k->switches > STACK_SWITCH_MAX || !stack_enter(k->stack, sp))
            return false;
    }
    at->sp = sp;
    return true;
}

/* The rare kinds. */
static __attribute__((noinline)) bool leave_frame_cold(struct walk *k, uint64_t rule, struct position *at)
{
    if (rule_kind(rule) == RULE_SIGNAL)
        return enter_interrupted(k, at);
    uintptr_t slot = at->fp + (uintptr_t)rule_cfa_offset(rule);
    if (slot < at->sp || at->fp < at->sp || !stack_holds(k->stack, slot, slot + 8, k->sealed) ||
        !stack_holds(k->stack, at->fp, at->fp + 8, k->sealed))
        return false;
    uintptr_t cfa = word_at(slot);
    if (cfa <= at->sp || cfa & 7 || !stack_holds(k->stack, at->sp, cfa, k->sealed))
        return false;
    *at = (struct position){.pc = word_at(cfa - 8), .sp = cfa, .fp = word_at(at->fp), .exact = false};
    return true;
}

static enum walk_end walk_full(struct walk *k, const struct walk_start *start);

/* Why the walk ends at a frame of this kind. */
static enum walk_end end_cold(struct walk *k, uint64_t rule, const struct walk_start *start)
{
    if (rule == RULE_NONE)
        return WALK_NO_ROOM;
    if (rule_kind(rule) == RULE_LAST)
        return WALK_WHOLE;
    if (rule_kind(rule) == RULE_GENERAL)
        return walk_full(k, start);
    return rule_module(rule) == RULE_MODULE_NONE ? WALK_NO_CODE : WALK_NO_RULE;
}

/*
 * The hot loop: everything it carries from frame to frame is in locals whose address is never taken; the rare cases
 * write them into the struct and read them back.
 */
static enum walk_end walk_cached(struct walk *k, const struct walk_start *start)
{
    uintptr_t pc = start->pc, sp = start->sp, fp = start->fp, high = k->stack->high;
    uint64_t exact_bit = 0, checked = k->checked;
    uint32_t *ids = k->ids;
    unsigned count = 0, max = k->max;
    const struct walk_cache *cache = k->w->cache;
    while (likely(pc != 0 && count < max)) {
        uint64_t key = pc | exact_bit;
        const struct walk_cache_entry *first = &cache->at[set_of(key)][first_way(key)];
        uint64_t rule = load_relaxed(&first->rule);
        if (unlikely((load_relaxed(&first->check) ^ rule) != key))
            rule = rule_cold(k, key);
        uint32_t module = rule_module(rule);
        if (unlikely(module >= 64 || !(checked >> module & 1))) {
            rule = recheck_cold(k, key, rule);
            checked = k->checked;
        }
        enum rule_kind kind = rule_kind(rule);
        if (unlikely(rule == RULE_NONE || kind >= RULE_LAST)) {
            k->count = count;
            if (rule != RULE_NONE)
                ids[k->count++] = rule_id(rule);
            return end_cold(k, rule, start);
        }
        ids[count++] = rule_id(rule);
        if (likely(kind <= RULE_RBP)) {
            uintptr_t cfa = (kind == RULE_RSP ? sp : fp) + (uintptr_t)rule_cfa_offset(rule);
            uintptr_t fp_at = cfa - 8 * rule_rbp_slot(rule);
            bool fits = cfa > sp && fp_at >= sp - red_zone(exact_bit) && !(cfa & 7);
            if (unlikely(!fits || cfa > high)) {
                k->count = count;
                if (!fits || !stack_holds(k->stack, sp, cfa, k->sealed))
                    return WALK_BROKEN;
                high = k->stack->high;
            }
            fp = fp_at != cfa ? word_at(fp_at) : fp;
            pc = word_at(cfa - 8);
            sp = cfa;
            exact_bit = 0;
        } else {
            struct position at = {.pc = pc, .sp = sp, .fp = fp};
            k->count = count;
            if (!leave_frame_cold(k, rule, &at))
                return WALK_BROKEN;
            pc = at.pc, sp = at.sp, fp = at.fp, high = k->stack->high;
            exact_bit = at.exact ? EXACT_BIT : 0;
        }
    }
    k->count = count;
    return pc ? WALK_CUT : WALK_WHOLE;
}

/* The value of one register in the caller; false: unreadable. */
static bool restore(struct walk *k, const struct unwind_module *m, const struct cfi_row *row, int slot,
                    const uint64_t *regs, uint64_t cfa, uint64_t exact_bit, uint64_t *value)
{
    struct expr_context ctx = {
        .regs = regs, .stack = k->stack, .stack_from = regs[REG_RSP], .sealed = k->sealed};
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
    if (at < regs[REG_RSP] - red_zone(exact_bit) || at & 7 || !stack_holds(k->stack, at, at + 8, k->sealed))
        return false;
    *value = word_at(at);
    return true;
}

/* From the registers of one frame to its caller's, by the whole row. */
static bool leave_frame_full(struct walk *k, const struct unwind_module *m, const struct cfi_row *row,
                             uint64_t exact_bit, uint64_t *regs)
{
    struct expr_context ctx = {
        .regs = regs, .stack = k->stack, .stack_from = regs[REG_RSP], .sealed = k->sealed};
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
        if (!restore(k, m, row, i, regs, cfa, exact_bit, &next[i]))
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
    if (!enter_interrupted(k, &at))
        return false;
    regs_from_sigframe(regs, (const uint64_t *)(frame + SIGFRAME_GREG(0)));
    return true;
}

/* One frame of the full walk, named if it counts. Returns false at the end of the walk. */
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
    if (module == MODULE_NONE || !cfi_find(m, lookup, &row))
        return false;
    *end = WALK_WHOLE;
    if (row.how[SLOT_RA] == CFI_UNDEFINED)
        return false;
    *end = WALK_BROKEN;
    if (row.signal_frame && pc + 9 <= m->end && regs_is_sigreturn((const uint8_t *)pc)) {
        *exact = true;
        return enter_interrupted_full(k, regs);
    }
    uint64_t exact_bit = *exact ? EXACT_BIT : 0;
    *exact = row.signal_frame;
    return leave_frame_full(k, m, &row, exact_bit, regs);
}

/* Walks out of our own frames first: they preserve the registers the hook's caller had. */
static __attribute__((noinline)) enum walk_end walk_full(struct walk *k, const struct walk_start *start)
{
    uint64_t regs[REG_COUNT] = {0};
    enum walk_end end = WALK_BROKEN;
    bool exact = true, counts = false;
    regs_capture(regs);
    k->count = 0;
    if (regs[REG_RSP] < k->stack->low || regs[REG_RSP] > start->sp)
        return WALK_BROKEN;
    do {
        if (!counts && regs[REG_RSP] > start->sp)
            return WALK_BROKEN;
        counts = counts || (regs[REG_RSP] == start->sp && regs[REG_RA] == start->pc);
    } while (step_full(k, regs, &exact, counts, &end));
    return end;
}

unsigned walk_stack(const struct walker *w, struct stack_bounds *stack, const struct walk_start *start,
                    uint32_t *ids, unsigned max, enum walk_end *end)
{
    struct walk k = {.w = w,
                     .stack = stack,
                     .ids = ids,
                     .max = max,
                     .sealed = *w->sealed != 0,
                     .checked = load_relaxed(&unwind_modules.permanent)};
    if (start->sp < stack->low || start->sp >= stack->high)
        stack_enter(stack, start->sp);
    *end = walk_cached(&k, start);
    return k.count;
}

uint32_t walk_caller(const struct walker *w, uintptr_t pc)
{
    struct walk k = {.w = w};
    const struct walk_cache_entry *first = &w->cache->at[set_of(pc)][first_way(pc)];
    uint64_t rule = load_relaxed(&first->rule);
    if (unlikely((load_relaxed(&first->check) ^ rule) != pc))
        rule = rule_cold(&k, pc);
    uint32_t module = rule_module(rule);
    if (unlikely(module >= 64 || !(load_relaxed(&unwind_modules.permanent) >> module & 1)))
        rule = recheck_cold(&k, pc, rule);
    return rule == RULE_NONE ? WALK_NO_ID : rule_id(rule);
}

void walk_forget(struct walk_cache *cache)
{
    for (unsigned i = 0; i < WALK_SETS; i++)
        for (unsigned j = 0; j < WALK_WAYS; j++)
            store_relaxed(&cache->at[i][j].rule, RULE_NONE);
}
