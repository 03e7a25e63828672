/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TARGET_ELF_SYMBOLS_H
#define TARGET_ELF_SYMBOLS_H

/*
 * Looks up the name of a function in the symbol table of a module's file, because the loader maps no such table.
 *
 * Runs in: target, cold paths; some system calls for each kilobyte of the table. Threads: any, signal handlers
 * included; no lock.
 * Invariant: nothing in the file is trusted. The file may be damaged, or was replaced after the module had been loaded.
 */

#include <stdint.h>

#define ELF_SYMBOLS_PATH_BYTES 1024
#define ELF_SYMBOLS_NAME_BYTES 256

/**
 * Stores the path of the module whose l_name (link.h) is `name`; "" is the program. Stores "" if the path is unknown.
 */
void elf_symbols_path(const char *name, char path[static ELF_SYMBOLS_PATH_BYTES]);
/**
 * Stores the name of the function at `address`, an address as the file counts it; the first page of the file is mapped
 * at `image`. Stores "" if the file cannot be read or is not the mapped one, if it has no symbol there, or if the name
 * is too long.
 */
void elf_symbols_name(const char *path, const void *image, uint64_t address,
                      char name[static ELF_SYMBOLS_NAME_BYTES]);

#endif
