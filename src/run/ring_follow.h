/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_RING_FOLLOW_H
#define RUN_RING_FOLLOW_H

/*
 * Reads the rings of all process images in a recorder's folder while they are written, by a thread of its own, and
 * writes them as CTF.
 *
 * Runs in: the tool. Threads: the caller's, and one that this makes. Owns: mappings and files, until ring_follow_end().
 */

#include <stdint.h>

#include "base/error.h"
#include "collect/trace/user_classes.h"

struct ring_follow;

struct ring_follow_counts {
    uint64_t events, lost, bytes, images;
    struct user_counts user;
};

/** `dir`: of the ledgers; `folder`: of the trace. Returns 0, or -errno with a line. */
int ring_follow_begin(struct ring_follow **out, const char *dir, const char *folder, struct error *e);
/** Reads what is left, and ends the thread. Returns 0, or -errno with a line. NULL is allowed. */
int ring_follow_end(struct ring_follow *f, struct ring_follow_counts *out, struct error *e);

#endif
