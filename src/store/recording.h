/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef STORE_RECORDING_H
#define STORE_RECORDING_H

/*
 * Writes a recording: one SQLite file, which is not written again after recording_close(). profile_load.h
 * reads it.
 *
 * Runs in: the tool. Threads: one at a time for one recording; not across fork().
 * Owns: the file's -wal and -shm, until closed.
 * Invariant: others can read committed data from the commit on, while writing goes on and after any crash.
 *
 * How the file is written
 *
 * While it is written the file is in WAL mode: readers never wait for the writer, nor the writer for them,
 * and a commit is one write to FILE-wal. A crash leaves FILE and FILE-wal. Together they are a valid
 * recording and need no repair: a reader takes the committed pages from the -wal. A rollback journal would be
 * worse: the next reader would have to play it back and may lack the right to write; and a journal that came
 * with a file from a stranger may name other files, which SQLite then deletes. So no rollback journal is ever
 * on disk. The two changes outside WAL mode keep theirs in memory: the first one, before which nothing is
 * recorded, and the last one, which changes one page to leave WAL mode after the -wal was copied into the
 * file. One file stays.
 *
 * synchronous = NORMAL: a commit does not wait for the disk; only the end, and every RECORDING_WAL_BYTES of
 * -wal, do. Processes may die at any time. If the machine dies, the last commits are lost but the file is
 * consistent.
 *
 * Once a call has failed because of the disk, nothing more is written: every later call fails with the same
 * line, and so does recording_close(). Committed data stays, perhaps in the -wal.
 *
 * Data that images share is stored once: strings by text; modules by path, build id and size; locations by
 * module and address; stacks as a tree, by location and calling stack. Maps of what is stored stay in memory
 * while writing, some 100 bytes for each row.
 */

#include "base/error.h"
#include "model/profile/profile.h"
#include "model/table/table.h"

/* of an image; if there are more, some are removed automatically */
#define RECORDING_POINTS_MAX  512
#define RECORDING_MOMENTS_MAX 256          /* of an image */
#define RECORDING_DEPTH_MAX   1024         /* deeper stacks are cut and marked */
#define RECORDING_TEXT_MAX    (256 * 1024) /* bytes; longer strings are cut */
#define RECORDING_WAL_BYTES   (16 << 20)

struct recording;

/* Facts about the recording as a whole. Callers may use other keys, too. */
#define RECORDING_COMMAND "command"        /* text */
#define RECORDING_HOST    "host"           /* text: uname */
#define RECORDING_VERSION "allium_version" /* text; shown when the schema is newer than the reader */
#define RECORDING_SESSION "session"        /* text */
#define RECORDING_PERIOD  "period_bytes"   /* number, from 1 on: the period at the start */
#define RECORDING_STARTED "started_ns"     /* number, CLOCK_REALTIME */
#define RECORDING_ENDED   "ended_ns"       /* number; absent while recording, and after a crash */
#define RECORDING_EXIT    "exit_status"    /* number: the wait status of the command */
/* Numbers: CPU time and highest resident memory of the process that recorded, when the command had ended. */
#define RECORDING_CPU    "recorder_cpu_ns"
#define RECORDING_MEMORY "recorder_peak_bytes"
/* Numbers, of a recording of the kernel: what was freed after its end, and how long that was noted. */
#define RECORDING_KERNEL_SETTLED "kernel_settled_bytes"
#define RECORDING_KERNEL_SETTLE  "kernel_settle_ns"
/* number, of a recording of the kernel: the size of the machine's page */
#define RECORDING_KERNEL_PAGE "kernel_page_bytes"
/* text, of a recording of the kernel: which allocations it has; absent: all */
#define RECORDING_KERNEL_FILTER "kernel_filter"
#define RECORDING_REQUESTED     "requested_known" /* 1: profile.has_requested */
/* number: the id of the image that was killed by the signal in the wait status */
#define RECORDING_KILLED "killed_image"
/* prefix of a kind, "tags" or "sites": number 1, if there are exact accounts of that kind */
#define RECORDING_ACCOUNTS "accounts_"

/**
 * Makes the file, mode 0600, under its final name. An existing file is an error unless `force`: then a
 * regular file or a symbolic link (the link, not its target) is removed first, with the files that a crash
 * left beside it, unless another allium is still writing it. *r is NULL on failure. Errors: -EEXIST, -EBUSY,
 * -EISDIR, -EINVAL (not a regular file), or those of open(2).
 */
int recording_create(struct recording **r, const char *path, bool force, struct error *e);

/**
 * Stores everything that `p`, which has exactly one image, has about the image: new at the first call, a
 * replacement at later calls. Only differences are written. Cells, threads and modules are matched with those
 * of the call before by their indices (if the content shows that they are others, they are replaced, and only
 * the history of recording_put_point() is mixed up); samples and frees by their serials, and then they count
 * as unchanged. A location that has names keeps them. The classes of lifetimes are those of the first image;
 * those of other images go to the nearest class. `last`: the image must not be put again. Returns -EINVAL,
 * with nothing written, if `p` has not one image, is not valid, or the image was put with `last`.
 */
int recording_put_image(struct recording *r, const struct profile *p, bool last, struct error *e);
/**
 * Adds a point to an image that was put without `last` (else -ENOENT); `point->image` is ignored. A time not
 * after the previous one becomes the nanosecond after it. With `moment`, first does what
 * recording_put_image(r, moment, false) does, and stores the sums of all its cells for this time. If the
 * image has RECORDING_POINTS_MAX points or RECORDING_MOMENTS_MAX snapshots, it is thinned first; *thinned
 * (may be NULL) is set then.
 */
int recording_put_point(struct recording *r, uint64_t image_id, const struct profile_point *point,
                        const struct profile *moment, bool *thinned, struct error *e);
/** Adds a point with a moment, too: the sums of the image's cells are those of the last recording_put_image(). */
int recording_put_same_moment(struct recording *r, uint64_t image_id, const struct profile_point *point,
                              bool *thinned, struct error *e);
/**
 * Removes about half of the snapshots, and then of the points without one: those that lie closer together
 * than the others. The rest covers the whole life of the image evenly, with snapshots closer near its
 * beginning; the first and the last stay. Returns -ENOENT.
 */
int recording_thin_points(struct recording *r, uint64_t image_id, struct error *e);
/** Counts an image that is not stored. */
int recording_drop_image(struct recording *r, double peak_bytes, struct error *e);

/**
 * Appends the rows of a table, taken at `time_ns` (CLOCK_REALTIME), to the rows of this name ("sys_kmem";
 * lower case, digits and _). The first call creates them; all calls of one name must have the same columns.
 * Hidden columns are left out.
 */
int recording_put_rows(struct recording *r, const char *name, const struct table *t, uint64_t time_ns,
                       struct error *e);

/** Stores how many processes of a program were started without the agent for this reason, up to now. */
int recording_put_unobserved(struct recording *r, const char *program, const char *reason, uint64_t processes,
                             struct error *e);

int recording_set_text(struct recording *r, const char *key, const char *text, struct error *e);
int recording_set_number(struct recording *r, const char *key, int64_t number, struct error *e);

/** Ends the transaction of the calls above; call it at least every 10 s. */
int recording_commit(struct recording *r, struct error *e);
/**
 * Commits, merges the -wal into the file, and frees `r` in any case. NULL is allowed. Returns an earlier or a
 * new error; the file can be read even then, as long as its -wal stays beside it. -EBUSY: a reader prevented
 * the merge for RECORDING_CLOSE_MS. -ENOENT: the file was moved, removed or replaced meanwhile.
 */
#define RECORDING_CLOSE_MS 5000
int recording_close(struct recording *r, struct error *e);

#endif
