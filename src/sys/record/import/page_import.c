/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/record/import/page_import.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sys/record/import/event_decoder.h"
#include "sys/record/event_formats.h"
#include "sys/record/tasks.h"

#define STACK_FORMAT "events/ftrace/kernel_stack/format"

struct page_import {
    struct kernel_import *to;
    const struct trace_saved *from;
    struct kernel_import_counts *counts; /* of `to` */
    struct trace_reader *reader;
    struct event_decoder decoder;
    bool has_ticks; /* the clock is not one of time */
};

static int add_formats(struct page_import *p, const char *path, struct error *e)
{
    const struct event_formats_target to = {p->decoder.objects, p->decoder.pages, p->decoder.task_events};
    int bad = event_formats_add(&to, &p->from->formats, p->to, e);
    const struct buf *stack = tracing_data_text(&p->from->formats, STACK_FORMAT);
    p->decoder.stacks =
        stack && !bad && !kmem_format_add_stack(p->decoder.objects, buf_str(stack), stack->len, NULL);
    return bad == -ENODATA ? error_set(e, ENODATA, "%s: " EVENT_FORMATS_NONE, path) : bad;
}

static void account_object(struct page_import *p, const struct kmem_event *event, bool is_own)
{
    p->counts->ticks += p->has_ticks;
    p->counts->without_cpus += event->is_percpu && event->kind == KMEM_EVENT_ALLOC && !p->decoder.cpus;
    if (is_own && event->kind == KMEM_EVENT_ALLOC)
        kernel_import_own_event(p->to, event);
    else
        kernel_import_event_at(p->to, event);
}

static void account(void *arg, const struct trace_record *record, uint32_t cpu)
{
    struct page_import *p = arg;
    struct event_decoder_event e;
    const struct trace_reader_counts *n = trace_reader_counts(p->reader);
    event_decoder_take(&p->decoder, record, cpu, &e);
    if (e.kind == EVENT_DECODER_OBJECT) {
        if (n->lost + n->lost_unknown)
            kmem_accounts_lose(kernel_import_capture(p->to)->accounts, false);
        account_object(p, &e.object, e.is_own);
    } else if (e.kind == EVENT_DECODER_PAGES && (!p->from->end_ns || record->time <= p->from->end_ns)) {
        e.pages.comm = e.is_own ? KERNEL_IMPORT_OWN : e.pages.comm;
        kernel_import_pages_at(p->to, &e.pages, record->time, cpu);
    }
}

static int read_pages(struct page_import *p, const char *path, struct error *e)
{
    int bad = trace_reader_step(p->reader, true, account, p);
    const struct trace_reader_counts *n = trace_reader_counts(p->reader);
    p->counts->broken += n->broken_pages + p->decoder.broken;
    p->counts->without_stack += p->decoder.stackless;
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
    struct page_import p = {.to = to, .from = from, .counts = kernel_import_counts(to)};
    kernel_import_use_page_bytes(to, from->page_bytes);
    event_decoder_init(&p.decoder);
    p.decoder.tasks = kernel_import_tasks(to);
    p.decoder.own_tid = from->own_tid ? from->own_tid : -1;
    p.decoder.cpus = from->possible_cpus;
    p.decoder.processes = from->tasks.len;
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
        p.decoder.reader = p.reader;
        tasks_parse(kernel_import_tasks(to), buf_str(&from->formats.comms));
        tasks_parse_groups(kernel_import_tasks(to), buf_str(&from->tasks));
        bad = read_pages(&p, path, e);
    }
    trace_reader_close(p.reader);
    event_decoder_release(&p.decoder);
    return bad;
}
