/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_MOUNTS_H
#define COLLECT_MOUNTS_H

/* The mounts in /proc/self/mountinfo. */

#include "base/vec.h"

struct mount {
    /* the part of the file system that is mounted: "/" for all; may begin with "/.." in a cgroup namespace */
    char *root;
    char *point;   /* the mount point */
    char *type;    /* "cgroup2" */
    char *options; /* of the file system: "rw,memory" */
};

struct mounts {
    struct VEC(struct mount) all; /* in the order of the file: later ones cover earlier ones */
};

/** Returns 0, or the error of reading the file; then there are none. */
int mounts_read(struct mounts *m);
/** Adds the mounts in a text; invalid lines are ignored. */
void mounts_parse(struct mounts *m, const char *text);
void mounts_release(struct mounts *m);

#endif
