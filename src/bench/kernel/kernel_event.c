/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/kernel/kernel_event.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/read_file.h"
#include "collect/kernel/private_mount.h"
#include "collect/perf/perf_open.h"

#define KPROBES      "/sys/bus/event_source/devices/kprobe/"
#define UPROBES      "/sys/bus/event_source/devices/uprobe/"
#define CALL_ID_FILE "events/syscalls/sys_enter_getppid/id"

/* Reads the number at the end of a file of one line: "6", "config:0". */
static int read_number(int folder, const char *path, uint64_t *out)
{
    struct buf text = BUF_INIT;
    const int bad = file_read_at(folder, path, 64, &text);
    const char *colon = strchr(buf_str(&text), ':');
    *out = strtoull(colon ? colon + 1 : buf_str(&text), NULL, 10);
    buf_release(&text);
    return bad;
}

static int set_uprobe(const struct kernel_probe_target *target, struct perf_event_attr *attr, struct error *e)
{
    uint64_t type = 0, bit = 0;
    int bad = read_number(-1, UPROBES "type", &type);
    if (!bad && target->kind == KERNEL_PROBE_RETURN)
        bad = read_number(-1, UPROBES "format/retprobe", &bit);
    if (bad)
        return error_set(e, -bad, UPROBES ": %s; it takes a kernel with CONFIG_UPROBE_EVENTS",
                         strerror(-bad));
    attr->type = (uint32_t)type;
    attr->config = target->kind == KERNEL_PROBE_RETURN ? UINT64_C(1) << (bit & 63) : 0;
    attr->config1 = (uint64_t)(uintptr_t)target->file;
    attr->config2 = target->offset;
    return 0;
}

static int set_kprobe(struct perf_event_attr *attr, struct error *e)
{
    uint64_t type = 0;
    const int bad = read_number(-1, KPROBES "type", &type);
    if (bad)
        return error_set(e, -bad, KPROBES "type: %s; it takes a kernel with CONFIG_KPROBE_EVENTS",
                         strerror(-bad));
    attr->type = (uint32_t)type;
    attr->config1 = (uint64_t)(uintptr_t)KERNEL_PROBE_FUNCTION;
    return 0;
}

static int set_call(struct perf_event_attr *attr, struct error *e)
{
    const int tracefs = private_mount("tracefs");
    if (tracefs < 0)
        return error_set(e, -tracefs,
                         "cannot mount tracefs: %s; it takes root, and a kernel with CONFIG_TRACING",
                         strerror(-tracefs));
    uint64_t id = 0;
    const int bad = read_number(tracefs, CALL_ID_FILE, &id);
    close(tracefs);
    if (bad)
        return error_set(e, -bad,
                         "tracefs, " CALL_ID_FILE ": %s; it takes a kernel with CONFIG_FTRACE_SYSCALLS",
                         strerror(-bad));
    attr->type = PERF_TYPE_TRACEPOINT;
    attr->config = id;
    return 0;
}

int kernel_threads_read(struct kernel_threads *t, pid_t pid, struct error *e)
{
    char path[32];
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *d = opendir(path);
    if (!d)
        return error_set(e, errno, "%s: %s", path, strerror(errno));
    for (const struct dirent *it; (it = readdir(d));)
        if (it->d_name[0] != '.')
            *vec_push(&t->ids) = atoi(it->d_name);
    closedir(d);
    return 0;
}

int kernel_event_open(const struct kernel_probe_target *target, struct perf_event_attr *attr, struct error *e)
{
    attr->size = sizeof(*attr);
    const int bad = target->kind == KERNEL_PROBE_CALL     ? set_call(attr, e)
                    : target->kind == KERNEL_PROBE_KPROBE ? set_kprobe(attr, e)
                                                          : set_uprobe(target, attr, e);
    if (bad)
        return bad;
    const int fd = perf_open(attr, target->pid, -1);
    if (fd < 0)
        return error_set(e, -fd, "perf_event_open: %s; it takes root, or kernel.perf_event_paranoid below 0",
                         strerror(-fd));
    return fd;
}
