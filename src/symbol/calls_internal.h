/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_CALLS_INTERNAL_H
#define SYMBOL_CALLS_INTERNAL_H

/* The data of a module's file that show the targets of its call instructions. calls.c examines one
 * instruction, calls_of.c all instructions of a function. */

#include <string.h>

#include "symbol/calls.h"
#include "symbol/elf_file.h"
#include "symbol/plt.h"

struct symbol_code {
    uint64_t low, high;
    const uint8_t *bytes;
};

struct symbol_calls {
    struct symbol_object *object;
    struct VEC(struct symbol_code) codes;
    struct symbol_stubs stubs;
    struct symbol_slots slots;
};

/** Reads a 32-bit offset, of an instruction for example, and extends its sign. */
static inline uint64_t symbol_calls_distance(const uint8_t *at)
{
    int32_t d;
    memcpy(&d, at, sizeof(d));
    return (uint64_t)(int64_t)d;
}

#endif
