/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_IMPORT_NAMES_H
#define CLI_IMPORT_NAMES_H

/*
 * The symbols of the kernel that an imported trace is of: a copy of its /proc/kallsyms, one that the trace has with it,
 * or those of the running kernel if the trace is of it. And the source of that kernel, by its vmlinux.
 *
 * Runs in: the tool. Threads: one. Owns: both, until import_names_release().
 */

#include "base/buf.h"
#include "base/error.h"
#include "collect/kernel/trace/perf_data.h"
#include "symbol/kallsyms.h"
#include "symbol/kernel_source.h"
#include "symbol/vmlinux.h"

struct import_names {
    const char *file;             /* of --kallsyms; NULL: not given */
    struct vmlinux vmlinux;       /* of --vmlinux; without a path: not given */
    struct symbols *resolved;     /* names of its code */
    struct kernel_source *source; /* NULL: not given */
    struct source_finder *finder; /* of --source, or of the trace's release; NULL: there is none */
    const char *source_file;      /* of --source; NULL: not given */
    char release[256];            /* of the trace's kernel; "": not known */
    struct kallsyms symbols;
    struct buf text; /* that `symbols` was made of */
};

/** What is given. NULL: it is not. */
struct import_names_given {
    const char *kallsyms, *vmlinux, *source;
};

/** Reads these files. Returns 0, or -errno with a line. */
int import_names_open(struct import_names *n, const struct import_names_given *given, struct error *e);
void import_names_release(struct import_names *n);

/** Takes the text that a trace has with it, unless a file is given. */
void import_names_take(struct import_names *n, const struct buf *kallsyms);
/**
 * Checks that a given file is of the boot that perf.data is of; without a file takes the symbols of the running kernel,
 * if it is the one that was recorded, since it was booted. `written_ns`: when the file was. Returns 0, or -errno with
 * a line.
 */
int import_names_check(struct import_names *n, const struct perf_data_about *about, uint64_t written_ns,
                       struct error *e);

/**
 * Searches for the source of the kernel's release, if neither it nor vmlinux is given. `config`: the text of the
 * kernel's configuration; NULL: not known. After import_names_compare().
 */
void import_names_use_source(struct import_names *n, const char *config);

/**
 * Refuses a vmlinux that is not of the kernel that the trace tells. `kernel` says what the trace tells; without
 * anything, it is used, and stays vmlinux.unchecked. Returns 0, or -errno with a line.
 */
int import_names_compare(struct import_names *n, const struct kernel_identity *kernel, struct error *e);

/** Returns whether --source may be of another version than the trace, also if the trace does not tell its version. */
bool import_names_differ(const struct import_names *n);

/** Returns the symbols, or NULL: there are none. */
const struct kallsyms *import_names_symbols(const struct import_names *n);

#endif
