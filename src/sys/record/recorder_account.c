/* SPDX-License-Identifier: BSD-2-Clause */
/* What kernel_recorder.h does with a record. */
#include <string.h>

#include "sys/record/kernel_recorder_parts.h"
#include "sys/record/record_stack.h"

static void take_task_event(struct kernel_recorder *r, const struct trace_record *record)
{
    struct task_event event;
    if (task_format_decode(r->task_format, record->data, record->bytes, &event) <= 0)
        return;
    if (event.kind == TASK_MARKED) /* by this process: the buffers are ours */
        r->own_tid = event.tid;
    tasks_add(&r->tasks, &event);
    record_filter_task(&r->filter, &event);
}

/* What an interrupt does has nothing to do with the thread. */
static const char *name_task(const struct kernel_recorder *r, int32_t pid, uint8_t context, int32_t *process)
{
    const struct task *task = tasks_find(&r->tasks, pid);
    *process = context ? 0 : task->process == TASK_UNKNOWN ? pid : task->process;
    return context ? RECORDER_INTERRUPT_NAME : tasks_name(task);
}

static bool is_own(const struct kernel_recorder *r, int32_t pid, uint8_t context)
{
    return pid == r->own_tid && !context;
}

static bool is_of_wanted(const struct kernel_recorder *r, int32_t pid, int32_t process, uint8_t context,
                         const char *comm)
{
    return !is_own(r, pid, context) && record_filter_takes(&r->filter, &r->tasks, pid, process, comm);
}

/* Frees count if they are of what was accounted, whoever frees it. */
static bool wants_pages(struct kernel_recorder *r, const struct page_event *e)
{
    if (!r->is_filtered)
        return true;
    return e->kind == PAGE_EVENT_FREE ? page_accounts_has(r->capture.pages, e)
                                      : is_of_wanted(r, e->pid, e->process, e->context, e->comm);
}

static bool wants_object(struct kernel_recorder *r, const struct kmem_event *e)
{
    if (!r->is_filtered)
        return true;
    if (e->kind == KMEM_EVENT_FREE && e->address > KMEM_EVENT_NO_OBJECT)
        return kmem_accounts_is_live(r->capture.accounts, e->address);
    if (!is_of_wanted(r, e->pid, e->process, e->context, e->comm))
        return false;
    return e->kind == KMEM_EVENT_FREE ? !r->where.one : record_where_fits(&r->where, &r->capture.names, e);
}

/* Returns whether it is an event of pages. */
static bool account_pages(struct kernel_recorder *r, const struct trace_record *record, uint32_t cpu)
{
    struct page_event event;
    int found =
        r->capture.pages ? page_format_decode(r->page_format, record->data, record->bytes, &event) : 0;
    r->broken_records += found < 0;
    if (found <= 0)
        return found < 0;
    event.time_ns = record->time;
    event.comm = name_task(r, event.pid, event.context, &event.process);
    if (event.kind == PAGE_EVENT_ALLOC && event.frame != PAGE_EVENT_NO_FRAME)
        page_accounts_last(r->capture.pages, event.frame, event.order, cpu);
    if (!wants_pages(r, &event)) {
        if (event.kind == PAGE_EVENT_ALLOC)
            page_accounts_pass(r->capture.pages, &event);
        return true;
    }
    if (is_own(r, event.pid, event.context))
        event.comm = RECORDER_OWN_NAME;
    if (event.kind == PAGE_EVENT_FALLBACK || (r->stacks && event.kind == PAGE_EVENT_ALLOC)) {
        struct kmem_event any = {.context = event.context};
        r->stackless += !record_stack_find(r->reader, r->format, r->page_format, &any, r->stack);
        event.stack = any.stack;
        event.depth = any.depth;
    }
    r->broken_records += !page_accounts_add(r->capture.pages, &event);
    return true;
}

static void account_object(struct kernel_recorder *r, struct kmem_event *event)
{
    const bool allocates = event->kind == KMEM_EVENT_ALLOC;
    event->comm = name_task(r, event->pid, event->context, &event->process);
    if (event->is_percpu) {
        event->requested_bytes *= r->cpus; /* the allocated bytes are those of all CPUs */
        event->call_site = allocates ? event->call_site : RECORDER_NO_SITE;
    }
    kernel_capture_mark_pages(&r->capture, event);
    if (allocates && event->is_kmalloc)
        event->cache = kernel_capture_kmalloc_name(&r->capture, event);
    if (!wants_object(r, event)) {
        if (allocates)
            kmem_accounts_pass(r->capture.accounts, event->address);
        return;
    }
    if (allocates && is_own(r, event->pid, event->context)) {
        event->call_site = RECORDER_OWN_SITE;
        event->is_own = true;
        event->cache = "";
    } else if (r->stacks && allocates) {
        r->stackless += !record_stack_find(r->reader, r->format, r->page_format, event, r->stack);
    }
    r->broken_records += !kmem_accounts_add(r->capture.accounts, event);
}

void recorder_account(void *arg, const struct trace_record *record, uint32_t cpu)
{
    struct kernel_recorder *r = arg;
    struct kmem_event event;
    int found = kmem_format_decode(r->format, record->data, record->bytes, &event);
    r->broken_records += found < 0;
    const bool after = r->capture.settle_ns && record->time > r->capture.end_ns;
    if (!found && (after || !account_pages(r, record, cpu)))
        take_task_event(r, record);
    if (found <= 0)
        return;
    event.time_ns = record->time;
    event.cpu = cpu;
    if (after) {
        kmem_accounts_add(r->capture.accounts, &event);
        return;
    }
    if (r->counts->lost + r->counts->lost_unknown)
        kmem_accounts_lose(r->capture.accounts, false);
    const uint64_t older = kmem_accounts_totals(r->capture.accounts)->unmatched_frees;
    account_object(r, &event);
    if (r->older && kmem_accounts_totals(r->capture.accounts)->unmatched_frees > older)
        r->older(r->older_arg, &event);
}
