/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An allocator that counts its calls, for programs that are traced: what the tracer must have is what this allocator
 * was asked for. It may be called by signal handlers, in vfork children and under a filter for system calls.
 *
 * Blocks are never used again, but those of MARKED bytes, which the programs ask for in great number and do not write
 * to. The counts lie in the file COUNTED, a slot for each process image; `counted_slot` is the image's.
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MARKED     48
#define MARKS      4096
#define SLOTS      512
#define ROOM_BYTES (256u << 20)
#define EXPORT     __attribute__((visibility("default")))

EXPORT volatile int counted_slot;
static uint64_t early[SLOTS], *counts = early;
static char marks[MARKS][64] __attribute__((aligned(64))), room[ROOM_BYTES] __attribute__((aligned(64)));
static uint64_t n_marks, used;

static void count(uint64_t n)
{
    __atomic_fetch_add(&counts[counted_slot], n, __ATOMIC_RELAXED);
}

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("COUNTED");
    const int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    uint64_t *map =
        fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(early), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    if (map == MAP_FAILED)
        return;
    map[0] = early[0];
    counts = map;
}

/* The block's size is before it. */
static void *take(size_t alignment, size_t size)
{
    if (size == MARKED && alignment <= 16)
        return marks[__atomic_fetch_add(&n_marks, 1, __ATOMIC_RELAXED) % MARKS];
    if (size > ROOM_BYTES / 2)
        return NULL;
    const uint64_t whole = (size + alignment + 31) & ~(uint64_t)15,
                   end = __atomic_add_fetch(&used, whole, __ATOMIC_RELAXED);
    if (end > ROOM_BYTES)
        return NULL;
    char *p = (char *)(((uintptr_t)room + end - whole + 16 + alignment - 1) & ~(uintptr_t)(alignment - 1));
    ((uint64_t *)p)[-1] = size;
    return p;
}

EXPORT void *malloc(size_t size)
{
    void *p = take(16, size);
    count(1);
    return p;
}

EXPORT void free(void *p)
{
    if (p)
        count(1);
}

EXPORT void *calloc(size_t n, size_t each)
{
    size_t size;
    void *p =
        __builtin_mul_overflow(n, each, &size) ? NULL : take(64, size); /* never a marked block: new memory */
    count(1);
    return p;
}

/* Two events. */
EXPORT void *realloc(void *old, size_t size)
{
    char *p = take(16, size);
    const bool marked = (char *)old >= marks[0] && (char *)old < marks[MARKS];
    count(2);
    if (p && old && !marked) {
        const uint64_t had = ((uint64_t *)old)[-1];
        for (uint64_t k = 0; k < (had < size ? had : size); k++)
            p[k] = ((char *)old)[k];
    }
    return p;
}

EXPORT int posix_memalign(void **out, size_t alignment, size_t size)
{
    *out = take(alignment, size);
    count(1);
    return *out ? 0 : ENOMEM;
}

EXPORT void *memalign(size_t alignment, size_t size)
{
    void *p = take(alignment, size);
    count(1);
    return p;
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    void *p = take(alignment, size);
    count(1);
    return p;
}

EXPORT size_t malloc_usable_size(void *p)
{
    const bool marked = (char *)p >= marks[0] && (char *)p < marks[MARKS];
    return !p ? 0 : marked ? MARKED : ((uint64_t *)p)[-1];
}
