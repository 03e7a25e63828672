/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_INTERVALS_H
#define CLI_INTERVALS_H

/*
 * --interval, --count and --duration: one thing looked at again and again.
 *
 * Runs in: the tool. Threads: one.
 */

#include <stdint.h>

#include "base/buf.h"
#include "cli/command.h"

struct intervals {
    uint64_t every_ns; /* 0: once */
    uint64_t duration_ns;
    uint32_t count;
};

/** Lines of a table of options. */
#define INTERVALS_OPTIONS                                                                                    \
    {"interval", 0, "INTERVAL", "read it at each INTERVAL, and print the changes per second"},               \
        {"count", 0, "N", "stop after N intervals"},                                                         \
    {                                                                                                        \
        "duration", 0, "DURATION", "stop after DURATION"                                                     \
    }

/** -1: fine; else the exit code, after a line on stderr. */
int intervals_parse(struct intervals *i, const struct command *c, const struct arguments *a);
/**
 * A look: so long after the first one, and after the last one; both 0: it is the first. -1 to go on; else the exit
 * code.
 */
typedef int intervals_look_fn(void *arg, uint64_t began_ns, uint64_t elapsed_ns);
/** The exit code. Looks that take longer than an interval are late, and not made up for. */
int intervals_run(const struct intervals *i, intervals_look_fn *look, void *arg);

#endif
