/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/memcg/mem_profiling.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int mem_profiling_open(struct mem_profiling *p, const char *proc, struct error *e)
{
    char counters[PATH_MAX];
    *p = (struct mem_profiling){.path = ""};
    if (snprintf(counters, sizeof(counters), "%s/allocinfo", proc) >= (int)sizeof(counters) ||
        access(counters, F_OK))
        return error_set(e, EOPNOTSUPP,
                         "%s: %s; it takes a kernel with CONFIG_MEM_ALLOC_PROFILING, booted with "
                         "sysctl.vm.mem_profiling=0 or 1",
                         counters, strerror(ENOENT));
    char path[PATH_MAX], value = 0;
    if (snprintf(path, sizeof(path), "%s/sys/vm/mem_profiling", proc) >= (int)sizeof(path))
        return error_set(e, ENAMETOOLONG, "%s: %s", proc, strerror(ENAMETOOLONG));
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return error_set(e, errno,
                         "%s: %s; it takes root, and a kernel without CONFIG_MEM_ALLOC_PROFILING_DEBUG", path,
                         strerror(errno));
    const bool is_read = read(fd, &value, 1) == 1 && (value == '0' || value == '1');
    close(fd);
    if (!is_read)
        return error_set(e, EOPNOTSUPP, "%s: neither 0 nor 1; boot with sysctl.vm.mem_profiling=0", path);
    memcpy(p->path, path, sizeof(p->path));
    p->before = value;
    return 0;
}

static int set(const struct mem_profiling *p, char value)
{
    const int fd = open(p->path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    const int bad = write(fd, &value, 1) == 1 ? 0 : -errno;
    close(fd);
    return bad;
}

int mem_profiling_set(const struct mem_profiling *p, bool on)
{
    return set(p, on ? '1' : '0');
}

void mem_profiling_restore(const struct mem_profiling *p)
{
    if (p->path[0])
        set(p, p->before);
}
