/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_BUILT_FILES_H
#define SYMBOL_BUILT_FILES_H

/*
 * Which files of a kernel's source are part of a kernel, and of which modules, by its architecture, its configuration
 * and the Makefiles. Conditions in Makefiles are not known: what is within one may be built.
 *
 * Runs in: the tool. Threads: one at a time. Owns: its tables, until built_files_free(). The index must outlive it.
 */

#include <stdbool.h>
#include <stdint.h>

#include "symbol/tree/source_index.h"

struct built_files;

/** Bits. 0: the file is not built. */
enum built {
    BUILT_IN = 1,     /* into the kernel itself */
    BUILT_MODULE = 2, /* into a module */
    BUILT_MAYBE = 4,  /* no Makefile names it: it may be included by another file */
};

#define BUILT_NONE UINT32_MAX

/**
 * `config`: the text of a configuration; NULL: not known. `arch`: the folder below arch/; NULL: the configuration
 * tells it.
 */
struct built_files *built_files_new(const struct source_index *s, const char *config, const char *arch);
/** NULL is allowed. */
void built_files_free(struct built_files *b);

/** Returns bits of enum built for a file of the index. */
unsigned built_files_state(struct built_files *b, uint32_t file);
/** Returns whether the file is part of the module ("dm_mod"). */
bool built_files_in_module(struct built_files *b, uint32_t file, const char *module);
/** Returns the only file of a module, or BUILT_NONE: it has several, or it is not known. */
uint32_t built_files_only(struct built_files *b, const char *module);

#endif
