/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * moves HOW PAGES FROM TO: has so many new pages on node FROM, has them moved to node TO, and prints "PID PAGES": the
 * process that they belong to, and how many of them are on TO then. HOW:
 *   self       by move_pages(2)
 *   child      by move_pages(2), of a child by the number of its second thread
 *   mbind      by mbind(2)
 *   pinned     by move_pages(2), while a pipe has references to the first eight
 *   touched    by NUMA balancing: touches them until they are there, for some seconds at most
 *   pulls      not at all: a pipe has references to all, at most 256; touches them until it runs on node FROM itself
 *   scattered  only every second one is kept; waits for a line of its input; TO is not used
 */
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE            4096ul
#define PINNED          8u
#define TOUCHES_SECONDS 30

static char *memory;
static unsigned long pages, from, to;
static int ready[2];

static void fail(const char *what)
{
    perror(what);
    exit(2);
}

static void bind_to(int policy, unsigned long node, unsigned flags)
{
    unsigned long mask = 1ul << node;
    if (syscall(SYS_mbind, memory, pages * PAGE, policy, policy == MPOL_DEFAULT ? NULL : &mask,
                policy == MPOL_DEFAULT ? 0ul : 8 * sizeof(mask), flags))
        fail("moves: mbind");
}

static void make(void)
{
    memory = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        fail("moves: mmap");
    madvise(memory, pages * PAGE, MADV_NOHUGEPAGE);
    bind_to(MPOL_BIND, from, 0);
    memset(memory, 1, pages * PAGE);
    bind_to(MPOL_DEFAULT, 0, 0);
}

/* Moves them, or, to no node, only looks where they are; returns how many are on `to`. */
static unsigned long move(pid_t pid, bool move)
{
    void **at = malloc(pages * sizeof(*at));
    int *nodes = malloc(pages * sizeof(*nodes)), *status = malloc(pages * sizeof(*status));
    unsigned long there = 0;
    for (unsigned long i = 0; i < pages; i++) {
        at[i] = memory + i * PAGE;
        nodes[i] = (int)to;
        status[i] = -1;
    }
    if (syscall(SYS_move_pages, pid, pages, at, move ? nodes : NULL, status, MPOL_MF_MOVE) < 0)
        fail("moves: move_pages");
    for (unsigned long i = 0; i < pages; i++)
        there += status[i] == (int)to;
    free(at);
    free(nodes);
    free(status);
    return there;
}

struct told {
    pid_t tid;
    char *memory;
};

static void *second_thread(void *unused)
{
    struct told told = {(pid_t)syscall(SYS_gettid), memory};
    (void)unused;
    if (write(ready[1], &told, sizeof(told)) != sizeof(told))
        fail("moves: write");
    pause();
    return NULL;
}

static pid_t child(struct told *told)
{
    if (pipe(ready))
        fail("moves: pipe");
    pid_t pid = fork();
    if (pid < 0)
        fail("moves: fork");
    if (!pid) {
        pthread_t thread;
        make();
        if (pthread_create(&thread, NULL, second_thread, NULL))
            fail("moves: pthread_create");
        pause();
    }
    if (read(ready[0], told, sizeof(*told)) != sizeof(*told))
        fail("moves: read");
    return pid;
}

static void move_child(void)
{
    struct told told;
    pid_t pid = child(&told);
    memory = told.memory;
    unsigned long moved = move(told.tid, true);
    printf("%d %lu\n", (int)pid, moved);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void pin(unsigned long number)
{
    struct iovec first = {memory, number * PAGE};
    if (pipe(ready) || fcntl(ready[1], F_SETPIPE_SZ, number * PAGE) < 0)
        fail("moves: pipe");
    if (vmsplice(ready[1], &first, 1, 0) != (ssize_t)first.iov_len)
        fail("moves: vmsplice");
}

/* The kernel looks for pages to be moved after so much CPU time. */
static void touch_all(void)
{
    for (unsigned times = 0; times < 10000; times++)
        for (unsigned long page = 0; page < pages; page++)
            ((volatile char *)memory)[page * PAGE]++;
}

static void touch(void)
{
    const time_t end = time(NULL) + TOUCHES_SECONDS;
    while (move(0, false) < pages && time(NULL) < end)
        touch_all();
}

static void pull(void)
{
    const time_t end = time(NULL) + TOUCHES_SECONDS;
    unsigned cpu, node = (unsigned)to;
    pin(pages);
    while (node != from && time(NULL) < end) {
        touch_all();
        if (getcpu(&cpu, &node))
            fail("moves: getcpu");
    }
}

static void scatter(void)
{
    char line[8];
    for (unsigned long i = 0; i < pages; i += 2)
        madvise(memory + i * PAGE, PAGE, MADV_DONTNEED);
    printf("%d %lu\n", (int)getpid(), pages / 2);
    fflush(stdout);
    if (!fgets(line, sizeof(line), stdin))
        exit(0);
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return fprintf(stderr, "usage: moves HOW PAGES FROM TO\n"), 2;
    const char *how = argv[1];
    pages = strtoul(argv[2], NULL, 10);
    from = strtoul(argv[3], NULL, 10);
    to = strtoul(argv[4], NULL, 10);
    if (!strcmp(how, "child"))
        return move_child(), 0;
    make();
    if (!strcmp(how, "scattered"))
        return scatter(), 0;
    if (!strcmp(how, "pinned"))
        pin(PINNED);
    if (!strcmp(how, "mbind"))
        bind_to(MPOL_BIND, to, MPOL_MF_MOVE);
    else if (!strcmp(how, "touched"))
        touch();
    else if (!strcmp(how, "pulls"))
        pull();
    else
        move(0, true);
    printf("%d %lu\n", (int)getpid(), move(0, false));
    return 0;
}
