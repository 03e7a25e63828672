/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_EVENT_DESCRIPTION_H
#define COLLECT_EVENT_DESCRIPTION_H

/*
 * The description of an event of a program, as wire/event_table.h says. The program may have written anything there.
 *
 * Runs in: the tool. Threads: one. Owns: what event_description_read() makes, until event_description_release().
 */

#include <stddef.h>

#include "base/sigsafe/event_class.h"

/** Reads `bytes` bytes of text. Returns 0, or -EINVAL: an invalid description. The number in `out` is 0. */
int event_description_read(struct event_class *out, const char *text, size_t bytes);
void event_description_release(struct event_class *c);

#endif
