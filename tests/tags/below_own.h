/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TESTS_TAGS_BELOW_OWN_H
#define TESTS_TAGS_BELOW_OWN_H

/* What below.c and below_maps.c have in common: the lock, the counts, and who is charged. */

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "below.h"

#define BELOW_PAGE 4096u

extern struct below_counts *below_counts;
extern uint32_t below_epoch; /* another one in each fork child */

/** Signals are blocked and nobody else is in here until below_leave(); errno stays. */
void below_enter(sigset_t *old);
void below_leave(const sigset_t *old);
_Noreturn void below_die(const char *why);
/** Shall this request of the place fail? */
bool below_draws_failure(int place);
/** Whom something new is charged to; BELOW_FOREIGN: nobody. */
int below_charged(int place);
/** Is this the count that is to be left out? */
bool below_skipped(int place);
uint32_t below_draw(uint32_t most);

#endif
