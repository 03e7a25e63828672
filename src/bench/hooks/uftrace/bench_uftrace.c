/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/hooks/uftrace/bench_uftrace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sigsafe/clock_ns.h"
#include "bench/hooks/bench_room.h"

#define MARK      "ALLIUM_BENCH_UFTRACE" /* in the environment of the helper that uftrace runs */
#define SETTLE_NS UINT64_C(10000000000)
#define STEP_US   500u
#define POLL_MS   50

static struct bench_uftrace_counts counts;

/* ---- the helper that the tool has started: uftrace starts it again, to go on with the conversation ---- */

static _Noreturn void be_uftrace(unsigned threads)
{
    char path[PATH_MAX], number[16];
    const ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
    path[len > 0 ? len : 0] = '\0';
    snprintf(number, sizeof(number), "%u", threads);
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
    for (int s = 1; s < NSIG; s++)
        signal(s, SIG_DFL);
    setenv(MARK, "1", 1);
    execvp(argv[0], (char *const *)argv);
    _exit(127);
}

/* uftrace leaves its child behind if it is killed while it starts. The keeper does not: it ends with this process. */
static _Noreturn void keep(int alive, unsigned threads)
{
    struct pollfd p = {.fd = alive};
    bench_room_keep();
    const pid_t pid = fork();
    if (!pid)
        be_uftrace(threads);
    while (pid > 0 && !poll(&p, 1, POLL_MS) && !waitpid(pid, NULL, WNOHANG))
        ;
    bench_room_end();
}

static const char *run_by_uftrace(unsigned threads)
{
    int alive[2];
    if (bench_room_run((const char *const[]){"uftrace", "--version", NULL}))
        return "uftrace is not installed: install uftrace";
    if (!bench_room_make())
        return "a folder of its own for uftrace takes " BENCH_ROOM_NEEDS;
    if (pipe2(alive, O_CLOEXEC))
        return "there are no more descriptors: raise `ulimit -n`";
    const pid_t keeper = fork();
    if (!keeper) {
        close(alive[1]);
        keep(alive[0], threads);
    }
    if (keeper < 0)
        return "there are no more processes: raise `ulimit -u`";
    while (waitpid(keeper, NULL, 0) < 0 && errno == EINTR)
        ;
    _exit(0);
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
        /* More: a buffer that was written to its file just now is counted in both. */
        if (counts.is_odd || counts.records + counts.lost == hits || clock_ns(CLOCK_MONOTONIC) >= until)
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
