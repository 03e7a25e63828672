/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_CONTAINER_H
#define COLLECT_CONTAINER_H

/*
 * Where a process lives, as far as that is not where we do: its namespaces and its root.
 *
 * Runs in: the tool. Owns: a set of roots owns its descriptors.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/vec.h"

struct container {
    bool files;      /* another mount namespace or another root: its paths are not ours */
    bool pids;       /* another PID namespace */
    uid_t user;      /* its effective user id, as we call it; (uid_t)-1: not known */
    pid_t inner_pid; /* what the process is called in its own; 0: not known */
};

/** All false, 0 and unknown where it may not be asked, or is gone. */
struct container container_of(pid_t pid);
/**
 * In a word: "mnt:[4026532281]" as lsns(8) has it, the root in our mount namespace, or "pid:[…]"; "": lives as we do.
 */
void container_name(pid_t pid, const struct container *c, struct buf *out);

/* Roots of processes, kept open: their files can be looked at after the process too. */
struct container_root;
struct container_roots VEC(struct container_root *);

/**
 * What goes before the paths of a process: "/proc/self/fd/N", the same for all that share a root; "": its paths are
 * ours, or its root cannot be had. Valid until container_roots_release().
 */
const char *container_root(struct container_roots *roots, pid_t pid);
void container_roots_release(struct container_roots *roots);

#endif
