/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/headroom.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/vfs.h>

#include "base/sigsafe/atomic.h"
#include "base/sigsafe/str.h"
#include "base/sigsafe/syscall.h"

#define UNLIMITED  UINT64_MAX
#define LEFT_BYTES (128ull << 20) /* growth leaves at least this much of RLIMIT_AS and RLIMIT_DATA unused */

/* Reads the beginning of a small file as text. Returns the length, or -errno. */
static long read_text(const char *path, char *out, size_t size)
{
    long fd = sys_call(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (sys_failed(fd))
        return fd;
    long len = sys_call(SYS_read, fd, out, size - 1);
    sys_call(SYS_close, fd);
    out[sys_failed(len) ? 0 : len] = '\0';
    return len;
}

/* The buffers of headroom_check(). They lie in pages of their own, because the target's stack may be small. */
struct scratch {
    char groups[2048], dir[512], path[512], text[2048];
};

static uint64_t read_number(struct scratch *s, const char *name)
{
    text_join(s->path, sizeof(s->path), s->dir, name);
    if (read_text(s->path, s->text, sizeof(s->text)) <= 0 || s->text[0] < '0' || s->text[0] > '9')
        return UNLIMITED; /* "max", or the file cannot be read */
    return text_number(s->text);
}

/* Returns the bytes of the cgroup's inactive file pages, which the kernel frees before it kills; 0: unknown. */
static uint64_t read_reclaimable(struct scratch *s, const char *key)
{
    text_join(s->path, sizeof(s->path), s->dir, "/memory.stat");
    if (read_text(s->path, s->text, sizeof(s->text)) <= 0)
        return 0;
    const char *found = text_find(s->text, key);
    return found ? text_number(found + text_length(key)) : 0;
}

/* Checks the cgroup in s->dir. Returns a reason if, with `bytes` more, the cgroup would use more than 95 % of its limit
 * (without inactive file pages), or the ledger, with its present `held` bytes, more than its share of the limit. */
static enum ledger_full check_level(struct scratch *s, bool v2, uint64_t held, uint64_t bytes)
{
    uint64_t limit = read_number(s, v2 ? "/memory.max" : "/memory.limit_in_bytes");
    if (limit >= UNLIMITED / 4)
        return LEDGER_NOT_FULL;
    if (held + bytes > limit / LEDGER_CGROUP_SHARE)
        return LEDGER_FULL_SHARE;
    uint64_t usage = read_number(s, v2 ? "/memory.current" : "/memory.usage_in_bytes");
    if (usage == UNLIMITED)
        return LEDGER_NOT_FULL;
    uint64_t droppable = read_reclaimable(s, v2 ? "\ninactive_file " : "\ntotal_inactive_file ");
    usage -= droppable < usage ? droppable : usage;
    return usage + bytes > limit - limit / 20 ? LEDGER_FULL_CGROUP : LEDGER_NOT_FULL;
}

static enum ledger_full check_cgroups(struct scratch *s, uint64_t held, uint64_t bytes)
{
    if (read_text("/proc/self/cgroup", s->groups, sizeof(s->groups)) <= 0)
        return LEDGER_NOT_FULL;
    const char *path = text_find(s->groups, ":memory:");
    bool v2 = !path;
    path = path ? path + 8 : text_find(s->groups, "0::");
    if (!path)
        return LEDGER_NOT_FULL;
    if (v2)
        path += 3;
    size_t root = text_copy(s->dir, sizeof(s->dir), v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory");
    size_t len = root;
    while (*path && *path != '\n' && len + 1 < sizeof(s->dir))
        s->dir[len++] = *path++;
    s->dir[len] = '\0';
    /* From the cgroup of the process up to the root. Inside a container, outer cgroups are not visible: their files
     * cannot be read, and check_level() finds no limit. */
    for (;;) {
        enum ledger_full full = check_level(s, v2, held, bytes);
        if (full || len <= root)
            return full;
        while (len > root && s->dir[len] != '/')
            len--;
        s->dir[len] = '\0';
    }
}

/* Reads the bytes of address space and of private writable memory of the process. False: they cannot be read. */
static bool read_sizes(uint64_t *address_space, uint64_t *data)
{
    char text[128]; /* "SIZE RESIDENT SHARED TEXT 0 DATA 0", in pages; DATA includes the stack */
    const char *at = text;
    if (read_text("/proc/self/statm", text, sizeof(text)) <= 0)
        return false;
    for (int field = 0; field < 5; field++) {
        while (*at && *at != ' ')
            at++;
        at += *at == ' ';
    }
    *address_space = text_number(text) * LEDGER_PAGE_BYTES;
    *data = text_number(at) * LEDGER_PAGE_BYTES;
    return true;
}

static uint64_t limit_of(int resource)
{
    struct rlimit limit;
    return sys_call(SYS_getrlimit, resource, &limit) ? 0 : limit.rlim_cur;
}

static struct headroom_space own_space, *space = &own_space;

void headroom_set_ledger(uint64_t bytes)
{
    store_relaxed(&space->ledger, bytes);
}

bool headroom_has_space(uint64_t bytes)
{
    uint64_t most = limit_of(RLIMIT_AS);
    return most == RLIM_INFINITY ||
           load_relaxed(&space->ledger) + load_relaxed(&space->other) + bytes <= most / 8;
}

bool headroom_take_space(uint64_t bytes, uint64_t spare)
{
    if (!headroom_has_space(bytes + spare))
        return false;
    __atomic_fetch_add(&space->other, bytes, __ATOMIC_RELAXED);
    return true;
}

void headroom_give_space(uint64_t bytes)
{
    __atomic_fetch_sub(&space->other, bytes, __ATOMIC_RELAXED);
}

struct headroom_space *headroom_own_space(void)
{
    return &own_space;
}

void headroom_share_space(struct headroom_space *with)
{
    __atomic_fetch_add(&with->other, own_space.other, __ATOMIC_RELAXED);
    space = with;
}

static bool began_under_seccomp;

void headroom_begin(void)
{
    began_under_seccomp = sys_call(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0, 0) != 0;
}

uint32_t headroom_seccomp_filters(void)
{
    static char text[8192]; /* static, because the stack may be small; one thread makes the ledger */
    if (!began_under_seccomp)
        return 0;
    const char key[] = "\nSeccomp_filters:\t"; /* Linux 5.9 */
    const char *found = read_text("/proc/self/status", text, sizeof(text)) > 0 ? text_find(text, key) : NULL;
    return found ? (uint32_t)text_number(found + sizeof(key) - 1) : LEDGER_FILTERS_UNKNOWN;
}

bool headroom_may_call(uint32_t *sealed)
{
    if (load_relaxed(sealed))
        return false;
    if (began_under_seccomp || !sys_call(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0, 0))
        return true;
    __atomic_fetch_add(sealed, 1, __ATOMIC_RELAXED);
    return false;
}

bool headroom_in_limits(uint64_t address_space, uint64_t data)
{
    uint64_t most_space = address_space ? limit_of(RLIMIT_AS) : RLIM_INFINITY, has_space;
    uint64_t most_data = data ? limit_of(RLIMIT_DATA) : RLIM_INFINITY, has_data;
    if (most_space == RLIM_INFINITY && most_data == RLIM_INFINITY)
        return true;
    return read_sizes(&has_space, &has_data) && has_space + address_space + LEFT_BYTES <= most_space &&
           has_data + data + LEFT_BYTES <= most_data;
}

static uint64_t at_most(uint64_t bytes, uint64_t most)
{
    return bytes < most ? bytes : most;
}

bool headroom_measure(const char *dir, uint64_t *left, uint64_t *total)
{
    struct statfs fs;
    if (!dir[0] || sys_failed(sys_call(SYS_statfs, dir, &fs)) || !fs.f_blocks)
        return false;
    uint64_t unit = (uint64_t)fs.f_bsize, free_bytes = fs.f_bavail * unit;
    *total = fs.f_blocks * unit;
    uint64_t keep = at_most(*total / 8, 64u << 20);
    *left = free_bytes < keep ? 0 : free_bytes - keep;
    return true;
}

enum ledger_full headroom_check(const char *dir, uint64_t held_bytes, uint64_t bytes)
{
    if (!headroom_in_filesystem(dir, bytes))
        return LEDGER_FULL_FILESYSTEM;
    long page = sys_call(SYS_mmap, 0, sizeof(struct scratch), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (sys_failed(page))
        return LEDGER_FULL_REFUSED;
    enum ledger_full full = check_cgroups((struct scratch *)page, held_bytes, bytes);
    sys_call(SYS_munmap, page, sizeof(struct scratch));
    return full;
}
