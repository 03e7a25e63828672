/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An allocator that signal handlers may call: lock-free, to be preloaded behind the agent. Blocks come from a bump
 * pointer in a static arena and go back to a stack of their size class, so that addresses are used again and again; the
 * top of a stack carries a tag against ABA.
 *
 * With MINIMAL it has the four functions only that a replacement must have.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ARENA   (1ull << 30)
#define CLASSES 28
#define GRAIN   16u

struct head {
    uint64_t size_class;
    uint64_t back; /* bytes from the block that was taken to this one, which is aligned within it */
};

static char arena[ARENA] __attribute__((aligned(4096)));
static _Atomic uint64_t used = GRAIN;
static _Atomic uint64_t stacks[CLASSES]; /* tag << 32 | offset / GRAIN of the first vacant block's head */

static _Atomic uint64_t *next_of(uint64_t offset)
{
    return (_Atomic uint64_t *)(arena + offset + sizeof(struct head));
}

void *malloc(size_t size)
{
    unsigned class = 0;
    while (class < CLASSES && ((size_t)GRAIN << class) < size)
        class ++;
    if (class == CLASSES) {
        errno = ENOMEM;
        return NULL;
    }
    for (uint64_t top = stacks[class]; top & UINT32_MAX;) {
        uint64_t offset = (top & UINT32_MAX) * GRAIN;
        uint64_t after = ((top >> 32) + 1) << 32 | (*next_of(offset) & UINT32_MAX);
        if (atomic_compare_exchange_weak(&stacks[class], &top, after))
            return arena + offset + sizeof(struct head);
    }
    uint64_t bytes = sizeof(struct head) + ((uint64_t)GRAIN << class),
             offset = atomic_fetch_add(&used, bytes);
    if (offset + bytes > ARENA) {
        errno = ENOMEM;
        return NULL;
    }
    *(struct head *)(arena + offset) = (struct head){.size_class = class};
    return arena + offset + sizeof(struct head);
}

void free(void *p)
{
    if (!p)
        return;
    p = (char *)p - ((struct head *)p - 1)->back;
    uint64_t offset = (uint64_t)((char *)p - arena) - sizeof(struct head);
    uint64_t class = ((struct head *)(arena + offset))->size_class, top = stacks[class];
    do
        *next_of(offset) = top & UINT32_MAX;
    while (!atomic_compare_exchange_weak(&stacks[class], &top, ((top >> 32) + 1) << 32 | offset / GRAIN));
}

void *calloc(size_t n, size_t each)
{
    size_t size;
    void *p = __builtin_mul_overflow(n, each, &size) ? NULL : malloc(size);
    return p ? memset(p, 0, size) : NULL;
}

void *realloc(void *old, size_t size)
{
    void *p = malloc(size);
    if (!p || !old)
        return p;
    const struct head *h = (struct head *)old - 1;
    size_t have = ((size_t)GRAIN << h->size_class) - h->back;
    memcpy(p, old, have < size ? have : size);
    free(old);
    return p;
}

#ifndef MINIMAL
int posix_memalign(void **out, size_t alignment, size_t size)
{
    if (alignment % sizeof(void *) || (alignment & (alignment - 1)))
        return EINVAL;
    size_t whole;
    char *p = __builtin_add_overflow(size, alignment, &whole) ? NULL : malloc(whole);
    if (!p)
        return ENOMEM;
    size_t back = -(uintptr_t)p & (alignment - 1);
    __asm__ volatile("" : "+r"(p)); /* or the compiler sees through our malloc, to the arena's beginning */
    if (back) {
        struct head *h = (struct head *)(p + back) - 1;
        *h = (struct head){.size_class = ((struct head *)p - 1)->size_class, .back = back};
    }
    *out = p + back;
    return 0;
}

void *memalign(size_t alignment, size_t size)
{
    void *p = NULL;
    int bad = posix_memalign(&p, alignment < sizeof(void *) ? sizeof(void *) : alignment, size);
    if (bad)
        errno = bad;
    return p;
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

size_t malloc_usable_size(void *p)
{
    return p ? ((size_t)GRAIN << ((struct head *)p - 1)->size_class) - ((struct head *)p - 1)->back : 0;
}
#endif
