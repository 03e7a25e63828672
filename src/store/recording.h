/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef STORE_RECORDING_H
#define STORE_RECORDING_H

/*
 * Writing a recording: one SQLite file, made once and never written again after recording_close(). profile_load.h reads
 * it.
 *
 * Runs in: the tool. Threads: one at a time for one recording; not across fork().
 * Owns: the file's -wal and -shm, until closed.
 * Invariant: what was committed can be read by others from then on, while this goes on and after any crash.
 *
 * How it is kept
 *
 * While it is written the file is in WAL mode: readers never wait for the writer, nor the writer for them, and a commit
 * is one write to FILE-wal. A crash leaves FILE and FILE-wal, which are a valid recording together, and need no repair:
 * a reader takes the committed pages from the -wal. (A rollback journal would have to be played back by the next
 * reader, who may lack the right to write; and a journal that came with a file from a stranger may name other files,
 * which SQLite then deletes.) So no rollback journal is ever on disk; the two changes outside WAL mode keep theirs in
 * memory: the first, before which nothing is recorded, and the last, when the -wal has been brought into the file and
 * one page is changed to say that it leaves WAL mode. One file stays.
 *
 * synchronous = NORMAL: a commit waits for no disk, only every RECORDING_WAL_BYTES of -wal and the end do. Processes
 * may die at any time; a machine that dies takes the last commits along but leaves the file consistent.
 *
 * Once a call has failed for the disk's sake, nothing more is written: every later call fails with the same line, and
 * recording_close() too. What was committed stays, perhaps in the -wal.
 *
 * Everything that images share is stored once: strings by text; modules by path, build id and size; locations by module
 * and address; stacks as a tree, by location and calling stack. What is known of that stays in memory while writing,
 * some 100 bytes for each row.
 */

#include "base/error.h"
#include "model/profile/profile.h"
#include "model/table/table.h"

#define RECORDING_POINTS_MAX  512          /* of an image; more are thinned out by themselves */
#define RECORDING_MOMENTS_MAX 256          /* of an image */
#define RECORDING_DEPTH_MAX   1024         /* deeper stacks are cut, and say so */
#define RECORDING_TEXT_MAX    (256 * 1024) /* bytes; longer strings are cut */
#define RECORDING_WAL_BYTES   (16 << 20)

struct recording;

/* Facts about the recording as a whole; keys of one's own are as good. */
#define RECORDING_COMMAND "command"        /* text */
#define RECORDING_HOST    "host"           /* text: uname */
#define RECORDING_VERSION "allium_version" /* text; what is told when the schema is newer than the reader */
#define RECORDING_SESSION "session"        /* text */
#define RECORDING_PERIOD  "period_bytes"   /* number, from 1 on: what was asked for at the start */
#define RECORDING_STARTED "started_ns"     /* number, CLOCK_REALTIME */
#define RECORDING_ENDED   "ended_ns"       /* number; absent while it goes on, and after a crash */
#define RECORDING_EXIT    "exit_status"    /* number: the wait status of the command */
/* Numbers: CPU time and highest resident memory of the process that recorded, when the command had ended. */
#define RECORDING_CPU    "recorder_cpu_ns"
#define RECORDING_MEMORY "recorder_peak_bytes"
#define RECORDING_KILLED                                                                                     \
    "killed_image" /* number: the id of the image that the signal in the wait status ended */
#define RECORDING_ACCOUNTS                                                                                   \
    "accounts_" /* and a kind, "tags" or "sites": number 1, where there are exact accounts of it */

/**
 * Makes the file, mode 0600, under its final name. What exists is left alone unless `force`: then a regular file or a
 * symbolic link (the link, not its target) is removed first, with what a crash left beside it, unless another allium is
 * still writing into it. *r is NULL on failure. -EEXIST, -EBUSY, -EISDIR, -EINVAL (not a regular file), else open(2)'s.
 */
int recording_create(struct recording **r, const char *path, bool force, struct error *e);

/**
 * Stores all that `p`, which has exactly one image, says about it: new at the first call, in place of what was there at
 * later ones. Only differences are written. What they are found by: cells, threads and modules are the same ones as in
 * the call before when their index is (if what they are is another all the same, they are replaced, and only the
 * history that recording_put_point() keeps of a cell is mixed up); samples and frees, when their serial is, and then
 * have not changed. A location that got names keeps them. The classes of lifetimes are those of the first image put,
 * those of others go to the nearest one. `last`: the image is forgotten, and may not be put again. -EINVAL (and nothing
 * was written): not one image, not valid, or forgotten.
 */
int recording_put_image(struct recording *r, const struct profile *p, bool last, struct error *e);
/**
 * Adds a point to an image that was put and is not forgotten (else -ENOENT); `point->image` is ignored. A time not
 * after the last one is taken for the nanosecond after it. With `moment`, what recording_put_image(r, moment, false)
 * does is done first, and the sums of all its cells stay known for this time. An image that has
 * RECORDING_POINTS_MAX points or RECORDING_MOMENTS_MAX moments is thinned first; *thinned (may be NULL) says so.
 */
int recording_put_point(struct recording *r, uint64_t image_id, const struct profile_point *point,
                        const struct profile *moment, bool *thinned, struct error *e);
/**
 * Forgets moments, then points without one, that lie closer together than the others: about half. What stays reaches
 * over all the life of the image, evenly, moments closer near its beginning; the first and the last stay. -ENOENT.
 */
int recording_thin_points(struct recording *r, uint64_t image_id, struct error *e);
/** Counts an image that is not stored. */
int recording_drop_image(struct recording *r, double peak_bytes, struct error *e);

/**
 * Appends the rows of a table, taken at `time_ns` (CLOCK_REALTIME), to those of this name ("sys_kmem"; lower case,
 * digits and _), which are made at the first call; all calls of one name have the same columns. Hidden ones are left
 * out.
 */
int recording_put_rows(struct recording *r, const char *name, const struct table *t, uint64_t time_ns,
                       struct error *e);

/** How many processes of a program were started without the agent, for this reason, up to now. */
int recording_put_unobserved(struct recording *r, const char *program, const char *reason, uint64_t processes,
                             struct error *e);

int recording_set_text(struct recording *r, const char *key, const char *text, struct error *e);
int recording_set_number(struct recording *r, const char *key, int64_t number, struct error *e);

/** Ends the transaction that the calls above are part of; to be called at least every 10 s. */
int recording_commit(struct recording *r, struct error *e);
/**
 * Commits, makes the file whole, and frees `r` in any case. NULL is allowed. A failure before, or now, is told; the
 * file can be read even then, as long as its -wal stays beside it. -EBUSY when a reader kept it from being made whole
 * for RECORDING_CLOSE_MS, -ENOENT when the file was moved, removed or replaced meanwhile.
 */
#define RECORDING_CLOSE_MS 5000
int recording_close(struct recording *r, struct error *e);

#endif
