/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE 1
/*
 * Deeds of tagged code, time and again, each time with a handler behind another one of its instructions (SIGTRAP, by
 * the processor's trap flag). It does the like, or forks a child that goes on in what was interrupted, or both: the
 * child does the like before it goes on. With "open" it only opens its books before. Built with tags.
 *
 *     stepped like|fork|both|open EVERY      behind each EVERYth instruction; prints how often
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "allium/tag.h"

#define PAGE      4096ul
#define READ      PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS
#define TRAP_FLAG 0x100
#define DEEDS     15u

/* Past the red zone. */
#define FLAGS(change, mask)                                                                                  \
    __asm__ __volatile__("lea -128(%%rsp), %%rsp\n\tpushfq\n\t" change                                       \
                         " %0, (%%rsp)\n\tpopfq\n\tlea 128(%%rsp), %%rsp" ::"i"(mask)                        \
                         : "cc", "memory")
#define STEP(deed)                                                                                           \
    do {                                                                                                     \
        if (number++ == stepped)                                                                             \
            FLAGS("orq", TRAP_FLAG);                                                                         \
        deed;                                                                                                \
        FLAGS("andq", ~TRAP_FLAG);                                                                           \
    } while (0)

static char room[64 * PAGE] __attribute__((aligned(4096)));
static unsigned long steps, chosen;
static unsigned stepped; /* that deed */
static bool forks, likes, opens, is_child, acted;

/* `at` is for what it makes, four pages. */
__attribute__((noinline)) static void do_all(char *at, size_t small, size_t large)
{
    struct allium_tag *told = ALLIUM_TAG("stepped", "told"), *made = ALLIUM_TAG("stepped", "made");
    unsigned number = 1;
    void *mapped;
    STEP(allium_account(told, large));
    STEP(allium_unaccount(told, large));
    STEP(allium_track(made, at, small));
    STEP(allium_track(made, at + PAGE, large));
    STEP(allium_account(told, small)); /* the books are open after that, in a child, too */
    STEP(allium_untrack(at));
    STEP(allium_untrack(at + PAGE));
    STEP(allium_unaccount(told, small));
    STEP(mapped = mmap(NULL, 4 * PAGE, READ, -1, 0));
    allium_account(told, small);
    STEP(munmap(mapped, PAGE));
    STEP(munmap((char *)mapped + PAGE, 3 * PAGE));
    allium_unaccount(told, small);
    if (at != room) /* in the handler, which may have interrupted realloc() */
        return;
    STEP(mapped = allium_realloc_tagged(made, NULL, small));
    STEP(mapped = allium_realloc_tagged(made, mapped, large));
    STEP(mapped = allium_realloc_tagged(made, mapped, small));
    STEP(mapped = allium_realloc_tagged(made, mapped, 0));
    allium_account(told, small);
    allium_unaccount(told, small);
}

static void on_step(int s, siginfo_t *i, void *context)
{
    int status = 0;
    (void)s, (void)i;
    if (steps++ != chosen)
        return;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
    stepped = 0;
    acted = true;
    pid_t pid = forks ? fork() : -1;
    is_child = !pid;
    if (likes && pid <= 0)
        do_all(room + 32 * PAGE, 10, 5000);
    if (opens && is_child) {
        struct allium_tag *opened = ALLIUM_TAG("stepped", "opened");
        allium_account(opened, 10);
        allium_unaccount(opened, 10);
    }
    if (pid > 0 && (waitpid(pid, &status, 0) != pid || status))
        _exit(8);
}

/* False: the deed has no such instruction, or this is the child. */
static bool go(unsigned deed, unsigned long instruction)
{
    stepped = deed;
    chosen = instruction;
    acted = false;
    steps = 0;
    do_all(room, 20, 100000);
    return acted && !is_child;
}

/* More ranges at once than there were: a node that the interrupted code has left in the tree is used again. */
static void map_many(void)
{
    void *at[8];
    for (unsigned i = 0; i < 8; i++)
        at[i] = mmap(NULL, PAGE, READ, -1, 0);
    for (unsigned i = 0; i < 8; i++)
        munmap(at[i], PAGE);
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
    unsigned long every = argc == 3 ? strtoul(argv[2], NULL, 10) : 0, turns = 0;
    if (!every || sigaction(SIGTRAP, &action, NULL))
        return 2;
    forks = strcmp(argv[1], "like") != 0;
    opens = !strcmp(argv[1], "open");
    likes = !opens && strcmp(argv[1], "fork") != 0;
    go(0, 0);
    for (unsigned deed = 1; deed <= DEEDS && !is_child; deed++)
        for (unsigned long i = deed % every; go(deed, i); i += every)
            turns++;
    if (is_child)
        map_many();
    else
        printf("%lu\n", turns);
    return 0;
}
