/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_PLACES_SHOW_H
#define CLI_PLACES_SHOW_H

/*
 * The places of a program that does not run: where it allocates, on the screen or as JSON. Nothing is counted.
 *
 * Runs in: the tool. Owns: nothing.
 */

#include "model/accounts/accounts.h"

struct places_show {
    const char *source; /* for people */
    enum account_group group;
    const char *group_word;
    const struct query *query; /* NULL: everything */
    uint32_t top;              /* rows; 0: all */
    bool json, paged;
};

/** Prints what was read of one file, in the order of files and lines, and what is missing; the exit code. */
int places_show(const struct places_show *o, const struct accounts *a, struct alloc_texts *texts);

#endif
