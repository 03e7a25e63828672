/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNWIND_CURSOR_H
#define UNWIND_CURSOR_H

/*
 * Reads DWARF bytes within bounds. A read past the end sets `overrun`, and its result has no meaning (mostly 0). The
 * caller needs to check `overrun` only once, after its last read.
 *
 * Runs in: target and tool. Threads: any.
 */

#include <stdbool.h>
#include <stdint.h>

struct cursor {
    const uint8_t *at, *end;
    bool overrun;
};

static inline bool cursor_has(struct cursor *c, uint64_t bytes)
{
    if ((uint64_t)(c->end - c->at) >= bytes)
        return true;
    c->overrun = true;
    c->at = c->end;
    return false;
}

static inline uint64_t cursor_bytes(struct cursor *c, unsigned bytes)
{
    uint64_t v = 0;
    if (!cursor_has(c, bytes))
        return 0;
    for (unsigned i = 0; i < bytes; i++)
        v |= (uint64_t)c->at[i] << (8 * i);
    c->at += bytes;
    return v;
}

static inline int64_t cursor_signed(struct cursor *c, unsigned bytes)
{
    unsigned shift = 64 - 8 * bytes;
    return (int64_t)(cursor_bytes(c, bytes) << shift) >> shift;
}

static inline uint64_t cursor_uleb(struct cursor *c)
{
    uint64_t v = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint8_t byte = (uint8_t)cursor_bytes(c, 1);
        if (shift < 64)
            v |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return v;
    }
}

static inline int64_t cursor_sleb(struct cursor *c)
{
    uint64_t v = 0;
    unsigned shift = 0;
    uint8_t byte;
    do {
        byte = (uint8_t)cursor_bytes(c, 1);
        if (shift < 64)
            v |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80);
    if (shift < 64 && (byte & 0x40))
        v |= ~0ull << shift;
    return (int64_t)v;
}

static inline void cursor_skip(struct cursor *c, uint64_t bytes)
{
    if (cursor_has(c, bytes))
        c->at += bytes;
}

/* DW_EH_PE_* (LSB 5.0, 10.5.1): the low nibble is the format, the high nibble the base of the address. */
#define PE_OMIT    0xff
#define PE_PCREL   0x10
#define PE_DATAREL 0x30

/**
 * Reads an encoded pointer. `data`: the base for PE_DATAREL. Supports absolute addresses and the bases PE_PCREL and
 * PE_DATAREL; all other encodings (indirect ones, for example) set `overrun`.
 */
static inline uintptr_t cursor_pointer(struct cursor *c, uint8_t encoding, uintptr_t data)
{
    uintptr_t base = 0;
    if ((encoding & 0xf0) == PE_PCREL)
        base = (uintptr_t)c->at;
    else if ((encoding & 0xf0) == PE_DATAREL)
        base = data;
    else if (encoding & 0xf0)
        c->overrun = true;
    switch (encoding & 0x0f) {
    case 0x00:
    case 0x04:
    case 0x0c:
        return base + cursor_bytes(c, 8);
    case 0x01:
        return base + cursor_uleb(c);
    case 0x02:
        return base + cursor_bytes(c, 2);
    case 0x03:
        return base + cursor_bytes(c, 4);
    case 0x09:
        return base + (uintptr_t)cursor_sleb(c);
    case 0x0a:
        return base + (uintptr_t)cursor_signed(c, 2);
    case 0x0b:
        return base + (uintptr_t)cursor_signed(c, 4);
    }
    c->overrun = true;
    return 0;
}

#endif
