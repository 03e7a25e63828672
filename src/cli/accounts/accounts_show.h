/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_ACCOUNTS_SHOW_H
#define CLI_ACCOUNTS_SHOW_H

/*
 * Shows accounts of a program or of the kernel: of one source, of two compared, or of one source again and again.
 *
 * Runs in: the tool. Threads: one.
 */

#include <sys/types.h>

#include "cli/intervals.h"
#include "symbol/symbol.h"
#include "view/accounts/accounts_view.h"

struct accounts_show;
struct object_faults;
struct object_lookup_where;

/** The kind of accounts. */
struct accounts_kind {
    const struct command *command;
    const char *schema; /* "tags": the JSON schema is "allium-tags" */
    /** Reads SOURCE (NULL: the default one), with its label. Returns -1 to go on, or the exit code after a
     * line. */
    int (*read_source)(const struct accounts_show *s, struct accounts_reading *r, const char *source);
    /** Reads the accounts of a running process, or of its ledger, by place, with their faults (NULL: without). 0, or
     * -errno with a line. */
    int (*read)(struct accounts *a, struct alloc_texts *texts, pid_t pid, const struct object_faults *faults,
                struct symbols *symbols, struct error *e);
    /** Reads the places of a program file; NULL: it has none. 0, or -errno with a line. */
    int (*read_binary)(struct accounts *a, struct alloc_texts *texts, const char *path,
                       struct symbols *symbols, struct error *e);
    /** --faults: finds the map of objects of a process; NULL: it has none. */
    int (*find_objects)(struct object_lookup_where *where, pid_t pid, struct error *e);
    const char *const *losses; /* ACCOUNT_LOSSES of them: words for text_add_words(); NULL: it counts none */
    const char *none;          /* the note when there are no rows: "no tag was used yet"; NULL: none */
    /** Prints advice on stderr after a screen; NULL: there is none. */
    void (*advise)(const struct accounts *a, const struct alloc_texts *texts);
    bool sites;    /* accounts of call sites, with other columns */
    bool has_page; /* it has --html */
};

struct accounts_show {
    const struct accounts_kind *kind;
    struct accounts_view view;
    const char *sources[ACCOUNT_MOMENTS];
    int n_sources;
    struct intervals intervals;
    const char *html; /* file for a page, too; NULL: none */
    bool force;       /* replace it */
    bool paged;
    struct symbols *symbols;   /* borrowed; NULL where the kind needs none */
    struct alloc_texts *texts; /* borrowed */
    struct buf *notes;         /* borrowed */
};

/** Shows the source, or both compared, or one every interval. Returns the exit code. */
int accounts_show(struct accounts_show *s);

#endif
