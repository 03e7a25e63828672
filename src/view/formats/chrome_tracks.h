/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_CHROME_TRACKS_H
#define VIEW_CHROME_TRACKS_H

/*
 * The processes and threads of a picture for Chrome, and their names: those of the recording, else those that the
 * kernel's events have.
 *
 * Runs in: the tool. Threads: one at a time. Owns: its tables, until chrome_tracks_free().
 */

#include "model/profile/profile.h"
#include "model/trace/trace_event.h"
#include "view/formats/json.h"

struct chrome_tracks;

struct chrome_tracks *chrome_tracks_new(const struct profile *names);
void chrome_tracks_free(struct chrome_tracks *t); /* NULL is allowed */
/** Adds a thread to the picture, once. */
void chrome_tracks_add(struct chrome_tracks *t, pid_t pid, uint32_t thread);
/** Learns the names that an event of the kernel has. */
void chrome_tracks_learn(struct chrome_tracks *t, const struct trace_event *e);
/** Writes the records of all processes and threads into an array. */
void chrome_tracks_write(const struct chrome_tracks *t, struct json *j);

#endif
