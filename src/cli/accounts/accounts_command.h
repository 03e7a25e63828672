/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_ACCOUNTS_COMMAND_H
#define CLI_ACCOUNTS_COMMAND_H

/*
 * A command that shows accounts: `allium tags`, and others that have them. What such commands have in common is their
 * options, and all that is done with what was read.
 *
 * Runs in: the tool.
 */

#include <sys/types.h>

#include "cli/command.h"
#include "cli/intervals.h"
#include "model/accounts/accounts.h"
#include "symbol/symbol.h"

struct object_faults;
struct object_lookup_where;

/** What is its own. */
struct accounts_kind {
    const struct command *command;
    const char *schema; /* "tags": the JSON schema is "allium-tags" */
    /** Reads those of a process that runs, or of what it left, by place. 0, or -errno with a line. */
    int (*read)(struct accounts *a, struct alloc_texts *texts, pid_t pid, struct symbols *symbols,
                struct error *e);
    /** The places of a program that does not run; NULL: it has none. 0, or -errno with a line. */
    int (*read_binary)(struct accounts *a, struct alloc_texts *texts, const char *path,
                       struct symbols *symbols, struct error *e);
    /** --faults: where a process has its map of objects, and its accounts with what was counted; NULL: it has none. */
    int (*find_objects)(struct object_lookup_where *where, pid_t pid, struct error *e);
    int (*read_faults)(struct accounts *a, struct alloc_texts *texts, pid_t pid,
                       const struct object_faults *faults, struct symbols *symbols, struct error *e);
    const char *const *losses; /* ACCOUNT_LOSSES of them: words for text_add_words() */
    const char *none;          /* "no tag was used yet" */
    /** On stderr, after a screen: what else is to be said of what was read; NULL: nothing. */
    void (*advise)(const struct accounts *a, const struct alloc_texts *texts);
    bool sites; /* they are of sites: of call sites, with other columns */
};

/** Lines of its table of options, with the orders that there are. */
#define ACCOUNTS_OPTIONS(orders)                                                                             \
    {"by", 0, "GROUP", "place (default), function, file, directory, module, class or process"},              \
        {"sort", 0, "ORDER", orders},                                                                        \
        {"where", 0, "QUERY", "only what fits: 'file:src/* live>1M', see allium-query(7)"},                  \
        {"top", 0, "N", "so many rows (12; of JSON, all; of OpenMetrics, 20); 0: all"},                      \
        {"json", 0, NULL, "as JSON, see allium-json(5)"}, INTERVALS_OPTIONS,                                 \
        {"allocinfo", 0, NULL, "every place, in the format of the kernel's /proc/allocinfo"},                \
        {"openmetrics", 0, NULL, "the leading places of each figure, for Prometheus and others"},            \
    {                                                                                                        \
        "no-pager", 0, NULL, "print a long screen at once, not through $PAGER"                               \
    }

/** Does all of it; returns the exit code. */
int accounts_command(const struct accounts_kind *kind, int argc, char **argv);

#endif
