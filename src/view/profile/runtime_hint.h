/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_RUNTIME_HINT_H
#define VIEW_RUNTIME_HINT_H

/*
 * Language runtimes whose heap does not come from malloc: Python's arenas, the heaps of Java and JavaScript. A user
 * who profiles such a program has to be told why most of its memory is missing.
 *
 * Runs in: the tool. Threads: pure. Owns: nothing.
 */

#include <stdbool.h>

#include "model/profile/profile.h"

/** The sentence for Go: its programs have no name in common, see program_is_go(). */
extern const char runtime_hint_go[];
/** Returns one sentence on the heap of this program, by the name of its executable; NULL: no such runtime. */
const char *runtime_hint_of(const char *program);
/** The same for an image of a profile. */
const char *runtime_hint_of_image(const struct profile *p, uint32_t image);
/**
 * As runtime_hint_of_image(); but NULL if the RssAnon that was read is at least half of the image's peak, and not tiny,
 * since the figures then show how much is unseen. A short program may end before such a reading.
 */
const char *runtime_hint_if_unread(const struct profile *p, uint32_t image);

/**
 * Of the images whose estimate at their peak is less than half of their RssAnon (of 4 MiB or more), returns the one
 * with the largest RssAnon; PROFILE_NONE: there is none.
 */
uint32_t runtime_hint_unseen_image(const struct profile *p);

#endif
