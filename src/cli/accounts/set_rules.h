/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_SET_RULES_H
#define CLI_SET_RULES_H

/* `allium set` for places in programs with tags: on, off, stacks, latency, fail. */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "collect/ledger/rules_write.h"
#include "query/query.h"

struct set_rules {
    struct rules_change change;
    bool only;           /* an action is given that only tags support */
    struct query *where; /* on fields of account_query_parse(); NULL: all places */
    const char *text;    /* its text */
    struct buf actions;  /* as the user gave them */
};

/** Parses an action. Returns 1: it is an action on tags; 0: it is not; -1: it is malformed, and a line was
 * printed. */
int set_rules_parse(struct set_rules *s, const char *action);
/**
 * Applies the rules to all running processes with tags, or to one, that match `process` (comm, pid; may be
 * NULL). Adds their number to *processes. Returns an exit code; a line was printed for each failure.
 */
int set_rules_apply(const struct set_rules *s, int pid, bool (*process)(void *arg, const char *comm, int pid),
                    void *arg, unsigned *processes);
void set_rules_release(struct set_rules *s);

#endif
