/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/hooks/uftrace/bench_uftrace.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/sigsafe/clock_ns.h"
#include "bench/hooks/bench_room.h"

#define MARK      "ALLIUM_BENCH_UFTRACE" /* in the environment of the helper that uftrace runs */
#define SETTLE_NS UINT64_C(10000000000)
#define STEP_US   500u

static struct bench_uftrace_counts counts;

/* uftrace takes this process, and starts the helper again as its child, which goes on with the conversation. */
static const char *run_by_uftrace(unsigned threads)
{
    char path[PATH_MAX], number[16];
    const ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
    path[len > 0 ? len : 0] = '\0';
    snprintf(number, sizeof(number), "%u", threads);
    if (bench_room_run((const char *const[]){"uftrace", "--version", NULL}))
        return "uftrace is not installed: install uftrace";
    if (!bench_room_make())
        return "a folder of its own for uftrace takes " BENCH_ROOM_NEEDS;
    setenv(MARK, "1", 1);
    const char *const argv[] = {"uftrace",
                                "record",
                                "--force",
                                "--no-libcall",
                                "--no-event",
                                "--no-pager",
                                "--logfile=/dev/null",
                                "--data=" BENCH_ROOM_FOLDER,
                                path,
                                "mcount",
                                "uftrace",
                                number,
                                "0",
                                NULL};
    execvp(argv[0], (char *const *)argv);
    return "uftrace cannot be started: reinstall uftrace";
}

const char *bench_uftrace_begin(unsigned threads)
{
    return getenv(MARK) ? NULL : run_by_uftrace(threads);
}

void bench_uftrace_settle(uint64_t hits)
{
    const uint64_t until = clock_ns(CLOCK_MONOTONIC) + SETTLE_NS;
    for (;;) {
        counts = bench_uftrace_read(BENCH_ROOM_FOLDER);
        if (counts.is_odd || counts.records + counts.lost >= hits || clock_ns(CLOCK_MONOTONIC) >= until)
            break;
        usleep(STEP_US);
    }
}

uint64_t bench_uftrace_hits(void)
{
    return counts.is_odd ? 0 : counts.records;
}

uint64_t bench_uftrace_lost(void)
{
    return counts.lost;
}

uint64_t bench_uftrace_bytes(void)
{
    return counts.records * 16;
}
