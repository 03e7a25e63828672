/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/record/import/kernel_import.h"

#include <stdlib.h>
#include <string.h>

#include "model/kernel/page_bytes.h"
#include "sys/record/import/kernel_import_parts.h"

static const char *cgroup(void *arg, int32_t process)
{
    const struct kernel_import *i = arg;
    return tasks_cgroup(&i->tasks, process);
}

struct tasks *kernel_import_tasks(struct kernel_import *i)
{
    return &i->tasks;
}

uint64_t kernel_import_time(struct kernel_import *i, uint64_t time_ns)
{
    if (!i->last_ns || time_ns < i->first_ns)
        i->first_ns = time_ns;
    i->counts.late += time_ns < i->before_ns;
    i->before_ns = time_ns;
    i->last_ns = time_ns > i->last_ns ? time_ns : i->last_ns;
    return i->last_ns;
}

void kernel_import_set_span(struct kernel_import *i, uint64_t from_ns, uint64_t to_ns)
{
    i->has_span = true;
    i->from_ns = from_ns;
    i->to_ns = to_ns;
}

static void begin_span(struct kernel_import *i)
{
    if (i->skew)
        clock_skew_end(i->skew);
    kernel_capture_begin_span(&i->capture);
}

/* Returns whether an event of this time is accounted. */
static bool is_in_span(struct kernel_import *i, uint64_t time_ns)
{
    const uint64_t offset_ns = time_ns - i->first_ns;
    if (i->has_span && !i->capture.span && offset_ns >= i->from_ns)
        begin_span(i);
    return !i->has_span || offset_ns <= i->to_ns;
}

void kernel_import_use_page_bytes(struct kernel_import *i, uint64_t bytes)
{
    if (!page_bytes_possible(bytes))
        return;
    i->capture.page_bytes = bytes;
    i->has_page_bytes = true;
}

bool kernel_import_lacks_page_bytes(const struct kernel_import *i)
{
    return i->capture.pages && !i->has_page_bytes;
}

void kernel_import_use_pages(struct kernel_import *i)
{
    if (!i->capture.pages)
        i->capture.pages = page_accounts_new();
}

void kernel_import_pages(struct kernel_import *i, const struct page_event *e, uint64_t time_ns, uint32_t cpu)
{
    if (i->capture.pages && is_in_span(i, time_ns))
        i->counts.broken += !kernel_capture_add_pages(&i->capture, e, cpu);
}

void kernel_import_pages_at(struct kernel_import *i, const struct page_event *e, uint64_t time_ns,
                            uint32_t cpu)
{
    struct page_event event = *e;
    uint64_t stack[KMEM_EVENT_DEPTH_MAX];
    for (uint32_t k = 0; k < e->depth; k++)
        stack[k] = kernel_import_call_at(i, e->stack[k]);
    event.stack = e->depth ? stack : NULL;
    kernel_import_pages(i, &event, kernel_import_time(i, time_ns), cpu);
}

void kernel_import_event(struct kernel_import *i, const struct kmem_event *e)
{
    if (!is_in_span(i, e->time_ns))
        return;
    i->counts.other_calls += e->call_site == OTHER_CALLS;
    if (!i->end_ns || e->time_ns <= i->end_ns)
        kernel_capture_mark_pages(&i->capture, e);
    if (i->skew)
        clock_skew_add(i->skew, e);
    else
        i->counts.broken += !kmem_accounts_add(i->capture.accounts, e);
}

void kernel_import_event_at(struct kernel_import *i, const struct kmem_event *e)
{
    struct kmem_event event = *e;
    uint64_t stack[KMEM_EVENT_DEPTH_MAX];
    event.call_site = kernel_import_call_at(i, e->call_site);
    const bool has_call = e->kind == KMEM_EVENT_ALLOC || !e->is_percpu;
    i->counts.without_name += has_call && !*i->calls.at[event.call_site].text;
    for (uint32_t k = 0; k < e->depth; k++)
        stack[k] = kernel_import_call_at(i, e->stack[k]);
    event.stack = e->depth ? stack : NULL;
    if (e->kind == KMEM_EVENT_ALLOC && e->is_kmalloc)
        event.cache = kernel_capture_kmalloc_name(&i->capture, e);
    event.time_ns = kernel_import_time(i, e->time_ns);
    kernel_import_event(i, &event);
}

void kernel_import_own_event(struct kernel_import *i, const struct kmem_event *e)
{
    struct kmem_event event = *e;
    event.call_site = kernel_import_call(i, KERNEL_IMPORT_OWN, strlen(KERNEL_IMPORT_OWN));
    event.is_own = true;
    event.cache = "";
    event.stack = NULL;
    event.depth = 0;
    event.time_ns = kernel_import_time(i, e->time_ns);
    kernel_import_event(i, &event);
}

void kernel_import_clocks_differ(struct kernel_import *i)
{
    if (!i->skew)
        i->skew = clock_skew_new(i->capture.accounts);
}

void kernel_import_end_at(struct kernel_import *i, uint64_t end_ns, uint64_t settle_ns)
{
    kmem_accounts_end_at(i->capture.accounts, end_ns, settle_ns);
    i->capture.settle_ns = settle_ns;
    i->end_ns = end_ns;
}

void kernel_import_end(struct kernel_import *i, int64_t realtime_ns)
{
    if (i->has_span && !i->capture.span)
        begin_span(i);
    if (i->skew) {
        clock_skew_end(i->skew);
        i->counts.reversed = clock_skew_pairs(i->skew);
    }
    i->capture.realtime_ns = realtime_ns;
    i->capture.lost = i->counts.lost + i->counts.lost_unknown + i->counts.broken + i->counts.without_address;
    i->capture.over = true;
    const uint64_t took_ns = i->last_ns - i->first_ns;
    i->capture.began_ns = i->first_ns + (uint64_t)realtime_ns;
    i->capture.ended_ns = i->capture.began_ns + (i->has_span && i->to_ns < took_ns ? i->to_ns : took_ns);
    if (i->tasks.cgroups.len)
        i->capture.names.cgroup = cgroup;
}

uint64_t kernel_import_first_ns(const struct kernel_import *i)
{
    return i->first_ns;
}

uint64_t kernel_import_events(const struct kernel_import *i)
{
    return kmem_accounts_totals(i->capture.accounts)->events +
           (i->capture.pages ? page_accounts_totals(i->capture.pages)->events : 0);
}

uint64_t kernel_import_last_ns(const struct kernel_import *i)
{
    return i->end_ns && i->end_ns < i->last_ns ? i->end_ns : i->last_ns;
}

struct kernel_import *kernel_import_new(void)
{
    struct kernel_import *i = mem_alloc(sizeof(*i));
    kernel_import_init_names(i);
    i->capture.comms = true;
    return i;
}

void kernel_import_free(struct kernel_import *i)
{
    if (!i)
        return;
    clock_skew_free(i->skew);
    kernel_capture_release(&i->capture);
    vec_each (struct call, call, &i->calls) {
        free(call->text);
        if (call->place) {
            free((char *)call->place->function);
            free((char *)call->place->file);
        }
        free(call->place);
    }
    vec_release(&i->calls);
    map_release(&i->call_index);
    map_release(&i->text_index);
    map_release(&i->address_index);
    symbol_names_release(&i->names);
    tasks_release(&i->tasks);
    gfp_release(&i->gfp);
    vec_each (char *, text, &i->gfp_texts)
        free(*text);
    vec_release(&i->gfp_texts);
    map_release(&i->gfp_index);
    free(i);
}

struct kernel_capture *kernel_import_capture(struct kernel_import *i)
{
    return &i->capture;
}

struct kernel_import_counts *kernel_import_counts(struct kernel_import *i)
{
    return &i->counts;
}
