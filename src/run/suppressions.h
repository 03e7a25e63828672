/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_SUPPRESSIONS_H
#define RUN_SUPPRESSIONS_H

/*
 * Samples that the user has seen and suppressed, each identified by its image and serial, never by its
 * address; and the file that stores them (--state).
 *
 * The file is text: a first line "allium-watch-state 1", then a line "IMAGE SERIAL" for each sample, both
 * with 16 hexadecimal digits, those of an image together. A file that differs from this is refused, with the
 * number of the line, so that a wrong name on the command line does not overwrite a user's file.
 *
 * Runs in: the tool. Owns: all of it, until suppressions_free().
 * Invariant: its size is bounded by the number of live samples: see suppressions_retain() and
 * suppressions_forget().
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define SUPPRESSIONS_FILE_MAX   (256ull << 20) /* bytes; a larger file is refused */
#define SUPPRESSIONS_IMAGES_MAX 4096           /* in a file: each one is searched among all of them */

struct suppressions;

/** Returns an empty set. Never NULL. */
struct suppressions *suppressions_new(void);
void suppressions_free(struct suppressions *d);

/** Adds the samples in the file; a file that does not exist counts as empty. Returns 0, or -errno with a
 * line. */
int suppressions_load(struct suppressions *d, const char *path, struct error *e);
/** Replaces the file in one step, mode 0600. Returns 0, or -errno with a line and the old file in place. */
int suppressions_save(struct suppressions *d, const char *path, struct error *e);
/** Returns whether the set differs from the file. */
bool suppressions_changed(const struct suppressions *d);

bool suppressions_has(const struct suppressions *d, uint64_t image_id, uint64_t serial);
/** Adds samples. Returns how many of them were not suppressed before. */
uint64_t suppressions_add(struct suppressions *d, uint64_t image_id, const uint64_t *serials, size_t n);
/** Removes all samples of the image but these. `serials` are the live samples of the image, in ascending
 * order. */
void suppressions_retain(struct suppressions *d, uint64_t image_id, const uint64_t *serials, size_t n);
bool suppressions_has_image(const struct suppressions *d, uint64_t image_id);
/** Removes the images for which `keep` returns false. */
void suppressions_forget(struct suppressions *d, bool (*keep)(void *arg, uint64_t image_id), void *arg);

#endif
