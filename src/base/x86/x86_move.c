/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/x86/x86_move.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <Zydis/Zydis.h>

#define ENDBR64_BYTES 4u

struct out {
    uint8_t *at;
    size_t room, length;
    uint64_t address; /* of at[0] */
};

static int put(struct out *o, const void *bytes, size_t n)
{
    if (o->room - o->length < n)
        return -EINVAL;
    memcpy(o->at + o->length, bytes, n);
    o->length += n;
    return 0;
}

static bool distance(uint64_t from, uint64_t to, int32_t *d)
{
    const int64_t far = (int64_t)(to - from);
    *d = (int32_t)far;
    return far == *d;
}

int x86_jump(uint64_t at, uint64_t to, uint8_t *out)
{
    int32_t d;
    if (!distance(at + X86_JUMP_BYTES, to, &d))
        return -ERANGE;
    out[0] = 0xe9;
    memcpy(out + 1, &d, sizeof(d));
    return 0;
}

/* A branch: those with a distance of one byte get four. */
static int put_branch(struct out *o, const ZydisDecodedInstruction *i, uint64_t target)
{
    uint8_t code[6] = {0xe9};
    size_t length = 1;
    int32_t d;
    if (i->meta.category == ZYDIS_CATEGORY_COND_BR) {
        const bool is_short = i->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT;
        if ((is_short && (i->opcode & 0xf0) != 0x70) || (!is_short && i->opcode_map != ZYDIS_OPCODE_MAP_0F))
            return -EINVAL; /* jrcxz, loop */
        code[0] = 0x0f;
        code[1] = 0x80 | (i->opcode & 0x0f);
        length = 2;
    } else if (i->meta.category != ZYDIS_CATEGORY_UNCOND_BR) {
        return -EINVAL; /* a call, whose return address would be another one */
    }
    if (!distance(o->address + o->length + length + sizeof(d), target, &d))
        return -ERANGE;
    memcpy(code + length, &d, sizeof(d));
    return put(o, code, length + sizeof(d));
}

static int move_one(struct out *o, const ZydisDecodedInstruction *i, const uint8_t *bytes, uint64_t at)
{
    if (i->raw.imm[0].is_relative)
        return put_branch(o, i, at + i->length + (uint64_t)i->raw.imm[0].value.s);
    const size_t begin = o->length;
    int32_t d;
    if (put(o, bytes, i->length))
        return -EINVAL;
    if (!(i->attributes & ZYDIS_ATTRIB_IS_RELATIVE))
        return 0;
    if (!distance(o->address + o->length, at + i->length + (uint64_t)i->raw.disp.value, &d))
        return -ERANGE;
    memcpy(o->at + begin + i->raw.disp.offset, &d, sizeof(d));
    return 0;
}

/* Returns whether no branch of the function leads into its bytes [low, high). */
static bool is_entered_in_front(const ZydisDecoder *decoder, const struct x86_function *f, uint64_t low,
                                uint64_t high)
{
    ZydisDecodedInstruction i;
    ZydisDecoderContext context;
    for (size_t at = high - f->at; at < f->length; at += i.length) {
        if (!ZYAN_SUCCESS(
                ZydisDecoderDecodeInstruction(decoder, &context, f->bytes + at, f->length - at, &i)))
            return false;
        const uint64_t target = f->at + at + i.length + (uint64_t)i.raw.imm[0].value.s;
        if (i.raw.imm[0].is_relative && target > low && target < high)
            return false;
    }
    return true;
}

int x86_move(const struct x86_function *f, uint64_t to, uint8_t *out, size_t room, struct x86_moved *moved)
{
    static const uint8_t endbr64[ENDBR64_BYTES] = {0xf3, 0x0f, 0x1e, 0xfa};
    ZydisDecoder decoder;
    ZydisDecodedInstruction i;
    ZydisDecoderContext context;
    struct out o = {.at = out, .room = room, .address = to};
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    *moved = (struct x86_moved){0};
    if (f->length >= ENDBR64_BYTES && !memcmp(f->bytes, endbr64, ENDBR64_BYTES))
        moved->skipped = ENDBR64_BYTES;
    size_t at = moved->skipped;
    while (at - moved->skipped < X86_JUMP_BYTES) {
        if (at >= f->length || !ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, &context, f->bytes + at,
                                                                           f->length - at, &i)))
            return -EINVAL;
        const int bad = move_one(&o, &i, f->bytes + at, f->at + at);
        if (bad)
            return bad;
        at += i.length;
    }
    moved->taken = (uint32_t)(at - moved->skipped);
    if (!is_entered_in_front(&decoder, f, f->at + moved->skipped, f->at + at) ||
        room - o.length < X86_JUMP_BYTES)
        return -EINVAL;
    const int bad = x86_jump(to + o.length, f->at + at, out + o.length);
    moved->length = (uint32_t)o.length + X86_JUMP_BYTES;
    return bad;
}
