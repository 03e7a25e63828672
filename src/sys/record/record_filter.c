/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/record/record_filter.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define GONE UINT32_MAX /* in place of a number that something else has now */

bool record_filter_is_set(const struct record_filter *f)
{
    return f->process || f->tid || f->comm || f->cgroup;
}

static bool is_there(const struct tasks *t, uint32_t tid)
{
    return map_get_u64(&t->index, tid) != MAP_NONE;
}

int record_filter_check(const struct record_filter *f, const struct tasks *t, struct error *e)
{
    if (!record_filter_is_set(f))
        return 0;
    if (!t->index.len) /* of a container: see tasks_read() */
        return error_set(
            e, EOPNOTSUPP,
            "--pid, --tid, --comm and --cgroup need the machine's own process ids: leave them out "
            "here, or run allium outside of this container");
    if (f->process && tasks_find(t, (int32_t)f->process)->process != (int32_t)f->process)
        return error_set(e, ESRCH, "there is no process %" PRIu32, f->process);
    if (f->tid && !is_there(t, f->tid))
        return error_set(e, ESRCH, "there is no thread %" PRIu32, f->tid);
    if (f->cgroup && f->cgroup_is_v2 != (t->hierarchy == 0))
        return error_set(
            e, EINVAL,
            "--cgroup: %s is not of the hierarchy that has the memory controller: use a cgroup of "
            "version %d",
            f->cgroup, f->cgroup_is_v2 ? 1 : 2);
    return 0;
}

void record_filter_task(struct record_filter *f, const struct task_event *e)
{
    if (e->kind != TASK_BEGAN)
        return;
    if (f->tid == (uint32_t)e->tid)
        f->tid = GONE;
    if (f->process == (uint32_t)e->tid)
        f->process = GONE;
}

static bool is_below(const char *path, const char *group)
{
    const size_t len = strlen(group);
    return !strcmp(group, "/") || (!strncmp(path, group, len) && (!path[len] || path[len] == '/'));
}

bool record_filter_takes(const struct record_filter *f, const struct tasks *t, int32_t tid, int32_t process,
                         const char *comm)
{
    if (f->process && f->process != (uint32_t)process)
        return false;
    if (f->tid && (f->tid != (uint32_t)tid || !process))
        return false;
    if (f->comm && strcmp(comm, f->comm) != 0)
        return false;
    const char *cgroup = f->cgroup ? tasks_cgroup(t, process) : NULL;
    return !f->cgroup || (cgroup && is_below(cgroup, f->cgroup));
}
