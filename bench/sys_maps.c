/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sys_maps KIND N: repeats KIND N times, 20 frames deep, and prints the nanoseconds of CPU time of one repetition.
 * KIND: file (maps a page of a file and unmaps it), brk (grows the heap by a page and shrinks it), shm (attaches a
 * segment and detaches it), open (opens and closes a file that is no shared memory).
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <time.h>
#include <unistd.h>

#define DEPTH 16 /* main() and what calls it make 20 */

static int fd, id;

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void map_file(void)
{
    munmap(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0), 4096);
}

static void move_brk(void)
{
    if (sbrk(4096) == (void *)-1 || sbrk(-4096) == (void *)-1)
        abort();
}

static void attach(void)
{
    shmdt(shmat(id, NULL, 0));
}

static void open_file(void)
{
    close(open("/dev/null", O_RDONLY | O_CLOEXEC));
}

static const struct {
    const char *name;
    void (*once)(void);
} kinds[] = {{"file", map_file}, {"brk", move_brk}, {"shm", attach}, {"open", open_file}};

__attribute__((noinline)) static double deep(void (*once)(void), long n, int depth)
{
    if (depth) {
        const double took = deep(once, n, depth - 1);
        __asm__ volatile("" : : : "memory"); /* no tail call */
        return took;
    }
    const double began = cpu_ns();
    for (long i = 0; i < n; i++)
        once();
    return (cpu_ns() - began) / (double)n;
}

int main(int argc, char **argv)
{
    const long n = argc == 3 ? atol(argv[2]) : 0;
    fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    id = shmget(IPC_PRIVATE, 4096, 0600);
    for (size_t i = 0; n > 0 && i < sizeof(kinds) / sizeof(*kinds); i++)
        if (!strcmp(kinds[i].name, argv[1]))
            printf("%.2f\n", deep(kinds[i].once, n, DEPTH));
    shmctl(id, IPC_RMID, NULL);
    return n > 0 ? 0 : 2;
}
