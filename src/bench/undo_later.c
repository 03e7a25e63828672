/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/undo_later.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void close_between(int first, int last)
{
    if (first <= last)
        syscall(SYS_close_range, first, last, 0);
}

/* Whoever reads the command's output must see its end: nothing else of it stays open. */
static void close_others(int alive, const int keep[2])
{
    int open[] = {keep[0], keep[1], alive};
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++)
            if (open[k] > open[k + 1]) {
                const int other = open[k];
                open[k] = open[k + 1];
                open[k + 1] = other;
            }
    int from = 0;
    for (int i = 0; i < 3; i++)
        if (open[i] >= from) {
            close_between(from, open[i] - 1);
            from = open[i] + 1;
        }
    syscall(SYS_close_range, from, ~0u, 0);
}

static _Noreturn void wait_and_undo(int alive, undo_fn *undo, const void *arg, const int keep[2])
{
    char byte;
    for (int s = 1; s < NSIG; s++) /* a terminal sends its signals to the whole group of the command */
        signal(s, SIG_IGN);
    close_others(alive, keep);
    while (read(alive, &byte, 1) < 0 && errno == EINTR)
        ;
    _exit(undo(arg));
}

int undo_later_start(struct undo_later *u, undo_fn *undo, const void *arg, const int keep[2])
{
    int ends[2];
    *u = (struct undo_later){.process = -1, .alive = -1};
    if (pipe2(ends, O_CLOEXEC))
        return -errno;
    u->process = fork();
    if (!u->process)
        wait_and_undo(ends[0], undo, arg, keep);
    const int bad = u->process < 0 ? -errno : 0;
    close(ends[0]);
    if (bad)
        close(ends[1]);
    else
        u->alive = ends[1];
    return bad;
}

int undo_later_end(struct undo_later *u)
{
    int status = 0;
    close(u->alive);
    while (waitpid(u->process, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    return WIFEXITED(status) ? -WEXITSTATUS(status) : -EINTR;
}

void undo_later_forked(const struct undo_later *u)
{
    close(u->alive);
}

int undo_later_lock(int at, const char *folder)
{
    struct stat now, there;
    const int fd = openat(at, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int bad = flock(fd, LOCK_EX | LOCK_NB) ? -errno : 0;
    /* Between its creation and flock() another command may have taken it for one without an owner. */
    if (!bad && (fstat(fd, &now) || fstatat(at, folder, &there, 0) || now.st_ino != there.st_ino))
        bad = -ENOENT;
    if (bad)
        close(fd);
    return bad ? bad : fd;
}
