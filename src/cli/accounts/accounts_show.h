/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_ACCOUNTS_SHOW_H
#define CLI_ACCOUNTS_SHOW_H

/*
 * What is asked for of accounts, on the screen, as JSON, in the kernel's format or as OpenMetrics: the same for tags and sites.
 *
 * Runs in: the tool. Owns: nothing.
 */

#include "model/accounts/accounts_table.h"
#include "view/text/sink.h"

enum accounts_format { ACCOUNTS_SCREEN, ACCOUNTS_JSON, ACCOUNTS_ALLOCINFO, ACCOUNTS_OPENMETRICS };

/** One reading of one source. */
struct accounts_reading {
    struct accounts accounts;
    char *label; /* of the source, for people; NULL: a process, which has its name */
};

struct accounts_show {
    struct account_shape shape;
    const char *group;         /* its word */
    const char *order;         /* its word */
    const struct query *query; /* NULL: everything */
    enum accounts_format format;
    bool line;                     /* one of many: JSON in one line */
    uint64_t began_ns, elapsed_ns; /* of rates: since the first reading, and since the last one */
};

/** `before` may be NULL: nothing to compare with. False: no place fits the query. */
bool accounts_show(struct sink *out, const struct accounts_show *o, struct alloc_texts *texts,
                   const struct accounts_reading *before, const struct accounts_reading *after);
/** On stderr: what could not be kept. The words are for each loss, with {alternatives} as text_add_words() takes them. */
void accounts_say_losses(const struct accounts *a, const char *const words[static ACCOUNT_LOSSES]);

#endif
