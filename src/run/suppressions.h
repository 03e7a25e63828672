/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_SUPPRESSIONS_H
#define RUN_SUPPRESSIONS_H

/*
 * Samples that somebody has seen and dismissed, each known by its image and serial, never by its address; and the file
 * that keeps them (--state).
 *
 * The file is text: a first line "allium-watch-state 1", then a line "IMAGE SERIAL" for each sample, both with 16
 * hexadecimal digits, those of an image together, and nothing else. Whatever is not just so is refused, with the number
 * of the line: a file of somebody's is not written over because its name was given here.
 *
 * Runs in: the tool. Owns: all of it, until suppressions_free().
 * Invariant: bounded by the samples that live: see suppressions_settle() and suppressions_forget().
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define SUPPRESSIONS_FILE_MAX   (256ull << 20) /* bytes; a larger file is refused */
#define SUPPRESSIONS_IMAGES_MAX 4096           /* in a file: each is looked for among them all */

struct suppressions;

/** Never NULL; nothing is dismissed. */
struct suppressions *suppressions_new(void);
void suppressions_free(struct suppressions *d);

/** Adds what the file says; one that is not there says nothing. 0, or -errno with a line. */
int suppressions_load(struct suppressions *d, const char *path, struct error *e);
/** Replaces the file in one step, mode 0600. 0, or -errno with a line: then the old one stands. */
int suppressions_save(struct suppressions *d, const char *path, struct error *e);
/** Is there anything that the file has not, or the other way round? */
bool suppressions_changed(const struct suppressions *d);

bool suppressions_has(const struct suppressions *d, uint64_t image_id, uint64_t serial);
/** How many of them were not dismissed before. */
uint64_t suppressions_add(struct suppressions *d, uint64_t image_id, const uint64_t *serials, size_t n);
/** These are all that live of that image, in ascending order: the rest is forgotten. */
void suppressions_settle(struct suppressions *d, uint64_t image_id, const uint64_t *serials, size_t n);
bool suppressions_has_image(const struct suppressions *d, uint64_t image_id);
/** Forgets the images for which `keep` is false. */
void suppressions_forget(struct suppressions *d, bool (*keep)(void *arg, uint64_t image_id), void *arg);

#endif
