/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/hooks/bench_memory.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

uint64_t bench_memory_of(const char *pid)
{
    char path[PATH_MAX], text[4096];
    snprintf(path, sizeof(path), "/proc/%s/smaps_rollup", pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    const char *at = strstr(text, "\nPss:");
    return at ? strtoull(at + strlen("\nPss:"), NULL, 10) * 1024 : 0;
}

uint64_t bench_memory_beside(void)
{
    struct stat own, other;
    uint64_t sum = 0;
    DIR *d = opendir("/proc");
    if (!d || stat("/proc/self/ns/mnt", &own)) {
        if (d)
            closedir(d);
        return 0;
    }
    for (const struct dirent *it; (it = readdir(d));) {
        char path[PATH_MAX];
        if (it->d_name[0] < '0' || it->d_name[0] > '9' || atoi(it->d_name) == getpid())
            continue;
        snprintf(path, sizeof(path), "/proc/%s/ns/mnt", it->d_name);
        if (!stat(path, &other) && own.st_ino == other.st_ino && own.st_dev == other.st_dev)
            sum += bench_memory_of(it->d_name);
    }
    closedir(d);
    return sum;
}
