/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel counts the hits of a uprobe, as for perf stat. */
#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/vec.h"
#include "bench/attach/bench_attach.h"

#define UPROBE     "/sys/bus/event_source/devices/uprobe/type"
#define RETURN_BIT 1u /* of config: "format/retprobe" says config:0 */

/*
 * An event of each thread: the kernel cannot hand those of uprobes down to new threads (clone() fails, seen with
 * 6.18).
 */
struct perf_count {
    struct VEC(int) fds;
};

static void detach(void *state)
{
    struct perf_count *c = state;
    vec_each (const int, fd, &c->fds)
        close(*fd);
    vec_release(&c->fds);
    free(c);
}

static int open_events(struct perf_count *c, struct perf_event_attr *attr, pid_t pid, struct error *e)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    for (const struct dirent *d; tasks && (d = readdir(tasks));) {
        if (*d->d_name == '.')
            continue;
        const int fd = (int)syscall(SYS_perf_event_open, attr, atoi(d->d_name), -1, -1, PERF_FLAG_FD_CLOEXEC);
        if (fd < 0) {
            const int error = errno;
            closedir(tasks);
            return error_set(e, ENOTSUP, "perf_event_open: %s%s", strerror(error),
                             error == EACCES || error == EPERM ? ": run as root" : "");
        }
        *vec_push(&c->fds) = fd;
    }
    if (tasks)
        closedir(tasks);
    return c->fds.len ? 0 : error_set(e, ENOTSUP, "%s cannot be read: mount /proc", path);
}

static int attach(void **state, pid_t pid, const char *helper, uint64_t site_offset, bool returns,
                  struct error *e)
{
    unsigned type = 0;
    FILE *file = fopen(UPROBE, "re");
    const bool found = file && fscanf(file, "%u", &type) == 1;
    if (file)
        fclose(file);
    if (!found)
        return error_set(e, ENOTSUP, "the kernel has no uprobes: boot one with CONFIG_UPROBE_EVENTS");
    struct perf_event_attr attr = {.type = type,
                                   .size = sizeof(attr),
                                   .config = returns ? RETURN_BIT : 0,
                                   .uprobe_path = (uintptr_t)helper,
                                   .probe_offset = site_offset};
    struct perf_count *c = mem_alloc(sizeof(*c));
    const int bad = open_events(c, &attr, pid, e);
    if (bad)
        detach(c);
    else
        *state = c;
    return bad;
}

static int attach_entry(void **state, pid_t pid, const char *helper, uint64_t site_offset, struct error *e)
{
    return attach(state, pid, helper, site_offset, false, e);
}

static int attach_return(void **state, pid_t pid, const char *helper, uint64_t site_offset, struct error *e)
{
    return attach(state, pid, helper, site_offset, true, e);
}

static uint64_t count_hits(void *state)
{
    const struct perf_count *c = state;
    uint64_t sum = 0, n;
    vec_each (const int, fd, &c->fds)
        if (read(*fd, &n, sizeof(n)) == (ssize_t)sizeof(n))
            sum += n;
    return sum;
}

#define COUNT(name, mechanism, attach)                                                                       \
    const struct bench_attachment name = {mechanism, "perf-count", attach, count_hits,                       \
                                          NULL,      NULL,         detach, false}
COUNT(bench_perf_count_nop, "uprobe-nop", attach_entry);
COUNT(bench_perf_count_push, "uprobe-push", attach_entry);
COUNT(bench_perf_count_step, "uprobe-step", attach_entry);
COUNT(bench_perf_count_return, "uretprobe", attach_return);
