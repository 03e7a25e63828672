/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/record/perf_import.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "collect/kernel/trace/kmem_format.h"
#include "sys/record/tasks.h"

struct perf_import {
    struct kernel_import *to;
    struct perf_data *from;
    struct kernel_import_counts *counts; /* of `to` */
    struct kmem_format *format;          /* NULL: no sample has come yet */
    struct tasks tasks;
    perf_import_names_fn *names;
    void *arg;
    struct error *e;
    uint64_t stack[KMEM_EVENT_DEPTH_MAX]; /* of the event that is accounted */
};

/* The file has the formats of those events that were recorded. */
static int add_formats(struct perf_import *p)
{
    char path[64];
    int bad = 0;
    bool any = false;
    for (size_t k = 0; kmem_format_events[k] && !bad; k++) {
        snprintf(path, sizeof(path), "events/kmem/%s/format", kmem_format_events[k]);
        const struct buf *text = tracing_data_text(perf_data_formats(p->from), path);
        bad = text ? kmem_format_add(p->format, kmem_format_events[k], buf_str(text), text->len, p->e) : 0;
        any |= text != NULL;
        if (text)
            kernel_import_use_gfp(p->to, buf_str(text));
    }
    return bad || any
               ? bad
               : error_set(p->e, ENODATA, "the file has none of the events kmem:kmalloc, kmem:kfree ...");
}

static int begin(struct perf_import *p)
{
    p->format = kmem_format_new();
    int bad = add_formats(p);
    return bad ? bad : p->names(p->arg, perf_data_about(p->from), p->e);
}

/* The kernel's part of the chain, from the event's call on: what is before is of the tracing and the allocator. */
static void take_stack(struct perf_import *p, const struct perf_item *item, struct kmem_event *event)
{
    bool in_kernel = false;
    uint32_t depth = 0;
    for (uint64_t k = 0; k < item->n_callers && depth < KMEM_EVENT_DEPTH_MAX; k++) {
        uint64_t caller;
        memcpy(&caller, item->callers + 8 * k, sizeof(caller));
        if (caller >= PERF_CONTEXT_MAX)
            in_kernel = caller == PERF_CONTEXT_KERNEL;
        else if (in_kernel && (depth || caller == event->call_site))
            p->stack[depth++] = caller;
    }
    event->stack = depth ? p->stack : NULL;
    event->depth = depth;
    p->counts->without_stack += item->n_callers && !depth;
}

static void take_sample(struct perf_import *p, const struct perf_item *item)
{
    struct kmem_event event;
    int found = item->raw ? kmem_format_decode(p->format, item->raw, item->raw_bytes, &event) : 0;
    p->counts->broken += found < 0;
    if (found <= 0)
        return;
    event.time_ns = item->time_ns;
    event.cpu = item->cpu;
    event.comm = event.context ? KERNEL_IMPORT_INTERRUPT : tasks_name(tasks_find(&p->tasks, item->tid));
    if (event.kind == KMEM_EVENT_ALLOC)
        take_stack(p, item, &event);
    kernel_import_event_at(p->to, &event);
}

static int take_item(void *arg, const struct perf_item *item)
{
    struct perf_import *p = arg;
    char name[TASK_NAME_BYTES];
    int bad = 0;
    switch (item->kind) {
    case PERF_ITEM_COMM:
        tasks_set_name(&p->tasks, item->tid, item->comm, TASK_NAME_BYTES);
        break;
    case PERF_ITEM_FORK:
        snprintf(name, sizeof(name), "%s", tasks_name(tasks_find(&p->tasks, item->parent_tid)));
        tasks_set_name(&p->tasks, item->tid, name, sizeof(name));
        break;
    case PERF_ITEM_SAMPLE:
        bad = p->format ? 0 : begin(p);
        if (!bad)
            take_sample(p, item);
        break;
    }
    return bad;
}

int perf_import_read(struct kernel_import *to, struct perf_data *from, perf_import_names_fn *names, void *arg,
                     struct error *e)
{
    struct perf_import p = {
        .to = to, .from = from, .counts = kernel_import_counts(to), .names = names, .arg = arg, .e = e};
    tasks_set_name(&p.tasks, 0, "swapper",
                   TASK_NAME_BYTES); /* perf's name of what runs if nothing else does */
    int bad = perf_data_read(from, take_item, &p, e);
    const struct perf_data_about *about = perf_data_about(from);
    p.counts->lost += about->lost;
    if (about->lost) /* the order of events that were lost and of others is not known */
        kmem_accounts_lose(kernel_import_capture(to)->accounts, true);
    p.counts->broken += about->unread;
    p.counts->sampled = about->sampled;
    kmem_format_free(p.format);
    tasks_release(&p.tasks);
    return bad;
}
