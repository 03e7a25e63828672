/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/walk.h"

#include <stddef.h>

#include "base/sigsafe/atomic.h"
#include "unwind/cfi.h"
#include "unwind/module.h"
#include "unwind/rule.h"
#include "unwind/rule_compile.h"
#include "unwind/walk_cache.h"
#include "unwind/walk_state.h"

#define EXACT_BIT (1ull << 63)

/* Compiles the rule for pc; caches it if pc is in a module. RULE_NONE: walker.name() had no number for the frame. */
static __attribute__((noinline)) uint64_t compile_cold(const struct walker *w, uintptr_t pc, bool exact)
{
    uintptr_t lookup = exact ? pc : pc - 1;
    uint32_t module = module_find(lookup);
    const struct unwind_module *m = &unwind_modules.at[module == MODULE_NONE ? 0 : module];
    struct rule_parts parts = {.kind = RULE_MISSING};
    struct cfi_row row;
    if (module != MODULE_NONE && cfi_find(m, lookup, exact, &row))
        parts = rule_compile_row(m, &row, pc);
    /* This rule finds the saved rbp below the stack pointer: only an interrupted function can have rbp there. */
    if (!exact && parts.kind == RULE_RSP && parts.rbp_slot * 8 > (uint32_t)parts.cfa_offset)
        parts.kind = RULE_GENERAL;
    if (parts.kind == RULE_GENERAL || parts.kind == RULE_LAST || parts.kind == RULE_MISSING)
        parts.cfa_offset = 0, parts.rbp_slot = 0;
    uint32_t id = w->name(w->arg, module, pc, exact);
    if (id > WALK_ID_MAX)
        return RULE_NONE;
    if (module == MODULE_NONE) /* not cached: code of a JIT compiler may change without notice */
        return rule_pack(parts, RULE_MODULE_NONE, false, id);
    uint64_t rule = rule_pack(parts, module, m->permanent, id);
    word_cache_keep(w->cache, pc | (exact ? EXACT_BIT : 0), rule);
    return rule;
}

/* Called if the first cache entry for `key` has no rule for it: searches the others; if none has, compiles the rule. */
static __attribute__((noinline)) uint64_t rule_cold(const struct walker *w, uint64_t key)
{
    uint64_t rule = word_cache_find(w->cache, key);
    return rule ? rule : compile_cold(w, key & ~EXACT_BIT, (key & EXACT_BIT) != 0);
}

static inline uint64_t rule_for(const struct walker *w, uint64_t key, uint64_t mask)
{
    uint64_t rule = word_cache_first(w->cache, key, mask);
    return likely(rule) ? rule : rule_cold(w, key);
}

/* Returns `rule`; or compiles a new rule if the rule's module, which can be unloaded, is no longer loaded at pc. */
static __attribute__((noinline)) uint64_t recheck_cold(struct walk *k, uint64_t key, uint64_t rule)
{
    uintptr_t pc = key & ~EXACT_BIT;
    bool exact = (key & EXACT_BIT) != 0;
    uint32_t module = rule_module(rule);
    if (rule == RULE_NONE || module == RULE_MODULE_NONE)
        return rule;
    if (!module_is_current(module, exact ? pc : pc - 1))
        return compile_cold(k->w, pc, exact);
    if (module < 64)
        k->checked |= 1ull << module;
    return rule;
}

/* Returns `rule`, or a new rule if the module of `rule` was unloaded. RULE_NONE: walker.name() had no number. */
static inline uint64_t current_rule(struct walk *k, uint64_t key, uint64_t rule, unsigned frame)
{
    if (likely(rule & RULE_STAYS))
        return rule;
    if (k->own)
        k->own->passed = frame + 1;
    uint32_t module = rule_module(rule);
    return module < 64 && k->checked >> module & 1 && rule != RULE_NONE ? rule : recheck_cold(k, key, rule);
}

/* Goes to the caller of a function that realigned its stack (RULE_RBP_DEREF). False: the caller is not readable. */
static bool leave_realigned(struct walk *k, uint64_t rule, struct position *at)
{
    uintptr_t fp = *at->fp_at, slot = fp + (uintptr_t)rule_deref_offset(rule);
    if (slot < at->sp || fp < at->sp || (slot | fp) & 7 ||
        !stack_holds(k->stack, slot, slot + 8, k->sealed) || !stack_holds(k->stack, fp, fp + 8, k->sealed))
        return false;
    uintptr_t cfa = word_at(slot);
    if (cfa <= at->sp || cfa & 7 || !stack_holds(k->stack, at->sp, cfa, k->sealed))
        return false;
    *at = (struct position){.pc = word_at(cfa - 8), .sp = cfa, .fp_at = (const uintptr_t *)fp};
    return true;
}

/*
 * Goes to the caller of a frame of kind RULE_RSP or RULE_RBP, with all checks. If a signal interrupted the function
 * just after it popped rbp, the saved rbp is below the stack pointer, but unchanged, because the red zone covers it.
 */
static bool leave_simple(struct walk *k, uint64_t rule, struct position *at)
{
    uintptr_t base = rule_kind(rule) == RULE_RSP ? at->sp : *at->fp_at;
    uintptr_t cfa = base + rule_cfa_offset(rule), saved = cfa - rule_rbp_offset(rule);
    if (cfa <= at->sp || cfa & 7 || saved < at->sp - (at->exact ? RED_ZONE : 0) ||
        (k->stack->checked_until && saved != cfa && !stack_holds(k->stack, saved, saved + 8, k->sealed)) ||
        !stack_holds(k->stack, at->sp, cfa, k->sealed))
        return false;
    at->pc = word_at(cfa - 8);
    at->sp = cfa;
    if (saved != cfa)
        at->fp_at = (const uintptr_t *)saved;
    at->exact = false;
    return true;
}

/* Goes to the caller of a frame of any kind. False: the walk ends, and *end is the reason. */
static bool leave_frame(struct walk *k, uint64_t rule, struct position *at, const struct walk_start *start,
                        enum walk_end *end)
{
    *end = WALK_BROKEN;
    switch (rule_kind(rule)) {
    case RULE_RSP:
    case RULE_RBP:
        return leave_simple(k, rule, at);
    case RULE_RBP_DEREF:
        return leave_realigned(k, rule, at);
    case RULE_SIGNAL:
        return walk_enter_interrupted(k, at);
    case RULE_LAST:
        *end = WALK_WHOLE;
        return false;
    case RULE_GENERAL:
        *end = walk_full(k, start);
        return false;
    default:
        *end = rule_module(rule) == RULE_MODULE_NONE ? WALK_NO_CODE : WALK_NO_RULE;
        return false;
    }
}

/*
 * Stores the number of a frame that the hot loop cannot handle, and goes to its caller; continues in the same way if a
 * signal interrupted the caller. False: the walk ends, and *end is the reason.
 */
static __attribute__((noinline)) bool leave_frames_cold(struct walk *k, struct position *at,
                                                        const struct walk_start *start, enum walk_end *end)
{
    do {
        uint64_t key = at->pc | (at->exact ? EXACT_BIT : 0);
        uint64_t rule = current_rule(k, key, rule_for(k->w, key, word_cache_mask(k->w->cache)), k->count);
        *end = WALK_NO_ROOM;
        if (rule == RULE_NONE)
            return false;
        *end = WALK_CUT;
        if (k->count == k->max)
            return false;
        k->ids[k->count++] = rule_id(rule);
        if (!leave_frame(k, rule, at, start, end))
            return false;
    } while (at->exact);
    if (k->own) {
        k->own->passed = k->count;
        k->own->brought_fp_at = at->fp_at;
    }
    *end = at->pc ? WALK_CUT : WALK_WHOLE;
    return at->pc && k->count < k->max;
}

/*
 * The hot loop. It never takes the address of pc, sp and fp_at, so they can stay in registers; rare cases copy them to
 * a struct position and back. A CFA computed from rsp is always above rsp and aligned; a CFA computed from rbp must be
 * checked. If `cache` is not NULL, the walk ends at the first cached frame that, with all its callers, is unchanged.
 */
static inline __attribute__((always_inline)) enum walk_end
walk_cached(struct walk *k, const struct walk_start *start, const struct walk_cache *cache)
{
    uintptr_t pc = start->pc, sp = start->sp, high = k->stack->high, cfa;
    uintptr_t meets = cache ? walk_cache_meets(cache, k->own->meet) : 0;
    const uintptr_t *fp_at = &start->fp;
    uint32_t *id = k->ids, *ids_end = id + k->max;
    const struct walker *w = k->w;
    const uint64_t mask = word_cache_mask(w->cache);
    for (;;) {
        if (cache) {
            if (unlikely(sp >= meets) && walk_cache_met(cache, k->own, pc, sp, fp_at, &meets))
                goto whole;
            k->own->sp[id - k->ids] = sp;
        }
        uint64_t rule = rule_for(w, pc, mask);
        if (unlikely((rule & (RULE_KIND | RULE_STAYS)) != (RULE_RSP | RULE_STAYS))) {
            rule = current_rule(k, pc, rule, (unsigned)(id - k->ids));
            if (rule_kind(rule) == RULE_RBP) {
                cfa = *fp_at + rule_cfa_offset(rule);
                if (unlikely(cfa <= sp || cfa & 7 || cfa - rule_rbp_offset(rule) < sp))
                    goto rare;
                if (cache)
                    walk_cache_uses_fp(k->own, (unsigned)(id - k->ids), fp_at);
                goto have_cfa;
            }
            if (rule_kind(rule) == RULE_LAST) {
                *id++ = rule_id(rule);
                if (cache)
                    k->own->meet = WALK_CACHE_END, k->own->whole = true;
                goto whole;
            }
            if (rule_kind(rule) != RULE_RSP)
                goto rare;
        }
        cfa = sp + rule_cfa_offset(rule);
    have_cfa:
        if (unlikely(cfa > high))
            goto rare;
        *id++ = rule_id(rule);
        if (rule_rbp_offset(rule))
            fp_at = (const uintptr_t *)(cfa - rule_rbp_offset(rule));
        pc = word_at(cfa - 8);
        sp = cfa;
        if (unlikely(!pc || id == ids_end)) {
            k->count = (unsigned)(id - k->ids);
            return pc ? WALK_CUT : WALK_WHOLE;
        }
        continue;
    rare:;
        struct position at = {.pc = pc, .sp = sp, .fp_at = fp_at};
        enum walk_end end;
        k->count = (unsigned)(id - k->ids);
        if (!leave_frames_cold(k, &at, start, &end))
            return end;
        pc = at.pc, sp = at.sp, fp_at = at.fp_at, high = k->stack->high;
        id = k->ids + k->count;
    }
whole:
    k->count = (unsigned)(id - k->ids);
    return WALK_WHOLE;
}

/*
 * Finds the bounds of the stack if *s does not have them. If the hook's caller is the outermost frame, its stack
 * pointer may be the end of the stack. So the address of the word below, the return address, is looked up instead.
 */
static inline void enter(const struct walker *w, struct stack_bounds *s, const struct walk_start *start)
{
    if (unlikely(start->sp < s->low || start->sp >= s->high || s->checked_until))
        stack_enter(s, start->sp - sizeof(uintptr_t), true, *w->sealed != 0);
}

unsigned walk_stack(const struct walker *w, struct stack_bounds *stack, const struct walk_start *start,
                    uint32_t *ids, unsigned max, enum walk_end *end)
{
    struct walk k = {.w = w, .stack = stack, .ids = ids, .max = max, .sealed = *w->sealed != 0};
    enter(w, stack, start);
    *end = walk_cached(&k, start, NULL);
    return k.count;
}

/* Does a walk for walk_along(). `meet`: the innermost cached frame at which the walk may end; WALK_CACHE_END: none. */
static const uint32_t *walk_to_cache(const struct walker *w, struct walk_cache *cache,
                                     struct walk_cache_walk *own, struct stack_bounds *stack,
                                     const struct walk_start *start, uint32_t generation, unsigned meet,
                                     unsigned *depth, enum walk_end *end)
{
    struct walk k = {
        .w = w, .stack = stack, .ids = own->id, .max = WALK_CACHE_MAX, .sealed = *w->sealed != 0, .own = own};
    walk_cache_begin(own, meet, &start->fp);
    *end = walk_cached(&k, start, cache);
    *depth = k.count;
    if (unlikely(!own->whole || stack->checked_until))
        return own->id;
    unsigned from = walk_cache_join(cache, own, start->pc, stack->high, generation, k.count);
    if (likely(from < WALK_CACHE_END)) {
        *depth = WALK_CACHE_END - from;
        return cache->id + from;
    }
    for (unsigned i = own->meet; k.count < WALK_CACHE_MAX; i++)
        own->id[k.count++] = cache->id[i];
    *depth = k.count;
    *end = WALK_CUT;
    return own->id;
}

const uint32_t *walk_along(const struct walker *w, struct walk_cache *cache, struct walk_cache_walk *own,
                           struct stack_bounds *stack, const struct walk_start *start, uint32_t generation,
                           unsigned *depth, enum walk_end *end)
{
    enter(w, stack, start);
    unsigned meet = walk_cache_first(cache, stack->high, generation);
    if (likely(cache->at[meet].sp == start->sp)) {
        unsigned changed = walk_cache_first_changed(cache, meet, start->pc, &start->fp);
        if (likely(changed == WALK_CACHE_END)) {
            *end = WALK_WHOLE;
            *depth = WALK_CACHE_END - meet;
            return cache->id + meet;
        }
        meet = changed + 1;
    }
    return walk_to_cache(w, cache, own, stack, start, generation, meet, depth, end);
}

bool walk_out(const struct walker *w, struct stack_bounds *stack, struct walk_start *at)
{
    struct walk k = {.w = w, .stack = stack, .sealed = *w->sealed != 0};
    struct position p = {.pc = at->pc, .sp = at->sp, .fp_at = &at->fp};
    enter(w, stack, at);
    uint64_t rule = current_rule(&k, p.pc, rule_for(w, p.pc, word_cache_mask(w->cache)), 0);
    bool plain = rule_kind(rule) == RULE_RSP || rule_kind(rule) == RULE_RBP;
    if (!(plain && leave_simple(&k, rule, &p)) &&
        !(rule_kind(rule) == RULE_RBP_DEREF && leave_realigned(&k, rule, &p)))
        return false;
    *at = (struct walk_start){.pc = p.pc, .sp = p.sp, .fp = *p.fp_at};
    return p.pc != 0;
}

bool walk_out_known(const struct walker *w, const struct stack_bounds *stack, struct walk_start *at)
{
    uint64_t rule = word_cache_first(w->cache, at->pc, word_cache_mask(w->cache));
    bool by_rsp = (rule & (RULE_KIND | RULE_STAYS)) == (RULE_RSP | RULE_STAYS);
    if (!by_rsp && (rule & (RULE_KIND | RULE_STAYS)) != (RULE_RBP | RULE_STAYS))
        return false;
    uintptr_t cfa = (by_rsp ? at->sp : at->fp) + rule_cfa_offset(rule), saved = cfa - rule_rbp_offset(rule);
    if (at->sp < stack->low || cfa <= at->sp || cfa > stack->high || cfa & 7 || saved < at->sp)
        return false;
    *at =
        (struct walk_start){.pc = word_at(cfa - 8), .sp = cfa, .fp = saved == cfa ? at->fp : word_at(saved)};
    return true;
}

uint32_t walk_caller(const struct walker *w, uintptr_t pc)
{
    struct walk k = {.w = w};
    uint64_t rule = current_rule(&k, pc, rule_for(w, pc, word_cache_mask(w->cache)), 0);
    return rule == RULE_NONE ? WALK_NO_ID : rule_id(rule);
}
