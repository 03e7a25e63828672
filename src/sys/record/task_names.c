/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/record/task_names.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/read_file.h"

/* The inode of /proc/self/ns/pid in the namespace that the kernel starts with (PROC_PID_INIT_INO). */
#define FIRST_NAMESPACE 0xeffffffcu

#define COMM_FILE_BYTES 64

static bool numbers_are_the_machines(void)
{
    struct stat st;
    return !stat("/proc/self/ns/pid", &st) && st.st_ino == FIRST_NAMESPACE;
}

void task_names_set(struct task_names *t, int32_t tid, const char *name, uint32_t bytes)
{
    bool added;
    const size_t len = strnlen(name, bytes < TASK_NAME_BYTES - 1 ? bytes : TASK_NAME_BYTES - 1);
    size_t at = map_put_u64(&t->index, (uint32_t)tid, t->names.len, &added);
    if (added)
        vec_push(&t->names);
    struct task_name *n = &t->names.at[at];
    memset(n, 0, sizeof(*n));
    n->tid = tid;
    memcpy(n->text, name, len);
}

static void read_thread(struct task_names *t, const char *process, const char *thread)
{
    struct buf path = BUF_INIT, text = BUF_INIT;
    buf_printf(&path, "/proc/%s/task/%s/comm", process, thread);
    if (!file_read(buf_str(&path), COMM_FILE_BYTES, &text) && text.len)
        task_names_set(t, atoi(thread), text.data, (uint32_t)strcspn(text.data, "\n"));
    buf_release(&path);
    buf_release(&text);
}

/* Calls `f` for each name in the folder that is a number. */
static void each_number(const char *folder,
                        void (*f)(struct task_names *t, const char *process, const char *thread),
                        struct task_names *t, const char *process)
{
    DIR *d = opendir(folder);
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
        if (e->d_name[0] >= '0' && e->d_name[0] <= '9')
            f(t, process ? process : e->d_name, e->d_name);
    if (d)
        closedir(d);
}

static void read_process(struct task_names *t, const char *process, const char *same)
{
    struct buf folder = BUF_INIT;
    (void)same;
    buf_printf(&folder, "/proc/%s/task", process);
    each_number(buf_str(&folder), read_thread, t, process);
    buf_release(&folder);
}

void task_names_read(struct task_names *t)
{
    if (numbers_are_the_machines())
        each_number("/proc", read_process, t, NULL);
}

void task_names_parse(struct task_names *t, const char *text)
{
    while (*text) {
        char *name;
        const size_t line = strcspn(text, "\n");
        const long tid = strtol(text, &name, 10);
        if (name > text && name < text + line && *name == ' ' && tid >= 0 && tid <= INT32_MAX)
            task_names_set(t, (int32_t)tid, name + 1, (uint32_t)(text + line - name - 1));
        text += line + (text[line] != '\0');
    }
}

void task_names_add_lines(const struct task_names *t, struct buf *b)
{
    vec_each (const struct task_name, n, &t->names) {
        const size_t line = strcspn(n->text, "\n"); /* a program may give itself any name */
        buf_printf(b, "%" PRId32 " %.*s\n", n->tid, (int)line, n->text);
    }
}

const char *task_names_find(const struct task_names *t, int32_t tid)
{
    size_t at = map_get_u64(&t->index, (uint32_t)tid);
    if (at != MAP_NONE)
        return t->names.at[at].text;
    return tid ? "[unknown]" : "[idle]";
}

void task_names_release(struct task_names *t)
{
    map_release(&t->index);
    vec_release(&t->names);
}
