/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_SITES_FORKED_H
#define AGENT_SITES_FORKED_H

/*
 * Children of handlers that fork in the midst of a hot half of sites.h: that goes on adding to sums of the parent, which are not
 * mapped there.
 *
 * Runs in: target.
 */

#define SITES_GENERATIONS 4u /* of handlers that fork upon each other */

/** Before libc's fork, in the parent. */
void sites_before_fork(void);
/** After it, in the child. */
void sites_after_fork(void);

#endif
