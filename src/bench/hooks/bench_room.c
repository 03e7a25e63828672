/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/hooks/bench_room.h"

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
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

int bench_room_run(const char *const *argv)
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

bool bench_room_make(void)
{
    return unshare_mounts() && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) && hide("/run") &&
           hide("/var/run") && hide("/dev/shm");
}

/* Returns whether there are any. */
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

void bench_room_keep(void)
{
    for (int s = 1; s < NSIG; s++)
        if (s != SIGCHLD)
            signal(s, SIG_IGN);
    setsid(); /* signals to the whole group of the command do not end the keeper */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* The files vanish with the file systems. The children of a killed child become the keeper's. */
_Noreturn void bench_room_end(void)
{
    while (kill_children() && waitpid(-1, NULL, 0) > 0)
        ;
    _exit(0);
}
