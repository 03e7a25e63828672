/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/record/raw_folder.h"

#include <errno.h>
#include <fcntl.h>
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

void raw_folder_close(struct raw_folder *f)
{
    if (!f)
        return;
    vec_each (struct cpu_pages, c, &f->pages) {
        if (c->fd)
            close(c->fd);
        buf_release(&c->waiting);
    }
    vec_release(&f->pages);
    close(f->fd);
    free(f);
}

static int failed(const struct raw_folder *f, const char *name, int code, struct error *e)
{
    return error_set(e, code, "--raw: cannot write %s/%s: %s", f->path, name, strerror(code));
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

int raw_folder_put(struct raw_folder *f, const char *name, const void *bytes, size_t n, struct error *e)
{
    int fd = open_file(f, name);
    int bad = fd < 0 ? fd : write_all(fd, bytes, n);
    if (fd >= 0 && close(fd) && !bad)
        bad = -errno;
    return bad ? failed(f, name, -bad, e) : 0;
}

static int copy(struct raw_folder *f, int from, const char *file, size_t max, const char *name,
                struct error *e)
{
    struct buf text = BUF_INIT;
    int bad = file_read_at(from, file, max, &text);
    bad = bad ? error_set(e, -bad, "cannot read %s: %s", file, strerror(-bad))
              : raw_folder_put(f, name, buf_str(&text), text.len, e);
    buf_release(&text);
    return bad;
}

static int write_waiting(struct raw_folder *f, uint32_t cpu)
{
    char name[64];
    struct cpu_pages *c = &f->pages.at[cpu];
    if (!c->fd) {
        snprintf(name, sizeof(name), "per_cpu/cpu%u/trace_pipe_raw", cpu);
        int fd = open_file(f, name);
        if (fd < 0)
            return fd;
        c->fd = fd;
    }
    int bad = write_all(c->fd, c->waiting.data, c->waiting.len);
    buf_reset(&c->waiting);
    return bad;
}

static int keep_page(void *arg, uint32_t cpu, const void *page, size_t bytes)
{
    struct raw_folder *f = arg;
    while (f->pages.len <= cpu)
        vec_push(&f->pages);
    buf_add(&f->pages.at[cpu].waiting, page, bytes);
    return f->pages.at[cpu].waiting.len < WRITE_BYTES ? 0 : write_waiting(f, cpu);
}

int raw_folder_begin(struct raw_folder *f, const struct trace_instance *t, struct trace_reader *r,
                     struct error *e)
{
    int bad = copy(f, t->tracefs_fd, "events/header_page", TEXT_MAX, "events/header_page", e);
    bad = bad ? bad : copy(f, t->tracefs_fd, "events/header_event", TEXT_MAX, "events/header_event", e);
    bad = bad ? bad : raw_folder_put(f, "trace_clock", "mono\n", 5, e);
    trace_reader_keep(r, keep_page, f);
    return bad;
}

int raw_folder_put_tasks(struct raw_folder *f, const struct tasks *t, struct error *e)
{
    struct buf text = BUF_INIT;
    tasks_add_lines(t, &text);
    int bad = raw_folder_put(f, "saved_cmdlines", buf_str(&text), text.len, e);
    buf_reset(&text);
    tasks_add_groups(t, &text);
    bad = bad ? bad : raw_folder_put(f, "groups", buf_str(&text), text.len, e);
    buf_release(&text);
    return bad;
}

static int put_about(struct raw_folder *f, int64_t realtime_ns, int32_t own_tid, struct error *e)
{
    struct utsname own;
    struct buf text = BUF_INIT;
    buf_printf(&text,
               "version 1\nmachine %s\nrelease %s\ncpus %ld\nrealtime_ns %" PRId64 "\nown_tid %" PRId32 "\n",
               uname(&own) ? "" : own.machine, uname(&own) ? "" : own.release, sysconf(_SC_NPROCESSORS_CONF),
               realtime_ns, own_tid);
    int bad = raw_folder_put(f, "allium", buf_str(&text), text.len, e);
    buf_release(&text);
    return bad;
}

int raw_folder_end(struct raw_folder *f, const struct trace_instance *t, int64_t realtime_ns, int32_t own_tid,
                   struct error *e)
{
    char name[64];
    int bad = 0;
    for (uint32_t cpu = 0; cpu < f->pages.len && !bad; cpu++) {
        if (!f->pages.at[cpu].fd && !f->pages.at[cpu].waiting.len)
            continue;
        snprintf(name, sizeof(name), "per_cpu/cpu%u/stats", cpu);
        bad = write_waiting(f, cpu);
        bad = bad ? failed(f, "per_cpu", -bad, e) : copy(f, t->fd, name, TEXT_MAX, name, e);
    }
    bad = bad ? bad : copy(f, AT_FDCWD, "/proc/kallsyms", KALLSYMS_MAX, "kallsyms", e);
    return bad ? bad : put_about(f, realtime_ns, own_tid, e);
}
