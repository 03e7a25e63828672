/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/memcg/memcg_group.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/read_file.h"
#include "collect/kernel/cgroup_mounts.h"

#define REMOVE_TRIES  1000 /* 10 ms apart */
#define REMOVE_US     10000
#define PER_CPU_PAGES 64 /* MEMCG_CHARGE_BATCH: changes of a processor that may not be added up yet */

/* ---- the folder ---- */

static bool exists(const char *folder, const char *file)
{
    char path[PATH_MAX];
    return snprintf(path, sizeof(path), "%s/%s", folder, file) < (int)sizeof(path) && !access(path, F_OK);
}

/* Returns the mount of the hierarchy that has the memory controller, or NULL with a line. */
static const struct mount *find_hierarchy(const struct mounts *m, enum cgroup_hierarchy *is, struct error *e)
{
    const struct mount *v1 = cgroup_mount_of(m, CGROUP_V1_MEMORY), *v2 = cgroup_mount_of(m, CGROUP_V2);
    struct buf text = BUF_INIT;
    char path[PATH_MAX];
    *is = CGROUP_V1_MEMORY;
    if (v1)
        return v1;
    *is = CGROUP_V2;
    if (!v2) {
        error_set(e, ENOSYS, "no memory cgroups are mounted here; mount -t cgroup2 none /sys/fs/cgroup");
        return NULL;
    }
    snprintf(path, sizeof(path), "%s/cgroup.controllers", v2->point);
    file_read(path, 4096, &text);
    const bool has = strstr(buf_str(&text), "memory") != NULL;
    buf_reset(&text);
    snprintf(path, sizeof(path), "%s/cgroup.subtree_control", v2->point);
    file_read(path, 4096, &text);
    const bool given = strstr(buf_str(&text), "memory") != NULL;
    buf_release(&text);
    if (!has)
        error_set(e, ENOSYS, "the kernel has no memory controller; boot it without cgroup_disable=memory");
    else if (!given)
        error_set(e, ENOSYS, "%s: the root gives its children no memory controller; echo +memory >%s", path,
                  path);
    return has && given ? v2 : NULL;
}

/* Returns whether the folder is the root of the whole hierarchy, which no cgroup namespace hides. */
static bool is_root(const char *folder, enum cgroup_hierarchy is)
{
    return is == CGROUP_V2 ? !exists(folder, "cgroup.type") : exists(folder, "cgroup.sane_behavior");
}

/* A cgroup can be removed as soon as its last process has ended. */
static int remove_folder(const char *folder)
{
    for (int i = 0; rmdir(folder); i++) {
        if (errno == ENOENT)
            return 0;
        if (errno != EBUSY || i == REMOVE_TRIES)
            return -errno;
        usleep(REMOVE_US);
    }
    return 0;
}

/* Restores what the name of a cgroup says that vm.mem_profiling was. */
static void restore_named(const char *name)
{
    const char *at = strstr(name, MEMCG_GROUP_PROFILING);
    struct mem_profiling p;
    if (!at || mem_profiling_open(&p, MEM_PROFILING_PROC, NULL))
        return;
    p.before = at[strlen(MEMCG_GROUP_PROFILING)];
    mem_profiling_restore(&p);
}

/* Removes cgroups of commands that were killed together with their removers. */
static void remove_ownerless(const char *root)
{
    DIR *d = opendir(root);
    for (struct dirent *it; d && (it = readdir(d));) {
        char folder[PATH_MAX];
        if (strncmp(it->d_name, MEMCG_GROUP_PREFIX, strlen(MEMCG_GROUP_PREFIX)) ||
            snprintf(folder, sizeof(folder), "%s/%s", root, it->d_name) >= (int)sizeof(folder))
            continue;
        const int lock = undo_later_lock(AT_FDCWD, folder);
        if (lock < 0)
            continue;
        restore_named(it->d_name);
        remove_folder(folder);
        close(lock);
    }
    if (d)
        closedir(d);
}

/* ---- the cgroup ---- */

static int open_procs(const char *folder)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof(path), "%s/cgroup.procs", folder) >= (int)sizeof(path))
        return -ENAMETOOLONG;
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int undo(const void *arg)
{
    const struct memcg_group *g = arg;
    mem_profiling_restore(&g->profiling);
    return -remove_folder(g->folder);
}

/* Makes the cgroup, its lock, and the process that removes it. */
static int make(struct memcg_group *g, const char *root, struct error *e)
{
    const bool has = g->profiling.path[0];
    const char value[] = {g->profiling.before, '\0'};
    if (snprintf(g->folder, sizeof(g->folder), "%s/%s%d%s%s", root, MEMCG_GROUP_PREFIX, (int)getpid(),
                 has ? MEMCG_GROUP_PROFILING : "", has ? value : "") >= (int)sizeof(g->folder))
        return error_set(e, ENAMETOOLONG, "%s: the path is too long for a cgroup below it", root);
    if (mkdir(g->folder, 0755))
        return error_set(e, errno, "%s: %s; a memory cgroup needs root", g->folder, strerror(errno));
    g->lock = undo_later_lock(AT_FDCWD, g->folder);
    int bad = g->lock < 0 ? g->lock : undo_later_start(&g->remover, undo, g, (int[]){g->lock, -1});
    if (bad) {
        rmdir(g->folder);
        if (g->lock >= 0)
            close(g->lock);
        return error_set(e, -bad, "%s: %s", g->folder, strerror(-bad));
    }
    g->root_procs = open_procs(root);
    g->own_procs = open_procs(g->folder);
    bad = g->root_procs < 0 ? g->root_procs : g->own_procs < 0 ? g->own_procs : 0;
    if (bad) {
        memcg_group_close(g, NULL);
        return error_set(e, -bad, "%s/cgroup.procs: %s; a memory cgroup needs root", root, strerror(-bad));
    }
    return 0;
}

int memcg_group_open(struct memcg_group *g, const struct mem_profiling *profiling, struct error *e)
{
    struct mounts mounts;
    *g = (struct memcg_group){.root_procs = -1, .own_procs = -1, .lock = -1};
    if (profiling)
        g->profiling = *profiling;
    int bad = mounts_read(&mounts);
    const struct mount *mount = bad ? NULL : find_hierarchy(&mounts, &g->hierarchy, e);
    if (bad)
        error_set(e, -bad, "/proc/self/mountinfo: %s", strerror(-bad));
    else if (!mount)
        bad = -ENOSYS;
    else if (!is_root(mount->point, g->hierarchy))
        bad = error_set(e, ENOSYS, "%s is not the root of its cgroups; run this outside of the container",
                        mount->point);
    if (!bad) {
        remove_ownerless(mount->point);
        bad = make(g, mount->point, e);
    }
    mounts_release(&mounts);
    return bad;
}

int memcg_group_close(struct memcg_group *g, struct error *e)
{
    const int bad = undo_later_end(&g->remover);
    if (g->root_procs >= 0)
        close(g->root_procs);
    if (g->own_procs >= 0)
        close(g->own_procs);
    close(g->lock);
    if (!bad)
        return 0;
    return error_set(e, -bad, "%s: cannot remove this cgroup: %s; rmdir it", g->folder, strerror(-bad));
}

void memcg_group_forked(const struct memcg_group *g)
{
    undo_later_forked(&g->remover);
}

int memcg_group_enter(const struct memcg_group *g, bool own)
{
    return write(own ? g->own_procs : g->root_procs, "0", 1) == 1 ? 0 : -errno;
}

/* ---- its counters ---- */

/* Charges so many pages that the kernel adds up the counts of its processors when a counter is read. */
static int make_changes(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = PER_CPU_PAGES * page;
    const long cpus = sysconf(_SC_NPROCESSORS_CONF);
    char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return -errno;
    madvise(at, bytes, MADV_NOHUGEPAGE);
    for (long i = 0; i < 2 * cpus; i++) {
        for (size_t p = 0; p < bytes; p += page)
            ((volatile char *)at)[p] = 1;
        madvise(at, bytes, MADV_DONTNEED);
    }
    munmap(at, bytes);
    return 0;
}

/* Finds the number of a line "KEY 123". */
static bool find_value(const char *text, const char *key, uint64_t *out)
{
    const size_t len = strlen(key);
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        if (strncmp(line, key, len) || line[len] != ' ')
            continue;
        *out = strtoull(line + len, NULL, 10);
        return true;
    }
    return false;
}

int memcg_group_read(const struct memcg_group *g, enum memcg_part part, uint64_t *bytes)
{
    static const char *const keys[CGROUP_HIERARCHIES][MEMCG_PARTS] = {
        [CGROUP_V2] = {"kernel", "anon", "file"},
        [CGROUP_V1_MEMORY] = {NULL, "rss", "cache"},
    };
    const char *key = keys[g->hierarchy][part];
    struct buf text = BUF_INIT;
    char path[PATH_MAX];
    int bad = make_changes();
    if (!bad && snprintf(path, sizeof(path), "%s/%s", g->folder,
                         key ? "memory.stat" : "memory.kmem.usage_in_bytes") >= (int)sizeof(path))
        bad = -ENAMETOOLONG;
    if (!bad)
        bad = file_read(path, 1 << 16, &text);
    if (!bad && !key)
        *bytes = strtoull(buf_str(&text), NULL, 10);
    else if (!bad && !find_value(buf_str(&text), key, bytes))
        bad = -ENODATA; /* "kernel" is there since Linux 5.18 */
    buf_release(&text);
    return bad;
}
