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

/** A word of the GOT that the loader fills with the address of a symbol. */
struct symbol_slot {
    uint64_t address;
    const char *symbol; /* in the file's string table */
};

struct symbol_slots VEC(struct symbol_slot);

/** Reads all slots, sorted by address. The caller releases `out`. */
void symbol_plt_read_slots(Elf *elf, struct symbol_slots *out);
/** Returns the symbol of the slot at that address, or NULL. */
const char *symbol_slot_name(const struct symbol_slots *slots, uint64_t address);

/** Adds the stubs of .plt, .plt.sec and .plt.got. The caller releases `out`. */
void symbol_plt_read(Elf *elf, struct symbol_stubs *out);

#endif
