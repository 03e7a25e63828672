/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_THREAD_NAMES_H
#define COLLECT_THREAD_NAMES_H

/*
 * What threads are called now. The ledger has the name that a thread had at its first sample, and many get theirs
 * later, from whoever made them; /proc knows, as long as a thread runs. What was seen is kept for when it has ended.
 *
 * Runs in: the tool. Threads: one at a time. Owns: the names, until vec_release().
 */

#include "base/vec.h"
#include "model/profile/profile.h"

#include <sys/types.h>

#define THREAD_NAME_BYTES 16

struct thread_name {
    char text[THREAD_NAME_BYTES]; /* "": never seen */
};
/** By thread of the profile, which are those of the ledger. */
struct thread_names VEC(struct thread_name);

/**
 * Looks at the running process and takes up what is found; `seen` may be NULL. Threads of another pid namespace have
 * other numbers there and keep the names they have, and so does one whose number is another's by now.
 */
void thread_names_look(struct thread_names *seen, struct profile *p, pid_t pid);
/** Gives the threads of an ended process the names they were seen to have. */
void thread_names_recall(const struct thread_names *seen, struct profile *p);

#endif
