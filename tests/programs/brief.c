/* SPDX-License-Identifier: BSD-2-Clause */
/* A program that lives for a moment, and tells on its output where it had what: struct brief of brief.h. */
#include "brief.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

int main(void)
{
    struct timespec t;
    char *heap = sbrk(4096);
    char *anonymous = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *heap = *anonymous = 1;
    clock_gettime(CLOCK_MONOTONIC, &t);
    struct brief b = {
        .pid = getpid(),
        .time_ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec,
        .code = (uint64_t)main,
        .library = (uint64_t)qsort,
        .heap = (uint64_t)heap,
        .stack = (uint64_t)&t,
        .anonymous = (uint64_t)anonymous,
    };
    return write(1, &b, sizeof(b)) != sizeof(b);
}
