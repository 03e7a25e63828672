/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/process/container.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "collect/process/proc.h"

/* Reads the link /proc/WHO/NAME as text; `who` is "self" or a pid. Returns false, and "", if it cannot be read. */
static bool read_link(const char *who, const char *name, char *out, size_t size)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%s/%s", who, name);
    ssize_t len = readlink(path, out, size - 1);
    out[len < 0 ? 0 : len] = '\0';
    return len > 0;
}

enum namespace { MOUNTS, PIDS, KINDS };
static const char *const links[KINDS] = {[MOUNTS] = "ns/mnt", [PIDS] = "ns/pid"};
static char own_links[KINDS][64]; /* the targets of our links, which never change */

static void read_own_links(void)
{
    for (int i = 0; i < KINDS; i++)
        read_link("self", links[i], own_links[i], sizeof(own_links[i]));
}

/* Returns whether the process is in another namespace than we are. */
static bool differs(const char *who, enum namespace kind)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    char other[64];
    pthread_once(&once, read_own_links);
    return *own_links[kind] && read_link(who, links[kind], other, sizeof(other)) &&
           strcmp(own_links[kind], other) != 0;
}

static bool has_other_root(const char *who)
{
    char root[8];
    /* if the mount namespace is ours, the kernel reports the root as a path in it */
    return differs(who, MOUNTS) || (read_link(who, "root", root, sizeof(root)) && strcmp(root, "/") != 0);
}

struct container container_of(pid_t pid)
{
    char who[24];
    snprintf(who, sizeof(who), "%d", (int)pid);
    struct container c = {.files = has_other_root(who), .pids = differs(who, PIDS), .user = (uid_t)-1};
    struct proc_status status;
    if (proc_status(pid, &status)) {
        c.user = status.user;
        c.inner_pid = status.inner_pid;
    }
    return c;
}

bool container_has_own_files(pid_t pid)
{
    char who[24];
    snprintf(who, sizeof(who), "%d", (int)pid);
    return has_other_root(who);
}

void container_name(pid_t pid, const struct container *c, struct buf *out)
{
    char who[24], text[PATH_MAX];
    snprintf(who, sizeof(who), "%d", (int)pid);
    const char *link = differs(who, MOUNTS) ? links[MOUNTS]
                       : c->files           ? "root"
                       : c->pids            ? links[PIDS]
                                            : NULL;
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
