/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/tracer/tracer_size.h"

#include <fcntl.h>
#include <stddef.h>

#include "agent/process.h"
#include "agent/tracer/tracer_options.h"
#include "base/sigsafe/atomic.h"
#include "base/sigsafe/str.h"
#include "base/sigsafe/syscall.h"
#include "ring/ring_layout.h"
#include "wire/headroom_lease.h"
#include "wire/ring_file.h"

#define DEFAULT_BYTES  (4u << 20)
#define TOGETHER_BYTES (256u << 20)
#define CGROUP_SHARE   16u
#define CPU_WORDS      16u /* 1,024 CPUs */
#define PATH_BYTES     512u
#define FIRST_BYTES    (64u << 10) /* a packet */

static struct headroom_lease lease;

/* What a process reads when it starts, and its fork children take over. */
static struct {
    uint32_t cpus;       /* that the machine may ever have; 0: not read */
    uint32_t generation; /* of the process that has read the limits of its cgroups; 0: none has */
    uint64_t groups;     /* a hash of their names */
    uint64_t room;       /* what cgroup_room() found */
} known;

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

static uint64_t hash_of(const char *text)
{
    uint64_t h = 1;
    for (; *text; text++)
        h = (h ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
    return h;
}

/* The least that a memory cgroup of `groups`, or one above it, has left; UINT64_MAX: there is no limit. */
static uint64_t least_room(const char *groups)
{
    static char path[PATH_BYTES]; /* static, because the stack may be small: one thread makes rings */
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

/*
 * Returns least_room() of the process's memory cgroups. A fork child in its parent's cgroups does not read them
 * again if they had no limit: known.generation then stays the parent's.
 */
static uint64_t cgroup_room(void)
{
    static char groups[2048];
    if (known.generation == process.generation)
        return known.room;
    if (read_file("/proc/self/cgroup", groups, sizeof(groups)) <= 0)
        groups[0] = '\0';
    const uint64_t names = hash_of(groups);
    if (known.generation && known.room == UINT64_MAX && names == known.groups)
        return UINT64_MAX;
    known.groups = names;
    known.room = least_room(groups);
    known.generation = process.generation;
    return known.room;
}

static uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void tracer_size_begin(void)
{
    if (!headroom_may_call(&process.ledger.sealed))
        return;
    process_exe();
    tracer_size_cpus();
    cgroup_room();
}

uint32_t tracer_size_cpus(void)
{
    if (!known.cpus)
        known.cpus = ring_file_cpus();
    return known.cpus;
}

uint64_t tracer_ring_bytes(uint32_t cpus)
{
    const uint64_t asked_bytes = tracer_options.buffer_bytes;
    const uint64_t rings = count_usable_cpus(cpus) + 1ull, wanted = asked_bytes ? asked_bytes : DEFAULT_BYTES;
    const uint64_t group = cgroup_room(), left = headroom_filesystem_left(process.ledger.dir);
    uint64_t most = least_of(left / 2, group / CGROUP_SHARE), bytes = TRACER_RING_LEAST_BYTES;
    /*
     * If the cgroups have no limit and the file system has room, tracer_may_grow() grants the first MiB without a
     * check. If the parent read the limits, it so grants the first packet only: the cgroups may have limits since then.
     */
    const uint64_t first = known.generation == process.generation ? HEADROOM_LEASE_BYTES : FIRST_BYTES;
    lease =
        (struct headroom_lease){.approved = group == UINT64_MAX && left >= HEADROOM_LEASE_BYTES ? first : 0};
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
