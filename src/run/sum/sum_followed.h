/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_SUM_FOLLOWED_H
#define RUN_SUM_FOLLOWED_H

/*
 * The sums of all process images in a folder of ledgers: those of images that have ended, which are added up and whose
 * files are removed, and those of images that run.
 *
 * Runs in: the tool. Threads: one. Owns: the files of ended images, until it removes them.
 */

#include "model/profile/wrappers.h"
#include "model/trace/event_sums.h"

struct sum_followed;

/** All are borrowed. Never returns NULL. */
struct sum_followed *sum_followed_new(const char *dir, const struct sum_spec *spec,
                                      const struct wrappers *wrappers);
/** Removes the files of images that have ended. NULL is allowed. */
void sum_followed_free(struct sum_followed *f);
/** Takes the sums of images that have ended. */
void sum_followed_harvest(struct sum_followed *f);
/** Returns the sums until now, of all images. The caller frees them. */
struct event_sums *sum_followed_read(struct sum_followed *f);

#endif
