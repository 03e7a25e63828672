/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_MODULE_SEARCH_H
#define SYMBOL_MODULE_SEARCH_H

/*
 * Where the debug files of a kernel's modules may be: beside its vmlinux, or where distributions and builds put them.
 * Folders are listed once, when they are first needed.
 *
 * Runs in: the tool. Threads: one at a time. Owns: the paths that it returns, until module_search_free().
 * Invariant: links to folders are not followed, and no folder is listed as a whole that is not one of modules: it has a
 * folder `kernel` or a file modules.order.
 */

#include <stddef.h>

struct module_search;

/**
 * `vmlinux`: its path, or NULL. `release`: "6.12.0-1-amd64", "": not known. `root` is put before /lib, /usr and so on;
 * it is "" except in tests. Never returns NULL.
 */
struct module_search *module_search_new(const char *root, const char *release, const char *vmlinux);
/** NULL is allowed. */
void module_search_free(struct module_search *s);

/** Returns the n-th file (from 0) that may be that module's; the ones beside vmlinux come first. NULL: no more. */
const char *module_search_path(struct module_search *s, const char *module, size_t n);

#endif
