/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbol/tree/tree_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/read_file.h"
#include "symbol/tree/tar_files.h"

#define DEPTH_MAX 16
#define FNV_BEGIN UINT64_C(0xcbf29ce484222325)
#define FNV_PRIME UINT64_C(0x100000001b3)

static bool ends(const char *text, size_t len, const char *end)
{
    const size_t n = strlen(end);
    return len >= n && !memcmp(text + len - n, end, n);
}

/* Folders with code that runs on the machine that builds, or before the kernel does. */
static bool is_left_out(const char *path)
{
    static const char *const first[] = {"Documentation/", "tools/", "samples/",
                                        "scripts/",       "usr/",   "debian/"};
    static const char *const any[] = {"/boot/", "/purgatory/", "/vdso/", "/vdso32/", "/.", "/asic_reg/"};
    for (size_t i = 0; i < sizeof(first) / sizeof(*first); i++)
        if (!strncmp(path, first[i], strlen(first[i])))
            return true;
    for (size_t i = 0; i < sizeof(any) / sizeof(*any); i++)
        if (strstr(path, any[i]))
            return true;
    return false;
}

bool tree_files_wants(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const size_t len = strlen(name);
    return (ends(name, len, ".c") || ends(name, len, ".h") || !strcmp(name, "Makefile") ||
            !strcmp(name, "Kbuild")) &&
           !is_left_out(path);
}

/* ---- a folder ---- */

struct walk {
    tree_file_found found; /* NULL: only the identity is wanted */
    void *arg;
    uint64_t identity;
    size_t files;
};

/* The order in which a folder's names come does not matter. */
static void add_identity(struct walk *w, const char *path, const struct stat *st)
{
    const uint64_t words[] = {(uint64_t)st->st_size, (uint64_t)st->st_mtim.tv_sec,
                              (uint64_t)st->st_mtim.tv_nsec};
    uint64_t hash = FNV_BEGIN;
    for (const char *at = path; *at; at++)
        hash = (hash ^ (unsigned char)*at) * FNV_PRIME;
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        hash = (hash ^ words[i] ^ hash >> 29) * FNV_PRIME;
    w->identity += hash;
}

static void take_file(struct walk *w, int fd, const char *name, const char *path)
{
    struct stat st;
    struct buf text = BUF_INIT;
    if (!tree_files_wants(path) || fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
        return;
    w->files++;
    add_identity(w, path, &st);
    if (w->found && st.st_size <= TREE_FILE_MAX && !file_read_at(fd, name, TREE_FILE_MAX, &text))
        w->found(w->arg, path, buf_str(&text), text.len);
    buf_release(&text);
}

static void walk_folder(struct walk *w, int fd, const char *folder, int depth)
{
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir) {
        if (fd >= 0)
            close(fd);
        return;
    }
    for (const struct dirent *d; (d = readdir(dir));) {
        struct buf path = BUF_INIT;
        if (*d->d_name == '.')
            continue;
        buf_printf(&path, "%s%s", folder, d->d_name);
        const int below = d->d_type == DT_DIR || d->d_type == DT_UNKNOWN
                              ? openat(dirfd(dir), d->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                              : -1;
        if (below < 0)
            take_file(w, dirfd(dir), d->d_name, buf_str(&path));
        buf_addch(&path, '/');
        if (below >= 0 && depth < DEPTH_MAX && !is_left_out(buf_str(&path)))
            walk_folder(w, below, buf_str(&path), depth + 1);
        else if (below >= 0)
            close(below);
        buf_release(&path);
    }
    closedir(dir);
}

static int read_folder(struct walk *w, const char *source, struct error *e)
{
    const int fd = open(source, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_set(e, errno, "cannot open %s: %s", source, strerror(errno));
    walk_folder(w, fd, "", 0);
    return w->files ? 0 : error_set(e, ENOENT, "%s has no source of a kernel", source);
}

static int look(const char *source, struct stat *st, struct error *e)
{
    return stat(source, st) ? error_set(e, errno, "cannot open %s: %s", source, strerror(errno)) : 0;
}

int tree_files_read(const char *source, tree_file_found found, void *arg, struct error *e)
{
    struct stat st;
    struct walk w = {found, arg, 0, 0};
    int bad = look(source, &st, e);
    if (bad)
        return bad;
    return S_ISDIR(st.st_mode) ? read_folder(&w, source, e) : tar_files_read(source, found, arg, e);
}

int tree_files_identity(const char *source, uint64_t *out, struct error *e)
{
    struct stat st;
    struct walk w = {NULL, NULL, FNV_BEGIN, 0};
    int bad = look(source, &st, e);
    if (!bad && S_ISDIR(st.st_mode))
        bad = read_folder(&w, source, e);
    else if (!bad)
        add_identity(&w, source, &st);
    *out = w.identity;
    return bad;
}
