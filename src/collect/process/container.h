/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_CONTAINER_H
#define COLLECT_CONTAINER_H

/*
 * The namespaces and the root of a process, as far as they differ from ours.
 *
 * Runs in: the tool. Owns: a set of roots owns its descriptors.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/vec.h"

struct container {
    bool files;      /* another mount namespace or root: its paths are not ours */
    bool pids;       /* another PID namespace */
    uid_t user;      /* its effective user id in our user namespace; (uid_t)-1: not known */
    pid_t inner_pid; /* its pid in its own namespace; 0: not known */
};

/** Returns false, 0 and unknown in all members if we have no permission, or the process is gone. */
struct container container_of(pid_t pid);
/** Returns container_of(pid).files; faster. */
bool container_has_own_files(pid_t pid);
/**
 * Appends a short name: "mnt:[4026532281]" as in lsns(8), the root in our mount namespace, or "pid:[…]"; "":
 * nothing differs from ours.
 */
void container_name(pid_t pid, const struct container *c, struct buf *out);

/* Roots of processes, kept open: their files can be read after the process has ended. */
struct container_root;
struct container_roots VEC(struct container_root *);

/**
 * Returns the prefix for the paths of a process: "/proc/self/fd/N", the same for all processes with that
 * root; "": its paths are ours, or its root cannot be opened. Valid until container_roots_release().
 */
const char *container_root(struct container_roots *roots, pid_t pid);
void container_roots_release(struct container_roots *roots);

#endif
