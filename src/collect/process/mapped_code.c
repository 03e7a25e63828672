/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/process/mapped_code.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/mem.h"
#include "collect/addrspace/proc_maps.h"
#include "collect/process/proc.h"

#define DELETED " (deleted)"

static bool is_same(const char *a, const char *b)
{
    struct stat x, y;
    return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/*
 * Returns a path with which allium can open the file behind `link`, a link of /proc. Process `pid` sees the file at
 * `path`; if it has another root or other mounts, allium may find another file there. The link always leads to it.
 */
static char *path_of(pid_t pid, const char *link, const char *path)
{
    struct buf inside = BUF_INIT;
    buf_printf(&inside, "/proc/%d/root%s", (int)pid, path);
    const char *found = is_same(path, link)               ? path
                        : is_same(buf_str(&inside), link) ? buf_str(&inside)
                                                          : link;
    char *copy = mem_strdup(found);
    buf_release(&inside);
    return copy;
}

static void take(pid_t pid, const struct space_mapping *m, struct loader_files *out)
{
    char link[96];
    struct stat st;
    if (!(m->protection & PROT_EXEC) || !m->file || m->file->path[0] != '/')
        return;
    snprintf(link, sizeof(link), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)pid, m->start, m->end);
    bool known = stat(link, &st) || !S_ISREG(st.st_mode);
    vec_each (const struct loader_file, file, out)
        known |= is_same(file->path, link);
    if (known)
        return;
    const size_t len = strlen(m->file->path), suffix = strlen(DELETED);
    const bool is_deleted = len > suffix && !strcmp(m->file->path + len - suffix, DELETED);
    char *name = mem_strndup(m->file->path, is_deleted ? len - suffix : len);
    *vec_push(out) = (struct loader_file){name, path_of(pid, link, name)};
}

int mapped_code_read(pid_t pid, struct loader_files *out)
{
    struct mapped_files files = {.dead = 0};
    struct mapping_list list = {NULL};
    const int bad = proc_maps_read(pid, &files, &list);
    vec_each (const struct space_mapping, m, &list)
        take(pid, m, out);
    proc_maps_release(&files, &list);
    mapped_files_release(&files);
    return bad;
}

char *mapped_code_program(pid_t pid)
{
    char link[64];
    struct buf path = BUF_INIT;
    snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
    proc_program(pid, &path);
    char *found = path.len ? path_of(pid, link, buf_str(&path)) : NULL;
    buf_release(&path);
    return found;
}
