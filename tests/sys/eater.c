/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * eater hold PAGES: touches so many anonymous pages, writes a line, and waits. eater grow: touches pages until it is
 * killed. eater share PAGES: as hold, and a second process has the same memory (vfork's way); its pid is in the line.
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

static char stack[65536] __attribute__((aligned(16)));

static int wait_for_end(void *unused)
{
    while (!unused)
        pause();
    return 0;
}

static char *touch(size_t pages)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *p = mmap(NULL, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        _exit(3);
    madvise(p, pages * page, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < pages; i++)
        p[i * page] = 1;
    return p;
}

int main(int argc, char **argv)
{
    size_t pages = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (argc > 1 && !strcmp(argv[1], "grow"))
        for (;;)
            touch(64);
    touch(pages);
    int other = 0;
    if (argc > 1 && !strcmp(argv[1], "share"))
        other = clone(wait_for_end, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL);
    printf("%d\n", other);
    fflush(stdout);
    return wait_for_end(NULL);
}
