/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/ledger/ledger_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <linux/magic.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "collect/ledger/ledger_copy.h"
#include "collect/ledger/ledger_folder.h"
#include "collect/ledger/mapped_ledgers.h"
#include "collect/process/proc.h"
#include "wire/unobserved_list.h"

/*
 * Returns whether a process maps the ledger: 1, 0 or -errno. A process that maps it has it open for writing, and then
 * the kernel refuses a lease with EAGAIN. If we get the lease, we hold it for a moment only. If another process breaks
 * it in that moment, the kernel sends us SIGURG, which is ignored by default.
 */
static int ask_lease(int fd)
{
    if (fcntl(fd, F_SETSIG, SIGURG) || fcntl(fd, F_SETLEASE, F_RDLCK))
        return errno == EAGAIN ? 1 : -errno;
    fcntl(fd, F_SETLEASE, F_UNLCK);
    return 0;
}

/* Like ask_lease(), with the owner's user id for file access (setfsuid(2)): root in a container has no CAP_LEASE, but
 * may change its user ids. */
static int ask_lease_as(int fd, uid_t owner)
{
    int dumpable = prctl(PR_GET_DUMPABLE), before = setfsuid(owner), held = ask_lease(fd);
    setfsuid((uid_t)before);
    if (dumpable == 1) /* setfsuid() has cleared it */
        prctl(PR_SET_DUMPABLE, dumpable);
    return held;
}

int ledger_is_held(int fd)
{
    struct stat st;
    int held = ask_lease(fd);
    return held == -EACCES && !fstat(fd, &st) ? ask_lease_as(fd, st.st_uid) : held;
}

int ledger_entry_open(const struct ledger_entry *entry)
{
    return entry->path
               ? ledger_file_open(entry->path, O_RDONLY)
               : mapped_ledgers_open(entry->pid, entry->tags ? &entry->mapped->tags : &entry->mapped->ledger,
                                     O_RDONLY);
}

/*
 * Finds out whether a process maps the ledger; `fd` is its descriptor, or -errno if it could not be opened. If the
 * kernel does not tell, the pid in its name gives a guess: the pid may be of another pid namespace. A ledger without a
 * header is just being made, or its process was killed while it made the ledger.
 */
static void find_life(struct ledger_entry *e, int fd)
{
    struct ledger_header h;
    int held = fd < 0 ? fd : ledger_is_held(fd);
    e->sure = held >= 0 || held == -ENOENT;
    bool made = held && fd >= 0 && !ledger_copy_header(fd, &h, NULL);
    e->alive = made && h.state == LEDGER_DETACHED ? false
               : e->sure                          ? held == 1
                         : proc_runs(e->pid) && (!made || proc_maps(e->pid, h.map_start, h.map_bytes));
}

/* The parameters of a scan, and its list. */
struct scan {
    const char *suffix;    /* NULL: ledgers of both kinds */
    ledger_known_fn known; /* NULL: no ledger is left out */
    const void *arg;
    struct ledger_list *list;
};

static void scan_file(const struct scan *s, const char *dir, int folder, const char *name)
{
    struct ledger_entry e = {0};
    struct stat st;
    if (!s->suffix || !strcmp(s->suffix, LEDGER_TAGS_SUFFIX))
        e.tags = ledger_name_parse(name, LEDGER_TAGS_SUFFIX, &e.pid, &e.image_id);
    if ((!e.tags && !ledger_name_parse(name, s->suffix ? s->suffix : LEDGER_SUFFIX, &e.pid, &e.image_id)) ||
        (s->known && s->known(s->arg, &e)) || fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) ||
        !S_ISREG(st.st_mode))
        return;
    struct buf path = BUF_INIT;
    buf_printf(&path, "%s/%s", dir, name);
    e.path = buf_detach(&path);
    e.owner = st.st_uid;
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    find_life(&e, fd < 0 ? -errno : fd);
    if (fd >= 0)
        close(fd);
    e.device = st.st_dev;
    e.inode = st.st_ino;
    *vec_push(s->list) = e;
}

static int scan_folder(const struct scan *s, const char *dir)
{
    int fd = ledger_folder_open(dir);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d)
        return fd < 0 ? fd : -errno;
    for (struct dirent *entry; (entry = readdir(d));)
        scan_file(s, dir, fd, entry->d_name);
    closedir(d);
    return 0;
}

int ledger_dir_scan(const char *dir, struct ledger_list *list)
{
    return scan_folder(&(struct scan){.suffix = LEDGER_SUFFIX, .list = list}, dir);
}

/* Scans a directory of ledgers, and the directories of recorders in it. */
static void scan_tree(const struct scan *s, const char *dir)
{
    int fd = ledger_folder_open(dir);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d)
        return;
    scan_folder(s, dir);
    for (struct dirent *entry; (entry = readdir(d));) {
        if (strncmp(entry->d_name, LEDGER_RUN_PREFIX, strlen(LEDGER_RUN_PREFIX)))
            continue;
        struct buf path = BUF_INIT;
        buf_printf(&path, "%s/%s", dir, entry->d_name);
        scan_folder(s, buf_str(&path));
        buf_release(&path);
    }
    closedir(d);
}

struct places VEC(char *);

static void add_place(struct places *p, const char *parent, const char *name, const char *suffix,
                      const char *below)
{
    struct buf path = BUF_INIT;
    buf_printf(&path, "%s/%s%s%s", parent, name, suffix, below);
    *vec_push(p) = buf_detach(&path);
}

/* Returns whether the name is `prefix` and a user id. Directories with other names were made for other purposes. */
static bool is_users(const char *name, const char *prefix)
{
    size_t len = strlen(prefix);
    return !strncmp(name, prefix, len) && name[len] && name[len + strspn(name + len, "0123456789")] == '\0';
}

/* Adds PARENT/NAME, followed by `suffix` and `below`, for each NAME in `parent` for which is_users() is true. */
static void add_users(struct places *p, const char *parent, const char *prefix, const char *suffix,
                      const char *below)
{
    DIR *d = opendir(parent);
    if (!d)
        return;
    for (struct dirent *entry; (entry = readdir(d));) {
        if (is_users(entry->d_name, prefix))
            add_place(p, parent, entry->d_name, suffix, below);
    }
    closedir(d);
}

/* Returns the directories of ledgers of all users; if `below` is "/NAME" and not "", the directories NAME in them. */
static struct places find_places(const char *below)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    struct places p = {0};
    add_users(&p, "/dev/shm", "allium-", "", below);
    add_users(&p, "/run/user", "", "/allium", below);
    if (runtime && strncmp(runtime, "/run/user/", 10))
        add_place(&p, runtime, "allium", "", below);
    return p;
}

static void places_release(struct places *p)
{
    vec_each (char *, path, p)
        free(*path);
    vec_release(p);
}

/* Returns 0 if the path is a directory of ours that nobody else can access; else -errno with a line. */
static int check_own(const char *path, struct error *e)
{
    struct stat st;
    if (lstat(path, &st))
        return error_set(e, errno, "cannot read %s: %s", path, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return error_set(e, ENOTDIR, "%s is not a directory: remove it, ledgers are stored there", path);
    if (st.st_uid != geteuid() || (st.st_mode & 077))
        return error_set(e, EACCES,
                         "%s belongs to another user or is open to others: remove it, or give it to this "
                         "user, with mode 0700",
                         path);
    return 0;
}

/* Returns whether the path is on a tmpfs. The agent keeps no ledger on a disk: write-back would stall the program. */
static bool is_tmpfs(const char *path)
{
    struct statfs fs;
    return !statfs(path, &fs) && fs.f_type == TMPFS_MAGIC;
}

static bool has_image(const struct ledger_list *list, uint64_t image_id)
{
    vec_each (const struct ledger_entry, e, list)
        if (e->image_id == image_id)
            return true;
    return false;
}

/* Scans the directory $ALLIUM_DIR, if the agent would keep ledgers there. It may be one that was scanned before, so
 * images that are in the list already are left out. */
static void scan_allium_dir(const char *suffix, struct ledger_list *list)
{
    const char *dir = getenv("ALLIUM_DIR");
    struct ledger_list found = {0};
    if (!dir || check_own(dir, NULL) || !is_tmpfs(dir))
        return;
    scan_folder(&(struct scan){.suffix = suffix, .list = &found}, dir);
    vec_each (struct ledger_entry, e, &found)
        if (has_image(list, e->image_id))
            free(e->path);
        else
            *vec_push(list) = *e;
    vec_release(&found);
}

static void scan_all(const char *suffix, struct ledger_list *list)
{
    struct places p = find_places("");
    vec_each (char *, path, &p)
        scan_tree(&(struct scan){.suffix = suffix, .list = list}, *path);
    places_release(&p);
    scan_allium_dir(suffix, list);
}

void ledger_dir_scan_all(struct ledger_list *list)
{
    scan_all(LEDGER_SUFFIX, list);
}

void ledger_dir_scan_tags(struct ledger_list *list)
{
    scan_all(LEDGER_TAGS_SUFFIX, list);
}

void ledger_run_scan(const char *dir, bool all_users, ledger_known_fn known, const void *arg,
                     struct ledger_list *list)
{
    const struct scan s = {.known = known, .arg = arg, .list = list};
    scan_folder(&s, dir);
    if (!all_users)
        return;
    struct places p = find_places(strrchr(dir, '/'));
    vec_each (char *, path, &p)
        if (strcmp(*path, dir) != 0)
            scan_folder(&s, *path);
    places_release(&p);
}

void ledger_run_each_folder(const char *dir, void (*visit)(void *arg, const char *folder), void *arg)
{
    struct places p = find_places(strrchr(dir, '/'));
    vec_each (char *, path, &p)
        visit(arg, *path);
    places_release(&p);
}

void ledger_dir_remove(const char *dir)
{
    struct ledger_list left = {0};
    struct buf notes = BUF_INIT;
    if (!scan_folder(&(struct scan){.list = &left}, dir) && !left.len) {
        buf_printf(&notes, "%s/" UNOBSERVED_FILE, dir);
        ledger_file_remove(buf_str(&notes), 0);
        ledger_file_remove(dir, AT_REMOVEDIR);
    }
    buf_release(&notes);
    ledger_list_release(&left);
}

void ledger_run_remove(const char *dir)
{
    struct places p = find_places(strrchr(dir, '/'));
    vec_each (char *, path, &p)
        ledger_dir_remove(*path);
    places_release(&p);
}

void ledger_list_release(struct ledger_list *list)
{
    vec_each (struct ledger_entry, e, list) {
        free(e->path);
        free(e->mapped);
    }
    vec_release(list);
}

static bool text_ends(const char *text, const char *end)
{
    size_t len = strlen(text), n = strlen(end);
    return len >= n && !strcmp(text + len - n, end);
}

void ledger_remove(const char *path)
{
    struct buf control = BUF_INIT;
    const char *suffix = text_ends(path, LEDGER_TAGS_SUFFIX) ? LEDGER_TAGS_SUFFIX : LEDGER_SUFFIX;
    ledger_file_remove(path, 0);
    buf_add(&control, path, strlen(path) - strlen(suffix));
    buf_addstr(&control, LEDGER_CONTROL_SUFFIX);
    ledger_file_remove(buf_str(&control), 0);
    buf_release(&control);
}

/* Makes the directory if it is missing, then returns as check_own() does. */
static int own_dir(const char *path, struct error *e)
{
    if (mkdir(path, 0700) && errno != EEXIST)
        return error_set(e, errno, "cannot make %s: %s", path, strerror(errno));
    return check_own(path, e);
}

int ledger_dir_make(char **path, struct error *e)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    struct buf b = BUF_INIT;
    struct stat st;
    int bad = -ENOENT;
    if (runtime && runtime[0] == '/' && !stat(runtime, &st) && st.st_uid == geteuid() && is_tmpfs(runtime)) {
        buf_printf(&b, "%s/allium", runtime);
        bad = own_dir(buf_str(&b), NULL);
    }
    if (bad) {
        buf_reset(&b);
        buf_printf(&b, "/dev/shm/allium-%u", (unsigned)geteuid());
        bad = is_tmpfs("/dev/shm") ? own_dir(buf_str(&b), e)
                                   : error_set(e, EXDEV,
                                               "there is no tmpfs for ledgers: mount one on /dev/shm, or set "
                                               "XDG_RUNTIME_DIR to one");
    }
    if (!bad) {
        buf_addstr(&b, "/" LEDGER_RUN_PREFIX "XXXXXX");
        if (!mkdtemp(b.data))
            bad = error_set(e, errno, "cannot make %s: %s", b.data, strerror(errno));
    }
    if (bad)
        buf_release(&b);
    else
        *path = buf_detach(&b);
    return bad;
}
