/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_WATCH_LOOP_H
#define CLI_WATCH_LOOP_H

/*
 * The life of `allium watch`: looks when it is time, when a key is pressed, when a signal comes and when the watched
 * process ends, and prints them.
 *
 * On a terminal keys are read one by one, without echo; its mode is restored at the end, however it comes, and while we
 * are stopped.
 *
 * Runs in: the tool. Threads: one. Owns: nothing.
 */

#include <stdbool.h>
#include <stdint.h>

#include "run/alert_exec.h"
#include "run/watch.h"
#include "view/text/sink.h"

struct watch_loop {
    struct watch *watch;
    struct suppressions *dismissed;
    struct alert_exec *hook; /* NULL: none */
    const char *state;       /* file; NULL: none */
    int32_t pid;             /* the watched process, whose end is waited for; 0: several */
    uint64_t every_ns;
    uint32_t top;
    bool json, once;
};

/** Until the end; returns the exit code. */
int watch_loop(const struct watch_loop *o);
/** Writes one look, as standard output is to have it. */
void watch_print(struct sink *out, const struct watch_snapshot *l, uint32_t top, bool json);

#endif
