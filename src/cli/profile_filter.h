/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_PROFILE_FILTER_H
#define CLI_PROFILE_FILTER_H

/* --where and --older-than on a profile: which cells and which live samples count. */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "model/profile/profile.h"
#include "model/profile/rollup.h"
#include "query/query.h"

struct profile_filter {
    struct query *query; /* NULL: everything */
    uint64_t older_than_ns;
    bool samples; /* needs the live samples: only live memory can be shown */
    struct frames frames;
};

/** `where` and `older_than` may be NULL. Returns 0, or -EINVAL with a line. */
int profile_filter_init(struct profile_filter *f, const char *where, const char *older_than, struct error *e);
void profile_filter_release(struct profile_filter *f);
/** Sets the callbacks of a rollup. */
void profile_filter_apply(struct profile_filter *f, struct rollup_options *o);
/** Returns whether the query matches a recent free: its functions are those of both stacks, its age is its
 * lifetime. */
bool profile_filter_keeps_free(struct profile_filter *f, const struct profile *p, uint32_t free);
/** An event of a trace, as a query on the profile sees it; PROFILE_NONE: not known. */
struct profile_filter_event {
    uint32_t image, thread;
    uint32_t stack, location; /* of the call; the location counts if the stack is not known */
    int32_t pid;
    bool has_size;
    uint64_t size_bytes;
};
/** Returns whether the query matches an event. An event has no age: with --older-than, no event matches. */
bool profile_filter_keeps_event(struct profile_filter *f, const struct profile *p,
                                const struct profile_filter_event *e);
/** Returns whether the filter asks for ages. */
bool profile_filter_asks_age(const struct profile_filter *f);
/** Returns the filter in words, for a heading; the caller frees it. NULL: no filter. */
char *profile_filter_words(const struct profile_filter *f);

#endif
