/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_KMEM_EVENT_H
#define MODEL_KMEM_EVENT_H

/*
 * An event of the kernel's allocators, whatever it was read from.
 *
 * Runs in: the tool. Threads: pure data. Owns: nothing; `cache`, `comm` and `stack` belong to who made the event.
 */

#include <stdbool.h>
#include <stdint.h>

enum kmem_event_kind {
    KMEM_EVENT_ALLOC, /* an object of the slab allocator, or whole pages by kmalloc() */
    KMEM_EVENT_FREE,
    KMEM_EVENT_KINDS
};

/** At this address and below there is no object: NULL, and what kmalloc(0) returns. */
#define KMEM_EVENT_NO_OBJECT UINT64_C(16)

/** In place of a process that is not known. */
#define KMEM_EVENT_NO_PROCESS (-1)
/** CPUs from this number on are not told apart. */
#define KMEM_EVENT_CPUS_MAX 8192u

struct kmem_event {
    enum kmem_event_kind kind;
    uint64_t time_ns;                          /* of the trace's clock */
    uint64_t address;                          /* of the object */
    uint64_t call_site;                        /* return address of the call */
    uint64_t requested_bytes, allocated_bytes; /* of an allocation */
    uint64_t gfp;                              /* of an allocation */
    const char *cache;                         /* "" where the event does not name it */
    bool is_kmalloc;  /* by kmalloc(), or kfree(): of one of the caches that have sizes */
    bool is_percpu;   /* memory that each CPU has for itself */
    bool is_own;      /* an allocation of the recorder: all its calls have one number */
    const char *comm; /* the program that was running; NULL: not known */
    int32_t pid;      /* thread that was running: 0 idle */
    int32_t process;  /* its process; KMEM_EVENT_NO_PROCESS: not known */
    uint32_t cpu;
    /* 0: of the thread; else the bits that the kernel sets for an interrupt, which has nothing to do with the thread */
    uint8_t context;
    const uint64_t *stack; /* return addresses, the innermost first: call_site is the first one; NULL: none */
    uint32_t depth;
};

#define KMEM_EVENT_DEPTH_MAX 64u

#endif
