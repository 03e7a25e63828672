/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/record/text_import.h"

#include <string.h>

#include "base/mem.h"
#include "collect/kernel/trace/ftrace_text.h"
#include "sys/record/event_decoder.h"

#define COMM_MAX    32u
#define CACHE_MAX   128u
#define WAITING_MAX 64u

struct waiting {
    struct kmem_event event;
    char comm[COMM_MAX], cache[CACHE_MAX];
    uint64_t stack[KMEM_EVENT_DEPTH_MAX];
    bool is_complete; /* no stack of it can follow */
};

struct text_import {
    struct kernel_import *to;
    struct kernel_import_counts *counts; /* of `to` */
    /*
     * Events wait for their stacks: the lines of other CPUs and of interrupts may come in between. They are accounted
     * in the order in which they came.
     */
    struct waiting waiting[WAITING_MAX];
    uint32_t first, n;
    struct waiting *takes; /* the event whose stack is being read; NULL: none */
};

static struct waiting *waiting_at(struct text_import *t, uint32_t k)
{
    return &t->waiting[(t->first + k) % WAITING_MAX];
}

static void account_first(struct text_import *t)
{
    kernel_import_event(t->to, &waiting_at(t, 0)->event);
    t->first = (t->first + 1) % WAITING_MAX;
    t->n--;
}

static void account_complete(struct text_import *t)
{
    while (t->n && waiting_at(t, 0)->is_complete)
        account_first(t);
}

static uint64_t number_of(struct text_import *t, struct ftrace_text_span s)
{
    return kernel_import_call(t->to, s.at, s.len);
}

static bool is_of(const struct kmem_event *e, const struct ftrace_text_line *l)
{
    return e->cpu == l->cpu && !e->context == !l->is_interrupt;
}

/* A line of another event: what came before on this CPU, in this context, has no stack to come. */
static void complete_before(struct text_import *t, const struct ftrace_text_line *l)
{
    for (uint32_t k = 0; k < t->n; k++)
        waiting_at(t, k)->is_complete |= is_of(&waiting_at(t, k)->event, l);
    account_complete(t);
}

static void copy(char *to, size_t room, struct ftrace_text_span s)
{
    const size_t len = s.len < room ? s.len : room - 1;
    memcpy(to, s.at ? s.at : "", len);
    to[len] = '\0';
}

static const char *name_cache(struct text_import *t, struct waiting *w, const struct ftrace_text_line *l)
{
    if (l->kind == FTRACE_TEXT_ALLOC && l->is_kmalloc && !l->no_allocated_bytes)
        return kernel_capture_kmalloc_name(kernel_import_capture(t->to),
                                           &(struct kmem_event){.is_kmalloc = true,
                                                                .requested_bytes = l->requested_bytes,
                                                                .allocated_bytes = l->allocated_bytes});
    copy(w->cache, sizeof(w->cache), l->cache);
    return w->cache;
}

static void take_event(struct text_import *t, const struct ftrace_text_line *l)
{
    complete_before(t, l);
    if (l->address_unknown) {
        t->counts->without_address++;
        return;
    }
    uint64_t call = number_of(t, l->call_site);
    if (!*kernel_import_call_text(t->to, call) && l->name.len)
        call = number_of(t, l->name);
    t->counts->without_name += !*kernel_import_call_text(t->to, call);
    if (t->n == WAITING_MAX)
        account_first(t);
    struct waiting *w = waiting_at(t, t->n++);
    w->is_complete = false;
    copy(w->comm, sizeof(w->comm), l->comm);
    w->event = (struct kmem_event){.kind = l->kind == FTRACE_TEXT_ALLOC ? KMEM_EVENT_ALLOC : KMEM_EVENT_FREE,
                                   .time_ns = l->time_ns,
                                   .address = l->address,
                                   .call_site = call,
                                   .requested_bytes = l->requested_bytes,
                                   .allocated_bytes = l->allocated_bytes,
                                   .cache = name_cache(t, w, l),
                                   .comm = l->is_interrupt ? EVENT_DECODER_INTERRUPT : w->comm,
                                   .is_kmalloc = l->is_kmalloc,
                                   .process = KMEM_EVENT_NO_PROCESS,
                                   .pid = l->pid,
                                   .cpu = l->cpu,
                                   .context = l->is_interrupt};
    t->counts->ticks += l->is_ticks;
    t->counts->without_allocated += l->no_allocated_bytes;
    w->event.time_ns = kernel_import_time(t->to, l->time_ns);
}

/* Stacks of frees are not needed. */
static void begin_stack(struct text_import *t, const struct ftrace_text_line *l)
{
    for (uint32_t k = t->n; k-- > 0 && !t->takes;) {
        struct waiting *w = waiting_at(t, k);
        if (!w->is_complete && is_of(&w->event, l) && w->event.pid == l->pid &&
            w->event.kind == KMEM_EVENT_ALLOC)
            t->takes = w;
    }
}

/*
 * The first frames are of the tracing and of the allocator: they are passed over, up to the one with the function of
 * the event's call. Where that call has no name, there is nothing to compare, and the whole stack is kept.
 */
static void take_caller(struct text_import *t, struct ftrace_text_span s)
{
    struct kmem_event *e = t->takes ? &t->takes->event : NULL;
    if (!e || e->depth == KMEM_EVENT_DEPTH_MAX)
        return;
    const uint64_t call = number_of(t, s);
    const char *site = kernel_import_call_text(t->to, e->call_site),
               *caller = kernel_import_call_text(t->to, call);
    const size_t len = strcspn(site, "+ ");
    if (!e->depth && len && (strcspn(caller, "+ ") != len || strncmp(site, caller, len) != 0))
        return;
    t->takes->stack[e->depth] = e->depth || !len ? call : e->call_site;
    e->depth++;
    e->stack = t->takes->stack;
}

/* The lines of a stack follow each other: any other line ends it. */
static void end_stack(struct text_import *t)
{
    if (!t->takes)
        return;
    t->takes->is_complete = true;
    t->takes = NULL;
    account_complete(t);
}

void text_import_line(struct text_import *t, const char *line, size_t len)
{
    struct ftrace_text_line l;
    ftrace_text_read(line, len, &l);
    t->counts->lines++;
    if (l.kind != FTRACE_TEXT_CALLER)
        end_stack(t);
    switch (l.kind) {
    case FTRACE_TEXT_ALLOC:
    case FTRACE_TEXT_FREE:
        take_event(t, &l);
        break;
    case FTRACE_TEXT_LOST:
        t->counts->lost += l.lost;
        t->counts->lost_unknown += !l.lost;
        break;
    case FTRACE_TEXT_STACK:
        begin_stack(t, &l);
        break;
    case FTRACE_TEXT_CALLER:
        take_caller(t, l.call_site);
        break;
    case FTRACE_TEXT_BROKEN:
        t->counts->broken++;
        complete_before(t, &l);
        break;
    case FTRACE_TEXT_EVENT: /* a stack that follows is its own */
        complete_before(t, &l);
        break;
    case FTRACE_TEXT_OTHER:
        break;
    }
}

void text_import_end(struct text_import *t)
{
    while (t->n)
        account_first(t);
}

struct text_import *text_import_new(struct kernel_import *to)
{
    struct text_import *t = mem_alloc(sizeof(*t));
    t->to = to;
    t->counts = kernel_import_counts(to);
    return t;
}

void text_import_free(struct text_import *t)
{
    free(t);
}
