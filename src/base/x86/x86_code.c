/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/x86/x86_code.h"

#include <Zydis/Zydis.h>

#include "base/hash_map.h"
#include "base/vec.h"

#define INSTRUCTIONS_MAX 20000u /* of a function and those that it jumps to; no allocator has so many */

struct walk {
    const struct x86_code *code;
    ZydisDecoder decoder;
    struct map seen;               /* addresses of instructions */
    struct VEC(uint64_t) branches; /* to be followed */
    x86_exit_fn *fn;
    void *arg;
};

/* Returns the target of a call or jump; 0: the code does not tell it. */
static uint64_t target_of(const ZydisDecodedInstruction *i, uint64_t at)
{
    return i->raw.imm[0].is_relative ? at + i->length + (uint64_t)i->raw.imm[0].value.s : 0;
}

/* Handles the instruction. Returns whether the one behind it follows. */
static bool follow(struct walk *w, const ZydisDecodedInstruction *i, uint64_t at)
{
    const uint64_t target = target_of(i, at);
    switch (i->meta.category) {
    case ZYDIS_CATEGORY_RET:
        w->fn(w->arg, at, X86_RETURNS);
        return false;
    case ZYDIS_CATEGORY_CALL:
        return !target || w->fn(w->arg, target, X86_CALLS);
    case ZYDIS_CATEGORY_COND_BR:
    case ZYDIS_CATEGORY_UNCOND_BR:
        if (target && w->fn(w->arg, target, X86_JUMPS))
            *vec_push(&w->branches) = target;
        return i->meta.category == ZYDIS_CATEGORY_COND_BR;
    default:
        return i->mnemonic != ZYDIS_MNEMONIC_HLT && i->mnemonic != ZYDIS_MNEMONIC_UD2;
    }
}

/* Follows the code up to the first end, or to an instruction that was followed before. */
static void follow_line(struct walk *w, uint64_t at)
{
    ZydisDecodedInstruction i;
    ZydisDecoderContext context; /* for operands, which nobody asks for */
    bool goes_on = true;
    while (goes_on && at >= w->code->low && at < w->code->high && w->seen.len < INSTRUCTIONS_MAX) {
        map_put_u64(&w->seen, at, 0, &goes_on);
        if (!goes_on ||
            !ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(
                &w->decoder, &context, w->code->bytes + (at - w->code->low), w->code->high - at, &i)))
            return;
        goes_on = follow(w, &i, at);
        at += i.length;
    }
}

void x86_code_exits(const struct x86_code *code, uint64_t entry, x86_exit_fn *fn, void *arg)
{
    struct walk w = {.code = code, .fn = fn, .arg = arg};
    ZydisDecoderInit(&w.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    *vec_push(&w.branches) = entry;
    while (w.branches.len)
        follow_line(&w, w.branches.at[--w.branches.len]);
    vec_release(&w.branches);
    map_release(&w.seen);
}
