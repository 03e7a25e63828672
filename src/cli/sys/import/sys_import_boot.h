/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_SYS_IMPORT_BOOT_H
#define CLI_SYS_IMPORT_BOOT_H

/*
 * `allium sys import --boot`: a recording of the trace that the kernel began with its boot.
 *
 * Runs in: the tool, as root. Threads: one. Owns: nothing.
 */

#include <stdbool.h>

struct sys_import_boot {
    const char *output;
    const char *vmlinux; /* NULL: the one that is installed, if one is */
    const char *source;  /* of --source; NULL: what is installed, without debug information */
    bool force, quiet;
};

/** Reads the trace, which empties the kernel's buffers, and writes the recording. Returns the exit code. */
int sys_import_boot(const struct sys_import_boot *q);

#endif
