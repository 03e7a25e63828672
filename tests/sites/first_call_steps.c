/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * first_call_steps malloc|free: a thread runs the hooks of the agent one instruction at a time. At the first
 * instruction of the first call, the second of the second call and so on another thread makes the same call, from the
 * same call site, from beginning to end. Each pair of calls has a call site of its own, which neither thread has called
 * before. Prints the number of pairs.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define TRAP  0x100 /* the flag that makes each instruction a trap */
#define PAIRS 128   /* more than a call has instructions in the agent that take no slow path */
#define BYTES 40

static uintptr_t low, high; /* the agent's code */
static long at, steps;
static void (*call)(unsigned site, void **object);
static void *objects[2][PAIRS];
static atomic_uint wanted; /* the site that the other thread is to call, and 1; PAIRS + 1: it is to end */

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

#define MAKE(i)                                                                                              \
    case i:                                                                                                  \
        *object = malloc(BYTES);                                                                             \
        break;
#define DROP(i)                                                                                              \
    case i:                                                                                                  \
        free(*object);                                                                                       \
        break;
#define FOUR(of, i)    of(i) of(i + 1) of(i + 2) of(i + 3)
#define SIXTEEN(of, i) FOUR(of, i) FOUR(of, i + 4) FOUR(of, i + 8) FOUR(of, i + 12)
#define ALL(of)                                                                                              \
    SIXTEEN(of, 0)                                                                                           \
    SIXTEEN(of, 16)                                                                                          \
    SIXTEEN(of, 32)                                                                                          \
    SIXTEEN(of, 48)                                                                                          \
    SIXTEEN(of, 64)                                                                                          \
    SIXTEEN(of, 80)                                                                                          \
    SIXTEEN(of, 96)                                                                                          \
    SIXTEEN(of, 112)

__attribute__((noinline, optimize("no-crossjumping"))) static void make(unsigned site, void **object)
{
    switch (site) {
        ALL(MAKE)
    }
}

__attribute__((noinline, optimize("no-crossjumping"))) static void drop(unsigned site, void **object)
{
    switch (site) {
        ALL(DROP)
    }
}

static void call_there(unsigned site)
{
    wanted = site + 1;
    while (wanted)
        sched_yield();
}

static void *other(void *arg)
{
    free(malloc(1)); /* the thread has its counters */
    wanted = 0;
    for (;;) {
        unsigned site = wanted;
        if (site > PAIRS)
            return arg;
        if (site) {
            call(site - 1, &objects[1][site - 1]);
            wanted = 0;
        }
        sched_yield();
    }
}

static void strike(int sig, siginfo_t *info, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    uintptr_t pc = (uintptr_t)registers[REG_RIP];
    (void)sig;
    (void)info;
    if (pc < low || pc >= high || steps++ != at)
        return;
    registers[REG_EFL] &= ~TRAP;
    call_there((unsigned)at);
}

static void set_trap(int on)
{
    if (on)
        __asm__ volatile("pushfq; orq %0, (%%rsp); popfq" ::"i"(TRAP) : "memory", "cc");
    else
        __asm__ volatile("pushfq; andq %0, (%%rsp); popfq" ::"i"(~TRAP) : "memory", "cc");
}

int main(int argc, char **argv)
{
    struct sigaction act = {.sa_sigaction = strike, .sa_flags = SA_SIGINFO};
    static char buffer[4096];
    pthread_t thread;
    int frees = argc > 1 && !strcmp(argv[1], "free");
    setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
    find_agent();
    for (int i = 0; frees && i < 2 * PAIRS; i++)
        objects[i % 2][i / 2] = malloc(BYTES);
    call = frees ? drop : make;
    wanted = 1;
    if (sigaction(SIGTRAP, &act, NULL) || pthread_create(&thread, NULL, other, NULL))
        return 1;
    while (wanted)
        sched_yield();
    for (at = 0; at < PAIRS; at++) {
        steps = 0;
        set_trap(1);
        call((unsigned)at, &objects[0][at]);
        set_trap(0);
        if (steps <= at)
            return 1;
    }
    wanted = PAIRS + 1;
    pthread_join(thread, NULL);
    printf("%d\n", PAIRS);
    return 0;
}
