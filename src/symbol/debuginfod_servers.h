/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_DEBUGINFOD_SERVERS_H
#define SYMBOL_DEBUGINFOD_SERVERS_H

/*
 * Fetches debug files from debuginfod servers (DEBUGINFOD_URLS) by build id. All files together have one
 * budget of time.
 *
 * Runs in: the tool. Threads: one. Owns: the paths it returns, until symbol_servers_free().
 * Invariant: no call takes longer than the rest of the budget, whatever the servers do.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SYMBOL_SERVERS_NO_LIMIT UINT64_MAX

struct symbol_servers;

/** Never returns NULL. The budget begins to run at the first wait. */
struct symbol_servers *symbol_servers_new(uint64_t budget_ns);
/** Gives up requests in progress. NULL is allowed. */
void symbol_servers_free(struct symbol_servers *s);

/** With true, symbol_servers_wait() no longer waits; answers are taken as they come. With false, it waits
 * again. */
void symbol_servers_in_background(struct symbol_servers *s, bool background);
/** Any wait ends early, and all later ones at once, when this descriptor becomes readable. */
void symbol_servers_interrupt(struct symbol_servers *s, int fd);

/** Adds a file to the list of wanted ones; once is enough. No request is sent yet. */
void symbol_servers_want(struct symbol_servers *s, const unsigned char *build_id, size_t len);
/** Sends the requests, then waits until all answers are there or the budget is used up. */
void symbol_servers_wait(struct symbol_servers *s);
/** Returns whether an answer may still come. */
bool symbol_servers_pending(const struct symbol_servers *s);
/** Returns the path of the file, or NULL if it has not come. The caller must check whatever it reads from the
 * file. */
const char *symbol_servers_file(const struct symbol_servers *s, const unsigned char *build_id, size_t len);

struct symbol_servers_tally {
    size_t wanted, late, failed; /* files; late: not answered yet */
    int error;                   /* -errno of the last file that failed for another reason than -ENOENT */
};
struct symbol_servers_tally symbol_servers_tally(const struct symbol_servers *s);

#endif
