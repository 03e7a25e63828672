/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/trace/trace_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"

#define DEPTH_MOST 4
#define HOW        (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* Metadata of `allium trace`, and of what it was exported to in LTTng's form, have this. */
static const char version[] = "allium_version = \"";

static bool has_our_metadata(int folder, const char *name)
{
    char text[4096];
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    return strstr(text, version) != NULL;
}

/* LTTng's form has a folder for each user. */
static bool has_exported(int folder)
{
    bool found = false;
    const int users = openat(folder, "ust/uid", HOW);
    DIR *d = users < 0 ? NULL : fdopendir(users);
    for (struct dirent *entry; d && !found && (entry = readdir(d));) {
        char name[NAME_MAX + 32];
        snprintf(name, sizeof(name), "%s/64-bit/metadata", entry->d_name);
        found = has_our_metadata(users, name);
    }
    if (d)
        closedir(d);
    else if (users >= 0)
        close(users);
    return found;
}

bool trace_dir_is_ours(const char *path)
{
    struct stat st;
    int folder = open(path, HOW);
    if (folder < 0)
        return false;
    const bool ours = has_our_metadata(folder, "ust/metadata") ||
                      has_our_metadata(folder, "kernel/metadata") || has_exported(folder) ||
                      (!fstatat(folder, "profile.allium", &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode));
    close(folder);
    return ours;
}

char *trace_dir_snapshot(const char *path)
{
    struct buf newest = BUF_INIT;
    unsigned long number = 0;
    const int folder = open(path, HOW);
    DIR *d = folder < 0 ? NULL : fdopendir(folder);
    for (struct dirent *entry; d && (entry = readdir(d));) {
        char name[NAME_MAX + 32], *end;
        const unsigned long n = strtoul(entry->d_name, &end, 10);
        snprintf(name, sizeof(name), "%s/ust/metadata", entry->d_name);
        if (entry->d_name[0] < '0' || entry->d_name[0] > '9' || *end != '-' || n <= number ||
            !has_our_metadata(folder, name))
            continue;
        number = n;
        buf_reset(&newest);
        buf_printf(&newest, "%s/%s", path, entry->d_name);
    }
    if (d)
        closedir(d);
    else if (folder >= 0)
        close(folder);
    return newest.len ? buf_detach(&newest) : NULL;
}

int trace_dir_refuse(const char *path, struct error *e)
{
    char *snapshot = trace_dir_snapshot(path);
    const int bad =
        snapshot
            ? error_set(e, EINVAL, "%s holds snapshots of a trace: read one of them, such as the newest, %s",
                        path, snapshot)
            : error_set(e, EINVAL, "%s is not a trace of allium: it has no folder `ust` with metadata", path);
    free(snapshot);
    return bad;
}

/* Visits all that a folder has, deepest first. Returns 0, or -errno of the first visit that failed. */
static int each_file(int folder, int depth,
                     int (*visit)(int folder, const char *name, const struct stat *st, void *arg), void *arg)
{
    struct stat st;
    int bad = 0;
    DIR *d = fdopendir(folder);
    if (!d) {
        close(folder);
        return -ENOMEM;
    }
    for (struct dirent *entry; !bad && (entry = readdir(d));) {
        const char *name = entry->d_name;
        if (!strcmp(name, ".") || !strcmp(name, "..") || fstatat(dirfd(d), name, &st, AT_SYMLINK_NOFOLLOW))
            continue;
        int inner = S_ISDIR(st.st_mode) && depth < DEPTH_MOST ? openat(dirfd(d), name, HOW) : -1;
        if (inner >= 0)
            bad = each_file(inner, depth + 1, visit, arg);
        bad = bad ? bad : visit(dirfd(d), name, &st, arg);
    }
    closedir(d);
    return bad;
}

static int remove_one(int folder, const char *name, const struct stat *st, void *arg)
{
    (void)arg;
    return unlinkat(folder, name, S_ISDIR(st->st_mode) ? AT_REMOVEDIR : 0) ? -errno : 0;
}

static int add_size(int folder, const char *name, const struct stat *st, void *arg)
{
    unsigned long long *sum = arg;
    (void)folder;
    (void)name;
    *sum += S_ISREG(st->st_mode) ? (unsigned long long)st->st_size : 0;
    return 0;
}

int trace_dir_remove(const char *path)
{
    int folder = open(path, HOW), bad = folder < 0 ? -errno : each_file(folder, 0, remove_one, NULL);
    return bad ? bad : rmdir(path) ? -errno : 0;
}

unsigned long long trace_dir_bytes(const char *path)
{
    unsigned long long sum = 0;
    int folder = open(path, HOW);
    if (folder >= 0)
        each_file(folder, 0, add_size, &sum);
    return sum;
}

int trace_dir_make(const char *path, bool force, struct error *e)
{
    if (!mkdir(path, 0700))
        return 0;
    if (errno != EEXIST)
        return error_set(e, errno, "%s: %s", path, strerror(errno));
    const bool ours = trace_dir_is_ours(path);
    if (!force)
        return error_set(e, EEXIST, "%s exists: name another folder with -o%s", path,
                         ours ? ", or use --force to replace it" : "");
    if (!ours && rmdir(path)) /* an empty one is nobody's */
        return error_set(e, EEXIST, "%s is not a trace of allium: name another folder with -o", path);
    const int bad = ours ? trace_dir_remove(path) : 0;
    if (bad)
        return error_set(e, -bad, "cannot remove the trace %s: %s", path, strerror(-bad));
    return mkdir(path, 0700) ? error_set(e, errno, "%s: %s", path, strerror(errno)) : 0;
}
