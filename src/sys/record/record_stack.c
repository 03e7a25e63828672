/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/record/record_stack.h"

#include <string.h>

#define PEEK_MAX 512u /* records between an event and its stack */

/* The stack begins with the tracing and the allocator itself, up to the call; of an event without one, all is kept. */
static bool set_stack(struct kmem_event *event, const struct kmem_stack *found, uint64_t *stack)
{
    uint32_t depth = 0;
    for (uint32_t i = 0; i < found->n && depth < KMEM_EVENT_DEPTH_MAX; i++) {
        uint64_t caller;
        memcpy(&caller, found->callers + 8 * i, sizeof(caller));
        if (depth || caller == event->call_site || !event->call_site)
            stack[depth++] = caller;
    }
    event->stack = depth ? stack : NULL;
    event->depth = depth;
    return depth != 0;
}

/*
 * The record with the event's stack comes behind it, on the same CPU and in the same context; what interrupts do may
 * come in between.
 */
bool record_stack_find(const struct trace_reader *r, const struct kmem_format *f,
                       const struct page_format *pages, struct kmem_event *event,
                       uint64_t stack[static KMEM_EVENT_DEPTH_MAX])
{
    struct trace_peek peek = trace_reader_peek(r);
    struct trace_record record;
    struct kmem_stack found;
    struct kmem_event other;
    struct page_event page;
    for (unsigned n = 0; n < PEEK_MAX && trace_peek_next(r, &peek, &record); n++) {
        if (kmem_format_stack(f, record.data, record.bytes, &found) <= 0) {
            if (kmem_format_decode(f, record.data, record.bytes, &other) > 0 &&
                other.context == event->context)
                return true; /* it had none */
            if (page_format_decode(pages, record.data, record.bytes, &page) > 0 &&
                page.context == event->context)
                return true;
        } else if (found.context == event->context) {
            return set_stack(event, &found, stack);
        }
    }
    return false;
}
