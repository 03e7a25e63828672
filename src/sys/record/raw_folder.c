/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/record/raw_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/read_file.h"
#include "base/vec.h"
#include "sys/record/kernel_capture.h"
#include "symbol/vmlinux.h"

#define WRITE_BYTES  (1u << 20)
#define TEXT_MAX     (1u << 20)
#define KALLSYMS_MAX (256u << 20)

/*
 * The file of a CPU. Pages are collected first: each write makes the kernel allocate, and these events would at once be
 * the next page.
 */
struct cpu_pages {
    int fd; /* 0: not opened yet */
    struct buf waiting;
};

struct raw_folder {
    const char *path;
    int fd;
    struct VEC(struct cpu_pages) pages; /* by CPU */
    bool failed;                        /* see fail() */
    struct error error;
};

int raw_folder_create(struct raw_folder **out, const char *path, struct error *e)
{
    if (mkdir(path, 0700))
        return error_set(e, errno, "--raw: cannot make the folder %s: %s", path, strerror(errno));
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_set(e, errno, "--raw: %s: %s", path, strerror(errno));
    struct raw_folder *f = *out = mem_alloc(sizeof(*f));
    f->path = path;
    f->fd = fd;
    return 0;
}

static void close_pages(struct raw_folder *f)
{
    vec_each (struct cpu_pages, c, &f->pages) {
        if (c->fd)
            close(c->fd);
        c->fd = 0;
        buf_release(&c->waiting);
    }
}

void raw_folder_close(struct raw_folder *f)
{
    if (!f)
        return;
    close_pages(f);
    vec_release(&f->pages);
    close(f->fd);
    free(f);
}

/* The first failure is the one that counts: nothing more is written, and the recording goes on without the folder. */
static void fail(struct raw_folder *f, const char *name, int code)
{
    if (f->failed)
        return;
    f->failed = true;
    if (code == ENOSPC || code == EDQUOT)
        error_set(&f->error, code,
                  "--raw: the disk of %s is full: no pages are kept from here on, and the folder is removed",
                  f->path);
    else
        error_set(&f->error, code,
                  "--raw: cannot write %s/%s: %s: no pages are kept from here on, and the folder is removed",
                  f->path, name, strerror(code));
    close_pages(f);
}

const char *raw_folder_failed(const struct raw_folder *f)
{
    return f && f->failed ? f->error.text : NULL;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

void raw_folder_remove(struct raw_folder *f)
{
    if (f)
        nftw(f->path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

static int write_all(int fd, const void *bytes, size_t n)
{
    for (const char *at = bytes; n;) {
        ssize_t done = write(fd, at, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return done ? -errno : -ENOSPC;
        at += done;
        n -= (size_t)done;
    }
    return 0;
}

/* Opens a file to write, and makes the folders in its name. Returns a descriptor, or -errno. */
static int open_file(const struct raw_folder *f, const char *name)
{
    char folder[256];
    for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(folder, sizeof(folder), "%.*s", (int)(slash - name), name);
        if (mkdirat(f->fd, folder, 0700) && errno != EEXIST)
            return -errno;
    }
    int fd = openat(f->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    return fd < 0 ? -errno : fd;
}

void raw_folder_put(struct raw_folder *f, const char *name, const void *bytes, size_t n)
{
    if (f->failed)
        return;
    int fd = open_file(f, name);
    int bad = fd < 0 ? fd : write_all(fd, bytes, n);
    if (fd >= 0 && close(fd) && !bad)
        bad = -errno;
    if (bad)
        fail(f, name, -bad);
}

/* What cannot be read is missing in the folder, as the importer says. */
static void copy(struct raw_folder *f, int from, const char *file, size_t max, const char *name)
{
    struct buf text = BUF_INIT;
    if (!file_read_at(from, file, max, &text))
        raw_folder_put(f, name, buf_str(&text), text.len);
    buf_release(&text);
}

static void write_waiting(struct raw_folder *f, uint32_t cpu)
{
    char name[64];
    struct cpu_pages *c = &f->pages.at[cpu];
    snprintf(name, sizeof(name), "per_cpu/cpu%u/trace_pipe_raw", cpu);
    const int fd = c->fd ? c->fd : open_file(f, name);
    c->fd = fd < 0 ? 0 : fd;
    const int bad = fd < 0 ? fd : write_all(fd, c->waiting.data, c->waiting.len);
    buf_reset(&c->waiting);
    if (bad)
        fail(f, name, -bad);
}

static void keep_page(void *arg, uint32_t cpu, const void *page, size_t bytes)
{
    struct raw_folder *f = arg;
    if (f->failed)
        return;
    while (f->pages.len <= cpu)
        vec_push(&f->pages);
    buf_add(&f->pages.at[cpu].waiting, page, bytes);
    if (f->pages.at[cpu].waiting.len >= WRITE_BYTES)
        write_waiting(f, cpu);
}

void raw_folder_put_format(struct raw_folder *f, const struct trace_instance *t, const char *path)
{
    copy(f, t->tracefs_fd, path, TEXT_MAX, path);
}

void raw_folder_begin(struct raw_folder *f, const struct trace_instance *t, struct trace_reader *r)
{
    copy(f, t->tracefs_fd, "events/header_page", TEXT_MAX, "events/header_page");
    copy(f, t->tracefs_fd, "events/header_event", TEXT_MAX, "events/header_event");
    raw_folder_put(f, "trace_clock", "mono\n", 5);
    trace_reader_keep(r, keep_page, f);
}

void raw_folder_put_tasks(struct raw_folder *f, const struct tasks *t)
{
    struct buf text = BUF_INIT;
    tasks_add_lines(t, &text);
    raw_folder_put(f, "saved_cmdlines", buf_str(&text), text.len);
    buf_reset(&text);
    tasks_add_groups(t, &text);
    raw_folder_put(f, "groups", buf_str(&text), text.len);
    buf_release(&text);
}

static void add_build_id(struct buf *text)
{
    unsigned char id[SYMBOL_BUILD_ID_MAX];
    size_t len = vmlinux_kernel_build_id("", id);
    buf_addstr(text, len ? "build_id " : "");
    for (size_t i = 0; i < len; i++)
        buf_printf(text, "%02x", id[i]);
    buf_addstr(text, len ? "\n" : "");
}

static void put_about(struct raw_folder *f, const struct kernel_capture *c, int32_t own_tid)
{
    struct utsname own;
    struct buf text = BUF_INIT;
    buf_printf(&text,
               "version 1\nmachine %s\nrelease %s\ncpus %ld\npage_bytes %" PRIu64 "\nrealtime_ns %" PRId64
               "\nown_tid %" PRId32 "\n",
               uname(&own) ? "" : own.machine, uname(&own) ? "" : own.release, sysconf(_SC_NPROCESSORS_CONF),
               c->page_bytes, c->realtime_ns, own_tid);
    if (c->settle_ns)
        buf_printf(&text, "end_ns %" PRIu64 "\nsettle_ns %" PRIu64 "\n", c->end_ns, c->settle_ns);
    add_build_id(&text);
    raw_folder_put(f, "allium", buf_str(&text), text.len);
    buf_release(&text);
}

void raw_folder_end(struct raw_folder *f, const struct trace_instance *t, const struct kernel_capture *c,
                    int32_t own_tid)
{
    char name[64];
    for (uint32_t cpu = 0; cpu < f->pages.len && !f->failed; cpu++) {
        if (!f->pages.at[cpu].fd && !f->pages.at[cpu].waiting.len)
            continue;
        write_waiting(f, cpu);
        snprintf(name, sizeof(name), "per_cpu/cpu%u/stats", cpu);
        copy(f, t->fd, name, TEXT_MAX, name);
    }
    copy(f, AT_FDCWD, "/proc/kallsyms", KALLSYMS_MAX, "kallsyms");
    put_about(f, c, own_tid);
}
