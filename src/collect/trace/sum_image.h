/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_SUM_IMAGE_H
#define COLLECT_SUM_IMAGE_H

/*
 * The sums of a process image (sum/sum_layout.h), which lie beside its ledger, and what their keys mean. The program
 * may have written anything there: wrong values give wrong figures, and nothing else.
 *
 * Runs in: the tool. Threads: one. Owns: the mapping, until sum_image_close().
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "model/trace/event_sums.h"
#include "sum/sum_read.h"

struct sum_image {
    pid_t pid;
    uint64_t id; /* of the image */
    const char *dir;
    void *map;
    size_t bytes;
    struct sum_reader reader;
};

/** Returns whether a file of this name has sums; sets the process and the image that they belong to. */
bool sum_image_name(const char *name, pid_t *pid, uint64_t *id);
/** Opens the sums of that name in the folder, a string that stays. Returns 0 or -errno; -EAGAIN: not made yet. */
int sum_image_open(struct sum_image *i, const char *dir, const char *name);
void sum_image_close(struct sum_image *i);

/**
 * Returns the name of a call, which is valid until the next one is asked for; NULL: not known. `frame`: in the ledger
 * of the image, plus 1, or 0.
 */
typedef const char *sum_image_site_fn(void *arg, uint64_t frame);
/** Adds all rows to `to`. `site`: NULL if calls have no names. */
void sum_image_add(const struct sum_image *i, const struct sum_spec *spec, struct event_sums *to,
                   sum_image_site_fn *site, void *arg);

#endif
