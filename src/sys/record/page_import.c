/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/record/page_import.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "collect/kernel/trace/kmem_format.h"
#include "collect/kernel/trace/task_format.h"
#include "sys/record/record_stack.h"
#include "sys/record/tasks.h"

#define STACK_FORMAT "events/ftrace/kernel_stack/format"

struct page_import {
    struct kernel_import *to;
    const struct trace_saved *from;
    struct kernel_import_counts *counts; /* of `to` */
    struct trace_reader *reader;
    struct kmem_format *format;
    struct task_format *task_format;
    struct tasks tasks;
    bool has_ticks;                       /* the clock is not one of time */
    bool stacks;                          /* the trace may have stacks */
    uint64_t stack[KMEM_EVENT_DEPTH_MAX]; /* of the event that is accounted */
};

static const struct buf *format_of(const struct page_import *p, const char *event)
{
    char path[96];
    snprintf(path, sizeof(path), "events/%s/format", event);
    return tracing_data_text(&p->from->formats, path);
}

/* The trace has the formats of its events, and perhaps of others. */
static int add_formats(struct page_import *p, const char *path, struct error *e)
{
    int bad = 0;
    bool any = false;
    for (size_t k = 0; kmem_format_events[k] && !bad; k++) {
        char event[64];
        snprintf(event, sizeof(event), "kmem/%s", kmem_format_events[k]);
        const struct buf *text = format_of(p, event);
        bad = text ? kmem_format_add(p->format, kmem_format_events[k], buf_str(text), text->len, e) : 0;
        any |= text != NULL;
        if (text)
            kernel_import_use_gfp(p->to, buf_str(text));
    }
    for (int k = 0; k < TASK_EVENT_KINDS && !bad; k++) {
        const struct buf *text = format_of(p, task_format_events[k]);
        bad =
            text ? task_format_add(p->task_format, (enum task_event_kind)k, buf_str(text), text->len, e) : 0;
    }
    const struct buf *stack = tracing_data_text(&p->from->formats, STACK_FORMAT);
    p->stacks = stack && !bad && !kmem_format_add_stack(p->format, buf_str(stack), stack->len, NULL);
    return bad || any
               ? bad
               : error_set(e, ENODATA, "%s: has none of the events kmem:kmalloc, kmem:kfree ...", path);
}

static void account(void *arg, const struct trace_record *record, uint32_t cpu)
{
    struct page_import *p = arg;
    struct kmem_event event;
    struct task_event task;
    int found = kmem_format_decode(p->format, record->data, record->bytes, &event);
    p->counts->broken += found < 0;
    if (!found && task_format_decode(p->task_format, record->data, record->bytes, &task) > 0)
        tasks_add(&p->tasks, &task);
    if (found <= 0)
        return;
    const struct trace_reader_counts *n = trace_reader_counts(p->reader);
    if (n->lost + n->lost_unknown)
        kmem_accounts_lose(kernel_import_capture(p->to)->accounts, false);
    event.time_ns = record->time;
    event.cpu = cpu;
    p->counts->ticks += p->has_ticks;
    event.comm = event.context ? KERNEL_IMPORT_INTERRUPT : tasks_name(tasks_find(&p->tasks, event.pid));
    const bool allocates = event.kind == KMEM_EVENT_ALLOC;
    if (allocates && p->from->own_tid && event.pid == p->from->own_tid && !event.context)
        kernel_import_own_event(p->to, &event);
    else {
        if (allocates && p->stacks)
            p->counts->without_stack += !record_stack_find(p->reader, p->format, &event, p->stack);
        kernel_import_event_at(p->to, &event);
    }
}

static int read_pages(struct page_import *p, const char *path, struct error *e)
{
    int bad = trace_reader_step(p->reader, true, account, p);
    const struct trace_reader_counts *n = trace_reader_counts(p->reader);
    p->counts->broken += n->broken_pages;
    p->counts->lost += p->from->has_lost ? p->from->lost : n->lost;
    p->counts->unread_buffers = p->from->has_unread_buffers;
    p->counts->lost_unknown += p->from->has_lost ? 0 : n->lost_unknown;
    if (bad == -EBADMSG)
        return error_set(e, EBADMSG,
                         "%s: is damaged or cut: a page is not whole, or older than the one before it", path);
    return bad ? error_set(e, -bad, "%s: %s", path, strerror(-bad)) : 0;
}

int page_import_read(struct kernel_import *to, const struct trace_saved *from, const char *path,
                     struct error *e)
{
    struct page_import p = {.to = to,
                            .from = from,
                            .counts = kernel_import_counts(to),
                            .format = kmem_format_new(),
                            .task_format = task_format_new()};
    const struct buf *layout = tracing_data_text(&from->formats, "events/header_page");
    int bad = layout ? 0 : error_set(e, ENODATA, "%s: lacks events/header_page", path);
    bad = bad ? bad : add_formats(&p, path, e);
    if (from->end_ns)
        kernel_import_end_at(to, from->end_ns, from->settle_ns);
    if (!strcmp(from->clock, "local"))
        kernel_import_clocks_differ(to);
    p.has_ticks = !strcmp(from->clock, "counter") || !strcmp(from->clock, "x86-tsc");
    bad = bad ? bad : trace_reader_open_kept(&p.reader, buf_str(layout), from->cpus.at, from->cpus.len, e);
    if (!bad) {
        tasks_parse(&p.tasks, buf_str(&from->formats.comms));
        bad = read_pages(&p, path, e);
    }
    trace_reader_close(p.reader);
    kmem_format_free(p.format);
    task_format_free(p.task_format);
    tasks_release(&p.tasks);
    return bad;
}
