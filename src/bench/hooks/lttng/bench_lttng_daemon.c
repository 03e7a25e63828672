/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A session daemon of LTTng for one helper. Its sockets and its trace lie in file systems in memory that only the
 * helper and its children see (bench_room.h), so that it disturbs no other session daemon, and is disturbed by
 * none. A process, the keeper, starts the daemon, and ends it as soon as the helper has ended, however that happens:
 * then a pipe ends that only the helper keeps open.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sigsafe/compiler.h"
#include "bench/hooks/bench_room.h"
#include "bench/hooks/lttng/bench_lttng.h"

#define LTTNG "lttng", "--no-sessiond"

/* ---- the keeper ---- */

static bool start_daemons(void)
{
    static const char *const commands[][12] = {
        {"lttng-sessiond", "--daemonize", "--no-kernel", NULL},
        {LTTNG, "create", "allium", "--output=" BENCH_ROOM_FOLDER, NULL},
        {LTTNG, "enable-channel", "--userspace", "--buffers-pid", "--subbuf-size=1M", "--num-subbuf=4",
         "events", NULL},
        {LTTNG, "enable-event", "--userspace", "--channel=events", "allium_bench:*", NULL},
        {LTTNG, "start", NULL},
    };
    for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
        if (bench_room_run(commands[i]))
            return false;
    return true;
}

static _Noreturn void keep(int alive, int ready)
{
    char byte;
    bench_room_keep();
    for (int fd = 0; fd < 3; fd++)
        dup2(alive, fd);
    dup2(ready, 3);
    syscall(SYS_close_range, 4, ~0u, 0);
    fcntl(0, F_SETFD, FD_CLOEXEC);
    fcntl(3, F_SETFD, FD_CLOEXEC);
    byte = start_daemons();
    if (write(3, &byte, 1) == 1)
        while (read(0, &byte, 1) < 0 && errno == EINTR)
            ;
    bench_room_end();
}

/* ---- the helper ---- */

static const char *start_keeper(void)
{
    int alive[2], ready[2];
    char is_started = 0;
    if (pipe2(alive, O_CLOEXEC) || pipe2(ready, O_CLOEXEC))
        return "there are no more descriptors: raise `ulimit -n`";
    const pid_t keeper = fork();
    if (!keeper)
        keep(alive[0], ready[1]);
    close(alive[0]);
    close(ready[1]);
    if (keeper < 0 || read(ready[0], &is_started, 1) != 1)
        is_started = 0;
    close(ready[0]);
    return is_started ? NULL
                      : "lttng-sessiond or lttng cannot be started here: run `lttng-sessiond --no-kernel` to "
                        "see why";
}

const char *bench_lttng_daemon_start(void)
{
    if (bench_room_run((const char *const[]){"lttng-sessiond", "--version", NULL}) ||
        bench_room_run((const char *const[]){"lttng", "--version", NULL}))
        return "LTTng's session daemon is not installed: install lttng-tools";
    if (!bench_room_make() || setenv("LTTNG_HOME", "/run", 1))
        return "a session daemon of its own takes " BENCH_ROOM_NEEDS;
    return start_keeper();
}

bool bench_lttng_daemon_record(bool on)
{
    if (on)
        return !bench_room_run((const char *const[]){LTTNG, "start", NULL});
    return !bench_room_run((const char *const[]){LTTNG, "stop", "--no-wait", NULL});
}

/* The command fails if nothing is to be changed. */
void bench_lttng_daemon_enable(bool on)
{
    bench_room_run((const char *const[]){LTTNG, on ? "enable-event" : "disable-event", "--userspace",
                                         "--channel=events", "allium_bench:*", NULL});
}
