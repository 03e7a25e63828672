/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/event_filter.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collect/process/proc.h"

#define INITIAL_PID_NAMESPACE 0xEFFFFFFCu /* PROC_PID_INIT_INO, in all kernels */

static uint32_t pid_namespace(void)
{
    struct stat st;
    if (stat("/proc/self/ns/pid", &st) || st.st_ino == INITIAL_PID_NAMESPACE)
        return 0;
    return (uint32_t)st.st_ino;
}

/* What this time namespace adds to CLOCK_BOOTTIME, and so does its /proc. */
static int64_t boottime_offset_ns(void)
{
    char line[128], name[16];
    int64_t s, ns, offset = 0;
    FILE *f = fopen("/proc/self/timens_offsets", "re");
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "%15s %" SCNd64 " %" SCNd64, name, &s, &ns) == 3 && !strcmp(name, "boottime"))
            offset = s * 1000000000 + ns;
    if (f)
        fclose(f);
    return offset;
}

static int find_task(uint32_t id, const char *what, __u64 *began_ticks, struct error *e)
{
    char name[32];
    uint64_t began_ns;
    if (!proc_thread((pid_t)id, (pid_t)id, name, sizeof(name), &began_ns))
        return error_set(e, ESRCH, "there is no %s %" PRIu32, what, id);
    *began_ticks = began_ns / SYS_TICK_NS;
    return 0;
}

int event_filter_fill(struct sys_config *c, struct error *e)
{
    int error = 0;
    c->own_tgid = (uint32_t)getpid();
    c->pid_namespace = pid_namespace();
    c->boottime_offset_ns = boottime_offset_ns();
    if (c->filters & SYS_FILTER_TGID)
        error = find_task(c->tgid, "process", &c->tgid_began, e);
    if (!error && c->filters & SYS_FILTER_TID)
        error = find_task(c->tid, "thread", &c->tid_began, e);
    return error;
}
