/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_CALL_NAMES_H
#define RUN_CALL_NAMES_H

/*
 * The names of calls, as rows of sums have them: from the modules in the ledgers of process images.
 *
 *     call_names_begin(names);
 *     const struct call_name_place place = call_names_find(names, pid, image_id, return_address, NULL);
 *     call_names_read(names);              names all that were found
 *     call_names_add(names, &place, &b);
 *
 * Runs in: the tool. Threads: one at a time. Owns: what it has read, until call_names_free().
 */

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "model/profile/profile.h"
#include "model/profile/wrappers.h"
#include "model/trace/trace_event.h"

struct call_names;

/** Both are borrowed. `dir`: of the ledgers; `wrappers`: functions that are passed over. Never returns NULL. */
struct call_names *call_names_new(const char *dir, const struct wrappers *wrappers);
void call_names_free(struct call_names *n); /* NULL is allowed */

/** Returns the profile of an image, with names for its calls, which the caller frees; NULL: its ledger cannot be read.
 */
struct profile *call_names_profile(struct call_names *n, pid_t pid, uint64_t image_id);
/**
 * Appends the name of a location of such a profile: the innermost function that is not a wrapper; else the outermost
 * function of the address. Appends nothing if nothing is known.
 */
void call_names_add_location(const struct profile *p, uint32_t location, struct buf *b);

/** Where a call was made. */
struct call_name_place {
    size_t image;      /* SIZE_MAX: there is no ledger */
    uint32_t location; /* in its profile */
};

/** Forgets all places: ledgers are read anew, as they have more modules now. */
void call_names_begin(struct call_names *n);
/** Finds a call by its return address. `told`: the event that tells the module (module_events_told()), or NULL. */
struct call_name_place call_names_find(struct call_names *n, pid_t pid, uint64_t image_id,
                                       uint64_t return_address, const struct trace_event *told);
void call_names_read(struct call_names *n);
/** Appends the name of a call; nothing if nothing is known. */
void call_names_add(const struct call_names *n, const struct call_name_place *place, struct buf *b);

#endif
