/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/kernel/cgroup_memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/read_file.h"
#include "collect/kernel/cgroup_line.h"
#include "collect/kernel/cgroup_mounts.h"
#include "collect/kernel/proc_text.h"

#define DEPTH_MAX      64u
#define GROUPS_MAX     100000u
#define TEXT_BYTES_MAX 65536u
#define NO_LIMIT       (UINT64_C(1) << 62) /* version 1 shows a higher number, which depends on the page size */

void cgroup_parse_stat(struct overview_cgroup *c, const char *text)
{
    char line[PROC_TEXT_BYTES];
    uint64_t anon = 0, file = 0, shmem = 0;
    bool known = false;
    while (proc_text_next(&text, line)) {
        if (c->version == 2) {
            known |= proc_text_value(line, "anon", &anon);
            (void)(proc_text_value(line, "file", &file) || proc_text_value(line, "shmem", &shmem));
            if (proc_text_value(line, "kernel", &c->kernel_bytes)) /* Linux 5.18 */
                c->kernel_known = true;
        } else {
            known |= proc_text_value(line, "total_rss", &anon);
            (void)(proc_text_value(line, "total_cache", &file) ||
                   proc_text_value(line, "total_shmem", &shmem));
        }
    }
    c->kinds_known = known;
    c->anon_bytes = anon;
    c->file_bytes = file > shmem ? file - shmem : 0;
    c->shmem_bytes = shmem;
}

void cgroup_parse_kills(struct overview_cgroup *c, const char *text)
{
    char line[PROC_TEXT_BYTES];
    while (proc_text_next(&text, line))
        if (proc_text_value(line, "oom_kill", &c->oom_kills))
            c->kills_known = true;
}

static bool read_text(int folder, const char *name, struct buf *text)
{
    buf_reset(text);
    return !file_read_at(folder, name, TEXT_BYTES_MAX, text);
}

/* Reads a file that holds one number, or "max", which gives UINT64_MAX. Returns false if it holds neither. */
static bool read_number(int folder, const char *name, struct buf *text, uint64_t *value)
{
    if (!read_text(folder, name, text))
        return false;
    const char *at = buf_str(text);
    if (!strncmp(at, "max", 3)) {
        *value = UINT64_MAX;
        return true;
    }
    return proc_text_number(&at, value);
}

static bool read_group(int folder, struct overview_cgroup *c, struct buf *text)
{
    uint64_t with_swap;
    bool two = c->version == 2;
    c->limit_bytes = UINT64_MAX;
    if (!read_number(folder, two ? "memory.current" : "memory.usage_in_bytes", text, &c->usage_bytes))
        return false;
    if (read_number(folder, two ? "memory.max" : "memory.limit_in_bytes", text, &c->limit_bytes) &&
        c->limit_bytes > NO_LIMIT)
        c->limit_bytes = UINT64_MAX;
    if (two) {
        c->swap_known = read_number(folder, "memory.swap.current", text, &c->swap_bytes);
    } else if (read_number(folder, "memory.memsw.usage_in_bytes", text, &with_swap)) {
        c->swap_known = true;
        c->swap_bytes = with_swap > c->usage_bytes ? with_swap - c->usage_bytes : 0;
    }
    if (read_text(folder, two ? "memory.events" : "memory.oom_control", text))
        cgroup_parse_kills(c, buf_str(text));
    return true;
}

struct walk {
    struct overview_cgroups *out;
    unsigned version;
    struct buf text;
};

static void walk_below(struct walk *w, int parent, const char *name, const char *path, unsigned depth)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    if (!dir) {
        if (fd >= 0)
            close(fd);
        return;
    }
    struct overview_cgroup c = {.version = w->version};
    if (depth && read_group(fd, &c, &w->text)) {
        c.path = mem_strdup(path);
        *vec_push(w->out) = c;
    }
    while (depth < DEPTH_MAX && w->out->len < GROUPS_MAX && (entry = readdir(dir))) {
        if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
            continue;
        struct buf below = BUF_INIT;
        buf_printf(&below, "%s/%s", path, entry->d_name);
        walk_below(w, fd, entry->d_name, buf_str(&below), depth + 1);
        buf_release(&below);
    }
    closedir(dir);
}

static int larger(const void *left, const void *right)
{
    const struct overview_cgroup *a = left, *b = right;
    if (a->usage_bytes != b->usage_bytes)
        return a->usage_bytes < b->usage_bytes ? 1 : -1;
    return strcmp(a->path, b->path);
}

/* Reads the kinds of memory in a group. This takes longer than reading its size, so only shown groups are read. */
static void read_kinds(const char *mount, struct overview_cgroup *c, struct buf *text)
{
    struct buf path = BUF_INIT;
    buf_printf(&path, "%s%s", mount, c->path);
    int fd = open(buf_str(&path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        if (read_text(fd, "memory.stat", text))
            cgroup_parse_stat(c, buf_str(text));
        if (c->version == 1)
            c->kernel_known = read_number(fd, "memory.kmem.usage_in_bytes", text, &c->kernel_bytes);
        close(fd);
    }
    buf_release(&path);
}

/* Appends the path of the process' group in the hierarchy. False: it is not known. */
static bool add_group_of(struct buf *path, int pid, unsigned version, struct buf *text)
{
    char name[64];
    struct cgroup_line line;
    snprintf(name, sizeof(name), "/proc/%d/cgroup", pid);
    if (!read_text(AT_FDCWD, name, text) ||
        !cgroup_line_find(buf_str(text), version == 2 ? CGROUP_V2 : CGROUP_V1_MEMORY, &line))
        return false;
    buf_add(path, line.path, line.path_len);
    return true;
}

static bool is_around(const char *outer, const char *inner)
{
    const size_t len = strlen(outer);
    return !strncmp(outer, inner, len) && (!inner[len] || inner[len] == '/');
}

/* Finds the innermost group at its limit around the process with the most major faults, before small groups are cut. */
static void find_faulter_group(struct overview *m, struct buf *text)
{
    struct overview_faulter *f = &m->faulter;
    const struct overview_cgroup *found = NULL;
    struct buf path = BUF_INIT;
    if (f->pid && m->cgroups.len && add_group_of(&path, f->pid, m->cgroups.at[0].version, text))
        vec_each (const struct overview_cgroup, c, &m->cgroups)
            if (overview_near_limit(c->usage_bytes, c->limit_bytes) && is_around(c->path, buf_str(&path)) &&
                (!found || strlen(c->path) > strlen(found->path)))
                found = c;
    buf_release(&path);
    if (!found)
        return;
    f->cgroup = mem_strdup(found->path);
    f->usage_bytes = found->usage_bytes;
    f->limit_bytes = found->limit_bytes;
}

int cgroups_read(struct overview *m, uint32_t top)
{
    struct walk w = {.out = &m->cgroups};
    struct mounts mounts;
    const struct mount *mount = NULL;
    int bad = mounts_read(&mounts);
    for (w.version = 2; w.version && !m->cgroups.len; w.version--) {
        mount = cgroup_mount_of(&mounts, w.version == 2 ? CGROUP_V2 : CGROUP_V1_MEMORY);
        if (mount)
            walk_below(&w, AT_FDCWD, mount->point, "", 0);
    }
    if (m->cgroups.len)
        qsort(m->cgroups.at, m->cgroups.len, sizeof(*m->cgroups.at), larger);
    else if (!bad)
        bad = -ENOENT;
    find_faulter_group(m, &w.text);
    while (top && m->cgroups.len > top)
        free(m->cgroups.at[--m->cgroups.len].path);
    vec_each (struct overview_cgroup, c, &m->cgroups)
        read_kinds(mount->point, c, &w.text);
    mounts_release(&mounts);
    buf_release(&w.text);
    return bad;
}
