/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/ledger/ledger_scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "collect/ledger/ledger_copy.h"
#include "collect/ledger/mapped_ledgers.h"
#include "collect/process/container.h"
#include "collect/process/proc.h"
#include "collect/ledger/unobserved_read.h"

static struct ledger_entry *find_file(struct ledger_list *list, dev_t device, ino_t inode)
{
    vec_each (struct ledger_entry, e, list)
        if (e->device == device && e->inode == inode)
            return e;
    return NULL;
}

/* Returns whether the ledger has ended, though a process maps it. */
static bool is_detached(const struct ledger_entry *entry)
{
    struct ledger_header h;
    int fd = ledger_entry_open(entry);
    bool detached = fd >= 0 && !ledger_copy_header(fd, &h, NULL) && h.state == LEDGER_DETACHED;
    if (fd >= 0)
        close(fd);
    return detached;
}

/* Adds a ledger that a process maps: to its entry if it was found by name, else as a new entry. */
static void take_file(struct ledger_list *list, pid_t pid, const struct mapped_ledger *m, bool tags)
{
    const struct mapped_ledgers_file *f = tags ? &m->tags : &m->ledger;
    struct ledger_entry *e = find_file(list, f->device, f->inode);
    if (!e) {
        struct ledger_entry other = {.image_id = tags ? m->tags_image_id : m->image_id,
                                     .tags = tags,
                                     .device = f->device,
                                     .inode = f->inode};
        e = vec_push(list);
        *e = other;
    }
    if (e->mapped && pid != m->inner_pid)
        return; /* probably a vfork child: it shares the memory of its parent until it calls execve() */
    e->pid = pid;
    e->sure = true;
    if (!e->mapped)
        e->mapped = mem_alloc(sizeof(*e->mapped));
    *e->mapped = *m;
    e->alive = !is_detached(e);
}

static void scan_process(struct ledger_scan *s, pid_t pid)
{
    struct mapped_ledger m;
    int bad = mapped_ledgers_find(pid, &m);
    if (bad == -EACCES && !proc_is_kernel(pid) && proc_runs(pid))
        s->unreadable++;
    else if (bad == -ETIMEDOUT || bad == -E2BIG)
        s->stuck++;
    if (bad)
        return;
    if (m.tags.end)
        take_file(&s->tags, pid, &m, true);
    if (mapped_ledgers_any(&m))
        take_file(&s->list, pid, &m, false);
    else if (m.agent)
        *vec_push(&s->without) = pid;
}

typedef void visit_fn(void *arg, pid_t pid);

static void each_process(visit_fn *visit, void *arg)
{
    DIR *d = opendir("/proc");
    for (struct dirent *entry; d && (entry = readdir(d));) {
        long pid = strtol(entry->d_name, NULL, 10);
        if (pid > 0)
            visit(arg, (pid_t)pid);
    }
    if (d)
        closedir(d);
}

static bool has_tags(const struct ledger_entry *entry)
{
    struct ledger_header h;
    int fd = ledger_entry_open(entry);
    bool has = fd >= 0 && !ledger_copy_header(fd, &h, NULL) && ledger_copy_has_tags(&h);
    if (fd >= 0)
        close(fd);
    return has;
}

/* Adds the agent's ledgers with accounts of tags to the list of tags: a process with agent and tags has one ledger. */
static void add_joint(struct ledger_scan *s)
{
    vec_each (const struct ledger_entry, entry, &s->list) {
        if (!has_tags(entry))
            continue;
        struct ledger_entry merged = *entry;
        merged.path = entry->path ? mem_strdup(entry->path) : NULL;
        merged.mapped = entry->mapped ? mem_alloc(sizeof(*merged.mapped)) : NULL;
        if (merged.mapped)
            *merged.mapped = *entry->mapped;
        *vec_push(&s->tags) = merged;
    }
}

static void examine(void *scan, pid_t pid)
{
    scan_process(scan, pid);
}

void ledger_scan_all(struct ledger_scan *s)
{
    *s = (struct ledger_scan){0};
    ledger_dir_scan_all(&s->list);
    ledger_dir_scan_tags(&s->tags);
    each_process(examine, s);
    add_joint(s);
}

/* Returns whether a process still uses the ledger: it may have ended since the ledger was found. If its exit handlers
 * have run, it counts as ended, although the kernel unmaps its memory later. */
static bool is_held_still(const struct ledger_entry *ledger)
{
    struct ledger_header h;
    if (!ledger->path)
        return true;
    int fd = ledger_entry_open(ledger);
    if (fd < 0)
        return fd != -ENOENT;
    bool held = ledger_is_held(fd) && (ledger_copy_header(fd, &h, NULL) || h.state == LEDGER_RUNNING);
    close(fd);
    return held;
}

/*
 * Removes ledgers of other processes. If the name of a ledger has the pid, and another process maps the ledger, it
 * belongs to a process with that pid in another namespace. If no process maps it any more, this process has ended since
 * the directory was read.
 */
static void keep_named(struct ledger_list *list, pid_t pid, bool examined)
{
    size_t kept = 0;
    vec_each (struct ledger_entry, e, list) {
        if (e->alive && !e->mapped && examined && e->pid == pid)
            e->alive = is_held_still(e);
        if (e->pid == pid && (e->mapped || !examined || !e->alive)) {
            list->at[kept++] = *e;
            continue;
        }
        free(e->path);
        free(e->mapped);
    }
    list->len = kept;
}

void ledger_scan_process(struct ledger_scan *s, pid_t pid)
{
    *s = (struct ledger_scan){0};
    ledger_dir_scan_all(&s->list);
    ledger_dir_scan_tags(&s->tags);
    scan_process(s, pid);
    keep_named(&s->list, pid, !s->unreadable);
    keep_named(&s->tags, pid, !s->unreadable);
    add_joint(s);
}

void ledger_scan_release(struct ledger_scan *s)
{
    ledger_list_release(&s->list);
    ledger_list_release(&s->tags);
    vec_release(&s->without);
}

static uint64_t began_ns(const struct ledger_entry *entry)
{
    struct ledger_header h;
    int fd = ledger_entry_open(entry), bad = fd < 0 ? fd : ledger_copy_header(fd, &h, NULL);
    if (fd >= 0)
        close(fd);
    return bad ? 0 : h.began_realtime_ns;
}

const struct ledger_entry *ledger_scan_latest(const struct ledger_list *list)
{
    const struct ledger_entry *latest = NULL;
    uint64_t began = 0;
    vec_each (const struct ledger_entry, entry, list) {
        uint64_t at = entry->alive ? UINT64_MAX : list->len > 1 ? began_ns(entry) : 0;
        if (latest && at < began)
            continue;
        latest = entry;
        began = at;
    }
    return latest;
}

int ledger_scan_unread(const struct ledger_scan *s, struct error *e)
{
    struct ledger_header h;
    int bad = 0;
    vec_each (const struct ledger_entry, entry, &s->list) {
        int fd = entry->alive && !bad ? ledger_entry_open(entry) : -1;
        if (fd < 0)
            continue;
        bad = ledger_copy_header(fd, &h, e);
        close(fd);
    }
    return bad;
}

struct stray_search {
    struct ledger_strays *found;
    struct ledger_scan ledgers;
    const char *name; /* "run-…" */
    bool everywhere;  /* our directory has no free inode: any process may have a memfd instead */
    bool root;        /* we are root */
};

/* Returns whether the process is one of another user. Only root needs to know. */
static bool has_other_user(pid_t pid)
{
    struct proc_status status;
    return proc_status(pid, &status) && status.user != 0;
}

/* Returns whether the file lies in a directory of that name, or is a memfd with that name ("/memfd:NAME/..."). */
static bool is_for(const struct mapped_ledgers_file *f, const char *name)
{
    size_t len = strlen(name);
    const char *slash = strrchr(f->path, '/');
    return slash > f->path + len && !strncmp(slash - len, name, len) && strchr("/:", slash[-1 - (int)len]);
}

static void add_mark(struct ledger_strays *s, uint64_t id, int why, const char *program)
{
    *vec_push(&s->marks) = (struct ledger_mark){.id = id, .why = why, .program = mem_strdup(program)};
}

static void take_mark(struct ledger_strays *s, const struct mapped_ledgers_file *f)
{
    char *name = mem_strdup(strrchr(f->path, '/') + 1);
    int why;
    uint64_t id;
    const char *program = unobserved_parse_mark(name, &why, &id);
    if (program)
        add_mark(s, id, why, program);
    free(name);
}

/* Adds a ledger that the process maps. If we may not read it, adds a mark as well. */
static void take_stray(struct stray_search *s, pid_t pid, const struct mapped_ledger *m, bool tags,
                       const char *program)
{
    take_file(&s->ledgers.list, pid, m, tags);
    int fd = mapped_ledgers_open(pid, tags ? &m->tags : &m->ledger, O_RDONLY);
    if (fd >= 0)
        close(fd);
    else if (!tags && (fd == -EACCES || fd == -EPERM))
        add_mark(s->found, m->image_id, PRELOAD_CHECK_HIDDEN, program);
}

/*
 * Searches a process for ledgers and marks that are not in our directory. The process cannot reach our directory if it
 * has another root or mount namespace. If it has changed to another user, it may have found no directory in which it
 * can make a file; only root can examine such a process.
 */
static void find_stray(void *search, pid_t pid)
{
    struct stray_search *s = search;
    struct mapped_ledger m;
    if (!proc_has_program(pid))
        return;
    if (!s->everywhere && !container_has_own_files(pid) && !(s->root && has_other_user(pid)))
        return;
    struct buf program = BUF_INIT;
    /* Reads the program first: the process may end, or change so that we may not examine it any more. */
    proc_program(pid, &program);
    if (mapped_ledgers_find(pid, &m))
        m = (struct mapped_ledger){0};
    if (mapped_ledgers_any(&m) && is_for(&m.ledger, s->name))
        take_stray(s, pid, &m, false, buf_str(&program));
    if (m.tags.end && is_for(&m.tags, s->name))
        take_stray(s, pid, &m, true, buf_str(&program));
    buf_release(&program);
    if (m.mark.end && is_for(&m.mark, s->name))
        take_mark(s->found, &m.mark);
}

void ledger_scan_strays(const char *dir, struct ledger_strays *strays)
{
    struct statvfs fs;
    struct stray_search s = {.found = strays, .name = strrchr(dir, '/') + 1, .root = !geteuid()};
    s.everywhere = !statvfs(dir, &fs) && fs.f_files && !fs.f_ffree;
    *strays = (struct ledger_strays){0};
    each_process(find_stray, &s);
    vec_each (struct ledger_entry, e, &s.ledgers.list)
        *vec_push(&strays->list) = *e;
    vec_release(&s.ledgers.list);
}

void ledger_strays_release(struct ledger_strays *s)
{
    ledger_list_release(&s->list);
    vec_each (struct ledger_mark, mark, &s->marks)
        free(mark->program);
    vec_release(&s->marks);
}

struct holder_search {
    const struct ledger_entry *ledger;
    pid_t found;
};

static void find_holder(void *search, pid_t pid)
{
    struct holder_search *s = search;
    struct mapped_ledger m;
    if (s->found || mapped_ledgers_find(pid, &m))
        return;
    const struct mapped_ledgers_file *f = s->ledger->tags ? &m.tags : &m.ledger;
    if (f->end && f->device == s->ledger->device && f->inode == s->ledger->inode)
        s->found = pid;
}

pid_t ledger_scan_holder(const struct ledger_entry *ledger)
{
    struct holder_search s = {.ledger = ledger};
    find_holder(&s, ledger->pid); /* most likely, the pid in its name is right */
    if (!s.found && ledger->alive && is_held_still(ledger))
        each_process(find_holder, &s);
    return s.found;
}

int ledger_scan_explain(pid_t pid, bool unreadable, const char *what, struct error *e)
{
    int gone = kill(pid, 0) ? errno : 0;
    if (gone == ESRCH)
        return error_set(e, ESRCH, "there is no process %d, and no %s of it (allium ps lists all)", pid,
                         what);
    if (gone != EPERM && !unreadable)
        return 0;
    if (!geteuid())
        return error_set(
            e, EPERM,
            "process %d cannot be read, not even by root: the kernel denies access to /proc/%d/maps", pid,
            pid);
    return error_set(e, EPERM, "process %d belongs to another user: only that user and root can read its %s",
                     pid, what);
}
