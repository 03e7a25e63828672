/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/hooks/bench_marker.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/mount.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sigsafe/compiler.h"

#define NO_TRACEFS   "the kernel's tracefs cannot be mounted: run as root, with CONFIG_TRACING in the kernel"
#define REMOVE_TRIES 500 /* 10 ms apart: descriptors of a process that has ended are closed late */

static int tracefs = -1, instance = -1, marker = -1;
static struct {
    uint64_t hits, lost, bytes;
} sums;

/* ---- the instance ---- */

/* A mount that no path leads to. */
static int mount_tracefs(void)
{
    const int context = (int)syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC);
    if (context < 0)
        return -1;
    const int bad = (int)syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0),
              fd = bad ? -1 : (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, 0);
    close(context);
    return fd;
}

static bool write_to(const char *file, const char *text)
{
    const int fd = openat(instance, file, O_WRONLY | O_CLOEXEC);
    const bool is_written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0)
        close(fd);
    return is_written;
}

/* Runs in another process until the helper has ended. */
static _Noreturn void remove_later(int alive, const char *path)
{
    char byte;
    setsid(); /* signals to the group of the command do not end this process */
    for (int s = 1; s < NSIG; s++)
        signal(s, SIG_IGN);
    for (int fd = 0; fd < 3; fd++)
        dup2(alive, fd);
    close(marker);
    while (read(alive, &byte, 1) < 0 && errno == EINTR)
        ;
    write_to("tracing_on", "0");
    close(instance);
    for (int i = 0; i < REMOVE_TRIES && unlinkat(tracefs, path, AT_REMOVEDIR) && errno == EBUSY; i++)
        usleep(10000);
    _exit(0);
}

static bool start_remover(const char *path)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC))
        return false;
    const pid_t pid = fork();
    if (!pid) {
        close(ends[1]);
        remove_later(ends[0], path);
    }
    close(ends[0]);
    return pid > 0;
}

/* The tool removes instances whose names begin like this, and whose processes are gone. */
static const char *make_instance(void)
{
    char path[64];
    struct stat space = {.st_ino = 0};
    stat("/proc/self/ns/pid", &space);
    snprintf(path, sizeof(path), "instances/allium-%d.%lu", (int)getpid(), (unsigned long)space.st_ino);
    if (mkdirat(tracefs, path, 0700))
        return "a tracing instance cannot be made: remove some in instances/ of tracefs";
    instance = openat(tracefs, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (instance < 0 || !start_remover(path)) {
        unlinkat(tracefs, path, AT_REMOVEDIR);
        return "there are no more descriptors or processes: raise `ulimit -n` and `ulimit -u`";
    }
    return NULL;
}

const char *bench_marker_begin(unsigned threads)
{
    (void)threads;
    tracefs = mount_tracefs();
    const char *why = tracefs < 0 ? NO_TRACEFS : make_instance();
    if (why)
        return why;
    /* Full buffers discard, and the statistics count it. */
    const bool is_set = write_to("options/overwrite", "0") && write_to("buffer_size_kb", "4096");
    marker = openat(instance, "trace_marker", O_WRONLY | O_CLOEXEC);
    return is_set && marker >= 0 ? NULL
                                 : "the tracing instance has no trace_marker: it takes Linux 5.14 or later";
}

void bench_marker_hit(void *function, void *caller)
{
    char line[40];
    const int n = snprintf(line, sizeof(line), "%016" PRIxPTR " %016" PRIxPTR "\n", (uintptr_t)function,
                           (uintptr_t)caller);
    if (write(marker, line, (size_t)n) != n)
        return; /* the line is missing in the counts */
}

/* ---- counting the lines ---- */

static uint64_t value_of(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

static ssize_t read_file(const char *path, char *text, size_t bytes)
{
    const int fd = openat(instance, path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, text, bytes - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n;
}

void bench_marker_settle(uint64_t hits)
{
    const long cpus = sysconf(_SC_NPROCESSORS_CONF);
    (void)hits;
    for (long cpu = 0; cpu < cpus; cpu++) {
        char path[64], text[1024];
        snprintf(path, sizeof(path), "per_cpu/cpu%ld/stats", cpu);
        read_file(path, text, sizeof(text));
        sums.hits += value_of(text, "entries: ");
        sums.bytes += value_of(text, "bytes: ");
        sums.lost += value_of(text, "\noverrun: ") + value_of(text, "commit overrun: ") +
                     value_of(text, "dropped events: ");
    }
    /* Opening it so empties the buffers, and sets the statistics to 0. */
    const int fd = openat(instance, "trace", O_WRONLY | O_TRUNC | O_CLOEXEC);
    if (fd >= 0)
        close(fd);
}

uint64_t bench_marker_hits(void)
{
    return sums.hits;
}

uint64_t bench_marker_lost(void)
{
    return sums.lost;
}

uint64_t bench_marker_bytes(void)
{
    return sums.bytes;
}

uint64_t bench_marker_memory(void)
{
    char text[64];
    read_file("buffer_total_size_kb", text, sizeof(text));
    return strtoull(text, NULL, 10) * 1024;
}
