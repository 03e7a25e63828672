/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_PAGE_EVENT_H
#define MODEL_PAGE_EVENT_H

/*
 * An event of the kernel's page allocator, whatever it was read from.
 *
 * Runs in: the tool. Threads: pure data. Owns: nothing; `comm` and `stack` belong to who made the event.
 */

#include <stdint.h>

enum page_event_kind {
    PAGE_EVENT_ALLOC,    /* a block of 2^order pages, or a request that failed */
    PAGE_EVENT_FREE,     /* a block, or a part of one */
    PAGE_EVENT_FALLBACK, /* a request took a block of another migrate type: its own had none */
    PAGE_EVENT_KINDS
};

/** In place of a frame: the allocation failed. */
#define PAGE_EVENT_NO_FRAME UINT64_MAX
/** A free does not tell the type. */
#define PAGE_EVENT_NO_TYPE UINT32_MAX

struct page_event {
    enum page_event_kind kind;
    uint64_t time_ns; /* of the trace's clock */
    uint64_t frame;   /* the number of the block's first page */
    uint32_t order;   /* of a fallback: that of the request */
    uint32_t migrate_type;
    uint64_t gfp; /* of an allocation */
    int32_t pid;
    int32_t process;       /* KMEM_EVENT_NO_PROCESS: not known */
    uint8_t context;       /* as in struct kmem_event */
    const char *comm;      /* NULL: not known */
    const uint64_t *stack; /* return addresses, the innermost first; NULL: none */
    uint32_t depth;
};

#endif
