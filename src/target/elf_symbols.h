/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TARGET_ELF_SYMBOLS_H
#define TARGET_ELF_SYMBOLS_H

/*
 * Looks up the name of a function in the symbol table of a module's file, because the loader does not map .symtab.
 *
 * Runs in: target, cold paths; one system call for each section of the file and for each 32 symbols. Threads: any,
 * signal handlers included; no lock.
 * Invariant: nothing in the file is trusted. The file may be damaged, or replaced since the module was loaded.
 */

#include <stdint.h>

#define ELF_SYMBOLS_PATH_BYTES 1024
#define ELF_SYMBOLS_NAME_BYTES 256

/**
 * Stores the path of the module with the l_name (link.h) `name`, which is "" for the program. Stores "" if the path is
 * too long or unknown.
 */
void elf_symbols_path(const char *name, char path[static ELF_SYMBOLS_PATH_BYTES]);
/**
 * Stores the name of the function at `address`, a virtual address of the ELF file `path` (like st_value). The first
 * page of the module's file is mapped at `image`. Stores "" if the file at `path` cannot be read or is another file, if
 * no symbol of a function covers the address, if the name is too long, or if no system call may be made (seccomp).
 */
void elf_symbols_name(const char *path, const void *image, uint64_t address,
                      char name[static ELF_SYMBOLS_NAME_BYTES]);

#endif
