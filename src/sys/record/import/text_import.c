/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/record/import/text_import.h"

#include <string.h>

#include "base/mem.h"
#include "collect/kernel/trace/ftrace_text.h"
#include "collect/kernel/trace/kmem_format.h"
#include "sys/record/import/event_decoder.h"
#include "sys/record/tasks.h"

#define COMM_MAX    32u
#define CACHE_MAX   128u
#define WAITING_MAX 64u

struct waiting {
    struct kmem_event event; /* of pages: CPU, context, thread, stack */
    bool is_pages;
    struct page_event pages;
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
    bool has_gfp; /* some line has told the flags of an allocation */
    bool has_processes;
    uint32_t cpus;         /* as the header says; 0: it does not */
    struct waiting *takes; /* the event whose stack is being read; NULL: none */
};

static struct waiting *waiting_at(struct text_import *t, uint32_t k)
{
    return &t->waiting[(t->first + k) % WAITING_MAX];
}

static void account_first(struct text_import *t)
{
    struct waiting *w = waiting_at(t, 0);
    w->pages.stack = w->event.stack;
    w->pages.depth = w->event.depth;
    if (w->is_pages)
        kernel_import_pages(t->to, &w->pages, w->event.time_ns, w->event.cpu);
    else
        kernel_import_event(t->to, &w->event);
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
    return kernel_import_call(t->to, s.at ? s.at : "", s.len);
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

static void name_cache(struct text_import *t, struct waiting *w, const struct ftrace_text_line *l)
{
    copy(w->cache, sizeof(w->cache), l->cache);
    w->event.cache = l->is_percpu ? KMEM_FORMAT_PERCPU_CACHE : w->cache;
    if (l->kind == FTRACE_TEXT_ALLOC && l->is_kmalloc && !l->no_allocated_bytes)
        w->event.cache = kernel_capture_kmalloc_name(kernel_import_capture(t->to), &w->event);
}

/* What stands for a name that is not known, or is of no thread, is what other sources of events say. */
static struct ftrace_text_span name_in_line(const struct ftrace_text_line *l)
{
    static const char *const others[][2] = {{"<...>", TASKS_NO_NAME}, {"<idle>", TASKS_IDLE}};
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        if (l->comm.len == strlen(others[i][0]) && !memcmp(l->comm.at, others[i][0], l->comm.len))
            return (struct ftrace_text_span){others[i][1], strlen(others[i][1])};
    return l->comm;
}

/* A thread's name in a line may be a later one: if the trace has events of names, these count. */
static const char *name_program(struct text_import *t, struct waiting *w, const struct ftrace_text_line *l)
{
    const struct task *task = tasks_find(kernel_import_tasks(t->to), l->pid);
    if (l->is_interrupt)
        return EVENT_DECODER_INTERRUPT;
    if (*task->name && task->tid == l->pid && l->pid)
        copy(w->comm, sizeof(w->comm), (struct ftrace_text_span){task->name, strlen(task->name)});
    else
        copy(w->comm, sizeof(w->comm), name_in_line(l));
    return w->comm;
}

/* Of a thread whose process is not told, nothing is guessed, but the idle thread has none. */
static int32_t process_of(struct text_import *t, const struct ftrace_text_line *l)
{
    if (l->has_process && (l->is_interrupt || !l->pid))
        return 0;
    t->has_processes |= l->process != 0;
    t->counts->without_process += !l->process;
    return l->process ? l->process : KMEM_EVENT_NO_PROCESS;
}

static uint64_t gfp_of(struct text_import *t, const struct ftrace_text_line *l)
{
    t->has_gfp |= l->gfp.len != 0;
    t->counts->without_gfp += !l->gfp.len;
    return kernel_import_gfp(t->to, l->gfp.at ? l->gfp.at : "", l->gfp.len);
}

static struct waiting *add_waiting(struct text_import *t, const struct ftrace_text_line *l)
{
    if (t->n == WAITING_MAX)
        account_first(t);
    struct waiting *w = waiting_at(t, t->n++);
    w->is_complete = false;
    w->is_pages = l->kind == FTRACE_TEXT_PAGES;
    w->event = (struct kmem_event){.time_ns = kernel_import_time(t->to, l->time_ns),
                                   .comm = name_program(t, w, l),
                                   .process = process_of(t, l),
                                   .pid = l->pid,
                                   .cpu = l->cpu,
                                   .context = l->is_interrupt};
    t->counts->ticks += l->is_ticks;
    return w;
}

static uint64_t call_of(struct text_import *t, const struct ftrace_text_line *l)
{
    uint64_t call = number_of(t, l->call_site);
    if (!*kernel_import_call_text(t->to, call) && l->name.len)
        call = number_of(t, l->name);
    const bool has_call = l->kind == FTRACE_TEXT_ALLOC || !l->is_percpu;
    t->counts->without_name += has_call && !*kernel_import_call_text(t->to, call);
    return call;
}

/*
 * The header counts the CPUs that are on, and others have a part of percpu memory, too. If there are none, what was
 * allocated is that for all CPUs, perhaps with 8 bytes for each 4 of one part (CONFIG_MEMCG).
 */
static uint64_t requested_of(struct text_import *t, const struct ftrace_text_line *l)
{
    const uint64_t one = l->requested_bytes, n = t->cpus;
    if (!l->is_percpu || l->kind == FTRACE_TEXT_FREE)
        return one;
    const bool fits =
        n && one < UINT32_MAX && (l->allocated_bytes == one * n || l->allocated_bytes == one * (n + 2));
    t->counts->without_cpus += !fits;
    return fits ? one * n : one;
}

static void take_event(struct text_import *t, const struct ftrace_text_line *l)
{
    complete_before(t, l);
    if (l->address_unknown) {
        t->counts->without_address++;
        return;
    }
    const uint64_t call = call_of(t, l);
    struct waiting *w = add_waiting(t, l);
    w->event.kind = l->kind == FTRACE_TEXT_ALLOC ? KMEM_EVENT_ALLOC : KMEM_EVENT_FREE;
    w->event.address = l->address;
    w->event.call_site = call;
    w->event.requested_bytes = requested_of(t, l);
    w->event.allocated_bytes = l->allocated_bytes;
    w->event.is_kmalloc = l->is_kmalloc;
    w->event.is_percpu = l->is_percpu;
    if (l->kind == FTRACE_TEXT_ALLOC)
        w->event.gfp = gfp_of(t, l);
    name_cache(t, w, l);
    t->counts->without_allocated += l->no_allocated_bytes;
}

static void take_pages(struct text_import *t, const struct ftrace_text_line *l)
{
    complete_before(t, l);
    kernel_import_use_pages(t->to);
    const uint64_t no_call = kernel_import_call(t->to, "", 0);
    struct waiting *w = add_waiting(t, l);
    w->event.kind = l->pages.kind == PAGE_EVENT_FREE ? KMEM_EVENT_FREE : KMEM_EVENT_ALLOC;
    w->event.call_site = no_call;
    w->pages = l->pages;
    w->pages.comm = w->event.comm;
    w->pages.process = w->event.process;
    if (l->pages.kind == PAGE_EVENT_ALLOC)
        w->pages.gfp = gfp_of(t, l);
}

static void take_task(struct text_import *t, const struct ftrace_text_line *l)
{
    complete_before(t, l);
    char comm[TASK_NAME_BYTES];
    copy(comm, sizeof(comm), l->task_comm);
    tasks_set_name(kernel_import_tasks(t->to), l->task_pid, comm, sizeof(comm));
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
    t->cpus = l.cpus ? l.cpus : t->cpus;
    if (l.kind != FTRACE_TEXT_CALLER)
        end_stack(t);
    switch (l.kind) {
    case FTRACE_TEXT_ALLOC:
    case FTRACE_TEXT_FREE:
        take_event(t, &l);
        break;
    case FTRACE_TEXT_PAGES:
        take_pages(t, &l);
        break;
    case FTRACE_TEXT_TASK:
        take_task(t, &l);
        break;
    case FTRACE_TEXT_LOST:
        t->counts->lost += l.lost;
        t->counts->lost_unknown += !l.lost;
        kmem_accounts_lose(kernel_import_capture(t->to)->accounts, false);
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
    if (!t->has_processes) /* a trace without any is no table with holes */
        t->counts->without_process = 0;
    if (!t->has_gfp)
        kernel_import_capture(t->to)->names.add_gfp = NULL;
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
