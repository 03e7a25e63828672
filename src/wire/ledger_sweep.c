/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/ledger_sweep.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/sigsafe/clock_ns.h"
#include "base/sigsafe/str.h"
#include "base/sigsafe/syscall.h"
#include "wire/headroom.h"
#include "wire/ledger.h"

/*
 * A sweep examines a window of the directory: PIECES_MAX blocks of its entries, some 2,300 files. If the directory is
 * larger, each sweep chooses one of its first WINDOWS_MAX windows at random, so that none of some 150,000 files stays
 * for ever.
 */
#define PIECES_MAX   64
#define WINDOW_FILES (34 * PIECES_MAX)
#define WINDOWS_MAX  64
#define ENTRY_SIZE   20 /* bytes by which a file increases st_size of its directory on a tmpfs */
#define PIECES_FEW   8  /* a sweep of at most this many blocks (some 300 files) is fast, so no rest follows */

/* After a sweep of many files, the directory is not swept for REST_SECONDS (it rests). The agent marks this in the
 * access time of the directory: an access time with REST_NS nanoseconds was set by the agent, not by a read. */
#define REST_SECONDS 60
#define REST_NS      271828182

/* A directory entry as getdents64(2) writes it. */
struct entry {
    uint64_t inode;
    int64_t offset;
    uint16_t bytes;
    uint8_t type;
    char name[];
};

struct sweep {
    long dir;
    int64_t now, retention_seconds;
    const char *until_room; /* stop when the file system of this path has room; NULL: examine all files */
};

/* Returns true if no process maps the file. The pid in the file's name is no proof: it may be of another pid namespace.
 * If a process maps the file, the file is open for writing, so the kernel refuses a read lease. If another process
 * breaks the lease, the kernel sends SIGURG, which is ignored by default. */
static bool is_left(long dir, const char *name)
{
    long fd = sys_call(SYS_openat, dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (sys_failed(fd))
        return false;
    bool left = !sys_call(SYS_fcntl, fd, F_SETSIG, SIGURG) && !sys_call(SYS_fcntl, fd, F_SETLEASE, F_RDLCK);
    sys_call(SYS_close, fd);
    return left;
}

/* Returns whether the name has a suffix of the files of an image. */
static bool is_ours(const char *name)
{
    static const char suffixes[] = LEDGER_SUFFIX "\0" LEDGER_CONTROL_SUFFIX "\0" LEDGER_TAGS_SUFFIX
                                                 "\0" LEDGER_RING_SUFFIX "\0" LEDGER_EVENTS_SUFFIX "\0";
    const char *suffix = suffixes;
    while (*suffix && !text_ends(name, suffix))
        suffix += text_length(suffix) + 1;
    return *suffix;
}

/* If the process of the file has ended: marks the file, or removes it if its mark is retention_seconds old or older. */
static void sweep_file(const struct sweep *s, const char *name)
{
    struct stat st;
    uint64_t pid = text_number(name);
    if (!is_ours(name) || !pid || pid > INT32_MAX || sys_call(SYS_kill, pid, 0) != -ESRCH ||
        sys_call(SYS_newfstatat, s->dir, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode) ||
        !is_left(s->dir, name))
        return;
    const struct timespec mark[] = {{.tv_sec = 0}, {.tv_sec = s->now}};
    if (st.st_atim.tv_sec)
        sys_call(SYS_utimensat, s->dir, name, mark, AT_SYMLINK_NOFOLLOW);
    else if (s->now - st.st_mtim.tv_sec >= s->retention_seconds)
        sys_call(SYS_unlinkat, s->dir, name, 0);
}

static bool is_done(const struct sweep *s)
{
    return s->until_room && !headroom_is_short(s->until_room);
}

/* Returns the number of the window to examine. */
static int choose_window(long dir)
{
    struct stat st;
    if (sys_call(SYS_newfstatat, dir, "", &st, AT_EMPTY_PATH))
        return 0;
    return (int)(clock_ns(CLOCK_MONOTONIC) / 1000u % ((uint64_t)st.st_size / ENTRY_SIZE / WINDOW_FILES + 1) %
                 WINDOWS_MAX);
}

/* Examines the files of one window. Returns the number of blocks of entries that were read until its end. */
static int go_through(const struct sweep *s)
{
    static _Alignas(struct entry) char entries[2048]; /* static, because the stack may be small */
    int piece = 0, first = choose_window(s->dir) * PIECES_MAX;
    sys_call(SYS_lseek, s->dir, 0, SEEK_SET);
    for (; piece < first + PIECES_MAX; piece++) {
        long n = sys_call(SYS_getdents64, s->dir, entries, sizeof(entries));
        if (sys_failed(n) || !n)
            break;
        const char *at = entries;
        for (; piece >= first && at < entries + n && !is_done(s); at += ((const struct entry *)at)->bytes)
            sweep_file(s, ((const struct entry *)at)->name);
    }
    return piece;
}

static int64_t now_seconds(void)
{
    return (int64_t)(clock_ns(CLOCK_REALTIME) / 1000000000u);
}

/* Returns true if the directory is large and was swept less than REST_SECONDS ago. If a shell starts thousands of
 * programs, not each of them may examine the files that all earlier programs have left. */
static bool is_resting(long dir, int64_t now)
{
    struct stat st;
    return !sys_call(SYS_newfstatat, dir, "", &st, AT_EMPTY_PATH) && st.st_atim.tv_nsec == REST_NS &&
           now >= st.st_atim.tv_sec && now - st.st_atim.tv_sec < REST_SECONDS;
}

void ledger_sweep(long dir)
{
    int64_t now = now_seconds();
    const struct timespec rest[] = {{now, REST_NS}, {.tv_nsec = UTIME_OMIT}};
    if (is_resting(dir, now))
        return;
    if (go_through(&(struct sweep){.dir = dir, .now = now, .retention_seconds = LEDGER_RETENTION_SECONDS}) >
        PIECES_FEW)
        sys_call(SYS_utimensat, dir, NULL, rest, 0);
}

void ledger_sweep_for_room(long dir, const char *path)
{
    struct sweep s = {
        .dir = dir, .now = now_seconds(), .retention_seconds = LEDGER_RETENTION_SECONDS, .until_room = path};
    while (!is_done(&s) && s.retention_seconds) {
        s.retention_seconds /= 4;
        go_through(&s);
    }
}
