/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/ledger/ledger_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sigsafe/str.h"
#include "wire/ledger.h"

#define IN_FOLDER (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)

/* Cuts the last part off the path, and returns it: "" for "/". A path with one part, "NAME" or "/NAME", is not cut. */
static char *cut_last(char *path)
{
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        path[--len] = '\0';
    char *slash = strrchr(path, '/');
    if (!slash || slash == path)
        return slash ? slash + 1 : path;
    *slash = '\0';
    return slash + 1;
}

/* Opens the directory above the last part that cut_last() has returned. Returns a descriptor or -errno. */
static int open_above(char *path, const char *last)
{
    const char *above = last == path ? "." : last == path + 1 ? "/" : path;
    if (!strncmp(last, LEDGER_RUN_PREFIX, strlen(LEDGER_RUN_PREFIX)) && last > path + 1)
        return ledger_folder_open(path);
    int fd = open(above, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int ledger_folder_open(const char *dir)
{
    char *path = mem_strdup(dir);
    const char *last = cut_last(path);
    int above = open_above(path, last), fd = above;
    if (above >= 0) {
        fd = openat(above, *last ? last : ".", IN_FOLDER);
        fd = fd < 0 ? -errno : fd;
        close(above);
    }
    free(path);
    return fd;
}

/* Opens the directory of a file. The path must contain a slash. Returns a descriptor or -errno. */
static int open_folder_of(const char *file)
{
    char *path = mem_strdup(file);
    cut_last(path);
    int fd = ledger_folder_open(path);
    free(path);
    return fd;
}

int ledger_file_open(const char *path, int how)
{
    int folder = open_folder_of(path);
    if (folder < 0)
        return folder;
    int fd = openat(folder, strrchr(path, '/') + 1, how | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    fd = fd < 0 ? -errno : fd;
    close(folder);
    return fd;
}

int ledger_file_remove(const char *path, int how)
{
    int folder = open_folder_of(path);
    if (folder < 0)
        return folder;
    int bad = unlinkat(folder, strrchr(path, '/') + 1, how) ? -errno : 0;
    close(folder);
    return bad;
}

bool ledger_name_parse(const char *name, const char *suffix, pid_t *pid, uint64_t *image_id)
{
    int end = 0, number;
    /* First the suffix: of the files that a process maps, and of those in a folder, few have it. */
    if (!text_ends(name, suffix) || sscanf(name, "%9d-%16" SCNx64 "%n", &number, image_id, &end) != 2 ||
        strcmp(name + end, suffix) != 0 || number <= 0)
        return false;
    *pid = number;
    return true;
}
