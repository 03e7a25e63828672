/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TARGET_ELF_SYMBOLS_H
#define TARGET_ELF_SYMBOLS_H

/*
 * Names a function by the symbol table in the file of its module. The loader does not map that table.
 *
 * Runs in: target, cold paths; some system calls for each kilobyte of the table. Threads: any, signal handlers
 * included; no lock.
 * Invariant: nothing in the file is trusted. It may have been replaced since it was loaded, or be damaged.
 */

#include <stdint.h>

#define ELF_SYMBOLS_PATH_BYTES 1024
#define ELF_SYMBOLS_NAME_BYTES 256

/** Finds the path of the module that the loader calls `name` ("": the program). "": it is unknown. */
void elf_symbols_path(const char *name, char path[static ELF_SYMBOLS_PATH_BYTES]);
/**
 * Finds the name of the function at an address of the file, whose first page is mapped at `image`. "": the file
 * cannot be read or is not the one that is mapped, it has no symbol there, or the name is too long.
 */
void elf_symbols_name(const char *path, const void *image, uint64_t address,
                      char name[static ELF_SYMBOLS_NAME_BYTES]);

#endif
