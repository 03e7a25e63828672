/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/process/container.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

/* Reads the link /proc/WHO/NAME as text; `who` is "self" or a pid. Returns false, and "", if it cannot be read. */
static bool read_link(const char *who, const char *name, char *out, size_t size)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%s/%s", who, name);
    ssize_t len = readlink(path, out, size - 1);
    out[len < 0 ? 0 : len] = '\0';
    return len > 0;
}

static bool differs(const char *who, const char *name)
{
    char own[64], other[64];
    return read_link("self", name, own, sizeof(own)) && read_link(who, name, other, sizeof(other)) &&
           strcmp(own, other) != 0;
}

/* Reads the effective user id and the pid in the process's own namespace: the last number of "NSpid:". The first one is
 * the pid in the namespace of this /proc. */
static void read_status(pid_t pid, struct container *c)
{
    char path[64], line[512];
    unsigned user;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file)) {
        if (sscanf(line, "Uid:\t%*u\t%u", &user) == 1)
            c->user = user;
        if (strncmp(line, "NSpid:", 6) != 0)
            continue;
        const char *last = strrchr(line, '\t');
        long number = strtol(last ? last : line + 6, NULL, 10);
        c->inner_pid = number > 0 && number <= INT_MAX ? (pid_t)number : 0;
        break;
    }
    if (file)
        fclose(file);
}

static bool has_other_root(const char *who)
{
    char root[8];
    /* if the mount namespace is ours, the kernel reports the root as a path in it */
    return differs(who, "ns/mnt") || (read_link(who, "root", root, sizeof(root)) && strcmp(root, "/") != 0);
}

struct container container_of(pid_t pid)
{
    char who[24];
    snprintf(who, sizeof(who), "%d", (int)pid);
    struct container c = {.files = has_other_root(who), .pids = differs(who, "ns/pid"), .user = (uid_t)-1};
    read_status(pid, &c);
    return c;
}

void container_name(pid_t pid, const struct container *c, struct buf *out)
{
    char who[24], text[PATH_MAX];
    snprintf(who, sizeof(who), "%d", (int)pid);
    const char *link = differs(who, "ns/mnt") ? "ns/mnt" : c->files ? "root" : c->pids ? "ns/pid" : NULL;
    if (link && read_link(who, link, text, sizeof(text)))
        buf_addstr(out, text);
}

struct container_root {
    int fd;
    struct statx is;
    char namespace[64], path[32];
};

static bool is_same(const struct container_root *a, const struct container_root *b)
{
    return a->is.stx_ino == b->is.stx_ino && a->is.stx_dev_major == b->is.stx_dev_major &&
           a->is.stx_dev_minor == b->is.stx_dev_minor && !strcmp(a->namespace, b->namespace);
}

/* Opens the root of a process. Returns NULL if it cannot be opened. AT_STATX_DONT_SYNC: statx(2) does not query the
 * server of the file system, which may belong to another user (FUSE) and never answer. */
static struct container_root *open_root(const char *who)
{
    char path[64];
    struct container_root *r = mem_alloc(sizeof(*r));
    snprintf(path, sizeof(path), "/proc/%s/root", who);
    r->fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (r->fd >= 0 && read_link(who, "ns/mnt", r->namespace, sizeof(r->namespace)) &&
        !statx(r->fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &r->is)) {
        snprintf(r->path, sizeof(r->path), "/proc/self/fd/%d", r->fd);
        return r;
    }
    if (r->fd >= 0)
        close(r->fd);
    free(r);
    return NULL;
}

const char *container_root(struct container_roots *roots, pid_t pid)
{
    char who[24];
    snprintf(who, sizeof(who), "%d", (int)pid);
    struct container_root *r = has_other_root(who) ? open_root(who) : NULL;
    if (!r)
        return "";
    vec_each (struct container_root *, known, roots)
        if (is_same(*known, r)) {
            close(r->fd);
            free(r);
            return (*known)->path;
        }
    *vec_push(roots) = r;
    return r->path;
}

void container_roots_release(struct container_roots *roots)
{
    vec_each (struct container_root *, r, roots) {
        close((*r)->fd);
        free(*r);
    }
    vec_release(roots);
}
