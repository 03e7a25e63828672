/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_FUNCTION_INDEX_H
#define SYMBOL_FUNCTION_INDEX_H

/*
 * The functions of a vmlinux or of a module of the kernel by their names, of which traces have "name+0x1b/0x2a0".
 * Several functions may have one name; their sizes tell them apart. The kernel takes for a size the distance to the
 * next symbol, while ELF files have the bytes of the code: both are known here.
 *
 * Runs in: the tool. Threads: one at a time. Owns: everything, until function_index_free(); not the Elf handle, which
 * is not needed any more.
 */

#include <libelf.h>
#include <stdint.h>

struct function_index;

/** What a name means. */
enum function_found {
    FUNCTION_NONE,    /* no function of this name, or none of this size */
    FUNCTION_ONE,     /* this one */
    FUNCTION_SEVERAL, /* more than one: nothing tells which */
};

/** Reads the symbols of a file, whose sections have addresses: see relocatable.h. Never returns NULL. */
struct function_index *function_index_new(Elf *elf);
/** NULL is allowed. */
void function_index_free(struct function_index *x);

/**
 * Sets the address in the file of the byte at this offset in the function. `bytes`: its size, as the kernel takes it;
 * 0: not known.
 */
enum function_found function_index_find(const struct function_index *x, const char *name, uint64_t offset,
                                        uint64_t bytes, uint64_t *address);
/** Returns how many functions have the name. */
unsigned function_index_count(const struct function_index *x, const char *name);

#endif
