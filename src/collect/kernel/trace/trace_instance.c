/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/kernel/trace/trace_instance.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "collect/kernel/private_mount.h"

#define PREFIX "allium-"
#define FOLDER "instances/"
/* More than the parent has open when it starts the child. */
#define GUARD_FDS 64

/* Process ids are those of a namespace, so an instance is called after both. 0: not known. */
static unsigned long own_namespace(void)
{
    struct stat st;
    return stat("/proc/self/ns/pid", &st) ? 0 : (unsigned long)st.st_ino;
}

/* Removes the instances of processes of this namespace that are gone. */
static void remove_stale(int tracefs_fd)
{
    int fd = openat(tracefs_fd, "instances", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        if (fd >= 0)
            close(fd);
        return;
    }
    for (struct dirent *entry; (entry = readdir(d));) {
        int pid, end = 0;
        unsigned long space;
        if (sscanf(entry->d_name, PREFIX "%d.%lu%n", &pid, &space, &end) < 2 || entry->d_name[end] ||
            pid <= 0 || space != own_namespace())
            continue;
        if (pid == (int)getpid() || (kill((pid_t)pid, 0) && errno == ESRCH))
            unlinkat(fd, entry->d_name, AT_REMOVEDIR); /* an earlier process may have had our pid */
    }
    closedir(d);
}

static void write_file(int folder, const char *file, const char *text)
{
    int fd = openat(folder, file, O_WRONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));
    (void)n; /* nobody is left to hear of it */
    if (fd >= 0)
        close(fd);
}

/* The buffers are in use until the kernel has closed all descriptors of a process that has ended. */
static void remove_instance(int tracefs_fd, const char *path)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    for (int n = 0; n < 500 && unlinkat(tracefs_fd, path, AT_REMOVEDIR) && errno == EBUSY; n++)
        nanosleep(&pause, NULL);
}

/* Waits in the child until the parent has ended, however it did. */
static void guard(const struct trace_instance *t, const char *path, int end_fd)
{
    const int keep[] = {end_fd, t->fd, t->tracefs_fd};
    char byte;
    setsid(); /* what is sent to the parent's group is not for the child */
    for (int fd = 0; fd < GUARD_FDS; fd++)
        if (fd != keep[0] && fd != keep[1] && fd != keep[2])
            close(fd);
    while (read(end_fd, &byte, sizeof(byte)) < 0 && errno == EINTR)
        ;
    write_file(t->fd, "tracing_on", "0");
    write_file(t->fd, "events/enable", "0");
    close(t->fd);
    remove_instance(t->tracefs_fd, path);
    _exit(0);
}

/* If the child cannot be started, recording works all the same, but the instance stays if allium is killed. */
static void start_guard(struct trace_instance *t, const char *path)
{
    int ends[2];
    sigset_t all, before;
    if (pipe2(ends, O_CLOEXEC))
        return;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    t->guard = fork();
    if (!t->guard) {
        close(ends[1]);
        guard(t, path, ends[0]);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    close(ends[0]);
    if (t->guard > 0) {
        t->guard_fd = ends[1];
    } else {
        close(ends[1]);
        t->guard = 0;
    }
}

static int open_tracefs(struct trace_instance *t, struct error *e)
{
    *t = (struct trace_instance){.tracefs_fd = private_mount("tracefs"), .fd = -1};
    return t->tracefs_fd >= 0
               ? 0
               : error_set(e, -t->tracefs_fd,
                           "cannot mount tracefs: %s; this needs root with CAP_SYS_ADMIN, and a kernel "
                           "with CONFIG_TRACING",
                           strerror(-t->tracefs_fd));
}

int trace_instance_create(struct trace_instance *t, struct error *e)
{
    char path[sizeof(FOLDER) + sizeof(t->name)];
    int bad = open_tracefs(t, e);
    if (bad)
        return bad;
    remove_stale(t->tracefs_fd);
    snprintf(t->name, sizeof(t->name), PREFIX "%d.%lu", (int)getpid(), own_namespace());
    snprintf(path, sizeof(path), FOLDER "%s", t->name);
    bad = mkdirat(t->tracefs_fd, path, 0700) ? errno : 0;
    if (!bad)
        t->fd = openat(t->tracefs_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bad = bad || t->fd >= 0 ? bad : errno;
    if (bad) {
        error_set(e, bad, "cannot create the tracing instance %s: %s", t->name, strerror(bad));
        trace_instance_remove(t);
        return -bad;
    }
    start_guard(t, path);
    return trace_instance_write(t, "tracing_on", "0", e);
}

int trace_instance_open_top(struct trace_instance *t, struct error *e)
{
    int bad = open_tracefs(t, e);
    if (bad)
        return bad;
    t->fd = openat(t->tracefs_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (t->fd >= 0)
        return 0;
    bad = error_set(e, errno, "cannot open tracefs: %s", strerror(errno));
    trace_instance_remove(t);
    return bad;
}

void trace_instance_remove(struct trace_instance *t)
{
    char path[sizeof(FOLDER) + sizeof(t->name)];
    snprintf(path, sizeof(path), FOLDER "%s", t->name);
    if (t->fd >= 0 && !*t->name) {
        close(t->fd);
    } else if (t->fd >= 0) {
        write_file(t->fd, "events/enable", "0");
        close(t->fd);
        remove_instance(t->tracefs_fd, path);
    }
    if (t->guard) {
        close(t->guard_fd);
        while (waitpid(t->guard, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    if (t->tracefs_fd >= 0)
        close(t->tracefs_fd);
    *t = (struct trace_instance){.tracefs_fd = -1, .fd = -1};
}

int trace_instance_write(const struct trace_instance *t, const char *file, const char *text, struct error *e)
{
    int fd = openat(t->fd, file, O_WRONLY | O_CLOEXEC), bad = fd < 0 ? errno : 0;
    if (!bad && write(fd, text, strlen(text)) < 0)
        bad = errno;
    if (fd >= 0)
        close(fd);
    return bad ? error_set(e, bad, "cannot write %s to %s of tracefs: %s", text, file, strerror(bad)) : 0;
}
