/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/record/import/perf_import.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sys/record/import/event_decoder.h"
#include "sys/record/event_formats.h"
#include "sys/record/tasks.h"

struct perf_import {
    struct kernel_import *to;
    struct perf_data *from;
    struct kernel_import_counts *counts; /* of `to` */
    struct kmem_format *objects;         /* NULL: no sample has come yet */
    struct page_format *pages;
    struct tasks *tasks; /* of `to` */
    perf_import_names_fn *names;
    void *arg;
    struct error *e;
    uint64_t stack[KMEM_EVENT_DEPTH_MAX]; /* of the event that is accounted */
};

static int begin(struct perf_import *p)
{
    p->objects = kmem_format_new();
    p->pages = page_format_new();
    const struct event_formats_target to = {p->objects, p->pages, NULL};
    int bad = event_formats_add(&to, perf_data_formats(p->from), p->to, p->e);
    if (bad == -ENODATA)
        return error_set(p->e, ENODATA, "the file " EVENT_FORMATS_NONE);
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
        else if (in_kernel && (depth || caller == event->call_site || !event->call_site))
            p->stack[depth++] = caller;
    }
    event->stack = depth ? p->stack : NULL;
    event->depth = depth;
    p->counts->without_stack += item->n_callers && !depth;
}

/* What an interrupt does has nothing to do with the thread. */
static const char *name_program(const struct perf_import *p, const struct perf_item *item, uint8_t context)
{
    return context ? EVENT_DECODER_INTERRUPT : tasks_name(tasks_find(p->tasks, item->tid));
}

static void take_object(struct perf_import *p, const struct perf_item *item, struct kmem_event *event)
{
    const bool allocates = event->kind == KMEM_EVENT_ALLOC;
    const uint64_t cpus = perf_data_about(p->from)->possible_cpus;
    event->time_ns = item->time_ns;
    event->cpu = item->cpu;
    event->comm = name_program(p, item, event->context);
    event->process = event->context ? 0 : item->pid;
    p->counts->without_cpus += event->is_percpu && allocates && !cpus;
    if (event->is_percpu && cpus)
        event->requested_bytes *= cpus;
    if (allocates)
        take_stack(p, item, event);
    kernel_import_event_at(p->to, event);
}

static void take_pages(struct perf_import *p, const struct perf_item *item, struct page_event *event)
{
    struct kmem_event any = {.call_site = 0};
    event->comm = name_program(p, item, event->context);
    event->process = event->context ? 0 : item->pid;
    if (event->kind != PAGE_EVENT_FREE)
        take_stack(p, item, &any);
    event->stack = any.stack;
    event->depth = any.depth;
    kernel_import_pages_at(p->to, event, item->time_ns, item->cpu);
}

static void take_sample(struct perf_import *p, const struct perf_item *item)
{
    struct kmem_event object;
    struct page_event pages;
    int found = item->raw ? kmem_format_decode(p->objects, item->raw, item->raw_bytes, &object) : 0;
    if (found > 0)
        take_object(p, item, &object);
    else if (item->raw && !found) {
        found = page_format_decode(p->pages, item->raw, item->raw_bytes, &pages);
        if (found > 0)
            take_pages(p, item, &pages);
    }
    p->counts->broken += found < 0;
}

static int take_item(void *arg, const struct perf_item *item)
{
    struct perf_import *p = arg;
    char name[TASK_NAME_BYTES];
    int bad = 0;
    switch (item->kind) {
    case PERF_ITEM_COMM:
        tasks_set_name(p->tasks, item->tid, item->comm, TASK_NAME_BYTES);
        break;
    case PERF_ITEM_FORK:
        snprintf(name, sizeof(name), "%s", tasks_name(tasks_find(p->tasks, item->parent_tid)));
        tasks_set_name(p->tasks, item->tid, name, sizeof(name));
        break;
    case PERF_ITEM_SAMPLE:
        bad = p->objects ? 0 : begin(p);
        if (!bad)
            take_sample(p, item);
        break;
    }
    return bad;
}

int perf_import_read(struct kernel_import *to, struct perf_data *from, perf_import_names_fn *names, void *arg,
                     struct error *e)
{
    struct perf_import p = {.to = to,
                            .tasks = kernel_import_tasks(to),
                            .from = from,
                            .counts = kernel_import_counts(to),
                            .names = names,
                            .arg = arg,
                            .e = e};
    tasks_set_name(p.tasks, 0, "swapper",
                   TASK_NAME_BYTES); /* perf's name of what runs if nothing else does */
    int bad = perf_data_read(from, take_item, &p, e);
    const struct perf_data_about *about = perf_data_about(from);
    p.counts->lost += about->lost;
    if (about->lost) /* the order of events that were lost and of others is not known */
        kmem_accounts_lose(kernel_import_capture(to)->accounts, true);
    p.counts->broken += about->unread;
    kernel_import_use_page_bytes(to, about->page_bytes);
    p.counts->sampled = about->sampled;
    kmem_format_free(p.objects);
    page_format_free(p.pages);
    return bad;
}
