/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_LOADER_FILES_H
#define COLLECT_LOADER_FILES_H

/*
 * The libraries that the dynamic loader would map for a program, without starting the program: the program's own loader
 * is run with --list, in the present environment. So LD_LIBRARY_PATH, RUNPATH and the loader's cache apply.
 *
 * Runs in: the tool; starts a process. Threads: any.
 */

#include "base/vec.h"

struct loader_file {
    char *name; /* by which it was asked for: "libc.so.6"; see also mapped_code.h */
    char *path;
};

struct loader_files VEC(struct loader_file);

/**
 * Adds the program's libraries to `out`. `also`: a library that is looked for as if the program needed it; NULL: none.
 * Returns 0 or -errno; -ENOEXEC: the program has no loader.
 */
int loader_files_read(const char *program, const char *also, struct loader_files *out);
void loader_files_release(struct loader_files *f);

#endif
