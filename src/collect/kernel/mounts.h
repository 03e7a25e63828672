/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_MOUNTS_H
#define COLLECT_MOUNTS_H

/*
 * What is mounted where, from /proc/self/mountinfo.
 *
 * Runs in: the tool. Threads: one at a time. Owns: the texts, until mounts_release().
 */

#include "base/vec.h"

struct mount {
    char *
        root; /* of the file system, which part of it is mounted: "/" all; may begin with "/.." in a cgroup namespace */
    char *point;   /* where */
    char *type;    /* "cgroup2" */
    char *options; /* of the file system: "rw,memory" */
};

struct mounts {
    struct VEC(struct mount) all; /* in the order of the file: later ones lie over earlier ones */
};

/** 0; or why the file cannot be read: then there are none. */
int mounts_read(struct mounts *m);
/** Adds those of a text; lines that are none are passed over. */
void mounts_parse(struct mounts *m, const char *text);
void mounts_release(struct mounts *m);

#endif
