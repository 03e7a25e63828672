/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls itself through functions with and without frame pointers, by chance. See chained.h. */
#include "chained.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define DEPTH 30
#define RUNS  300

static struct chained now;
static uint64_t returns[CHAINED_MAX];
static uint32_t whose[CHAINED_MAX];
static unsigned depth;
static uint64_t stack_end;
volatile uint64_t chained_any;

/* As the kernel does it: from rbp to rbp, as long as there is a stack. */
static void walk(uint64_t pc, const uint64_t *rbp)
{
    const uint64_t *low = (const uint64_t *)&pc;
    now.walked[now.n_walked++] = pc;
    while (now.n_walked < CHAINED_MAX && rbp > low && (uint64_t)rbp < stack_end - 16 &&
           (uint64_t)rbp % 8 == 0 && rbp[1]) {
        now.walked[now.n_walked++] = rbp[1];
        rbp = (const uint64_t *)rbp[0];
    }
}

static __attribute__((noinline)) void leaf(void)
{
    struct timespec t;
    uint64_t pc;
    clock_gettime(CLOCK_MONOTONIC, &t);
    __asm__ volatile("lea 0(%%rip), %0" : "=r"(pc));
    now =
        (struct chained){.pid = getpid(), .time_ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec};
    chained_note((uint64_t)__builtin_return_address(0), LEAF);
    walk(pc, __builtin_frame_address(0));
    now.truth[now.n_truth] = pc;
    for (unsigned i = depth; i-- > 0;) {
        now.who[now.n_truth++] = whose[i];
        now.truth[now.n_truth] = returns[i];
    }
    now.who[now.n_truth++] = BEYOND;
    if (write(1, &now, sizeof(now)) != sizeof(now))
        _exit(3);
}

static void (*const parts[])(void) = {with_rbp, without_rbp, library_with_rbp, library_without_rbp, leaf};
static unsigned char plan[DEPTH + 1];
void (*chained_function)(void);

/* What comes next is chosen here, so that it is called by a jump: chained_next() is no frame of its own. */
void chained_note(uint64_t returns_to, enum chained_who who)
{
    returns[depth] = returns_to;
    whose[depth++] = who;
    if (who != LEAF)
        chained_function = parts[plan[depth - 1]];
}

__attribute__((naked)) void chained_next(void)
{
    __asm__("jmp *chained_function(%rip)");
}

int main(void)
{
    stack_end = (uint64_t)__builtin_frame_address(0) + 4096; /* the environment lies there */
    srand(1);
    for (int run = 0; run < RUNS; run++) {
        unsigned n = (unsigned)rand() % DEPTH;
        for (unsigned i = 0; i < n; i++) /* without them often enough near the leaf, and often not at all */
            plan[i] = rand() % (run % 20 + 1) ? (unsigned char)(rand() % 2 * 2)
                                              : (unsigned char)(rand() % CHAINED_PARTS);
        plan[n] = LEAF;
        depth = 0;
        chained_note((uint64_t)__builtin_return_address(0), MAIN);
        chained_next();
        __asm__ volatile("");
    }
    return 0;
}
