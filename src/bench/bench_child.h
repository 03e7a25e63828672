/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BENCH_CHILD_H
#define BENCH_CHILD_H

/*
 * A helper that runs (hooks/bench_turn.h), and the conversation with it.
 *
 * Runs in: the tool. Threads: one. Owns: the process and the pipes, until bench_child_end().
 */

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "bench/hooks/bench_turn.h"

struct bench_child {
    pid_t pid;
    int to, from; /* pipes */
    struct bench_hello hello;
};

/**
 * Starts the helper, and waits until it is ready. Returns 0; -ENOTSUP and a line if it cannot measure this row;
 * another -errno and a line.
 */
int bench_child_start(struct bench_child *c, const char *helper, const char *mechanism, const char *sink,
                      unsigned threads, unsigned payload, struct error *e);
/** Returns 0, or -errno and a line. */
int bench_child_ask(struct bench_child *c, const struct bench_request *q, struct bench_reply *r,
                    struct error *e);
void bench_child_end(struct bench_child *c);

#endif
