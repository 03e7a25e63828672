/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_STACK_SAMPLES_H
#define SYS_STACK_SAMPLES_H

/*
 * Samples of user stacks (--sample). They are read from their ring, unwound at once with the rules of the
 * files, and stored as text. The raw bytes stay in the kernel's ring, which no core file contains, until they
 * are overwritten; they are never copied.
 *
 * Runs in: the tool. Owns: texts of stacks, until stack_samples_close().
 */

#include "collect/unwind/stack_dump_end.h"
#include "sys/session.h"

/** The first number of stacks that stack_samples_unify() returns. */
#define SYS_STACK_UNIFIED (1 << 29)

/** Called before loading: sets the size of the maps. */
void stack_samples_size_maps(struct sys_session *s);
/** Opens the ring, if stacks are sampled. Returns 0, or -errno with a line. */
int stack_samples_open(struct sys_session *s, struct error *e);
void stack_samples_close(struct sys_session *s);

/** Returns the descriptor to wait for; -1: no samples. */
int stack_samples_fd(const struct sys_session *s);
/** Reads all samples in the ring. Returns their number. */
int stack_samples_read(struct sys_session *s);

/** Returns the same number for equal stacks of different samples. Other numbers stay unchanged. */
int stack_samples_unify(const struct sys_session *s, int id);
/** Returns a line for each frame, for either kind of number, or one that tells the loss; NULL: there is no stack. */
const char *stack_samples_text(const struct sys_session *s, int id);

struct stack_samples_counts {
    uint64_t taken;
    /* how many of them have no stack, because exec had removed the old program's */
    uint64_t in_exec;
    uint64_t no_room;               /* how many have a stack for which there was no room: it is lost */
    uint64_t ends[STACK_DUMP_ENDS]; /* how their walks ended */
    uint64_t frames, not_found;     /* not_found: frames in no known code */
};
/** Returns NULL if stacks are not sampled. */
const struct stack_samples_counts *stack_samples_counted(const struct sys_session *s);
/** Returns the word for the end of a walk, in JSON; NULL: STACK_DUMP_WHOLE. */
const char *stack_samples_end_key(enum stack_dump_end end);
/** ... and the line below the stack. */
const char *stack_samples_end_words(enum stack_dump_end end);

#endif
