/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_LOADER_FILES_H
#define COLLECT_LOADER_FILES_H

/*
 * The libraries that the dynamic loader would map for a program, without starting the program: the program's own loader
 * is run with --list, in the present environment. So LD_LIBRARY_PATH, RUNPATH and the loader's cache apply. And the
 * libraries that a process has mapped.
 *
 * Runs in: the tool; starts a process. Threads: any.
 */

#include <sys/types.h>

#include "base/vec.h"

struct loader_file {
    char *name; /* by which it was asked for: "libc.so.6"; of a process: the path of the mapping */
    char *path;
};

struct loader_files VEC(struct loader_file);

/**
 * Adds the program's libraries to `out`. `also`: a library that is looked for as if the program needed it; NULL: none.
 * Returns 0 or -errno; -ENOEXEC: the program has no loader.
 */
int loader_files_read(const char *program, const char *also, struct loader_files *out);
/**
 * Adds the files with code that the process has mapped now, its program among them: each once, with a path by which
 * this process can open it, and its path in the other process as its name. Needs root. Returns 0 or -errno.
 */
int loader_files_of_process(pid_t pid, struct loader_files *out);
/** Returns a path by which this process can open the program of another one, for free(); NULL with errno set. */
char *loader_files_program(pid_t pid);
void loader_files_release(struct loader_files *f);

#endif
