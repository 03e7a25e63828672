/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * first_touch DEPTH [FILE]: touches pages that are not there, from so many frames deep; a round for each line on stdin,
 * answered with the CPU time of each fault in ns. The pages are those of new memory; with FILE, which is made, those of
 * a file that is in the page cache: of these, the kernel maps 16 at each fault.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PAGES      4096u
#define PAGE       4096u
#define FILE_PAGES (1u << 15)
#define AROUND     16u

static size_t step = PAGE, faults = PAGES;
static volatile char seen;

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static __attribute__((noinline)) double touch(volatile char *at, int depth)
{
    if (depth > 0)
        return touch(at, depth - 1) + 0.0 * at[0]; /* no tail call */
    double began = now_ns();
    if (step == PAGE)
        for (size_t i = 1; i < faults; i++)
            at[i * PAGE] = 1;
    else
        for (size_t i = 1; i < faults; i++)
            seen = at[i * step];
    return (now_ns() - began) / (double)(faults - 1);
}

static char *map_file(const char *path)
{
    static const char page[PAGE] = "a page";
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    for (size_t i = 0; fd >= 0 && i < FILE_PAGES; i++)
        if (write(fd, page, PAGE) != PAGE)
            return MAP_FAILED;
    step = AROUND * PAGE;
    faults = FILE_PAGES / AROUND;
    return mmap(NULL, (size_t)FILE_PAGES * PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
}

int main(int argc, char **argv)
{
    int depth = argc > 1 ? atoi(argv[1]) : 0;
    char *at = argc > 2 ? map_file(argv[2])
                        : mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return 1;
    madvise(at, faults * step, MADV_NOHUGEPAGE);
    while (getchar() == '\n') {
        madvise(at, faults * step, MADV_DONTNEED);
        if (step == PAGE)
            at[0] = 1;
        printf("%.1f\n", touch(at, depth));
        fflush(stdout);
    }
    return 0;
}
