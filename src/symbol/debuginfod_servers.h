/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_DEBUGINFOD_SERVERS_H
#define SYMBOL_DEBUGINFOD_SERVERS_H

/*
 * Debug files from debuginfod servers (DEBUGINFOD_URLS), by build id, within a budget of time for all of them together.
 *
 * Runs in: the tool. Threads: one. Owns: the paths it returns, until symbol_servers_free().
 * Invariant: no call takes longer than what is left of the budget, whatever servers do.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SYMBOL_SERVERS_NO_LIMIT UINT64_MAX

struct symbol_servers;

/** Never NULL. The budget begins with the first wait. */
struct symbol_servers *symbol_servers_new(uint64_t budget_ns);
/** What is still under way is given up. NULL is allowed. */
void symbol_servers_free(struct symbol_servers *s);

/** From now on nobody waits: answers are taken as they come. Or, with false, waits do wait again. */
void symbol_servers_in_background(struct symbol_servers *s, bool background);
/** A wait ends early, and for good, when this descriptor can be read. */
void symbol_servers_interrupt(struct symbol_servers *s, int fd);

/** This file is wanted; once is enough. Nothing is asked yet. */
void symbol_servers_want(struct symbol_servers *s, const unsigned char *build_id, size_t len);
/** Asks for what is wanted, then waits until all answers are there or the budget is used up. */
void symbol_servers_wait(struct symbol_servers *s);
/** Whether an answer may still come. */
bool symbol_servers_pending(const struct symbol_servers *s);
/** Where the file is; NULL: it has not come. Whoever opens it believes nothing of it. */
const char *symbol_servers_file(const struct symbol_servers *s, const unsigned char *build_id, size_t len);

struct symbol_servers_tally {
    size_t wanted, late, failed; /* files; late: no answer until now */
    int error;                   /* -errno of the last that failed otherwise than by not being there */
};
struct symbol_servers_tally symbol_servers_tally(const struct symbol_servers *s);

#endif
