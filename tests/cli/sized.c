/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sized FILE ANON SHMEM SWAP: holds so many MiB of each, touched once: all of FILE mapped, anonymous memory, shared
 * memory, and anonymous memory that it asks the kernel to swap out. Prints "ready", and waits for the end of its input.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif

static char *map(size_t bytes, int how)
{
    char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, how | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        exit(1);
    madvise(at, bytes, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < bytes; i += 4096) /* not all the same: swap may leave out pages of zeros */
        memcpy(at + i, &i, sizeof(i));
    return at;
}

static void touch_file(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &st) || !st.st_size)
        exit(1);
    volatile char *at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        exit(1);
    for (off_t i = 0; i < st.st_size; i += 4096)
        (void)at[i];
}

int main(int argc, char **argv)
{
    char c;
    if (argc != 5)
        return 2;
    size_t anon = strtoul(argv[2], NULL, 10) << 20, shmem = strtoul(argv[3], NULL, 10) << 20;
    size_t swap = strtoul(argv[4], NULL, 10) << 20;
    if (*argv[1])
        touch_file(argv[1]);
    if (anon)
        map(anon, MAP_PRIVATE);
    if (shmem)
        map(shmem, MAP_SHARED);
    if (swap)
        madvise(map(swap, MAP_PRIVATE), swap, MADV_PAGEOUT);
    if (puts("ready") < 0 || fflush(stdout))
        return 1;
    while (read(STDIN_FILENO, &c, 1) > 0)
        ;
    return 0;
}
