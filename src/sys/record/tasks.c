/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/record/tasks.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/read_file.h"
#include "collect/kernel/cgroup_line.h"

/* The inode of /proc/self/ns/pid in the namespace that the kernel starts with (PROC_PID_INIT_INO). */
#define FIRST_NAMESPACE 0xeffffffcu

#define COMM_FILE_BYTES   64
#define CGROUP_FILE_BYTES 16384

static bool numbers_are_the_machines(void)
{
    struct stat st;
    return !stat("/proc/self/ns/pid", &st) && st.st_ino == FIRST_NAMESPACE;
}

static struct task *task_at(struct tasks *t, int32_t tid)
{
    bool added;
    size_t at = map_put_u64(&t->index, (uint32_t)tid, t->all.len, &added);
    if (added)
        *vec_push(&t->all) = (struct task){.tid = tid, .process = TASK_UNKNOWN};
    return &t->all.at[at];
}

static void set_name(struct task *task, const char *name, uint32_t bytes)
{
    const size_t len = strnlen(name, bytes < TASK_NAME_BYTES - 1 ? bytes : TASK_NAME_BYTES - 1);
    memset(task->name, 0, sizeof(task->name));
    memcpy(task->name, name, len);
}

static uint32_t number_of_cgroup(struct tasks *t, const char *path, size_t len)
{
    bool added;
    size_t number = map_put(&t->cgroup_index, path, len, t->cgroups.len, &added);
    if (added)
        *vec_push(&t->cgroups) = mem_strndup(path, len);
    return (uint32_t)number;
}

/* ---- from /proc ---- */

/* The memory controller belongs to one of the two hierarchies; if version 1 does not have it, it is version 2. */
static void read_cgroup(struct tasks *t, const char *process)
{
    struct buf path = BUF_INIT, text = BUF_INIT;
    struct cgroup_line line;
    buf_printf(&path, "/proc/%s/cgroup", process);
    if (!file_read(buf_str(&path), CGROUP_FILE_BYTES, &text) &&
        (cgroup_line_find(buf_str(&text), CGROUP_V1_MEMORY, &line) ||
         cgroup_line_find(buf_str(&text), CGROUP_V2, &line))) {
        t->hierarchy = line.hierarchy;
        task_at(t, atoi(process))->cgroup = number_of_cgroup(t, line.path, line.path_len);
    }
    buf_release(&path);
    buf_release(&text);
}

static void read_thread(struct tasks *t, const char *process, const char *thread)
{
    struct buf path = BUF_INIT, text = BUF_INIT;
    buf_printf(&path, "/proc/%s/task/%s/comm", process, thread);
    if (!file_read(buf_str(&path), COMM_FILE_BYTES, &text) && text.len) {
        struct task *task = task_at(t, atoi(thread));
        set_name(task, text.data, (uint32_t)strcspn(text.data, "\n"));
        task->process = atoi(process);
    }
    buf_release(&path);
    buf_release(&text);
}

/* Calls `f` for each name in the folder that is a number. */
static void each_number(const char *folder,
                        void (*f)(struct tasks *t, const char *process, const char *thread), struct tasks *t,
                        const char *process)
{
    DIR *d = opendir(folder);
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
        if (e->d_name[0] >= '0' && e->d_name[0] <= '9')
            f(t, process ? process : e->d_name, e->d_name);
    if (d)
        closedir(d);
}

static void read_process(struct tasks *t, const char *process, const char *same)
{
    struct buf folder = BUF_INIT;
    (void)same;
    buf_printf(&folder, "/proc/%s/task", process);
    each_number(buf_str(&folder), read_thread, t, process);
    read_cgroup(t, process);
    buf_release(&folder);
}

void tasks_read(struct tasks *t)
{
    t->hierarchy = -1;
    number_of_cgroup(t, "", 0);
    if (numbers_are_the_machines())
        each_number("/proc", read_process, t, NULL);
}

/* ---- from events ---- */

static void begin(struct tasks *t, const struct task_event *e)
{
    const size_t by = map_get_u64(&t->index, (uint32_t)e->creator);
    const int32_t creator = by == MAP_NONE ? TASK_UNKNOWN : t->all.at[by].process;
    const size_t leader = creator == TASK_UNKNOWN ? MAP_NONE : map_get_u64(&t->index, (uint32_t)creator);
    const uint32_t cgroup = leader == MAP_NONE ? 0 : t->all.at[leader].cgroup;
    struct task *task = task_at(t, e->tid);
    set_name(task, e->text, e->text_bytes);
    task->process = e->is_thread ? creator : e->tid;
    task->cgroup = e->is_thread ? 0 : cgroup;
}

void tasks_add(struct tasks *t, const struct task_event *e)
{
    switch (e->kind) {
    case TASK_RENAMED:
        set_name(task_at(t, e->tid), e->text, e->text_bytes);
        break;
    case TASK_BEGAN:
        begin(t, e);
        break;
    case TASK_MOVED: /* of all threads of a process, its leader is named */
        if (t->cgroups.len && e->hierarchy == t->hierarchy) {
            const uint32_t cgroup = number_of_cgroup(t, e->text, strnlen(e->text, e->text_bytes));
            task_at(t, e->tid)->cgroup = cgroup;
        }
        break;
    case TASK_MARKED:
    case TASK_EVENT_KINDS:
        break;
    }
}

/* ---- as text ---- */

void tasks_set_name(struct tasks *t, int32_t tid, const char *name, uint32_t bytes)
{
    set_name(task_at(t, tid), name, bytes);
}

void tasks_parse(struct tasks *t, const char *text)
{
    while (*text) {
        char *name;
        const size_t line = strcspn(text, "\n");
        const long tid = strtol(text, &name, 10);
        if (name > text && name < text + line && *name == ' ' && tid >= 0 && tid <= INT32_MAX)
            tasks_set_name(t, (int32_t)tid, name + 1, (uint32_t)(text + line - name - 1));
        text += line + (text[line] != '\0');
    }
}

void tasks_add_lines(const struct tasks *t, struct buf *b)
{
    vec_each (const struct task, task, &t->all) {
        const size_t line = strcspn(task->name, "\n"); /* a program may give itself any name */
        buf_printf(b, "%" PRId32 " %.*s\n", task->tid, (int)line, task->name);
    }
}

void tasks_add_groups(const struct tasks *t, struct buf *b)
{
    buf_printf(b, "hierarchy %" PRId32 "\n", t->hierarchy);
    for (size_t i = 1; i < t->cgroups.len; i++)
        buf_printf(b, "group %s\n", t->cgroups.at[i]);
    vec_each (const struct task, task, &t->all)
        if (task->process != TASK_UNKNOWN)
            buf_printf(b, "task %" PRId32 " %" PRId32 " %" PRIu32 "\n", task->tid, task->process,
                       task->cgroup);
}

void tasks_parse_groups(struct tasks *t, const char *text)
{
    static const char group[] = "group ";
    int32_t tid, process;
    uint32_t number;
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        char head[64]; /* sscanf(3) looks for the end of the whole text */
        const size_t len = strcspn(line, "\n");
        snprintf(head, sizeof(head), "%.*s", (int)(len < sizeof(head) ? len : sizeof(head) - 1), line);
        if (!t->cgroups.len)
            number_of_cgroup(t, "", 0);
        if (!strncmp(line, group, strlen(group)))
            number_of_cgroup(t, line + strlen(group), len - strlen(group));
        else if (sscanf(head, "task %" SCNd32 " %" SCNd32 " %" SCNu32, &tid, &process, &number) == 3 &&
                 tid >= 0 && process >= 0 && number < t->cgroups.len) {
            struct task *task = task_at(t, tid);
            task->process = process;
            task->cgroup = number;
        } else {
            sscanf(head, "hierarchy %" SCNd32, &t->hierarchy);
        }
    }
}

const struct task *tasks_find(const struct tasks *t, int32_t tid)
{
    static const struct task idle = {.name = TASKS_IDLE},
                             unknown = {.name = TASKS_NO_NAME, .process = TASK_UNKNOWN};
    size_t at = map_get_u64(&t->index, (uint32_t)tid);
    if (at == MAP_NONE)
        return tid ? &unknown : &idle;
    return &t->all.at[at];
}

const char *tasks_name(const struct task *task)
{
    return *task->name ? task->name : TASKS_NO_NAME;
}

const char *tasks_cgroup(const struct tasks *t, int32_t process)
{
    size_t at = process > 0 ? map_get_u64(&t->index, (uint32_t)process) : MAP_NONE;
    uint32_t cgroup = at == MAP_NONE ? 0 : t->all.at[at].cgroup;
    return cgroup ? t->cgroups.at[cgroup] : NULL;
}

void tasks_release(struct tasks *t)
{
    vec_each (char *, path, &t->cgroups)
        free(*path);
    vec_release(&t->cgroups);
    map_release(&t->cgroup_index);
    map_release(&t->index);
    vec_release(&t->all);
}
