/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef STORE_PROFILE_LOAD_H
#define STORE_PROFILE_LOAD_H

/*
 * Reading a recording, finished, under way, or cut off by a crash. It is opened read-only, and believed in nothing.
 *
 * Runs in: the tool. Threads: any number of readers at once. Owns: nothing between two calls.
 * Invariant: what is handed out is valid (profile_valid()); figures are finite and not negative; texts are texts, but
 * may hold control characters and bytes that are no UTF-8: whoever prints them sees to that.
 *
 * Limits: a file needs no more memory than some ten times its size, and 512 MiB for its stacks; what claims more, is
 * not made of our tables to the letter, or refers to what is not there, is refused.
 *
 * Beside the file a -shm may be left, when there was a -wal and the folder can be written to. When it cannot, and
 * SQLite needs to, a copy of both is made in $TMPDIR (/tmp), and removed again.
 *
 * Errors of all functions: -ENOENT, -EISDIR, -EACCES ... as open(2); -EINVAL: not a regular file; -EBADMSG: not a
 * recording, or a damaged one; -EPROTONOSUPPORT: a newer version's; -EBUSY: locked for more than 5 s; -EFBIG: beyond
 * the limits. The line says what to do.
 */

#include "base/error.h"
#include "model/profile/profile.h"
#include "model/table/table.h"

/**
 * The profile at the time `at_ns` (CLOCK_REALTIME), or, when that is NULL, at the end. *p is the caller's, to be freed
 * with profile_free(); NULL on failure.
 *
 * Of the past this is known: an image that began later is left out; one that had ended, or was not seen again after
 * `at_ns`, is as it was stored last; of any other
 *  - the sums `allocated` and `freed` of its cells are those of the last moment kept not after `at_ns`, and its
 *    `taken_ns` is that moment's time (its beginning, with no cell, when there is none);
 *  - `at_peak` and the peak stay when that was not after the moment, else they are 0 ("none");
 *  - `temporary_*` and `lifetimes` are 0: unknown;
 *  - samples are those born until then and still alive at the end or among the recent frees: never too many, often
 *    too few; recent frees, those until then;
 *  - what was lost, and the cost, are those of the end, and so not too small;
 *  - it counts as running and `past`, and its RssAnon is that of its last point.
 * Points are those not after `at_ns`. Images that were only counted are counted.
 */
int recording_load(struct profile **p, const char *path, const uint64_t *at_ns, struct error *e);
/** What is not needed may be left out, which is faster: it is then as if it had not been recorded. */
enum {
    RECORDING_POINTS = 1,    /* and of the past, what is not part of the answer */
    RECORDING_LIFETIMES = 2, /* of cells; their classes stay */
};
/** The same without those parts, which are ORed together. What cannot be read in them is not noticed. */
int recording_load_without(struct profile **p, const char *path, const uint64_t *at_ns, unsigned parts,
                           struct error *e);
/**
 * The rows of this name that recording_put_rows() put, in their order: appended to `t`, as far as it has columns of
 * their names; others of `t` are hidden; `each` is called after the last one of each time. -ENODATA: there are none.
 */
int recording_load_rows(const char *path, const char *name, struct table *t,
                        void (*each)(void *arg, uint64_t time_ns), void *arg, struct error *e);
/** When the recording began and how far it goes (CLOCK_REALTIME); 0 and 0 when nothing tells. */
int recording_times(const char *path, uint64_t *first_ns, uint64_t *last_ns, struct error *e);

struct recording_fact {
    char *key;
    char *text;     /* NULL: a number */
    int64_t number; /* 0 for a text */
};

/** What can be said without reading the profile. */
struct recording_summary {
    struct VEC(struct recording_fact) facts; /* RECORDING_COMMAND and so on; see recording_text() */
    uint64_t first_ns, last_ns;              /* as recording_times() */
    uint64_t bytes;                          /* size of what is stored */
    uint32_t images;                         /* stored ones */
    uint64_t images_dropped;                 /* only counted */
};

int recording_summarize(struct recording_summary *s, const char *path, struct error *e);
void recording_summary_release(struct recording_summary *s);
/** What it has exact accounts of: "tags", "sites"; NULL from the n-th on that there is not. The summary's. */
const char *recording_accounts(const struct recording_summary *s, size_t n);
/** A fact, NULL when there is none of that key or it is a number; the summary's. */
const char *recording_text(const struct recording_summary *s, const char *key);
/** A fact; false when there is none of that key or it is a text. */
bool recording_number(const struct recording_summary *s, const char *key, int64_t *number);

#endif
