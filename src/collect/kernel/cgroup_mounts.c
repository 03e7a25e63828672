/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/kernel/cgroup_mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Returns whether `word` is one of the options, such as "rw,memory". */
static bool has_option(const char *options, const char *word)
{
    size_t len = strlen(word);
    for (const char *at = options; *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == len && !strncmp(at, word, len))
            return true;
    return false;
}

bool cgroup_mount_is(const struct mount *m, enum cgroup_hierarchy *out)
{
    if (!strcmp(m->type, "cgroup2"))
        *out = CGROUP_V2;
    else if (!strcmp(m->type, "cgroup") && has_option(m->options, "memory"))
        *out = CGROUP_V1_MEMORY;
    else
        return false;
    return true;
}

const char *cgroup_mount_controllers(const struct mount *m)
{
    static const char *const flags[] = {
        "rw,", "ro,", "xattr,", "noprefix,", "clone_children,", "cpuset_v2_mode,"};
    const char *at = m->options;
    for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++)
        if (!strncmp(at, flags[i], strlen(flags[i])))
            at += strlen(flags[i]);
    return at;
}

const struct mount *cgroup_mount_of(const struct mounts *m, enum cgroup_hierarchy hierarchy)
{
    const struct mount *best = NULL;
    enum cgroup_hierarchy is;
    vec_each (const struct mount, it, &m->all) {
        if (!cgroup_mount_is(it, &is) || is != hierarchy)
            continue;
        if (!best || strlen(it->root) <= strlen(best->root))
            best = it;
    }
    return best;
}

static bool lies_in(const char *folder, const char *point)
{
    size_t len = strlen(point);
    if (!strcmp(point, "/"))
        return true;
    return !strncmp(folder, point, len) && (!folder[len] || folder[len] == '/');
}

const struct mount *cgroup_mount_around(const struct mounts *m, const char *folder)
{
    const struct mount *best = NULL;
    vec_each (const struct mount, it, &m->all)
        if (lies_in(folder, it->point) && (!best || strlen(it->point) >= strlen(best->point)))
            best = it;
    return best && !strncmp(best->type, "cgroup", 6) ? best : NULL;
}

int cgroup_depth(const char *path)
{
    int depth = 0;
    for (const char *at = path + strspn(path, "/"); *at; at += strspn(at, "/")) {
        size_t len = strcspn(at, "/");
        if (len == 2 && !strncmp(at, "..", 2))
            return -1;
        depth++;
        at += len;
    }
    return depth;
}

bool cgroup_join(const char *root, const char *below, char *out, size_t size)
{
    root = strcmp(root, "/") ? root : "";
    below += strspn(below, "/");
    int len = snprintf(out, size, "%s%s%s", root, *below ? "/" : "", below);
    if (len < 0 || (size_t)len >= size)
        return false;
    while (len > 1 && out[len - 1] == '/')
        out[--len] = '\0';
    return len || snprintf(out, size, "/") > 0;
}

int cgroup_folder_id(const char *folder, uint64_t *id)
{
    /*
     * A kernfs file handle is the node's id (fs/kernfs/mount.c, kernfs_encode_fh()). If there are no file handles,
     * st_ino is used: it is the same number if inode numbers have 64 bits (include/linux/kernfs.h, kernfs_ino()).
     */
    struct {
        struct file_handle head;
        uint64_t id;
    } handle = {.head.handle_bytes = sizeof(uint64_t)};
    int mount;
    struct stat st;
    if (!name_to_handle_at(AT_FDCWD, folder, &handle.head, &mount, 0) &&
        handle.head.handle_bytes == sizeof(uint64_t)) {
        memcpy(id, handle.head.f_handle, sizeof(*id));
        return 0;
    }
    if (stat(folder, &st))
        return -errno;
    *id = st.st_ino;
    return 0;
}
