/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef STORE_PROFILE_LOAD_H
#define STORE_PROFILE_LOAD_H

/*
 * Reads a recording that is finished, in progress, or cut off by a crash. The file is opened read-only, and
 * nothing in it is trusted.
 *
 * Runs in: the tool. Threads: any number of readers at once. Owns: nothing between two calls.
 * Invariant: what it returns is valid (profile_valid()); figures are finite and not negative. Texts may hold
 * control characters and invalid UTF-8; code that prints them must handle this.
 *
 * Limits: a file needs at most some ten times its size in memory, and 512 MiB for its stacks. A file is
 * refused if it claims more, if its tables are not exactly ours, or if it refers to rows that do not exist.
 *
 * If there was a -wal and the folder is writable, a -shm may be left beside the file. If the folder is not
 * writable and SQLite needs it, a copy of both is made in $TMPDIR (/tmp), and removed again.
 *
 * Errors of all functions: -ENOENT, -EISDIR, -EACCES ... as open(2); -EBADMSG: not a regular file,
 * not a recording, or a damaged one; -EPROTONOSUPPORT: of a newer version; -EBUSY: locked for more than 5 s;
 * -EFBIG: beyond the limits. The line says what to do.
 */

#include "base/error.h"
#include "model/profile/profile.h"
#include "model/table/table.h"

/**
 * Reads the profile, without its stored moments, at the time `at_ns` (CLOCK_REALTIME) or, when that is NULL, at the
 * end. The caller frees *p with profile_free(); it is NULL on failure.
 *
 * For a time in the past: an image that began later is left out. An image that had ended, or was not seen
 * after `at_ns`, is as it was stored last. For any other image
 * - the sums `allocated` and `freed` of its cells are those of the last snapshot not after `at_ns`, and
 *   `taken_ns` is the time of that snapshot (or the image's beginning, without cells, when there is none);
 * - `at_peak` and the peak are set if the peak was not after the snapshot, else they are 0 ("none");
 * - `temporary_*` and `lifetimes` are 0: unknown;
 * - the samples are those allocated before and still live at the end or among the recent frees: never too
 *   many, often too few; recent frees are those before;
 * - losses and cost are those of the end, and so not too small;
 * - it counts as running and `past`, and its RssAnon is that of its last point.
 *
 * Points are those not after `at_ns`. Images that were only counted are counted.
 */
int recording_load(struct profile **p, const char *path, const uint64_t *at_ns, struct error *e);
/** Parts that a caller may leave out to save time: the profile is then as if they had not been recorded. */
enum {
    RECORDING_POINTS = 1,    /* and, for a time in the past, data that the answer does not use */
    RECORDING_LIFETIMES = 2, /* of cells; the bounds of the classes stay */
    /* the sums of cells at stored moments; a profile at a time in the past, or without points, never has them */
    RECORDING_MOMENTS = 4,
};
/** Like recording_load(), without the given parts (ORed bits). Damage in these parts is not noticed. */
int recording_load_without(struct profile **p, const char *path, const uint64_t *at_ns, unsigned parts,
                           struct error *e);
/**
 * Appends the rows that recording_put_rows() stored under this name to `t`, in their order. Columns are
 * matched by name; columns of `t` that the rows lack are hidden. `each` is called after the last row of each
 * time. Returns -ENODATA if there are none.
 */
int recording_load_rows(const char *path, const char *name, struct table *t,
                        void (*each)(void *arg, uint64_t time_ns), void *arg, struct error *e);
/** Returns when the recording began and how far it goes (CLOCK_REALTIME); 0 and 0 when not known. */
int recording_times(const char *path, uint64_t *first_ns, uint64_t *last_ns, struct error *e);

struct recording_fact {
    char *key;
    char *text;     /* NULL: a number */
    int64_t number; /* 0 for a text */
};

/** The facts that are known without reading the profile. */
struct recording_summary {
    struct VEC(struct recording_fact) facts; /* RECORDING_COMMAND and so on; see recording_text() */
    uint64_t first_ns, last_ns;              /* as recording_times() */
    uint64_t bytes;                          /* bytes of the stored data */
    uint32_t images;                         /* stored images */
    uint64_t images_dropped;                 /* images that were only counted */
};

int recording_summarize(struct recording_summary *s, const char *path, struct error *e);
void recording_summary_release(struct recording_summary *s);
/**
 * Returns the n-th kind of exact accounts, "tags" or "sites"; NULL if there are fewer. The summary owns it.
 */
const char *recording_accounts(const struct recording_summary *s, size_t n);
/** Returns a fact; NULL when the key does not exist or is a number. The summary owns it. */
const char *recording_text(const struct recording_summary *s, const char *key);
/** Gets a fact; returns false when the key does not exist or is a text. */
bool recording_number(const struct recording_summary *s, const char *key, int64_t *number);

#endif
