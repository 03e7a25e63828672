/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/record/import/event_decoder.h"

#include "sys/record/record_stack.h"

void event_decoder_init(struct event_decoder *d)
{
    d->objects = kmem_format_new();
    d->pages = page_format_new();
    d->task_events = task_format_new();
    d->own_tid = -1;
}

void event_decoder_release(struct event_decoder *d)
{
    kmem_format_free(d->objects);
    page_format_free(d->pages);
    task_format_free(d->task_events);
}

static void take_task_event(struct event_decoder *d, const struct trace_record *record)
{
    struct task_event event;
    if (task_format_decode(d->task_events, record->data, record->bytes, &event) <= 0)
        return;
    if (event.kind == TASK_MARKED && d->own_marks)
        d->own_tid = event.tid;
    tasks_add(d->tasks, &event);
}

/* What an interrupt does has nothing to do with the thread. */
static const char *name_task(const struct event_decoder *d, int32_t pid, uint8_t context, int32_t *process)
{
    const struct task *task = tasks_find(d->tasks, pid);
    *process = !d->processes                   ? KMEM_EVENT_NO_PROCESS
               : context                       ? 0
               : task->process == TASK_UNKNOWN ? pid
                                               : task->process;
    return context ? EVENT_DECODER_INTERRUPT : tasks_name(task);
}

static void find_stack(struct event_decoder *d, struct kmem_event *event)
{
    if (d->stacks)
        d->stackless += !record_stack_find(d->reader, d->objects, d->pages, event, d->stack);
}

/* A record with an event of pages, or of threads, or another one. */
static void take_pages(struct event_decoder *d, const struct trace_record *record,
                       struct event_decoder_event *out)
{
    struct page_event *e = &out->pages;
    int found = page_format_decode(d->pages, record->data, record->bytes, e);
    d->broken += found < 0;
    if (!found)
        take_task_event(d, record);
    if (found <= 0)
        return;
    out->kind = EVENT_DECODER_PAGES;
    out->is_own = e->pid == d->own_tid && !e->context;
    e->comm = name_task(d, e->pid, e->context, &e->process);
    if (e->kind == PAGE_EVENT_FREE)
        return;
    struct kmem_event any = {.context = e->context};
    find_stack(d, &any);
    e->stack = any.stack;
    e->depth = any.depth;
}

void event_decoder_take(struct event_decoder *d, const struct trace_record *record, uint32_t cpu,
                        struct event_decoder_event *out)
{
    struct kmem_event *e = &out->object;
    out->kind = EVENT_DECODER_NONE;
    int found = kmem_format_decode(d->objects, record->data, record->bytes, e);
    d->broken += found < 0;
    if (!found)
        take_pages(d, record, out);
    if (found <= 0)
        return;
    out->kind = EVENT_DECODER_OBJECT;
    out->is_own = e->pid == d->own_tid && !e->context;
    e->time_ns = record->time;
    e->cpu = cpu;
    e->comm = name_task(d, e->pid, e->context, &e->process);
    if (e->is_percpu && d->cpus)
        e->requested_bytes *= d->cpus; /* the allocated bytes are those of all CPUs */
    if (e->kind == KMEM_EVENT_ALLOC && !out->is_own)
        find_stack(d, e);
}
