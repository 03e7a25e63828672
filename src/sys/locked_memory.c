/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/locked_memory.h"

#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <string.h>
#include <sys/mman.h>

#include "sys/resolver.h"

#define HEAP_BYTES   (4u << 20) /* an event takes some ten KiB, until it is written */
#define STACK_BYTES  (256u << 10)
#define RECORD_BYTES (64u << 10) /* more than any tool's */

/* The stack grows by being touched. */
static __attribute__((noinline)) void touch_stack(void)
{
    volatile char bytes[STACK_BYTES];
    for (size_t i = 0; i < sizeof(bytes); i += 1024)
        bytes[i] = 0;
}

/* An event of zeros: it names nobody, and reads all that naming needs. */
static void rehearse(struct sys_session *s)
{
    char *zeros = mem_alloc(RECORD_BYTES);
    struct table *t = table_new("sys", 1, s->tool->columns, s->tool->n_columns);
    memset(zeros, 0, RECORD_BYTES);
    s->tool->event(s, t, zeros, RECORD_BYTES);
    if (s->settings.config.stacks & SYS_STACK_KERNEL)
        resolver_freeze(s->names);
    table_free(t);
    free(zeros);
}

int locked_memory_reserve(struct sys_session *s)
{
    if (s->tool->event)
        rehearse(s);
    /* No mapping of its own for a large block, and nothing goes back: what malloc has it keeps. */
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    char *heap = mem_alloc(HEAP_BYTES);
    memset(heap, 1, HEAP_BYTES);
    __asm__ volatile("" : : "r"(heap) : "memory");
    free(heap);
    touch_stack();
    /* Not what comes later: files of others that are mapped for their names need not stay. */
    return mlockall(MCL_CURRENT) ? -errno : 0;
}
