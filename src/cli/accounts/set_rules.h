/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_SET_RULES_H
#define CLI_SET_RULES_H

/*
 * `allium set` of places in programs that have tags: on, off, stacks, latency, fail.
 *
 * Runs in: the tool.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "collect/ledger/rules_write.h"
#include "query/query.h"

struct set_rules {
    struct rules_change change;
    bool only;           /* something is asked that only tags can do */
    struct query *where; /* on fields of account_query_parse(); NULL: all places */
    const char *text;    /* of it */
    struct buf actions;  /* as they were given */
};

/** An action. 1: it is one of tags; 0: it is none; -1: it is one that is written wrongly, and a line was printed. */
int set_rules_parse(struct set_rules *s, const char *action);
/**
 * Of all running processes with tags, or that one, for which `process` (comm, pid; may be NULL) holds. Adds to
 * *processes how many they are. An exit code; of what failed a line was printed.
 */
int set_rules_apply(const struct set_rules *s, int pid, bool (*process)(void *arg, const char *comm, int pid),
                    void *arg, unsigned *processes);
void set_rules_release(struct set_rules *s);

#endif
