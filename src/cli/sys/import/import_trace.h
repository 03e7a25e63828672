/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_IMPORT_TRACE_H
#define CLI_IMPORT_TRACE_H

/*
 * Reads a trace of the kernel's allocators that another tool has written, in any supported form, into accounts, and
 * writes these accounts as a recording.
 *
 * Runs in: the tool. Threads: one. Owns: everything, until import_trace_release().
 */

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "cli/option_values.h"
#include "cli/sys/import/import_names.h"
#include "cli/sys/sys_show.h"
#include "cli/wrapper_lists.h"
#include "collect/kernel/slab_traces.h"
#include "sys/record/import/kernel_import.h"
#include "sys/record/import/page_owner_import.h"
#include "sys/record/raw_states.h"

enum import_format {
    IMPORT_BY_CONTENT,
    IMPORT_TEXT,
    IMPORT_PERF_DATA,
    IMPORT_RAW,
    IMPORT_TRACE_DAT,
    IMPORT_ALLOCINFO,
    IMPORT_SLAB_TRACES,
    IMPORT_PAGE_OWNER,
    IMPORT_ARCHIVE
};

/** What --format takes. */
extern const struct word import_format_words[];

struct import_request {
    const char *file;     /* "-": standard input */
    const char *output;   /* that is written; it must not be the trace. NULL: none */
    const char *kallsyms; /* of --kallsyms; NULL: not given */
    const char *vmlinux;  /* of --vmlinux; NULL: not given */
    const char *source;   /* of --source; NULL: not given */
    const char *state;    /* of --state; NULL: not given */
    int format;           /* enum import_format */
    struct sys_span span; /* what rows are of */
    bool partial;         /* keep what was read of a damaged file */
};

struct import_trace {
    const struct import_request *request;
    struct kernel_import *import;
    struct import_names names;
    struct wrappers helpers;  /* functions that pass their calls on */
    struct raw_states states; /* what the traced kernel told of its memory; none: it is not known */
    struct slab_traces slabs; /* what only these files tell, see import_moment.h */
    struct page_owner_rows owners;
    uint64_t tick_ns;    /* of ages in slabs; 0: not known */
    int format;          /* of the file */
    uint64_t written_ns; /* when it was; CLOCK_REALTIME */
};

/**
 * Before the first event, and after what the trace tells of its kernel: which symbols and source give its names.
 * Returns 0, or -errno with a line: they are of another kernel.
 */
int import_trace_use_names(struct import_trace *t, const struct kernel_identity *kernel, struct error *e);
/** Reads the trace. Returns -1 to go on, or the exit code after a line. The caller releases `t` in any case. */
int import_trace_read(struct import_trace *t, const struct import_request *q);
void import_trace_release(struct import_trace *t);

/** Writes the accounts as a recording. Returns 0, or -errno with a line. */
int import_trace_store(const struct import_trace *t, const char *path, bool force, struct error *e);

/** Returns whether neither build id nor release tells that the source is that of the traced kernel. */
bool import_trace_is_unchecked(const struct import_trace *t);
/** Appends a line for each thing that the trace lacks. */
void import_trace_add_lacks(const struct import_trace *t, struct buf *b);

#endif
