/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/ledger/mapped_ledgers.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <linux/openat2.h>

#include "base/guard.h"
#include "base/mem.h"
#include "base/sigsafe/atomic.h"
#include "base/sigsafe/str.h"
#include "collect/ledger/ledger_folder.h"
#include "wire/ledger.h"
#include "wire/unobserved_list.h"

#define CHUNK_BYTES    (64u << 10)
#define MAPS_BYTES_MAX (64u << 20) /* some half a million mappings */
#define MEMFD          "/memfd:"
#define DELETED        " (deleted)"
#define AGENT          "/liballium-agent" /* .so, -full.so */
#define LOOKUPS_MAX    4                  /* attempts: a lookup that may not wait can fail by chance */

/* Time limits for a process whose memory map stays locked. After the first one the limit is low, because there may be
 * many more. */
#define FIRST_MS 2000
#define LATER_MS 50
static unsigned patience_ms = FIRST_MS; /* shared by all threads */

/* ---- finding ---- */

/* Parses a path like "…/PID-IMAGE.ledger" or "/memfd:PID-IMAGE.ledger". Returns false if it has another form. */
static bool parse_path(const char *path, const char *suffix, pid_t *pid, uint64_t *image_id)
{
    const char *slash = strrchr(path, '/'), *name = slash + 1;
    if (!strncmp(path, MEMFD, strlen(MEMFD)) && slash == path)
        name = path + strlen(MEMFD);
    return ledger_name_parse(name, suffix, pid, image_id);
}

/* The files found so far. There are two control pages at most, one for each ledger; they may be found before it. */
struct found {
    struct mapped_ledger *m;
    struct mapped_ledgers_file control[2];
    uint64_t control_id[2];
};

static void take_control(struct found *all, const struct mapped_ledgers_file *f, uint64_t id)
{
    for (int i = 0; i < 2; i++) {
        if (all->control[i].end && all->control_id[i] == id)
            return;
        if (all->control[i].end)
            continue;
        all->control[i] = *f;
        all->control_id[i] = id;
        return;
    }
}

/* Assigns each control page to the ledger with the same image id. */
static void give_controls(const struct found *all)
{
    struct mapped_ledger *m = all->m;
    for (int i = 0; i < 2; i++) {
        if (all->control[i].end && mapped_ledgers_any(m) && all->control_id[i] == m->image_id)
            m->control = all->control[i];
        if (all->control[i].end && m->tags.end && all->control_id[i] == m->tags_image_id)
            m->tags_control = all->control[i];
    }
}

/* A quick test before a line is parsed: most lines are of other files. */
static bool may_be_ours(const char *line)
{
    static const char *const suffixes[] = {LEDGER_SUFFIX, LEDGER_CONTROL_SUFFIX, LEDGER_TAGS_SUFFIX,
                                           UNOBSERVED_SUFFIX};
    const char *name = strrchr(line, '/');
    bool may = name && !strncmp(name, AGENT, strlen(AGENT));
    for (size_t i = 0; name && !may && i < sizeof(suffixes) / sizeof(*suffixes); i++)
        may = strstr(name, suffixes[i]);
    return may;
}

/* Parses one line of /proc/PID/maps. */
static void take_line(struct found *all, const char *line)
{
    struct mapped_ledger *m = all->m;
    struct mapped_ledgers_file f = {0};
    char access[5] = "";
    unsigned major, minor;
    int at = 0;
    pid_t pid;
    uint64_t id, inode;
    if (!may_be_ours(line) ||
        sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*x %x:%x %" SCNu64 " %n", &f.start, &f.end, access, &major,
               &minor, &inode, &at) < 6 ||
        line[at] != '/' || strlen(line + at) >= sizeof(f.path))
        return;
    f.inode = inode;
    f.device = makedev(major, minor);
    memcpy(f.path, line + at, strlen(line + at) + 1);
    f.deleted = text_cut_end(f.path, DELETED);
    const char *name = strrchr(f.path, '/');
    m->agent |= name && !strncmp(name, AGENT, strlen(AGENT));
    bool writes = access[1] == 'w'; /* a process that maps a ledger read-only does not own it */
    if (writes && !mapped_ledgers_any(m) && parse_path(f.path, LEDGER_SUFFIX, &pid, &id)) {
        m->ledger = f;
        m->inner_pid = pid;
        m->image_id = id;
    } else if (writes && !m->tags.end && parse_path(f.path, LEDGER_TAGS_SUFFIX, &pid, &id)) {
        m->tags = f;
        m->inner_pid = pid;
        m->tags_image_id = id;
    } else if (parse_path(f.path, LEDGER_CONTROL_SUFFIX, &pid, &id)) {
        take_control(all, &f, id);
    } else if (mapped_ledgers_nameless(&f) && text_ends(f.path, UNOBSERVED_SUFFIX)) {
        m->mark = f;
    }
}

/* Parses all complete lines. Moves the incomplete last line to the front of the text, and returns its length. */
static size_t take_lines(struct found *all, char *text, size_t len)
{
    char *line = text, *end;
    for (; (end = memchr(line, '\n', len - (size_t)(line - text))); line = end + 1) {
        *end = '\0';
        take_line(all, line);
    }
    len -= (size_t)(line - text);
    memmove(text, line, len);
    return len;
}

static int search_maps(pid_t pid, struct mapped_ledger *m)
{
    struct found found = {.m = m};
    char path[64];
    *m = (struct mapped_ledger){0};
    snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? -ESRCH : errno == EPERM ? -EACCES : -errno;
    char *text = mem_alloc(CHUNK_BYTES);
    size_t kept = 0, all = 0;
    ssize_t n;
    while (all < MAPS_BYTES_MAX && (n = read(fd, text + kept, CHUNK_BYTES - kept)) > 0) {
        all += (size_t)n;
        kept = take_lines(&found, text, kept + (size_t)n);
        if (kept == CHUNK_BYTES)
            kept = 0; /* a valid line is never that long */
    }
    free(text);
    close(fd);
    give_controls(&found);
    return all >= MAPS_BYTES_MAX && !mapped_ledgers_any(m) ? -E2BIG : 0;
}

struct maps_search {
    pid_t pid;
    struct mapped_ledger found;
    int bad;
};

static void find_guarded(void *work)
{
    struct maps_search *l = work;
    l->bad = search_maps(l->pid, &l->found);
}

int mapped_ledgers_find(pid_t pid, struct mapped_ledger *m)
{
    struct maps_search l = {.pid = pid};
    int bad = guard_run(find_guarded, &l, sizeof(l), load_relaxed(&patience_ms));
    *m = l.found;
    if (bad)
        store_relaxed(&patience_ms, LATER_MS);
    return bad ? bad : l.bad;
}

bool mapped_ledgers_nameless(const struct mapped_ledgers_file *f)
{
    return f->deleted && !strncmp(f->path, MEMFD, strlen(MEMFD));
}

/* ---- opening ---- */

/* Returns the device of memfds, which no mount table lists. */
static dev_t memfd_device(void)
{
    struct stat st = {0};
    int fd = memfd_create("device", MFD_CLOEXEC);
    if (fd >= 0) {
        fstat(fd, &st);
        close(fd);
    }
    return st.st_dev;
}

/* Returns whether the device is a tmpfs that the process sees mounted, or the device of memfds. Reads the mount table:
 * a system call on a file system that another user serves (FUSE) may never return. */
static bool is_tmpfs(pid_t pid, dev_t device)
{
    char path[64], *line = NULL;
    unsigned major, minor;
    size_t size = 0;
    bool found = device == memfd_device();
    snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)pid);
    FILE *file = found ? NULL : fopen(path, "re");
    while (file && !found && getline(&line, &size, file) > 0) {
        const char *type = strstr(line, " - ");
        found = type && !strncmp(type, " - tmpfs ", 9) &&
                sscanf(line, "%*d %*d %u:%u", &major, &minor) == 2 && makedev(major, minor) == device;
    }
    free(line);
    if (file)
        fclose(file);
    return found;
}

/* Opens the mapped file by the kernel's link to it, with O_PATH, which does not call its file system. */
static int name_mapped(pid_t pid, const struct mapped_ledgers_file *f)
{
    char path[96];
    snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)pid, f->start, f->end);
    int fd = open(path, O_PATH | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/*
 * Returns the path of the file within the root of the process. The path in /proc/PID/maps begins at the root of the
 * process's mount namespace or, if the namespace is ours, at our root; the root of the process may be further down.
 */
static const char *path_in_root(pid_t pid, const struct mapped_ledgers_file *f)
{
    char link[64], root[MAPPED_LEDGERS_PATH_BYTES];
    snprintf(link, sizeof(link), "/proc/%d/root", (int)pid);
    ssize_t len = readlink(link, root, sizeof(root));
    if (len > 1 && (size_t)len < sizeof(root) && !strncmp(f->path, root, (size_t)len) && f->path[len] == '/')
        return f->path + len;
    return f->path;
}

/* Like name_mapped(), for users who may not follow the kernel's link: opens the file by its name, within the root of
 * the process. */
static int name_in_root(pid_t pid, const struct mapped_ledgers_file *f)
{
    char root[64];
    if (f->deleted)
        return -EACCES;
    snprintf(root, sizeof(root), "/proc/%d/root", (int)pid);
    int dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC), fd = -EAGAIN;
    if (dir < 0)
        return -errno;
    struct open_how how = {.flags = O_PATH | O_CLOEXEC,
                           .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS |
                                      RESOLVE_CACHED};
    /* RESOLVE_CACHED never waits. Files on a tmpfs, and the directories above them, are always in the cache. */
    for (int i = 0; fd == -EAGAIN && i < LOOKUPS_MAX; i++) {
        fd = (int)syscall(SYS_openat2, dir, path_in_root(pid, f) + 1, &how, sizeof(how));
        fd = fd < 0 ? -errno : fd;
    }
    close(dir);
    return fd;
}

/* Returns 0 if `fd` is the mapped file, and a regular file on a tmpfs; else -errno. Reads nothing of the file, and
 * calls no file system. */
static int check_named(pid_t pid, int fd, const struct mapped_ledgers_file *f)
{
    struct statx st;
    if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO, &st))
        return -errno;
    if (makedev(st.stx_dev_major, st.stx_dev_minor) != f->device || st.stx_ino != f->inode)
        return -ESTALE;
    return S_ISREG(st.stx_mode) && is_tmpfs(pid, f->device) ? 0 : -EPERM;
}

static int open_file(pid_t pid, const struct mapped_ledgers_file *f, int how)
{
    char link[64];
    int named = name_mapped(pid, f);
    if (named == -EPERM || named == -EACCES)
        named = name_in_root(pid, f);
    if (named < 0)
        return named == -ENOENT ? -ESTALE : named;
    int fd = check_named(pid, named, f);
    if (!fd) {
        snprintf(link, sizeof(link), "/proc/self/fd/%d", named);
        fd = open(link, how | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        fd = fd < 0 ? -errno : fd;
    }
    close(named);
    return fd;
}

struct opening {
    pid_t pid;
    struct mapped_ledgers_file file;
    int how, fd;
};

static void open_guarded(void *work)
{
    struct opening *o = work;
    o->fd = open_file(o->pid, &o->file, o->how);
}

int mapped_ledgers_open(pid_t pid, const struct mapped_ledgers_file *f, int how)
{
    struct opening o = {.pid = pid, .file = *f, .how = how};
    int bad = guard_run(open_guarded, &o, sizeof(o), load_relaxed(&patience_ms));
    return bad ? bad : o.fd;
}
