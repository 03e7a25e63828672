/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbol/probe/probe_place.h"

#include <string.h>

#define AFTER_MOST 32u /* bytes of instructions before the place */

/* rcx, rdx, rsp, rsi, rdi, r8, r9: what must not change before the place. */
#define KEPT_REGISTERS (1u << 1 | 1u << 2 | 1u << 4 | 1u << 6 | 1u << 7 | 1u << 8 | 1u << 9)

struct probe_place probe_place_at(const uint8_t *code, size_t bytes)
{
    const struct probe_place stepped = {0, PROBE_PLACE_STEPPED, "stepped"};
    if (!bytes)
        return stepped;
    const uint8_t second = bytes > 1 ? code[1] : 0;
    if (code[0] == 0x90)
        return (struct probe_place){0, PROBE_PLACE_NOP, "nop"};
    if ((code[0] & 0xf8) == 0x50 || (code[0] == 0x41 && (second & 0xf8) == 0x50))
        return (struct probe_place){0, PROBE_PLACE_EMULATED, "push"};
    if (code[0] == 0xe8)
        return (struct probe_place){0, PROBE_PLACE_EMULATED, "call"};
    if (code[0] == 0xe9 || code[0] == 0xeb || (code[0] & 0xf0) == 0x70 ||
        (code[0] == 0x0f && (second & 0xf0) == 0x80))
        return (struct probe_place){0, PROBE_PLACE_EMULATED, "jump"};
    return stepped;
}

/* Returns the bytes of a ModRM byte with all that belongs to it; 0: there are not so many. */
static size_t modrm_bytes(const uint8_t *at, size_t bytes)
{
    if (!bytes)
        return 0;
    const unsigned mod = at[0] >> 6, rm = at[0] & 7;
    size_t n = 1 + (mod == 1) + 4 * (mod == 2 || (mod == 0 && rm == 5));
    if (mod != 3 && rm == 4) {
        if (bytes < 2)
            return 0;
        n += 1 + 4 * (mod == 0 && (at[1] & 7) == 5);
    }
    return n <= bytes ? n : 0;
}

static bool may_change(unsigned reg)
{
    return !(KEPT_REGISTERS >> reg & 1);
}

/* Returns the bytes of a nop of several bytes, or of endbr64; 0: it is none. */
static size_t nop_bytes(const uint8_t *at, size_t bytes)
{
    static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
    size_t n = 0;
    if (bytes >= sizeof(endbr64) && !memcmp(at, endbr64, sizeof(endbr64)))
        return sizeof(endbr64);
    while (n < bytes && (at[n] == 0x66 || at[n] == 0x2e))
        n++;
    if (n && n < bytes && at[n] == 0x90)
        return n + 1;
    if (n + 2 >= bytes || at[n] != 0x0f || at[n + 1] != 0x1f)
        return 0;
    const size_t rest = modrm_bytes(at + n + 2, bytes - n - 2);
    return rest ? n + 2 + rest : 0;
}

bool probe_place_is_unsafe(const uint8_t *code, size_t bytes)
{
    return nop_bytes(code, bytes) == 5;
}

/*
 * Returns the bytes of an instruction that leaves the stack pointer and the arguments alone, writes no memory and goes
 * on behind itself; 0: it is none, or not one that is known here.
 */
static size_t harmless_bytes(const uint8_t *at, size_t bytes)
{
    const size_t nop = nop_bytes(at, bytes);
    if (nop)
        return nop;
    const bool has_rex = bytes && (at[0] & 0xf0) == 0x40;
    const unsigned rex = has_rex ? at[0] : 0;
    if (bytes < has_rex + 2u)
        return 0;
    const uint8_t op = at[has_rex], *modrm = at + has_rex + 1;
    const unsigned reg = (*modrm >> 3 & 7) | (rex & 4) << 1, rm = (*modrm & 7) | (rex & 1) << 3;
    const bool is_register = *modrm >> 6 == 3;
    const size_t operand = modrm_bytes(modrm, bytes - has_rex - 1);
    if (!operand)
        return 0;
    switch (op) {
    case 0x39: /* cmp, test */
    case 0x3b:
    case 0x85:
        return has_rex + 1 + operand;
    case 0x31: /* xor, mov to a register */
    case 0x89:
        return is_register && may_change(rm) ? has_rex + 1 + operand : 0;
    case 0x33:
    case 0x8b:
        return may_change(reg) ? has_rex + 1 + operand : 0;
    case 0x8d: /* lea */
        return !is_register && may_change(reg) ? has_rex + 1 + operand : 0;
    case 0x83: /* cmp with a constant */
        return (*modrm >> 3 & 7) == 7 ? has_rex + 1 + operand + 1 : 0;
    default:
        if ((op & 0xf8) == 0xb8 && !(rex & 8) &&
            may_change((op & 7u) | (rex & 1) << 3)) /* mov of a constant */
            return has_rex + 5u;
        return 0;
    }
}

static int64_t distance(const uint8_t *at, bool is_short)
{
    int32_t far;
    if (is_short)
        return (int8_t)*at;
    memcpy(&far, at, sizeof(far));
    return far;
}

/*
 * Returns whether there may be a jump to an address above `low`, up to `high`. Each byte is taken for the beginning of
 * a jump: so none is missed, and some that are none are found.
 */
static bool is_jumped_to(const uint8_t *code, size_t bytes, size_t low, size_t high)
{
    for (size_t i = 0; i + 2 <= bytes; i++) {
        const bool is_short = code[i] == 0xeb || (code[i] & 0xf0) == 0x70 || (code[i] & 0xfc) == 0xe0;
        const bool is_long = code[i] == 0xe9 || code[i] == 0xe8;
        const bool is_two = code[i] == 0x0f && (code[i + 1] & 0xf0) == 0x80;
        const size_t at = i + 1 + is_two, end = at + (is_short ? 1 : 4);
        if ((!is_short && !is_long && !is_two) || end > bytes)
            continue;
        const int64_t to = (int64_t)end + distance(code + at, is_short);
        if (to > (int64_t)low && to <= (int64_t)high)
            return true;
    }
    return false;
}

struct probe_place probe_place_choose(const uint8_t *code, size_t bytes, size_t entry, size_t size)
{
    const size_t end = size && size < bytes - entry ? entry + size : bytes;
    const struct probe_place first = probe_place_at(code + entry, bytes - entry);
    struct probe_place best = first;
    size_t at = entry;
    while (best.kind == PROBE_PLACE_STEPPED && at - entry < AFTER_MOST) {
        const size_t skipped = harmless_bytes(code + at, bytes - at);
        if (!skipped || skipped >= end - at)
            break;
        at += skipped;
        best = probe_place_at(code + at, bytes - at);
        best.after = at - entry;
    }
    const bool fits =
        best.kind != PROBE_PLACE_STEPPED && !is_jumped_to(code, bytes, entry, entry + best.after);
    return fits || !best.after ? best : first;
}
