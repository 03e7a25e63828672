/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_JUMP_PATCH_H
#define AGENT_JUMP_PATCH_H

/*
 * Replaces the indirect jumps at the end of the hot halves by direct ones. A hot half ends in a jump through a pointer
 * to the real function. A jump to a fixed address takes a third of a nanosecond less, which is half of what the agent
 * adds to a malloc+free pair. Once the real functions are known, the jumps are rewritten in the private copy of one or
 * two pages of our own text.
 *
 * Runs in: target, once. Threads: only while the process has one.
 * Invariant: a direct jump leads to the function that its pointer had at the rewriting. Code that changes a pointer
 * later must call jump_patch_is_applied(). A jump stays indirect if its target is too far away. All jumps stay indirect
 * if the process has a second thread, if memory may not be both writable and executable (SELinux, MDWE), and under an
 * inherited seccomp filter, which might kill the process for the attempt.
 */

#include <stdbool.h>

/* The section of the functions whose jumps may be rewritten. */
#define JUMP_PATCH_TEXT __attribute__((section("allium_hot")))

/** Rewrites the jumps, if that is possible. */
void jump_patch_apply(void);
/** Returns whether jumps were rewritten. If so, later changes of the pointers in `next_hot` have no effect on them. */
bool jump_patch_is_applied(void);

#endif
