/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNWIND_RULE_H
#define UNWIND_RULE_H

/*
 * An unwind rule in one word: how to find the caller of a frame with a given pc. The walk caches such words by pc.
 *
 * Runs in: target. Threads: any. Plain values.
 *
 *     bits  0..2   enum rule_kind
 *     bit   3      the module of the pc can never be unloaded
 *     bits  4..18  CFA offset / 8; signed in RULE_RBP_DEREF
 *     bits 19..29  n: the caller's rbp is at CFA - 8 * n; 0: rbp is unchanged
 *     bits 30..41  index of the module in unwind_modules; RULE_MODULE_NONE: pc is outside of all known modules
 *     bits 42..63  number of the frame, from walk_name_fn
 */

#include <stdbool.h>
#include <stdint.h>

enum rule_kind {
    RULE_NONE,      /* no rule: an empty cache entry, or walker.name() had no number for the frame */
    RULE_RSP,       /* CFA = rsp + offset */
    RULE_RBP,       /* CFA = rbp + offset */
    RULE_RBP_DEREF, /* CFA = *(rbp + offset), caller's rbp = *rbp: gcc's realigned stacks */
    RULE_SIGNAL,    /* the signal trampoline: the registers of the interrupted frame are in the ucontext */
    RULE_LAST,      /* the outermost frame: no caller */
    RULE_GENERAL,   /* one word cannot express the rule: it needs another register, for example */
    RULE_MISSING,   /* no usable rule: pc is outside of all modules, or the module has none for it */
};

#define RULE_KIND        7u
#define RULE_STAYS       8u
#define RULE_MODULE_NONE 0xfffu
#define RULE_OFFSET_MAX  (0x7fff * 8)
#define RULE_SLOT_MAX    0x7ff

struct rule_parts {
    enum rule_kind kind;
    int32_t cfa_offset; /* in bytes; if `kind` uses it: a multiple of 8, negative only in RULE_RBP_DEREF */
    uint32_t rbp_slot;
};

static inline uint64_t rule_pack(struct rule_parts p, uint32_t module, bool stays, uint32_t id)
{
    return (uint64_t)p.kind | (stays ? RULE_STAYS : 0) |
           ((uint64_t)(uint32_t)(p.cfa_offset / 8) & 0x7fff) << 4 | (uint64_t)p.rbp_slot << 19 |
           (uint64_t)module << 30 | (uint64_t)id << 42;
}
static inline enum rule_kind rule_kind(uint64_t rule)
{
    return (enum rule_kind)(rule & RULE_KIND);
}
static inline uint64_t rule_cfa_offset(uint64_t rule)
{
    return rule >> 1 & RULE_OFFSET_MAX;
}
static inline int64_t rule_deref_offset(uint64_t rule)
{
    return (int64_t)(rule << 45) >> 49 << 3;
}
/** Returns the distance in bytes from the CFA down to the saved rbp of the caller; 0: rbp is unchanged. */
static inline uint64_t rule_rbp_offset(uint64_t rule)
{
    return rule >> 16 & RULE_SLOT_MAX << 3;
}
static inline uint32_t rule_module(uint64_t rule)
{
    return rule >> 30 & 0xfff;
}
static inline uint32_t rule_id(uint64_t rule)
{
    return (uint32_t)(rule >> 42);
}

#endif
