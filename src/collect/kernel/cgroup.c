/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/kernel/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/guard.h"
#include "base/hash_map.h"
#include "base/read_file.h"
#include "base/sigsafe/clock_ns.h"
#include "collect/kernel/cgroup_mounts.h"

#define AGAIN_NS    1000000000u
#define FOLDERS_MAX 1000000u /* folders of one walk */
#define PATIENCE_MS 1000

/* ---- from a path ---- */

/* Returns whether we are in the initial cgroup namespace, so that paths begin at the root of the hierarchy. The inode
 * number of that namespace is part of the kernel's interface (PROC_CGROUP_INIT_INO). */
static bool sees_from_root(void)
{
    char text[64] = "";
    ssize_t len = readlink("/proc/self/ns/cgroup", text, sizeof(text) - 1);
    return len < 0 || !strcmp(text, "cgroup:[4026531835]"); /* no file: no cgroup namespaces */
}

/* Fills in *out for an existing folder below `mount`, which is of one of our hierarchies. Returns 0 or -errno. */
static int describe(const struct mount *mount, const char *folder, struct cgroup_ref *out)
{
    *out = (struct cgroup_ref){.level = CGROUP_LEVEL_UNKNOWN};
    cgroup_mount_is(mount, &out->hierarchy);
    if (snprintf(out->folder, sizeof(out->folder), "%s", folder) >= (int)sizeof(out->folder))
        return -ENAMETOOLONG;
    const char *below = strcmp(mount->point, "/") ? folder + strlen(mount->point) : folder;
    if (!cgroup_join(mount->root, below, out->path, sizeof(out->path)))
        return -ENAMETOOLONG;
    if (sees_from_root())
        out->level = cgroup_depth(out->path);
    return cgroup_folder_id(folder, &out->id);
}

/* Resolves "..", symbolic links and repeated slashes in a path. Returns false if it is not a directory. */
static bool real_folder(const char *path, char out[static PATH_MAX])
{
    struct stat st;
    return realpath(path, out) && !stat(out, &st) && S_ISDIR(st.st_mode);
}

static int refuse(const struct mount *mount, const char *path, struct error *e)
{
    if (!mount)
        return error_set(e, EINVAL, "cgroup %s: not a cgroup; use a folder below /sys/fs/cgroup", path);
    return error_set(e, EINVAL,
                     "cgroup %s: this is a cgroup of %s; give one of version 2, or of the memory controller",
                     path, cgroup_mount_controllers(mount));
}

/* Finds a path as in /proc/PID/cgroup, "/system.slice/x.service". If our mount shows only a part of the hierarchy, the
 * path of that part (mount->root) is removed from the beginning. Returns 0; -ENOENT: no such cgroup; -ENOSYS: no
 * hierarchy is mounted; or another -errno. */
static int find_below(const struct mounts *mounts, const char *path, struct cgroup_ref *out)
{
    bool any = false;
    for (int h = 0; h < CGROUP_HIERARCHIES; h++) {
        const struct mount *mount = cgroup_mount_of(mounts, (enum cgroup_hierarchy)h);
        char whole[PATH_MAX], folder[PATH_MAX];
        if (!mount)
            continue;
        any = true;
        size_t root = strcmp(mount->root, "/") ? strlen(mount->root) : 0;
        bool has_root = root && !strncmp(path, mount->root, root) && (!path[root] || path[root] == '/');
        if (cgroup_join(mount->point, has_root ? path + root : path, whole, sizeof(whole)) &&
            real_folder(whole, folder) && cgroup_mount_around(mounts, folder) == mount)
            return describe(mount, folder, out);
    }
    return any ? -ENOENT : -ENOSYS;
}

static int find(const struct mounts *mounts, const char *path, struct cgroup_ref *out, struct error *e)
{
    char folder[PATH_MAX];
    enum cgroup_hierarchy is;
    if (path[0] == '/' && real_folder(path, folder)) {
        const struct mount *mount = cgroup_mount_around(mounts, folder);
        if (mount && cgroup_mount_is(mount, &is))
            return describe(mount, folder, out);
        int bad = find_below(mounts, path, out); /* "/dev" is a directory, but may also be a cgroup's path */
        return bad == -ENOENT ? refuse(mount, path, e) : bad;
    }
    return find_below(mounts, path, out);
}

int cgroup_find(const char *path, struct cgroup_ref *out, struct error *e)
{
    struct mounts mounts;
    struct error said = {""};
    mounts_read(&mounts);
    int bad = find(&mounts, path, out, &said);
    mounts_release(&mounts);
    if (!bad || said.text[0]) {
        if (bad)
            error_set(e, -bad, "%s", said.text);
        return bad;
    }
    if (bad == -ENOSYS)
        return error_set(
            e, ENOSYS, "cgroup %s: no cgroups are mounted here; mount -t cgroup2 none /sys/fs/cgroup", path);
    if (bad == -ENOENT)
        return error_set(e, ENOENT, "cgroup %s does not exist; systemd-cgls lists cgroups", path);
    return error_set(e, -bad, "cgroup %s: %s", path, strerror(-bad));
}

/* ---- from an id ---- */

struct cgroups {
    struct {
        struct map by_id; /* id -> index in paths */
        struct VEC(char *) paths;
        uint64_t walked_ns; /* 0: never */
    } of[CGROUP_HIERARCHIES];
};

struct cgroups *cgroups_new(void)
{
    return mem_alloc(sizeof(struct cgroups));
}

void cgroups_free(struct cgroups *c)
{
    for (int h = 0; c && h < CGROUP_HIERARCHIES; h++) {
        vec_each (char *, path, &c->of[h].paths)
            free(*path);
        vec_release(&c->of[h].paths);
        map_release(&c->of[h].by_id);
    }
    free(c);
}

struct walk {
    struct VEC(char *) below; /* folders, as paths below the mount point */
};

static void add_folders(struct walk *w, const char *folder, const char *below)
{
    DIR *dir = opendir(folder);
    if (!dir) /* the cgroup was removed meanwhile */
        return;
    for (struct dirent *entry; (entry = readdir(dir));)
        if (entry->d_type == DT_DIR && entry->d_name[0] && strcmp(entry->d_name, ".") &&
            strcmp(entry->d_name, "..") && w->below.len < FOLDERS_MAX) {
            struct buf path = BUF_INIT;
            buf_printf(&path, "%s/%s", below, entry->d_name);
            *vec_push(&w->below) = buf_detach(&path);
        }
    closedir(dir);
}

/* Stores the path of an id. The kernel never reuses an id, so a stored path changes only if the cgroup was renamed
 * (version 1 only). */
static void note(struct cgroups *c, enum cgroup_hierarchy h, const struct mount *mount, const char *below,
                 uint64_t id)
{
    char path[PATH_MAX];
    bool added;
    if (!cgroup_join(mount->root, below, path, sizeof(path)))
        return;
    size_t at = map_put_u64(&c->of[h].by_id, id, c->of[h].paths.len, &added);
    if (added) {
        *vec_push(&c->of[h].paths) = mem_strdup(path);
    } else if (strcmp(c->of[h].paths.at[at], path) != 0) {
        free(c->of[h].paths.at[at]);
        c->of[h].paths.at[at] = mem_strdup(path);
    }
}

static void walk(struct cgroups *c, enum cgroup_hierarchy h)
{
    struct mounts mounts;
    struct walk w = {.below = {0}};
    mounts_read(&mounts);
    const struct mount *mount = cgroup_mount_of(&mounts, h);
    *vec_push(&w.below) = mem_strdup("");
    for (size_t i = 0; mount && i < w.below.len; i++) { /* the list grows meanwhile */
        struct buf folder = BUF_INIT;
        uint64_t id;
        buf_printf(&folder, "%s%s", mount->point, w.below.at[i]);
        if (!cgroup_folder_id(buf_str(&folder), &id))
            note(c, h, mount, w.below.at[i], id);
        add_folders(&w, buf_str(&folder), w.below.at[i]);
        buf_release(&folder);
    }
    vec_each (char *, below, &w.below)
        free(*below);
    vec_release(&w.below);
    mounts_release(&mounts);
}

const char *cgroups_path(struct cgroups *c, enum cgroup_hierarchy hierarchy, uint64_t id)
{
    size_t at = map_get_u64(&c->of[hierarchy].by_id, id);
    uint64_t now = clock_ns(CLOCK_MONOTONIC), *walked = &c->of[hierarchy].walked_ns;
    if (at == MAP_NONE && (!*walked || now - *walked >= AGAIN_NS)) {
        *walked = now;
        walk(c, hierarchy);
        at = map_get_u64(&c->of[hierarchy].by_id, id);
    }
    return at == MAP_NONE ? NULL : c->of[hierarchy].paths.at[at];
}

void cgroups_learn(struct cgroups *c, enum cgroup_hierarchy hierarchy, uint64_t id, const char *path)
{
    bool added;
    map_put_u64(&c->of[hierarchy].by_id, id, c->of[hierarchy].paths.len, &added);
    if (added)
        *vec_push(&c->of[hierarchy].paths) = mem_strdup(path);
}

bool cgroups_seen(const struct cgroups *c, enum cgroup_hierarchy hierarchy)
{
    return c->of[hierarchy].paths.len > 0;
}

/* ---- memory ---- */

/* Version 1 shows "no limit" as the largest multiple of the page size in 63 bits. With pages of 64 KiB, the largest, it
 * is this value; with smaller pages it is higher. */
#define V1_NO_LIMIT ((uint64_t)INT64_MAX / 65536 * 65536)

struct reading {
    struct cgroup_ref of;
    struct cgroup_memory found;
    int bad;
};

static int read_figure(const struct cgroup_ref *c, const char *file, uint64_t *out)
{
    char path[PATH_MAX + 64];
    struct buf text = BUF_INIT;
    *out = CGROUP_UNKNOWN;
    snprintf(path, sizeof(path), "%s/%s", c->folder, file);
    int bad = file_read(path, 64, &text);
    const char *at = buf_str(&text);
    if (!bad && !strcmp(at, "max\n"))
        *out = CGROUP_NO_LIMIT;
    else if (!bad && *at >= '0' && *at <= '9')
        *out = strtoull(at, NULL, 10);
    else if (!bad)
        bad = -EPROTO;
    buf_release(&text);
    return bad;
}

static void read_memory(void *work)
{
    struct reading *r = work;
    bool v2 = r->of.hierarchy == CGROUP_V2;
    r->bad = read_figure(&r->of, v2 ? "memory.current" : "memory.usage_in_bytes", &r->found.usage_bytes);
    read_figure(&r->of, v2 ? "memory.max" : "memory.limit_in_bytes", &r->found.limit_bytes);
    /* memory.peak: Linux 5.19 and later */
    read_figure(&r->of, v2 ? "memory.peak" : "memory.max_usage_in_bytes", &r->found.peak_bytes);
    if (!v2 && r->found.limit_bytes != CGROUP_UNKNOWN && r->found.limit_bytes >= V1_NO_LIMIT)
        r->found.limit_bytes = CGROUP_NO_LIMIT;
}

int cgroup_memory_read(const struct cgroup_ref *c, struct cgroup_memory *out)
{
    struct reading r = {.of = *c};
    int bad = guard_run(read_memory, &r, sizeof(r), PATIENCE_MS);
    *out = bad ? (struct cgroup_memory){CGROUP_UNKNOWN, CGROUP_UNKNOWN, CGROUP_UNKNOWN} : r.found;
    return bad ? bad : r.bad;
}
