/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/rule_compile.h"

#include <stddef.h>

#include "unwind/expr.h"

#define FAKE_RSP 0x700000001000u

_Static_assert(MODULE_MAX < RULE_MODULE_NONE, "module numbers fit a rule");

/*
 * If the CFA expression has the form rsp + n, where n depends only on the pc, as in a PLT stub, stores RULE_RSP and n
 * in *p. To check the form, the expression is evaluated twice, with the same pc but different values of all registers:
 * the results must differ by as much as rsp. False: the expression has another form, or cannot be evaluated.
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
            regs[i] = 0x100000; /* 0 at first: a result that depends on it changes by more than 4096 */
    if (!expr_eval(m, block, &ctx, NULL, &second) || second - first != 4096)
        return false;
    *p = (struct rule_parts){.kind = RULE_RSP, .cfa_offset = (int32_t)(first - FAKE_RSP)};
    return true;
}

/* Returns whether the expression is `DW_OP_breg6 offset`, and DW_OP_deref if `deref`; the offset must have 1 byte. */
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

struct rule_parts rule_compile_row(const struct unwind_module *m, const struct cfi_row *row, uintptr_t pc)
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
            !rbp_offset && p.cfa_offset % 8 == 0)
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
    if (p.cfa_offset % 8 || p.cfa_offset <= 0 || p.cfa_offset > RULE_OFFSET_MAX)
        p.kind = RULE_GENERAL;
    if (row->how[SLOT_RBP] == CFI_AT && row->value[SLOT_RBP] < 0 && row->value[SLOT_RBP] % 8 == 0 &&
        -row->value[SLOT_RBP] / 8 <= RULE_SLOT_MAX)
        p.rbp_slot = (uint32_t)(-row->value[SLOT_RBP] / 8);
    else if (row->how[SLOT_RBP] != CFI_SAME)
        p.kind = RULE_GENERAL;
    return p;
}
