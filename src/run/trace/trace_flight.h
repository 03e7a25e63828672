/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_TRACE_FLIGHT_H
#define RUN_TRACE_FLIGHT_H

/*
 * The flight recorder: rings overwrite their oldest events, and snapshots of them are written when a trigger says so,
 * as traces NUMBER-REASON in one folder. The oldest snapshots are removed if all of them exceed a limit.
 *
 * A snapshot also has the last events of processes that have ended: the rings of the command stay until its end, and so
 * do those of the other processes that ended last.
 *
 * Runs in: the tool. Threads: the caller's, and one that this makes. Owns: the rings' files, until trace_flight_end().
 */

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "run/trace/event_trigger.h"
#include "run/trace/trace_trigger.h"

struct kernel_follow;
struct trace_flight;

struct trace_flight_options {
    const char *dir;              /* of the ledgers */
    const char *folder;           /* of the snapshots */
    uint64_t limit_bytes;         /* of the folder; 0: the default */
    pid_t pid;                    /* of the command */
    struct kernel_follow *kernel; /* started, and ended after the flight; NULL: none */
    const struct trace_triggers *triggers;
};

struct trace_flight_counts {
    uint64_t images, mono_images; /* mono_images: their events have CLOCK_MONOTONIC from the start */
    unsigned snapshots, removed;  /* begun, with those that failed; removed for newer ones */
    unsigned failed;
    uint64_t skipped; /* triggers within a second after a snapshot */
    struct user_counts user;
    uint64_t events, lost, kernel_events; /* of the newest snapshot */
    struct event_trigger_counts looked;   /* at events that may be triggers */
    struct error unfit[TRACE_EVENTS_MAX]; /* triggers that could never fire: why; "": it could */
    char last[64];                        /* the name of the newest snapshot; "": there is none */
};

/** Returns 0, or -errno with a line. */
int trace_flight_begin(struct trace_flight **out, const struct trace_flight_options *o, struct error *e);
/**
 * `wait_status`: how the command has ended. Writes the last snapshot, if there is to be one, and ends the thread.
 * Returns 0, or -errno with the line of the last snapshot that failed. NULL is allowed.
 */
int trace_flight_end(struct trace_flight *f, int wait_status, struct trace_flight_counts *out,
                     struct error *e);

#endif
