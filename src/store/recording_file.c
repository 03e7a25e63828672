/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/recording_writer.h"

#include "base/buf.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* What SQLite may keep beside a file. */
static const char *const suffixes[] = {"-wal", "-shm", "-journal"};
#define N_SUFFIXES (sizeof(suffixes) / sizeof(*suffixes))

static char *beside(const char *path, const char *suffix)
{
    struct buf b = BUF_INIT;
    buf_addstr(&b, path);
    buf_addstr(&b, suffix);
    return buf_detach(&b);
}

/* SQLite compares names and refuses links: give it the folder as it really is, and the last word as it was given. */
static int find_absolute(const char *path, const char *shown, char **absolute, struct error *e)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
        return error_set(e, EISDIR, "'%s' is not a file name: use -o FILE", shown);
    char *folder = slash ? mem_strndup(path, (size_t)(slash - path) + 1) : mem_strdup(".");
    char *real = realpath(folder, NULL);
    int code = errno;
    free(folder);
    if (!real)
        return error_set(e, code, "cannot create %s: %s; check its folder", shown, strerror(code));
    struct buf b = BUF_INIT;
    buf_printf(&b, "%s/%s", strcmp(real, "/") ? real : "", name);
    free(real);
    *absolute = buf_detach(&b);
    return 0;
}

/*
 * A lock of the whole open file on its first byte, which SQLite never locks: a process that holds it is writing. Unlike
 * a process's own locks it does not go when another descriptor of the file is closed; unlike flock(2) it does not
 * collide with SQLite's on NFS.
 */
static bool lock(int fd)
{
    struct flock first = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
    return !fcntl(fd, F_OFD_SETLK, &first) || (errno != EAGAIN && errno != EACCES);
}

static bool is_being_written(const char *path)
{
    int fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool busy = fd >= 0 && !lock(fd);
    if (fd >= 0)
        close(fd);
    return busy;
}

static int remove_old(const char *absolute, const char *shown, struct error *e)
{
    struct stat st;
    if (lstat(absolute, &st))
        return errno == ENOENT ? 0 : error_set(e, errno, "cannot replace %s: %s", shown, strerror(errno));
    if (S_ISDIR(st.st_mode))
        return error_set(e, EISDIR, "%s is a directory; give a file with -o", shown);
    if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
        return error_set(e, EINVAL, "%s is not a regular file; give another one with -o", shown);
    if (S_ISREG(st.st_mode) && is_being_written(absolute))
        return error_set(e, EBUSY, "another allium is recording into %s; stop it first, or use -o", shown);
    if (unlink(absolute))
        return error_set(e, errno, "cannot replace %s: %s; use -o", shown, strerror(errno));
    return 0;
}

/* SQLite would take a -wal that a crash left behind for one of the new file. */
static int remove_neighbours(const char *absolute, bool force, const char *shown, struct error *e)
{
    int rc = 0;
    for (size_t i = 0; i < N_SUFFIXES && !rc; i++) {
        char *name = beside(absolute, suffixes[i]);
        struct stat st;
        if (lstat(name, &st))
            rc = 0;
        else if (!force)
            rc = error_set(e, EEXIST, "%s%s exists, left by another recording; use --force or -o", shown,
                           suffixes[i]);
        else if (unlink(name))
            rc = error_set(e, errno, "cannot remove %s%s: %s; use -o", shown, suffixes[i], strerror(errno));
        free(name);
    }
    return rc;
}

static int create_new(const char *absolute, const char *shown, int *guard, struct error *e)
{
    *guard = open(absolute, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (*guard >= 0) {
        (void)lock(*guard); /* nobody else has it open: only a file system without locks can fail here */
        return 0;
    }
    if (errno == EEXIST)
        return error_set(e, EEXIST, "%s exists; use --force or another -o", shown);
    return error_set(e, errno, "cannot create %s: %s; use -o to record elsewhere", shown, strerror(errno));
}

int writer_create_file(const char *path, bool force, char **absolute, int *guard, struct error *e)
{
    struct stat st;
    char *shown = sql_shown(path);
    *absolute = NULL;
    *guard = -1;
    int rc = find_absolute(path, shown, absolute, e);
    if (!rc && force)
        rc = remove_old(*absolute, shown, e);
    else if (!rc && !lstat(*absolute, &st))
        rc = error_set(e, EEXIST, "%s exists; use --force or another -o", shown);
    if (!rc)
        rc = remove_neighbours(*absolute, force, shown, e);
    if (!rc)
        rc = create_new(*absolute, shown, guard, e);
    if (rc) {
        free(*absolute);
        *absolute = NULL;
    }
    free(shown);
    return rc;
}

bool writer_file_unmoved(const char *absolute, int guard)
{
    struct stat named, held;
    return !lstat(absolute, &named) && !fstat(guard, &held) && named.st_dev == held.st_dev &&
           named.st_ino == held.st_ino;
}

bool writer_neighbours_ours(const char *absolute)
{
    bool ours = true;
    for (size_t i = 0; i < N_SUFFIXES; i++) {
        char *name = beside(absolute, suffixes[i]);
        struct stat st;
        if (!lstat(name, &st) && (!S_ISREG(st.st_mode) || st.st_uid != geteuid()))
            ours = false;
        free(name);
    }
    return ours;
}
