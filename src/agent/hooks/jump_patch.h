/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_JUMP_PATCH_H
#define AGENT_JUMP_PATCH_H

/*
 * A hot half ends in a jump through a pointer to the real function. A jump to a fixed address is a third of a nanosecond
 * cheaper, which is half of what a malloc+free pair costs with us. So once it is known where they lead, the jumps are
 * rewritten, in the private copy of one or two pages of our own text.
 *
 * Runs in: target, once. Threads: only while there is one.
 * Invariant: either kind of jump leads to the same place, so that nothing depends on this having been done. It is not
 * where memory may not be both written and executed (SELinux, MDWE), nor under an inherited seccomp filter, which may
 * kill for the attempt.
 */

#include <stdbool.h>

/* Where functions live whose jumps may be rewritten. */
#define JUMP_PATCH_TEXT __attribute__((section("allium_hot")))

/** Rewrites what can be. */
void jump_patch_apply(void);
/** Some were: another function in the place of a real one is not met any more. */
bool jump_patch_is_applied(void);

#endif
