/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_STACK_SAMPLES_H
#define SYS_STACK_SAMPLES_H

/*
 * Samples of user stacks (--sample): read from their ring, unwound at once by the rules of the files, kept as text. The
 * bytes stay where the kernel wrote them, which no core file holds, until it writes over them: they are never copied.
 *
 * Runs in: the tool. Owns: texts of stacks, until stack_samples_close().
 */

#include "collect/unwind/stack_dump_end.h"
#include "sys/session.h"

/** Of the numbers of stacks: one that stack_samples_settle() gave. */
#define SYS_STACK_SETTLED (1 << 29)

/** Before the programs are loaded: their maps get the size that they need now. */
void stack_samples_size_maps(struct sys_session *s);
/** Where stacks are sampled. 0, or -errno with a line. */
int stack_samples_open(struct sys_session *s, struct error *e);
void stack_samples_close(struct sys_session *s);

/** The descriptor to wait for; -1: no samples. */
int stack_samples_fd(const struct sys_session *s);
/** Takes all that are in the ring; returns how many. */
int stack_samples_read(struct sys_session *s);

/**
 * The same number for the same stack, whichever sample it is of; numbers that are none of samples stay what they are.
 */
int stack_samples_settle(const struct sys_session *s, int id);
/** A line for each frame, of either kind of number; NULL: there is no such stack. */
const char *stack_samples_text(const struct sys_session *s, int id);

struct stack_samples_counts {
    uint64_t taken;
    uint64_t in_exec;               /* of them without a stack: that of the program before is gone */
    uint64_t ends[STACK_DUMP_ENDS]; /* how their walks ended */
    uint64_t frames, not_found;     /* the latter: code that lies in nothing that is known */
};
/** NULL: stacks are not sampled. */
const struct stack_samples_counts *stack_samples_counted(const struct sys_session *s);
/** How walks are said to have ended, in JSON; NULL: STACK_DUMP_WHOLE. */
const char *stack_samples_end_key(enum stack_dump_end end);
/** ... and below the stack. */
const char *stack_samples_end_words(enum stack_dump_end end);

#endif
