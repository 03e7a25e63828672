/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_SUPPRESSIONS_H
#define RUN_SUPPRESSIONS_H

/*
 * Samples that somebody has seen and dismissed, each known by its image and serial, never by its address; and the file
 * that keeps them (--state).
 *
 * The file is text: a first line "allium-watch-state 1", then a line "IMAGE SERIAL" for each sample, both with 16
 * hexadecimal digits, those of an image together, and nothing else. Whatever is not just so is refused, with the number of the line: a file of
 * somebody's is not written over because its name was given here.
 *
 * Runs in: the tool. Owns: all of it, until dismissed_free().
 * Invariant: bounded by the samples that live: see dismissed_settle() and dismissed_forget().
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define DISMISSED_FILE_MAX   (256ull << 20) /* bytes; a larger file is refused */
#define DISMISSED_IMAGES_MAX 4096           /* in a file: each is looked for among them all */

struct dismissed;

/** Never NULL; nothing is dismissed. */
struct dismissed *dismissed_new(void);
void dismissed_free(struct dismissed *d);

/** Adds what the file says; one that is not there says nothing. 0, or -errno with a line. */
int dismissed_load(struct dismissed *d, const char *path, struct error *e);
/** Replaces the file in one step, mode 0600. 0, or -errno with a line: then the old one stands. */
int dismissed_save(struct dismissed *d, const char *path, struct error *e);
/** Is there anything that the file has not, or the other way round? */
bool dismissed_changed(const struct dismissed *d);

bool dismissed_has(const struct dismissed *d, uint64_t image_id, uint64_t serial);
/** How many of them were not dismissed before. */
uint64_t dismissed_add(struct dismissed *d, uint64_t image_id, const uint64_t *serials, size_t n);
/** These are all that live of that image, in ascending order: the rest is forgotten. */
void dismissed_settle(struct dismissed *d, uint64_t image_id, const uint64_t *serials, size_t n);
bool dismissed_has_image(const struct dismissed *d, uint64_t image_id);
/** Forgets the images for which `keep` is false. */
void dismissed_forget(struct dismissed *d, bool (*keep)(void *arg, uint64_t image_id), void *arg);

#endif
