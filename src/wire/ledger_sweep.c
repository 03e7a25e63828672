/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/ledger_sweep.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <time.h>

#include "base/sigsafe/sys.h"
#include "base/sigsafe/text.h"
#include "wire/ledger.h"

#define PIECES_MAX 64 /* of the directory: some thousands of files; who comes later sees the rest */

/* As getdents64(2) gives them. */
struct entry {
    uint64_t inode;
    int64_t offset;
    uint16_t bytes;
    uint8_t type;
    char name[];
};

static bool ends_in(const char *name, const char *suffix)
{
    size_t length = text_length(name), end = text_length(suffix);
    return length > end && text_starts(name + length - end, suffix);
}

/* Looks at one file; removes it if its time has come. */
static void look(long dir, const char *name, int64_t now)
{
    struct stat st;
    uint64_t pid = text_number(name);
    if ((!ends_in(name, LEDGER_SUFFIX) && !ends_in(name, LEDGER_CONTROL_SUFFIX)) || !pid || pid > INT32_MAX ||
        sys_call(SYS_kill, pid, 0) != -ESRCH ||
        sys_call(SYS_newfstatat, dir, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
        return;
    const struct timespec mark[] = {{.tv_sec = 0}, {.tv_sec = now}};
    if (st.st_atim.tv_sec)
        sys_call(SYS_utimensat, dir, name, mark, AT_SYMLINK_NOFOLLOW);
    else if (now - st.st_mtim.tv_sec > LEDGER_KEPT_SECONDS)
        sys_call(SYS_unlinkat, dir, name, 0);
}

void ledger_sweep(long dir)
{
    static _Alignas(struct entry) char entries[2048]; /* the stack may be small */
    struct timespec now;
    sys_call(SYS_clock_gettime, CLOCK_REALTIME, &now);
    for (int piece = 0; piece < PIECES_MAX; piece++) {
        long n = sys_call(SYS_getdents64, dir, entries, sizeof(entries));
        if (sys_failed(n) || !n)
            return;
        const struct entry *e;
        for (long at = 0; at < n; at += e->bytes) {
            e = (const struct entry *)(entries + at);
            look(dir, e->name, now.tv_sec);
        }
    }
}
