/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_SOURCE_FINDER_H
#define SYMBOL_SOURCE_FINDER_H

/*
 * Finds the source files of a kernel's functions by the names of the functions alone, with an index of the source. If
 * several files define a name, three things decide: which files are built, the module, and the order of the symbols
 * (the symbols of one object file follow one another). If they do not decide, the file is reported as unknown, because
 * a wrong file would be worse.
 *
 * Functions of headers have no file: whether one was compiled on its own, or for which file, is not known.
 *
 * Runs in: the tool. Threads: one at a time. Owns: everything but the symbols, until source_finder_free().
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "symbol/function_index.h"

struct kallsyms;
struct source_finder;

/** A kernel. */
struct source_kernel {
    const char *config; /* text of its configuration; NULL: not known */
    const char *arch;   /* the folder below arch/; NULL: the configuration, or else the symbols tell */
};

/** A definition. The path is valid until the finder is freed. */
struct source_place {
    const char *file; /* below the top of the tree */
    uint32_t line;    /* at which the function begins */
};

/** Opens the index of a source as source_index_open() does. Returns 0, or -errno with a line. */
int source_finder_open(struct source_finder **out, const char *source, const char *cache, bool *made,
                       struct error *e);
/** NULL is allowed. */
void source_finder_free(struct source_finder *f);

/** Returns "6.12.117", or "". */
const char *source_finder_version(const struct source_finder *f);
/** Returns whether the release ("6.12.117+deb12-amd64") begins with the version of the source. */
bool source_finder_fits(const struct source_finder *f, const char *release);

/** Says of which kernel the names are. Texts are not needed afterwards. Not called: any kernel. */
void source_finder_set_kernel(struct source_finder *f, const struct source_kernel *k);
/** The symbols of the kernel, sorted by address, which must outlive the finder; NULL: there are none. */
void source_finder_use_symbols(struct source_finder *f, const struct kallsyms *symbols);

/**
 * Finds a function, as the kernel names it: "ext4_free_inode.part.0". `module`: "" for the kernel itself. `bytes`: its
 * size, as the kernel takes it; 0: not known. FUNCTION_SEVERAL: the kernel has several of that name and size, in
 * different files. Sets `out` if the result is FUNCTION_ONE.
 */
enum function_found source_finder_find(struct source_finder *f, const char *module, const char *function,
                                       uint64_t bytes, struct source_place *out);
/** Like the function above, for the function that has this address among the symbols. */
enum function_found source_finder_at(struct source_finder *f, uint64_t address, struct source_place *out);
/** Returns whether the symbols have more than one function of this name in the kernel, or in a module. */
bool source_finder_is_several(struct source_finder *f, const char *module, const char *function);

#endif
