/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_INTERVALS_H
#define CLI_INTERVALS_H

/*
 * The loop of every command that repeats: --interval, --count and --duration, the signals that end it, and
 * SIGWINCH.
 *
 * intervals_run() is the whole loop for a command that only waits for time. A command that also waits for
 * descriptors calls intervals_begin(), then intervals_wait() (or intervals_next() and a wait of its own) until
 * INTERVALS_OVER, and intervals_end(). Signals are blocked from begin to end of the process, and are read
 * between two steps: a step that is under way is finished first.
 *
 * Runs in: the tool. Threads: one. Owns: a signalfd, until intervals_end().
 */

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "cli/command.h"

struct intervals {
    uint64_t every_ns; /* 0: no ticks */
    /* times of additional early ticks, in seconds since the start; ascending, ended by 0; NULL: none */
    const uint32_t *early_s;
    uint64_t duration_ns; /* 0: until a signal comes */
    uint32_t count;       /* ticks; 0: no limit */
};

/** Lines of a table of options, with the help of --interval and --count. */
#define INTERVALS_OPTIONS(interval_doc, count_doc)                                                           \
    {"interval", 0, "INTERVAL", interval_doc}, {"count", 0, "N", count_doc},                                 \
    {                                                                                                        \
        "duration", 0, "DURATION", "stop after DURATION"                                                     \
    }

/**
 * --interval, --count and --duration. Without --interval the ticks of `otherwise` are used; if there are none, --count
 * is misuse; if `otherwise` is NULL, --duration is misuse, too. If it is NULL or has no ticks, the first tick comes
 * after one interval, and an interval longer than the duration is misuse. -1: fine; else the exit code, after a line on
 * stderr.
 */
int intervals_parse(struct intervals *i, const struct command *c, const struct arguments *a,
                    const struct intervals *otherwise);

/** Called first with 0 and 0, then every interval with the time since the first and since the last call. -1 to go on;
 * else the exit code. */
typedef int intervals_tick_fn(void *arg, uint64_t began_ns, uint64_t elapsed_ns);
/** Returns -1, or the code of misuse if the interval is longer than the duration: no interval would be completed.
 * 0 ns: not given. The texts are those that the user typed. */
int intervals_check_fit(const struct command *c, uint64_t interval_ns, uint64_t duration_ns,
                        const char *interval, const char *duration);
/** Calls `tick` until it ends the loop, or the count, the duration or a signal does. Returns the exit code. */
int intervals_run(const struct intervals *i, intervals_tick_fn *tick, void *arg);

enum intervals_event {
    INTERVALS_NOTHING, /* a descriptor is ready, or the patience is over */
    INTERVALS_TICK,
    INTERVALS_SIGNAL,  /* one of the command's own signals */
    INTERVALS_RESIZED, /* SIGWINCH: the terminal has another size */
    INTERVALS_OVER,    /* the count or the duration is reached, or SIGINT, SIGTERM or SIGHUP came */
};

struct intervals_loop {
    struct intervals of;
    const int *own_signals; /* ends with 0 */
    /* the command reports once more when it is over: a tick due at that moment is left out */
    bool reports_at_end;
    int signal_fd;
    int signal;                        /* of INTERVALS_SIGNAL */
    uint64_t due_ns, end_ns, began_ns; /* CLOCK_MONOTONIC */
    uint32_t ticks;
};

/**
 * Begins the loop; the first tick is due after one interval, or now if the caller sets due_ns to began_ns.
 * `own_signals` (NULL: none) come as INTERVALS_SIGNAL. 0, or -errno: signals cannot be waited for.
 */
int intervals_begin(struct intervals_loop *l, const struct intervals *of, const int *own_signals);
/** The next event that is due, without waiting. A tick that came late is not made up for. */
enum intervals_event intervals_next(struct intervals_loop *l);
/** Nanoseconds until the next tick or the end, at most. */
uint64_t intervals_left_ns(const struct intervals_loop *l);
/** Waits for the next event, for one of the descriptors, or `patience_ms` (-1: for ever). */
enum intervals_event intervals_wait(struct intervals_loop *l, struct pollfd *fds, unsigned n_fds,
                                    int patience_ms);
void intervals_end(struct intervals_loop *l);

#endif
