/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TARGET_ELF_SYMBOLS_H
#define TARGET_ELF_SYMBOLS_H

/*
 * The name of a function, from the symbol table in the file of its module, which nobody has loaded.
 *
 * Runs in: target, cold paths; some system calls for each kilobyte of the table. Threads: any, signal handlers
 * included; no lock.
 * Invariant: the file may be another by now, or damaged: nothing in it is trusted.
 */

#include <stdint.h>

#define ELF_SYMBOLS_PATH_BYTES 1024
#define ELF_SYMBOLS_NAME_BYTES 256

/** The path of a module that the loader has under that name ("": the program). "" if it is not known. */
void elf_symbols_path(const char *name, char path[static ELF_SYMBOLS_PATH_BYTES]);
/**
 * Of the function at that address in the file, which is mapped at `image`. "": the file cannot be read, is another one,
 * has no such symbol, or it is longer.
 */
void elf_symbols_name(const char *path, const void *image, uint64_t address,
                      char name[static ELF_SYMBOLS_NAME_BYTES]);

#endif
