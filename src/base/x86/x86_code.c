/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/x86/x86_code.h"

#include <Zydis/Zydis.h>

#define SIZE_MOST 65536u /* of a function whose size is not known */

/* Returns the target of a call or jump; 0: it has none that the code tells. */
static uint64_t target_of(const ZydisDecodedInstruction *i, const ZydisDecodedOperand *operand, uint64_t at)
{
    ZyanU64 target = 0;
    const bool leaves = i->meta.category == ZYDIS_CATEGORY_CALL ||
                        i->meta.category == ZYDIS_CATEGORY_UNCOND_BR ||
                        i->meta.category == ZYDIS_CATEGORY_COND_BR;
    if (!leaves || operand->type != ZYDIS_OPERAND_TYPE_IMMEDIATE || !operand->imm.is_relative ||
        !ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(i, operand, at, &target)))
        return 0;
    return target;
}

static bool ends_flow(const ZydisDecodedInstruction *i)
{
    return i->meta.category == ZYDIS_CATEGORY_RET || i->meta.category == ZYDIS_CATEGORY_UNCOND_BR;
}

void x86_code_targets(const struct x86_code *code, uint64_t entry, uint64_t size, x86_target_fn *fn,
                      void *arg)
{
    ZydisDecoder decoder;
    ZydisDecodedInstruction i;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    if (entry < code->low || entry >= code->high)
        return;
    const uint64_t most = size ? size : SIZE_MOST, left = code->high - entry;
    const uint64_t end = entry + (most < left ? most : left);
    uint64_t at = entry, passed = entry; /* no end of the function is below `passed` */
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    while (at < end && ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code->bytes + (at - code->low), end - at,
                                                           &i, operands))) {
        const uint64_t target = i.operand_count ? target_of(&i, &operands[0], at) : 0;
        const bool calls = i.meta.category == ZYDIS_CATEGORY_CALL;
        const bool is_inside = target >= entry && target < end && (size || !calls);
        at += i.length;
        if (target && (!is_inside || (calls && target == entry)))
            fn(arg, target, calls);
        else if (target > passed && i.meta.category == ZYDIS_CATEGORY_COND_BR)
            passed = target;
        if (!size && ends_flow(&i) && at > passed) {
            if (target && is_inside) /* a jump to the next function, perhaps */
                fn(arg, target, false);
            break;
        }
    }
}
