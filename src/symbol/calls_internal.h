/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_CALLS_INTERNAL_H
#define SYMBOL_CALLS_INTERNAL_H

/* What of a module's file tells what its instructions call: calls.c looks at one, calls_of.c for all of a function. */

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

/** As an instruction has it, or another offset of 32 bits. */
static inline uint64_t symbol_calls_distance(const uint8_t *at)
{
    int32_t d;
    memcpy(&d, at, sizeof(d));
    return (uint64_t)(int64_t)d;
}

#endif
