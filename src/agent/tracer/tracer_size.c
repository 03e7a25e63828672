/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/tracer/tracer_size.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/vfs.h>

#include "agent/process.h"
#include "agent/tracer/tracer_options.h"
#include "base/sigsafe/atomic.h"
#include "base/sigsafe/str.h"
#include "base/sigsafe/syscall.h"
#include "ring/ring_layout.h"
#include "wire/headroom_lease.h"

#define DEFAULT_BYTES  (4u << 20)
#define TOGETHER_BYTES (256u << 20)
#define CGROUP_SHARE   16u
#define CPU_WORDS      16u /* 1,024 CPUs */
#define PATH_BYTES     512u

static struct headroom_lease lease;

static uint32_t count_usable_cpus(uint32_t cpus)
{
    uint64_t mask[CPU_WORDS] = {0};
    const long bytes = sys_call(SYS_sched_getaffinity, 0, sizeof(mask), mask);
    uint32_t n = 0;
    for (unsigned k = 0; !sys_failed(bytes) && k < CPU_WORDS; k++)
        for (uint64_t word = mask[k]; word; word &= word - 1)
            n++;
    return n && n < cpus ? n : cpus;
}

static long read_file(const char *path, char *out, size_t size)
{
    const long fd = sys_call(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (sys_failed(fd))
        return fd;
    const long n = sys_call(SYS_read, fd, out, size - 1);
    sys_call(SYS_close, fd);
    out[sys_failed(n) ? 0 : n] = '\0';
    return n;
}

static uint64_t read_number(char path[static PATH_BYTES], size_t len, const char *name)
{
    char text[32];
    text_copy(path + len, PATH_BYTES - len, name);
    const bool is = read_file(path, text, sizeof(text)) > 0 && text[0] >= '0' && text[0] <= '9';
    path[len] = '\0';
    return is ? text_number(text) : UINT64_MAX; /* "max", or the file cannot be read */
}

/* The least that the memory cgroup of the process, or one above it, has left; UINT64_MAX: there is no limit. */
static uint64_t cgroup_room(void)
{
    static char groups[2048],
        path[PATH_BYTES]; /* static, because the stack may be small: one thread makes rings */
    if (read_file("/proc/self/cgroup", groups, sizeof(groups)) <= 0)
        return UINT64_MAX;
    const char *v1 = text_find(groups, ":memory:"), *v2 = text_find(groups, "0::"),
               *from = v1   ? v1 + 8
                       : v2 ? v2 + 3
                            : "";
    const size_t root = text_copy(path, sizeof(path), v1 ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup");
    size_t len = root;
    uint64_t least = UINT64_MAX;
    while (*from && *from != '\n' && len + 64 < sizeof(path))
        path[len++] = *from++;
    for (;;) {
        path[len] = '\0';
        const uint64_t limit = read_number(path, len, v1 ? "/memory.limit_in_bytes" : "/memory.max"),
                       usage = limit < UINT64_MAX / 4
                                   ? read_number(path, len, v1 ? "/memory.usage_in_bytes" : "/memory.current")
                                   : UINT64_MAX;
        if (usage != UINT64_MAX && (usage < limit ? limit - usage : 0) < least)
            least = usage < limit ? limit - usage : 0;
        if (len <= root)
            return least;
        while (len > root && path[len] != '/')
            len--;
    }
}

static uint64_t filesystem_room(void)
{
    struct statfs fs;
    return process.ledger.dir[0] && !sys_call(SYS_statfs, process.ledger.dir, &fs)
               ? (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize
               : UINT64_MAX;
}

static uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t tracer_ring_bytes(uint32_t cpus)
{
    const uint64_t asked_bytes = tracer_options.buffer_bytes;
    const uint64_t rings = count_usable_cpus(cpus) + 1ull, wanted = asked_bytes ? asked_bytes : DEFAULT_BYTES;
    const uint64_t group = cgroup_room();
    uint64_t most = least_of(filesystem_room() / 2, group / CGROUP_SHARE), bytes = TRACER_RING_LEAST_BYTES;
    /* Without a limit of the cgroups, all that tracer_may_grow() would ask about the first MiB is asked now. */
    const bool has_room =
        group == UINT64_MAX && headroom_in_filesystem(process.ledger.dir, HEADROOM_LEASE_BYTES);
    lease = (struct headroom_lease){.approved = has_room ? HEADROOM_LEASE_BYTES : 0};
    if (!asked_bytes)
        most = least_of(most, TOGETHER_BYTES);
    while (bytes * 2 <= wanted && bytes * 2 * rings <= most && bytes * 2 <= RING_RING_BYTES_MAX)
        bytes *= 2;
    while (bytes > TRACER_RING_LEAST_BYTES && !headroom_has_space((cpus + 1ull) * bytes))
        bytes /= 2;
    return bytes;
}

bool tracer_may_grow(uint64_t bytes)
{
    return headroom_lease_take(&lease, process.ledger.dir, bytes);
}

void tracer_grow_anew(void)
{
    lease = (struct headroom_lease){0};
}
