/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_KERNEL_MODULES_H
#define SYMBOL_KERNEL_MODULES_H

/*
 * The modules of a kernel in their debug files: which file is a module's, and where in it a function or an address
 * lies. symbol/symbol.h tells the source of that place.
 *
 * A file is taken if it has debug information, and the build id that the running kernel shows for the module. If the
 * kernel does not run here, or its modules have no build ids, the first file that is found is taken.
 *
 * Runs in: the tool. Threads: one at a time. Owns: everything, until kernel_modules_free().
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "symbol/function_index.h"
#include "symbol/symbol.h"

struct kernel_modules;
struct symbol_servers;

struct kernel_modules_of {
    const char *root;    /* before /sys, /lib and so on; "" except in tests */
    const char *release; /* of the kernel; "": not known */
    const char *vmlinux; /* its path; modules may be beside it */
    bool running;        /* the kernel runs here: /sys/module tells build ids and addresses */
};

/** Never returns NULL. */
struct kernel_modules *kernel_modules_new(const struct kernel_modules_of *of);
/** NULL is allowed. */
void kernel_modules_free(struct kernel_modules *m);
/** Sets the servers that are asked for debug files by build id; NULL: none. They must live longer. */
void kernel_modules_use_servers(struct kernel_modules *m, struct symbol_servers *servers);

/** A place in a file of debug information, for symbols_resolve(). It belongs to the modules. */
struct kernel_module_place {
    struct symbol_module file;
    uint64_t address;
};

/** Finds the byte at this offset in a function of a module; `bytes` as in function_index_find(). */
enum function_found kernel_modules_find(struct kernel_modules *m, const char *module, const char *function,
                                        uint64_t offset, uint64_t bytes, struct kernel_module_place *out);
/** Finds the place of an address in memory. Returns false if the kernel does not show where the module's code is. */
bool kernel_modules_at(struct kernel_modules *m, const char *module, uint64_t address,
                       struct kernel_module_place *out);
/** Returns how many functions of a module have this name. */
unsigned kernel_modules_count(struct kernel_modules *m, const char *module, const char *function);

/** Appends a sentence about each file that was not taken because its build id is another one, separated by "; ". */
void kernel_modules_add_refused(const struct kernel_modules *m, struct buf *b);

#endif
