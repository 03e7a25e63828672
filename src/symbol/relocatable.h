/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_RELOCATABLE_H
#define SYMBOL_RELOCATABLE_H

/*
 * Relocatable ELF files, as modules of the kernel are: their sections have no addresses, and their debug information
 * refers to sections by relocations. Here the sections get addresses, and the debug information is relocated to them.
 *
 * Runs in: the tool. Owns: struct relocated, until relocated_free(). It borrows the Elf handle.
 */

#include <stdint.h>

#include <elfutils/libdw.h>
#include <libelf.h>

/**
 * Gives an address to each section that is in memory when the file is loaded; to those with code first, in their
 * order, so that a file and its separate debug file have the same addresses of code. Changes only the headers in
 * memory. A second call changes nothing.
 */
void relocatable_lay_out(Elf *elf);

struct relocated;

/** Relocates the debug information of a file that was laid out. Returns NULL if that is not possible. */
struct relocated *relocated_new(Elf *elf);
/** Returns the debug information; it belongs to `r`. */
Dwarf *relocated_dwarf(const struct relocated *r);
/** NULL is allowed. */
void relocated_free(struct relocated *r);

#endif
