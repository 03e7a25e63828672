/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How deep into its stack a thread gets in malloc, realloc and free. The thread's stack is a mapping of ours, painted
 * below the caller before each call; afterwards the lowest byte that lost its paint tells.
 *
 *     stack_use COLD
 *
 * A thread asks for COLD bytes first: with a sampling period far below that, but far above what came before, this is
 * the sample that makes the ledger, meets the first modules and compiles the first rules. Says for each call
 * "NAME BYTES", where it is deepest of those of its kind.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define STACK_BYTES (64 << 10)
#define PAINT       0x5aa5c33c96699669u
#define ROUNDS      3000
#define DEPTHS      20

enum call { COLD_MALLOC, COLD_FREE, MALLOC, REALLOC, FREE, CALLS };
static const char *const names[CALLS] = {"cold_malloc", "cold_free", "malloc", "realloc", "free"};
static size_t deepest[CALLS];
static char *stack;
static size_t cold_bytes;

/* From the lowest byte that was touched up to the frame of the caller of the call. */
__attribute__((noinline)) static void *measured(enum call call, void *p, size_t size)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0) - 128;
    uint64_t *low = (uint64_t *)(void *)stack;
    for (uint64_t *at = low; at < (uint64_t *)here; at++)
        *at = PAINT;
    __asm__ volatile("" ::: "memory");
    switch (call) {
    case COLD_FREE:
    case FREE:
        free(p);
        p = NULL;
        break;
    case REALLOC:
        p = realloc(p, size);
        break;
    default:
        p = malloc(size);
    }
    __asm__ volatile("" ::: "memory");
    while ((uintptr_t)low < here && *low == PAINT)
        low++;
    size_t used = here + 128 - (uintptr_t)low;
    if (used > deepest[call])
        deepest[call] = used;
    return p;
}

/* Other stacks each time, so that there are stacks, cells and frames to be added and the ledger has to grow. */
__attribute__((noinline)) static void descend(int depth, int which)
{
    if (depth) {
        if (which >> depth & 1) {
            descend(depth - 1, which);
            __asm__ volatile("# left");
        } else {
            descend(depth - 1, which);
            __asm__ volatile("# right");
        }
        return;
    }
    void *p = measured(MALLOC, NULL, (size_t)(which * 7 % 5000));
    p = measured(REALLOC, p, (size_t)(100 + which * 13 % 7000));
    static void *kept[ROUNDS];
    kept[which] = p;
    if (which % 2)
        measured(FREE, kept[which / 2], 0);
}

static void *work(void *arg)
{
    void *p = measured(COLD_MALLOC, NULL, cold_bytes);
    measured(COLD_FREE, p, 0);
    for (int i = 0; i < ROUNDS; i++)
        descend(i % DEPTHS, i);
    return arg;
}

int main(int argc, char **argv)
{
    pthread_t id;
    pthread_attr_t attr;
    cold_bytes = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000;
    stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED || pthread_attr_init(&attr) || pthread_attr_setstack(&attr, stack, STACK_BYTES) ||
        pthread_create(&id, &attr, work, NULL) || pthread_join(id, NULL))
        return 1;
    for (int i = 0; i < CALLS; i++)
        printf("%s %zu\n", names[i], deepest[i]);
    return 0;
}
