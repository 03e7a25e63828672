/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A session daemon of LTTng for one helper. Its sockets and its trace lie in file systems in memory that only the
 * helper and its children see (mount_namespaces(7)), so that it disturbs no other session daemon, and is disturbed by
 * none. A process, the keeper, starts the daemon, and ends it as soon as the helper has ended, however that happens:
 * then a pipe ends that only the helper keeps open.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sigsafe/compiler.h"
#include "bench/hooks/lttng/bench_lttng.h"

#define LTTNG "lttng", "--no-sessiond"

extern char **environ;

/* Runs a command without input and output. Returns its exit code, or 127. */
static int run(const char *const *argv)
{
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int status;
    posix_spawn_file_actions_init(&actions);
    for (int fd = 0; fd < 3; fd++)
        posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
    const int bad = posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (bad)
        return 127;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return 127;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 127;
}

/* ---- the keeper ---- */

/* Kills all children: LTTng's daemons, which have begun new sessions. Returns whether there are any. */
static bool kill_children(void)
{
    char path[64], list[4096] = "";
    snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, list, sizeof(list) - 1);
    if (fd >= 0)
        close(fd);
    char *end = list;
    for (long pid; n > 0 && (pid = strtol(end, &end, 10)) > 0;)
        kill((pid_t)pid, SIGKILL);
    return n > 0;
}

/* Their files vanish with the file systems. The children of a killed daemon become the keeper's. */
static _Noreturn void end_daemons(void)
{
    while (kill_children() && waitpid(-1, NULL, 0) > 0)
        ;
    _exit(0);
}

static bool start_daemons(void)
{
    static const char *const commands[][12] = {
        {"lttng-sessiond", "--daemonize", "--no-kernel", NULL},
        {LTTNG, "create", "allium", "--output=" BENCH_LTTNG_FOLDER, NULL},
        {LTTNG, "enable-channel", "--userspace", "--buffers-pid", "--subbuf-size=1M", "--num-subbuf=4",
         "events", NULL},
        {LTTNG, "enable-event", "--userspace", "--channel=events", "allium_bench:*", NULL},
        {LTTNG, "start", NULL},
    };
    for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
        if (run(commands[i]))
            return false;
    return true;
}

/* The keeper becomes the parent of each daemon whose own parent has ended (PR_SET_CHILD_SUBREAPER). */
static _Noreturn void keep(int alive, int ready)
{
    char byte;
    for (int s = 1; s < NSIG; s++)
        if (s != SIGCHLD)
            signal(s, SIG_IGN);
    for (int fd = 0; fd < 3; fd++)
        dup2(alive, fd);
    dup2(ready, 3);
    syscall(SYS_close_range, 4, ~0u, 0);
    fcntl(0, F_SETFD, FD_CLOEXEC);
    fcntl(3, F_SETFD, FD_CLOEXEC);
    setsid(); /* signals to the whole group of the command do not end the keeper */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    byte = start_daemons();
    if (write(3, &byte, 1) == 1)
        while (read(0, &byte, 1) < 0 && errno == EINTR)
            ;
    end_daemons();
}

/* ---- the helper ---- */

static bool write_text(const char *path, const char *text)
{
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    const bool written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0)
        close(fd);
    return written;
}

/* Without root it takes a user namespace. The user id stays the same: with 0, LTTng's daemon asks for more. */
static bool unshare_mounts(void)
{
    const uid_t uid = getuid();
    const gid_t gid = getgid();
    char users[32], groups[32];
    if (!unshare(CLONE_NEWNS))
        return true;
    snprintf(users, sizeof(users), "%u %u 1", (unsigned)uid, (unsigned)uid);
    snprintf(groups, sizeof(groups), "%u %u 1", (unsigned)gid, (unsigned)gid);
    return !unshare(CLONE_NEWNS | CLONE_NEWUSER) && write_text("/proc/self/setgroups", "deny") &&
           write_text("/proc/self/uid_map", users) && write_text("/proc/self/gid_map", groups);
}

static bool hide(const char *folder)
{
    char target[8];
    if (readlink(folder, target, sizeof(target)) > 0 || access(folder, F_OK))
        return true; /* /var/run is /run */
    return !mount("allium-bench", folder, "tmpfs", MS_NOSUID | MS_NODEV, NULL);
}

static bool make_room(void)
{
    return unshare_mounts() && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) && hide("/run") &&
           hide("/var/run") && hide("/dev/shm") && !setenv("LTTNG_HOME", "/run", 1);
}

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
    if (run((const char *const[]){"lttng-sessiond", "--version", NULL}) ||
        run((const char *const[]){"lttng", "--version", NULL}))
        return "LTTng's session daemon is not installed: install lttng-tools";
    if (!make_room())
        return "a session daemon of its own takes a mount namespace: run as root, or permit user namespaces";
    return start_keeper();
}

bool bench_lttng_daemon_record(bool on)
{
    if (on)
        return !run((const char *const[]){LTTNG, "start", NULL});
    return !run((const char *const[]){LTTNG, "stop", "--no-wait", NULL});
}

/* The command fails if nothing is to be changed. */
void bench_lttng_daemon_enable(bool on)
{
    run((const char *const[]){LTTNG, on ? "enable-event" : "disable-event", "--userspace", "--channel=events",
                              "allium_bench:*", NULL});
}
