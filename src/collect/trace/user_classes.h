/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_USER_CLASSES_H
#define COLLECT_USER_CLASSES_H

/*
 * The programs' own events in a trace. Each image numbers its events as it meets them (wire/event_table.h); here they
 * get numbers that are the same in the whole trace: the same description from several images is one class.
 *
 * Runs in: the tool. Threads: one. Owns: descriptions and mappings, until they are freed.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "collect/trace/ctf_writer.h"
#include "ring/ring_read.h"

struct user_classes; /* of a trace */
struct user_events;  /* of an image */

struct user_counts {
    uint64_t cut;     /* events with a text that is not there to its end */
    uint64_t unknown; /* events without a description, or not as it says: left out of the trace */
};

struct user_classes *user_classes_new(void);
/** Call this after ctf_writer_free(): the writer has pointers to the classes. NULL is allowed. */
void user_classes_free(struct user_classes *c);

/** Returns the class with this number of the trace, or NULL. */
const struct event_class *user_classes_of_trace(const struct user_classes *c, uint16_t id);

/** `dir`: the folder with the files of the image, a string that stays. */
struct user_events *user_events_new(const char *dir, pid_t pid, uint64_t image_id);
void user_events_free(struct user_events *u); /* NULL is allowed */

/** Reads the class of the image's event with that number. Returns 0, and the caller releases *out; or -EINVAL. */
int user_events_describe(struct user_events *u, uint16_t number, struct event_class *out);

/**
 * Returns the class of an event of the image that has `words` words; NULL: it has no description that fits. Not for
 * classes that have a writer.
 */
const struct event_class *user_classes_find(struct user_classes *c, struct user_events *u, uint16_t id,
                                            uint32_t words);

#define USER_EVENTS_REASON_BYTES 65u
/**
 * Returns how often the image has called ALLIUM_SNAPSHOT(). `reason`: receives that of the oldest call after `seen`
 * which is still known; "" if none is. `opens`: looks for the table if it was not there yet.
 */
uint64_t user_events_asked(struct user_events *u, bool opens, uint64_t seen,
                           char reason[static USER_EVENTS_REASON_BYTES]);

/**
 * Gives the events of a piece the numbers of the trace, adding classes to `w` when it meets them first, and leaves out
 * what it does not know. Returns 0, or -errno with a line: the writer failed.
 */
int user_classes_translate(struct user_classes *c, struct user_events *u, struct ring_piece *p,
                           struct ctf_writer *w, struct user_counts *n, struct error *e);

#endif
