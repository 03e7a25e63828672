/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/memcg/memcg_work.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"

#define HOLD_MOST 4096u
#define FDS_SPARE 64u /* of the process itself */

/* ---- descriptors ---- */

/* The table of descriptors must not grow, and be charged, while they are counted. */
static int prepare_fds(struct memcg_work *w, struct error *e)
{
    struct rlimit most;
    if (getrlimit(RLIMIT_NOFILE, &most))
        return error_set(e, errno, "the limit of open files: %s", strerror(errno));
    const rlim_t want = w->kind->fds * HOLD_MOST + FDS_SPARE;
    most.rlim_cur = most.rlim_max < want ? most.rlim_max : want;
    if (setrlimit(RLIMIT_NOFILE, &most))
        return error_set(e, errno, "the limit of open files: %s", strerror(errno));
    if (most.rlim_cur < 2 * FDS_SPARE)
        return error_set(e, EMFILE, "only %u files may be open; ulimit -n 1024", (unsigned)most.rlim_cur);
    const int last = (int)most.rlim_cur - 1, fd = dup2(STDIN_FILENO, last);
    if (fd < 0)
        return error_set(e, errno, "descriptor %d: %s", last, strerror(errno));
    close(fd);
    w->hold_max = ((uint32_t)most.rlim_cur - FDS_SPARE) / w->kind->fds;
    w->held = mem_alloc(w->hold_max * w->kind->fds * sizeof(*w->held));
    return 0;
}

static int repeat_fds(struct memcg_work *w, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        int fds[2];
        const int bad = w->kind->make(fds);
        if (bad)
            return bad;
        for (uint32_t f = 0; f < w->kind->fds; f++)
            close(fds[f]);
    }
    return 0;
}

static int hold_fds(struct memcg_work *w, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const int bad = w->kind->make(w->held + w->held_n);
        if (bad)
            return bad;
        w->held_n += w->kind->fds;
    }
    return 0;
}

static void drop_fds(struct memcg_work *w)
{
    while (w->held_n)
        close(w->held[--w->held_n]);
}

/* ---- pages ---- */

static int prepare_touch(struct memcg_work *w, struct error *e)
{
    w->pages = mmap(NULL, MEMCG_WORK_PAGES * w->page_bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (w->pages == MAP_FAILED) {
        w->pages = NULL;
        return error_set(e, errno, "%d pages of memory: %s", MEMCG_WORK_PAGES, strerror(errno));
    }
    madvise(w->pages, MEMCG_WORK_PAGES * w->page_bytes, MADV_NOHUGEPAGE);
    w->hold_max = MEMCG_WORK_PAGES;
    /* The page tables stay when the pages are given back, and are not to be charged with the first pages. */
    return w->kind->repeat(w, MEMCG_WORK_PAGES);
}

static int hold_touched(struct memcg_work *w, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        *(volatile char *)(w->pages + i * w->page_bytes) = 1;
    return 0;
}

static void drop_touched(struct memcg_work *w)
{
    madvise(w->pages, MEMCG_WORK_PAGES * w->page_bytes, MADV_DONTNEED);
}

static int repeat_touch(struct memcg_work *w, uint32_t n)
{
    hold_touched(w, n);
    return madvise(w->pages, n * w->page_bytes, MADV_DONTNEED) ? -errno : 0;
}

/* ---- page cache ---- */

static int hold_cached(struct memcg_work *w, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        char byte;
        if (pread(w->file, &byte, 1, (off_t)(i * w->page_bytes)) != 1)
            return errno ? -errno : -EIO;
    }
    return 0;
}

static void drop_cached(struct memcg_work *w)
{
    posix_fadvise(w->file, 0, 0, POSIX_FADV_DONTNEED);
}

static int repeat_cache(struct memcg_work *w, uint32_t n)
{
    const int bad = hold_cached(w, n);
    return bad ? bad : -posix_fadvise(w->file, 0, (off_t)(n * w->page_bytes), POSIX_FADV_DONTNEED);
}

/* Counts the pages of the file that are in the page cache. */
static size_t count_cached(const struct memcg_work *w)
{
    static unsigned char in[MEMCG_WORK_PAGES];
    size_t n = 0;
    void *at = mmap(NULL, sizeof(in) * w->page_bytes, PROT_READ, MAP_SHARED, w->file, 0);
    if (at == MAP_FAILED)
        return 0;
    const bool known = !mincore(at, sizeof(in) * w->page_bytes, in);
    munmap(at, sizeof(in) * w->page_bytes);
    for (size_t i = 0; known && i < sizeof(in); i++)
        n += in[i] & 1;
    return n;
}

static int prepare_cache(struct memcg_work *w, struct error *e)
{
    const char *given = getenv("TMPDIR"), *folder = given && given[0] ? given : "/var/tmp";
    w->file = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (w->file < 0 || ftruncate(w->file, (off_t)(MEMCG_WORK_PAGES * w->page_bytes)))
        return error_set(e, errno, "%s: %s; TMPDIR names a folder for a file without a name", folder,
                         strerror(errno));
    posix_fadvise(w->file, 0, 0, POSIX_FADV_RANDOM); /* one page for each read, none ahead */
    w->hold_max = MEMCG_WORK_PAGES;
    const int bad = hold_cached(w, MEMCG_WORK_PAGES);
    const size_t cached = count_cached(w);
    drop_cached(w);
    if (bad)
        return error_set(e, -bad, "%s: %s", folder, strerror(-bad));
    if (cached < MEMCG_WORK_PAGES || count_cached(w))
        return error_set(
            e, EOPNOTSUPP,
            "%s: its file system does not cache holes of files; set TMPDIR to a folder on ext4 or xfs",
            folder);
    return 0;
}

/* ---- all ---- */

static int make_pipe(int fds[2])
{
    return pipe2(fds, O_CLOEXEC) ? -errno : 0;
}

static int make_open(int fds[2])
{
    fds[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return fds[0] < 0 ? -errno : 0;
}

static int make_socket(int fds[2])
{
    fds[0] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return fds[0] < 0 ? -errno : 0;
}

#define FDS                                                                                                  \
    .part = MEMCG_KERNEL, .prepare = prepare_fds, .repeat = repeat_fds, .hold = hold_fds, .drop = drop_fds

const struct memcg_work_kind memcg_work_kinds[] = {
    {.name = "pipe", .does = "pipe(2), close both ends", .fds = 2, .make = make_pipe, FDS},
    {.name = "open", .does = "open(2) /dev/null, close", .fds = 1, .make = make_open, FDS},
    {.name = "socket", .does = "socket(2) AF_UNIX, close", .fds = 1, .make = make_socket, FDS},
    {.name = "touch",
     .does = "touch a page, give it back",
     .part = MEMCG_ANONYMOUS,
     .pages = true,
     .prepare = prepare_touch,
     .repeat = repeat_touch,
     .hold = hold_touched,
     .drop = drop_touched},
    {.name = "cache",
     .does = "cache a page of a file, drop it",
     .part = MEMCG_FILE,
     .pages = true,
     .prepare = prepare_cache,
     .repeat = repeat_cache,
     .hold = hold_cached,
     .drop = drop_cached},
};
const size_t memcg_work_kinds_n = sizeof(memcg_work_kinds) / sizeof(*memcg_work_kinds);

int memcg_work_open(struct memcg_work *w, const struct memcg_work_kind *kind, struct error *e)
{
    *w = (struct memcg_work){.kind = kind, .page_bytes = (size_t)sysconf(_SC_PAGESIZE), .file = -1};
    const int bad = kind->prepare(w, e);
    if (bad)
        memcg_work_close(w);
    return bad;
}

void memcg_work_close(struct memcg_work *w)
{
    if (w->held || w->pages || w->file >= 0)
        w->kind->drop(w);
    free(w->held);
    if (w->pages)
        munmap(w->pages, MEMCG_WORK_PAGES * w->page_bytes);
    if (w->file >= 0)
        close(w->file);
}
