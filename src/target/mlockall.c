/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replaces mlockall(2). With MCL_CURRENT the kernel would back all memory that the library has only reserved, hundreds
 * of MiB, and count it against RLIMIT_MEMLOCK. Instead, this function locks the accessible mappings of the process one
 * by one, and leaves out the reserved memory (vm_reserve.h).
 *
 * Runs in: target, when the program calls it. Threads: any.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/sigsafe/syscall.h"
#include "target/vm_reserve.h"

#define PIECE_BYTES 512u /* of /proc/self/maps are read at a time: the stack may be small */

int mlockall(int flags);

struct mapping {
    uintptr_t start, end;
    bool accessible;
};

struct maps {
    long fd;
    char bytes[PIECE_BYTES];
    long have, at;
};

/* Returns the next byte of the file; -1: the end of the file, or an error. */
static int next_byte(struct maps *m)
{
    if (m->at == m->have) {
        m->at = 0;
        m->have = sys_call(SYS_read, m->fd, m->bytes, sizeof(m->bytes));
        if (m->have <= 0)
            return m->have = 0, -1;
    }
    return (unsigned char)m->bytes[m->at++];
}

/* Reads a hexadecimal number. Returns the byte after the number, or -1. */
static int read_number(struct maps *m, uintptr_t *number)
{
    int c;
    *number = 0;
    while ((c = next_byte(m)) >= 0 && ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
        *number = *number << 4 | (uintptr_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    return c;
}

/* Reads a line "START-END rwxp ...". False: there is no further line. */
static bool next_mapping(struct maps *m, struct mapping *of)
{
    if (read_number(m, &of->start) != '-' || read_number(m, &of->end) != ' ')
        return false;
    of->accessible = next_byte(m) == 'r';
    of->accessible |= next_byte(m) == 'w';
    int c;
    while ((c = next_byte(m)) >= 0 && c != '\n')
        ;
    return true;
}

/*
 * Adds the sizes of all accessible mappings outside of reserved memory to *bytes, and locks these mappings if `lock`.
 * `how`: the flags of mlock2(2). Returns 0, or the last -errno.
 */
static long each_mapping(bool lock, int how, uint64_t *bytes)
{
    struct maps m = {.fd = sys_call(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC)};
    struct mapping of;
    long bad = sys_failed(m.fd) ? m.fd : 0;
    while (!sys_failed(m.fd) && next_mapping(&m, &of)) {
        if (vm_reserve_has(of.start))
            continue;
        *bytes += of.accessible ? of.end - of.start : 0;
        long answer = lock && of.accessible ? sys_call(SYS_mlock2, of.start, of.end - of.start, how) : 0;
        bad = answer ? answer : bad;
    }
    if (!sys_failed(m.fd))
        sys_call(SYS_close, m.fd);
    return bad;
}

/* Returns 0 or -errno. Like mlockall(2), fails if RLIMIT_MEMLOCK is exceeded, but not if a page cannot be backed. */
static long lock_current(int how)
{
    struct rlimit limit;
    uint64_t bytes = 0, again = 0;
    long bad = each_mapping(false, 0, &bytes);
    if (!bad)
        bad = each_mapping(true, how, &again);
    bool within = !sys_call(SYS_getrlimit, RLIMIT_MEMLOCK, &limit) && bytes <= limit.rlim_cur;
    return bad == -ENOMEM && within ? 0 : bad == -EINVAL ? 0 : bad;
}

__attribute__((visibility("default"))) int mlockall(int flags)
{
    const int all = MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT;
    long bad = 0;
    if (!(flags & MCL_CURRENT) || (flags & ~all) || !vm_reserve_any())
        bad = sys_call(SYS_mlockall, flags);
    else
        bad = lock_current(flags & MCL_ONFAULT ? MLOCK_ONFAULT : 0);
    if (!bad && (flags & MCL_CURRENT) && (flags & MCL_FUTURE))
        bad = sys_call(SYS_mlockall, flags & ~MCL_CURRENT);
    if (!bad)
        return 0;
    errno = (int)-bad;
    return -1;
}
