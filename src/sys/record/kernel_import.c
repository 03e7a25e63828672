/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/record/kernel_import.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/kernel/trace/ftrace_text.h"
#include "symbol/kallsyms.h"
#include "symbol/symbol_names.h"

#define COMM_MAX      32u
#define CACHE_MAX     128u
#define UNKNOWN_NAME  "[unknown]"
#define PAGES_NAME    "(pages)"
#define FUNCTION_MAX  (UINT64_C(1) << 20) /* an address further behind a symbol is not in it */
#define WAITING_MAX   64u
#define KMALLOC_STEP  8u
#define KMALLOC_NAME  24u
#define KMALLOC_LARGE 8192u /* as on machines with pages of 4 KiB: larger objects have no cache */

/* A call, as the trace names it. */
struct call {
    char *text; /* "alloc_pipe_info+0x4a [ext4]"; "": an address that nothing names */
};

struct waiting {
    struct kmem_event event;
    char comm[COMM_MAX], cache[CACHE_MAX];
    uint64_t stack[KMEM_EVENT_DEPTH_MAX];
    bool is_complete; /* no stack of it can follow */
};

struct kernel_import {
    struct kernel_capture capture;
    const struct kallsyms *symbols;
    struct VEC(struct call) calls; /* the events' call_site is the number of one */
    struct map call_index;         /* by the text in the trace */
    struct map text_index;         /* by the text that is shown */
    struct symbol_names names;
    struct kernel_import_counts counts;
    uint64_t last_ns, before_ns; /* the latest time so far, and that of the last event */
    /*
     * Events wait for their stacks: the lines of other CPUs and of interrupts may come in between. They are accounted
     * in the order in which they came.
     */
    struct waiting waiting[WAITING_MAX];
    uint32_t first, n;
    struct waiting *takes; /* the event whose stack is being read; NULL: none */
    char kmalloc_names[KMALLOC_LARGE / KMALLOC_STEP + 1][KMALLOC_NAME]; /* by size; "": not met yet */
};

/* ---- names ---- */

/* "f+0x4a/0x1c0 [ext4]" without the size of f. */
static void add_without_size(struct buf *b, const char *text, size_t len)
{
    const char *slash = memmem(text, len, "/0x", 3), *module = memmem(text, len, " [", 2);
    buf_add(b, text, slash ? (size_t)(slash - text) : module ? (size_t)(module - text) : len);
    if (module)
        buf_add(b, module, (size_t)(text + len - module));
}

/*
 * Hex alone, as "0x81234567", "ffffffff81234567" or "<ffffffff81234567>". Without "0x" at least eight digits
 * are wanted: a function may be called "add". */
static bool is_address(const char *text, uint64_t *out)
{
    const char *at = text + (*text == '<');
    const bool prefixed = at[0] == '0' && at[1] == 'x';
    const size_t digits = strspn(at + 2 * prefixed, "0123456789abcdef");
    const char *end = at + 2 * prefixed + digits;
    if ((!prefixed && digits < 8) || (*end && strcmp(end, ">") != 0))
        return false;
    *out = digits <= 16 ? strtoull(at, NULL, 16) : 0;
    return true;
}

/* A call is the return address: the byte before it is in the function. */
static void add_symbol(const struct kallsyms *k, struct buf *b, uint64_t address)
{
    const size_t at = k && address ? kallsyms_find(k, address - 1) : KALLSYMS_NONE;
    if (at == KALLSYMS_NONE || address - k->all.at[at].address > FUNCTION_MAX)
        return;
    buf_printf(b, "%s+0x%" PRIx64, kallsyms_name(k, at), address - k->all.at[at].address);
    if (*kallsyms_module_name(k, at))
        buf_printf(b, " [%s]", kallsyms_module_name(k, at));
}

/* The call's text, as it is shown; "": an address that nothing names. */
static void name_call(const struct kernel_import *i, struct buf *b, struct ftrace_text_span s)
{
    struct buf raw = BUF_INIT;
    uint64_t address;
    buf_add(&raw, s.at, s.len);
    if (is_address(buf_str(&raw), &address))
        add_symbol(i->symbols, b, address);
    else
        add_without_size(b, buf_str(&raw), s.len);
    buf_release(&raw);
}

/* Calls that are shown as the same text are one, however the trace writes them. */
static uint64_t number_of_call(struct kernel_import *i, struct ftrace_text_span s)
{
    size_t number = map_get(&i->call_index, s.at, s.len);
    if (number != MAP_NONE)
        return number;
    bool added;
    struct buf b = BUF_INIT;
    name_call(i, &b, s);
    number = map_put(&i->text_index, buf_str(&b), b.len, i->calls.len, &added);
    if (added)
        *vec_push(&i->calls) = (struct call){.text = mem_strdup(buf_str(&b))};
    buf_release(&b);
    map_put(&i->call_index, s.at, s.len, number, NULL);
    return number;
}

static const char *text_of(const struct kernel_import *i, uint64_t call)
{
    const char *text = i->calls.at[call].text;
    return *text ? text : UNKNOWN_NAME;
}

static void add_call(void *arg, struct buf *b, uint64_t call)
{
    buf_addstr(b, text_of(arg, call));
}

static void add_function(void *arg, struct buf *b, uint64_t call)
{
    struct kernel_import *i = arg;
    const char *text = text_of(i, call), *module = strstr(text, " [");
    struct buf raw = BUF_INIT;
    buf_add(&raw, text, strcspn(text, "+ "));
    const char *plain = symbol_names_function(&i->names, buf_str(&raw));
    buf_printf(b, "%s%s", plain ? plain : UNKNOWN_NAME, module ? module : "");
    buf_release(&raw);
}

static uint64_t number(void *arg, uint64_t call)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    const struct kernel_import *i = arg;
    if (!*i->calls.at[call].text)
        return 0;
    for (const char *at = i->calls.at[call].text; *at; at++)
        hash = (hash ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
    return hash >> 8;
}

/* ---- events ---- */

static struct waiting *waiting_at(struct kernel_import *i, uint32_t k)
{
    return &i->waiting[(i->first + k) % WAITING_MAX];
}

static void account_first(struct kernel_import *i)
{
    i->counts.broken += !kmem_accounts_add(i->capture.accounts, &waiting_at(i, 0)->event);
    i->first = (i->first + 1) % WAITING_MAX;
    i->n--;
}

static void account_complete(struct kernel_import *i)
{
    while (i->n && waiting_at(i, 0)->is_complete)
        account_first(i);
}

static bool is_of(const struct kmem_event *e, const struct ftrace_text_line *l)
{
    return e->cpu == l->cpu && !e->context == !l->is_interrupt;
}

/* A line of another event: what came before on this CPU, in this context, has no stack to come. */
static void complete_before(struct kernel_import *i, const struct ftrace_text_line *l)
{
    for (uint32_t k = 0; k < i->n; k++)
        waiting_at(i, k)->is_complete |= is_of(&waiting_at(i, k)->event, l);
    account_complete(i);
}

static void copy(char *to, size_t room, struct ftrace_text_span s)
{
    const size_t len = s.len < room ? s.len : room - 1;
    memcpy(to, s.at ? s.at : "", len);
    to[len] = '\0';
}

/* Events of kmalloc() do not name a cache: objects are named by their size, as sys record does. */
static const char *name_kmalloc(struct kernel_import *i, uint64_t bytes)
{
    if (bytes > KMALLOC_LARGE)
        return PAGES_NAME;
    char *name = i->kmalloc_names[bytes / KMALLOC_STEP];
    if (!*name)
        snprintf(name, KMALLOC_NAME, "(kmalloc %" PRIu64 ")", bytes);
    return name;
}

static const char *name_cache(struct kernel_import *i, struct waiting *w, const struct ftrace_text_line *l)
{
    if (l->kind == FTRACE_TEXT_ALLOC && l->is_kmalloc && !l->no_allocated_bytes)
        return name_kmalloc(i, l->allocated_bytes);
    copy(w->cache, sizeof(w->cache), l->cache);
    return w->cache;
}

static void count(struct kernel_import *i, const struct ftrace_text_line *l)
{
    i->counts.late += l->time_ns < i->before_ns;
    i->counts.ticks += l->is_ticks;
    i->counts.without_allocated += l->no_allocated_bytes;
    i->before_ns = l->time_ns;
    i->last_ns = l->time_ns > i->last_ns ? l->time_ns : i->last_ns;
}

static void take_event(struct kernel_import *i, const struct ftrace_text_line *l)
{
    complete_before(i, l);
    if (l->address_unknown) {
        i->counts.without_address++;
        return;
    }
    count(i, l);
    uint64_t call = number_of_call(i, l->call_site);
    if (!*i->calls.at[call].text && l->name.len)
        call = number_of_call(i, l->name);
    i->counts.without_name += !*i->calls.at[call].text;
    if (i->n == WAITING_MAX)
        account_first(i);
    struct waiting *w = waiting_at(i, i->n++);
    w->is_complete = false;
    copy(w->comm, sizeof(w->comm), l->comm);
    w->event = (struct kmem_event){.kind = l->kind == FTRACE_TEXT_ALLOC ? KMEM_EVENT_ALLOC : KMEM_EVENT_FREE,
                                   .time_ns = i->last_ns,
                                   .address = l->address,
                                   .call_site = call,
                                   .requested_bytes = l->requested_bytes,
                                   .allocated_bytes = l->allocated_bytes,
                                   .cache = name_cache(i, w, l),
                                   .comm = l->is_interrupt ? "[interrupt]" : w->comm,
                                   .is_kmalloc = l->is_kmalloc,
                                   .process = KMEM_EVENT_NO_PROCESS,
                                   .pid = l->pid,
                                   .cpu = l->cpu,
                                   .context = l->is_interrupt};
}

/* Stacks of frees are not needed. */
static void begin_stack(struct kernel_import *i, const struct ftrace_text_line *l)
{
    for (uint32_t k = i->n; k-- > 0 && !i->takes;) {
        struct waiting *w = waiting_at(i, k);
        if (!w->is_complete && is_of(&w->event, l) && w->event.pid == l->pid &&
            w->event.kind == KMEM_EVENT_ALLOC)
            i->takes = w;
    }
}

/*
 * The first frames are of the tracing and of the allocator: they are passed over, up to the one with the function of
 * the event's call. Where that call has no name, there is nothing to compare, and the whole stack is kept.
 */
static void take_caller(struct kernel_import *i, struct ftrace_text_span s)
{
    struct kmem_event *e = i->takes ? &i->takes->event : NULL;
    if (!e || e->depth == KMEM_EVENT_DEPTH_MAX)
        return;
    const uint64_t call = number_of_call(i, s);
    const char *site = i->calls.at[e->call_site].text, *caller = i->calls.at[call].text;
    const size_t len = strcspn(site, "+ ");
    if (!e->depth && len && (strcspn(caller, "+ ") != len || strncmp(site, caller, len) != 0))
        return;
    i->takes->stack[e->depth] = e->depth || !len ? call : e->call_site;
    e->depth++;
    e->stack = i->takes->stack;
}

/* The lines of a stack follow each other: any other line ends it. */
static void end_stack(struct kernel_import *i)
{
    if (!i->takes)
        return;
    i->takes->is_complete = true;
    i->takes = NULL;
    account_complete(i);
}

void kernel_import_line(struct kernel_import *i, const char *line, size_t len)
{
    struct ftrace_text_line l;
    ftrace_text_read(line, len, &l);
    i->counts.lines++;
    if (l.kind != FTRACE_TEXT_CALLER)
        end_stack(i);
    switch (l.kind) {
    case FTRACE_TEXT_ALLOC:
    case FTRACE_TEXT_FREE:
        take_event(i, &l);
        break;
    case FTRACE_TEXT_LOST:
        i->counts.lost += l.lost;
        i->counts.lost_unknown += !l.lost;
        break;
    case FTRACE_TEXT_STACK:
        begin_stack(i, &l);
        break;
    case FTRACE_TEXT_CALLER:
        take_caller(i, l.call_site);
        break;
    case FTRACE_TEXT_BROKEN:
        i->counts.broken++;
        complete_before(i, &l);
        break;
    case FTRACE_TEXT_EVENT: /* a stack that follows is its own */
        complete_before(i, &l);
        break;
    case FTRACE_TEXT_OTHER:
        break;
    }
}

void kernel_import_end(struct kernel_import *i, uint64_t written_ns)
{
    while (i->n)
        account_first(i);
    i->capture.realtime_ns = (int64_t)(written_ns - i->last_ns);
    i->capture.lost = i->counts.lost + i->counts.lost_unknown + i->counts.broken + i->counts.without_address;
    i->capture.over = true;
}

struct kernel_import *kernel_import_new(const struct kallsyms *symbols)
{
    struct kernel_import *i = mem_alloc(sizeof(*i));
    i->symbols = symbols;
    kernel_capture_init(&i->capture,
                        &(struct kernel_code_names){
                            .arg = i, .add_call = add_call, .add_function = add_function, .number = number});
    i->capture.comms = true;
    return i;
}

void kernel_import_free(struct kernel_import *i)
{
    if (!i)
        return;
    kernel_capture_release(&i->capture);
    vec_each (struct call, call, &i->calls)
        free(call->text);
    vec_release(&i->calls);
    map_release(&i->call_index);
    map_release(&i->text_index);
    symbol_names_release(&i->names);
    free(i);
}

struct kernel_capture *kernel_import_capture(struct kernel_import *i)
{
    return &i->capture;
}

const struct kernel_import_counts *kernel_import_counts(const struct kernel_import *i)
{
    return &i->counts;
}
