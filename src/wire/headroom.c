/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/headroom.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/vfs.h>

#include "base/sigsafe/sys.h"
#include "base/sigsafe/text.h"

#define UNLIMITED UINT64_MAX

/* Reads the beginning of a small file as text; the length, or -errno. */
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

static uint64_t read_number(const char *dir, const char *name)
{
    char path[512], text[64];
    text_join(path, sizeof(path), dir, name);
    if (read_text(path, text, sizeof(text)) <= 0 || text[0] < '0' || text[0] > '9')
        return UNLIMITED; /* "max", or no such file */
    return text_number(text);
}

/* File pages the kernel would drop before it killed anybody. */
static uint64_t read_reclaimable(const char *dir, const char *key)
{
    char path[512], text[2048];
    text_join(path, sizeof(path), dir, "/memory.stat");
    if (read_text(path, text, sizeof(text)) <= 0)
        return 0;
    const char *found = text_find(text, key);
    return found ? text_number(found + text_length(key)) : 0;
}

/* One level of the hierarchy: would it stand above 95 % of its limit? */
static bool level_is_full(const char *dir, bool v2, uint64_t bytes)
{
    uint64_t limit = read_number(dir, v2 ? "/memory.max" : "/memory.limit_in_bytes");
    if (limit >= UNLIMITED / 4)
        return false;
    uint64_t usage = read_number(dir, v2 ? "/memory.current" : "/memory.usage_in_bytes");
    if (usage == UNLIMITED)
        return false;
    uint64_t droppable = read_reclaimable(dir, v2 ? "\ninactive_file " : "\ntotal_inactive_file ");
    usage -= droppable < usage ? droppable : usage;
    return usage + bytes > limit - limit / 20;
}

static bool cgroup_is_full(uint64_t bytes)
{
    char groups[2048], dir[512];
    if (read_text("/proc/self/cgroup", groups, sizeof(groups)) <= 0)
        return false;
    const char *path = text_find(groups, ":memory:");
    bool v2 = !path;
    path = path ? path + 8 : text_find(groups, "0::");
    if (!path)
        return false;
    if (v2)
        path += 3;
    const char *mount = v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    size_t root = text_copy(dir, sizeof(dir), mount);
    size_t len = root;
    while (*path && *path != '\n' && len + 1 < sizeof(dir))
        dir[len++] = *path++;
    dir[len] = '\0';
    /* From our group up to the root; inside a container the outer part of the path does not exist: harmless. */
    for (;;) {
        if (level_is_full(dir, v2, bytes))
            return true;
        if (len <= root)
            return false;
        while (len > root && dir[len] != '/')
            len--;
        dir[len] = '\0';
    }
}

static bool filesystem_is_full(const char *dir, uint64_t bytes)
{
    struct statfs fs;
    if (!dir[0] || sys_failed(sys_call(SYS_statfs, dir, &fs)) || !fs.f_blocks)
        return false; /* out of our sight (chroot): the kernel refuses the pages itself when there are none */
    uint64_t unit = (uint64_t)fs.f_bsize, total = fs.f_blocks * unit, free_bytes = fs.f_bavail * unit;
    uint64_t keep = total / 8 < (64u << 20) ? total / 8 : 64u << 20;
    return free_bytes < bytes + keep;
}

enum ledger_full headroom_check(const char *dir, uint64_t bytes)
{
    if (filesystem_is_full(dir, bytes))
        return LEDGER_FULL_FILESYSTEM;
    return cgroup_is_full(bytes) ? LEDGER_FULL_CGROUP : LEDGER_NOT_FULL;
}
