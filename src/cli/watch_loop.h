/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_WATCH_LOOP_H
#define CLI_WATCH_LOOP_H

/*
 * The main loop of `allium watch`: takes snapshots at each interval, when a key is pressed, when a signal
 * comes and when the watched process ends, and prints them.
 *
 * On a terminal keys are read one by one, without echo. The terminal's mode is restored at the end, however
 * the command ends, and while it is stopped.
 *
 * Runs in: the tool. Threads: one. Owns: nothing.
 */

#include <stdbool.h>
#include <stdint.h>

#include "cli/intervals.h"
#include "run/alert_exec.h"
#include "run/watch.h"
#include "view/text/sink.h"

struct watch_loop {
    struct watch *watch;
    struct suppressions *dismissed;
    struct alert_exec *exec;    /* NULL: none */
    const char *state;          /* file; NULL: none */
    int32_t pid;                /* the watched process, whose end stops the loop; 0: several */
    struct intervals intervals; /* with a count of 1 no keys are read */
    uint32_t top;
    bool json;
};

/** Runs until the end. Returns the exit code. */
int watch_loop(const struct watch_loop *o);
/** Writes one snapshot to standard output. */
void watch_print(struct sink *out, const struct watch_snapshot *l, uint32_t top, bool json);

#endif
