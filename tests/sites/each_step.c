/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * each_step CALL EVERY: a signal handler forks in the midst of a call into the agent, once at each EVERYth of its
 * instructions. The child makes objects in the handler, goes on with what was interrupted, frees what it has, makes
 * some more, and leaves. What is interrupted is of a call site with a high number, which the child has not got. Prints
 * the pid of each child and, of those that did not end well, where they were made; then how many.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define TRAP     0x100 /* the flag that makes each instruction a trap */
#define PATIENCE 60    /* s that a child may take */

static uintptr_t low, high; /* the agent's code */
static volatile long at, steps;
static volatile sig_atomic_t is_child;
static int unwell;
static void *object;

static void find_agent(void)
{
    char line[4096];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof(line), maps)) {
        unsigned long start, end;
        if (strstr(line, "liballium-agent") && sscanf(line, "%lx-%lx r-x", &start, &end) == 2) {
            low = low ? low : start;
            high = end;
        }
    }
    if (!low)
        abort();
    fclose(maps);
}

__attribute__((noinline)) static void in_handler(void)
{
    for (int i = 0; i < 3; i++)
        if (!malloc(40))
            abort();
}

__attribute__((noinline)) static void afterwards(void)
{
    for (int i = 0; i < 5; i++)
        if (!malloc(100))
            abort();
}

static void be_born(void)
{
    is_child = 1;
    alarm(PATIENCE);
    in_handler();
}

static void strike(int sig, siginfo_t *info, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    uintptr_t pc = (uintptr_t)registers[REG_RIP];
    int was = errno, status = 0;
    (void)sig;
    (void)info;
    if (pc < low || pc >= high || ++steps != at)
        return;
    registers[REG_EFL] &= ~TRAP;
    pid_t pid = fork();
    if (!pid)
        be_born();
    else if (waitpid(pid, &status, 0) == pid && !status)
        printf("%d\n", (int)pid);
    else
        printf("%d: step %ld, at %lx: %x\n", (int)pid, at, (unsigned long)(pc - low), status), unwell++;
    errno = was;
}

static void set_trap(int on)
{
    if (on)
        __asm__ volatile("pushfq; orq %0, (%%rsp); popfq" ::"i"(TRAP) : "memory", "cc");
    else
        __asm__ volatile("pushfq; andq %0, (%%rsp); popfq" ::"i"(~TRAP) : "memory", "cc");
}

#define HERE(i)                                                                                              \
    case i:                                                                                                  \
        return malloc(size);
#define HERE4(i)  HERE(i) HERE(i + 1) HERE(i + 2) HERE(i + 3)
#define HERE16(i) HERE4(i) HERE4(i + 4) HERE4(i + 8) HERE4(i + 12)
#define HERE64(i) HERE16(i) HERE16(i + 16) HERE16(i + 32) HERE16(i + 48)

__attribute__((noinline, optimize("no-crossjumping"))) static void *make(unsigned place, size_t size)
{
    switch (place % 256) {
        HERE64(0)
        HERE64(64)
        HERE64(128)
        HERE64(192)
    }
    return NULL;
}

/* A wrapper, by its name. */
__attribute__((noinline)) void *xmalloc(size_t size);
void *xmalloc(size_t size)
{
    void *p = malloc(size);
    if (!p)
        abort();
    return p;
}

#define CALL(name, what)                                                                                     \
    __attribute__((noinline)) static void by_##name(void)                                                    \
    {                                                                                                        \
        what;                                                                                                \
        __asm__ volatile("" ::: "memory"); /* no jump */                                                     \
    }
CALL(malloc, object = malloc(40))
CALL(xmalloc, object = xmalloc(40))
CALL(calloc, object = calloc(4, 10))
CALL(free, free(object); object = NULL)
CALL(realloc, object = realloc(object, 50))
CALL(large_realloc, object = realloc(object, 6000))
CALL(aligned_alloc, object = aligned_alloc(64, 128))
CALL(failure, object = malloc(PTRDIFF_MAX / 2))
CALL(failed_realloc, if (realloc(object, PTRDIFF_MAX / 2)) abort())

static const struct {
    const char *name;
    void (*call)(void);
    int of_one; /* takes an object */
} calls[] = {
    {"malloc", by_malloc, 0},
    {"xmalloc", by_xmalloc, 0},
    {"calloc", by_calloc, 0},
    {"free", by_free, 1},
    {"realloc", by_realloc, 1},
    {"large_realloc", by_large_realloc, 1},
    {"aligned_alloc", by_aligned_alloc, 0},
    {"failure", by_failure, 0},
    {"failed_realloc", by_failed_realloc, 1},
};

/* The call, with a child at its step `at`. False: it has not so many. */
static int go(void (*call)(void), int of_one, int struck)
{
    object = of_one ? make(255, 45) : NULL;
    steps = 0;
    set_trap(struck);
    call();
    set_trap(0);
    free(object);
    if (is_child) {
        afterwards();
        _exit(0);
    }
    return steps >= at;
}

int main(int argc, char **argv)
{
    static char buffer[1 << 16];
    struct sigaction act = {.sa_sigaction = strike, .sa_flags = SA_SIGINFO};
    long every = argc > 2 ? atol(argv[2]) : 1;
    setvbuf(stdout, buffer, _IOLBF, sizeof(buffer));
    find_agent();
    for (unsigned i = 0; i < 256; i++)
        free(make(i, 24));
    for (size_t i = 0; argc > 1 && i < sizeof(calls) / sizeof(*calls); i++) {
        if (strcmp(argv[1], calls[i].name) || sigaction(SIGTRAP, &act, NULL))
            continue;
        for (at = every;; at += every) {
            go(calls[i].call, calls[i].of_one, 0);
            if (!go(calls[i].call, calls[i].of_one, 1))
                break;
        }
    }
    printf("unwell %d\n", unwell);
    return 0;
}
