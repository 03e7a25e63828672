/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_PLT_H
#define SYMBOL_PLT_H

/*
 * The stubs through which a module calls other modules, each with the symbol whose address it jumps to. x86-64 only.
 *
 * Runs in: the tool. Owns: nothing.
 */

#include "base/vec.h"

#include <libelf.h>
#include <stdint.h>

struct symbol_stub {
    uint64_t low, high;
    const char *symbol; /* in the file's string table */
};

struct symbol_stubs VEC(struct symbol_stub);

/** Adds what .plt, .plt.sec and .plt.got hold; the caller releases `out`. */
void symbol_plt_read(Elf *elf, struct symbol_stubs *out);

#endif
