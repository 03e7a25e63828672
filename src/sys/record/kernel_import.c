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
#define KMALLOC_LARGE 8192u /* as on machines with pages of 4 KiB: larger objects have no cache */

/* A call, as the trace names it. */
struct call {
    char *text; /* "alloc_pipe_info+0x4a [ext4]"; "": an address that nothing names */
};

struct kernel_import {
    struct kernel_capture capture;
    const struct kallsyms *symbols;
    struct VEC(struct call) calls; /* the events' call_site is the number of one */
    struct map call_index;         /* by the text in the trace */
    struct symbol_names names;
    struct kernel_import_counts counts;
    uint64_t last_ns;
    /* An allocation waits for its stack, which follows if there is one. */
    bool waits, takes_callers;
    struct kmem_event event;
    char comm[COMM_MAX], cache[CACHE_MAX];
    uint64_t stack[KMEM_EVENT_DEPTH_MAX];
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

static bool is_address(const char *text, size_t len)
{
    if (len > 2 && text[0] == '0' && text[1] == 'x')
        return strspn(text + 2, "0123456789abcdef") >= len - 2;
    return len == 16 && strspn(text, "0123456789abcdef") >= len;
}

/* A call is the return address: the byte before it is in the function. */
static void add_symbol(const struct kallsyms *k, struct buf *b, const char *text)
{
    const uint64_t address = strtoull(text, NULL, 16);
    const size_t at = k ? kallsyms_find(k, address - 1) : KALLSYMS_NONE;
    if (at == KALLSYMS_NONE)
        return;
    buf_printf(b, "%s+0x%" PRIx64, kallsyms_name(k, at), address - k->all.at[at].address);
    if (*kallsyms_module_name(k, at))
        buf_printf(b, " [%s]", kallsyms_module_name(k, at));
}

static uint64_t number_of_call(struct kernel_import *i, struct ftrace_text_span s)
{
    bool added;
    size_t number = map_put(&i->call_index, s.at, s.len, i->calls.len, &added);
    if (added) {
        struct buf raw = BUF_INIT, b = BUF_INIT;
        buf_add(&raw, s.at, s.len);
        if (is_address(buf_str(&raw), s.len))
            add_symbol(i->symbols, &b, buf_str(&raw));
        else
            add_without_size(&b, buf_str(&raw), s.len);
        *vec_push(&i->calls) = (struct call){.text = buf_detach(&b)};
        buf_release(&raw);
    }
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
    for (const char *at = i->calls.at[call].text; *at; at++)
        hash = (hash ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
    return hash >> 8;
}

/* ---- events ---- */

static void account(struct kernel_import *i)
{
    if (i->waits)
        kmem_accounts_add(i->capture.accounts, &i->event);
    i->waits = i->takes_callers = false;
}

static void copy(char *to, size_t room, struct ftrace_text_span s)
{
    const size_t len = s.len < room ? s.len : room - 1;
    memcpy(to, s.at ? s.at : "", len);
    to[len] = '\0';
}

/* Events of kmalloc() do not name a cache: objects are named by their size, as sys record does. */
static void name_cache(struct kernel_import *i, const struct ftrace_text_line *l)
{
    if (l->kind != FTRACE_TEXT_ALLOC || !l->is_kmalloc || l->no_allocated_bytes)
        copy(i->cache, sizeof(i->cache), l->cache);
    else if (l->allocated_bytes > KMALLOC_LARGE)
        snprintf(i->cache, sizeof(i->cache), PAGES_NAME);
    else
        snprintf(i->cache, sizeof(i->cache), "(kmalloc %" PRIu64 ")", l->allocated_bytes);
}

static void take_event(struct kernel_import *i, const struct ftrace_text_line *l)
{
    account(i);
    if (l->address_unknown) {
        i->counts.without_address++;
        return;
    }
    i->counts.late += l->time_ns < i->last_ns;
    i->last_ns = l->time_ns > i->last_ns ? l->time_ns : i->last_ns;
    i->counts.without_allocated += l->no_allocated_bytes;
    const uint64_t call = number_of_call(i, l->call_site);
    i->counts.without_name += !*i->calls.at[call].text;
    copy(i->comm, sizeof(i->comm), l->comm);
    name_cache(i, l);
    i->event = (struct kmem_event){.kind = l->kind == FTRACE_TEXT_ALLOC ? KMEM_EVENT_ALLOC : KMEM_EVENT_FREE,
                                   .time_ns = i->last_ns,
                                   .address = l->address,
                                   .call_site = call,
                                   .requested_bytes = l->requested_bytes,
                                   .allocated_bytes = l->allocated_bytes,
                                   .cache = i->cache,
                                   .comm = l->is_interrupt ? "[interrupt]" : i->comm,
                                   .is_kmalloc = l->is_kmalloc,
                                   .pid = l->pid,
                                   .cpu = l->cpu,
                                   .context = l->is_interrupt};
    i->waits = true;
}

/* The stack begins with the tracing itself, up to the call, which has the same function. */
static void take_caller(struct kernel_import *i, struct ftrace_text_span s)
{
    if (!i->waits || !i->takes_callers || i->event.depth == KMEM_EVENT_DEPTH_MAX)
        return;
    const uint64_t call = number_of_call(i, s);
    const char *site = i->calls.at[i->event.call_site].text, *caller = i->calls.at[call].text;
    const size_t len = strcspn(site, "+ ");
    if (!i->event.depth && (strcspn(caller, "+ ") != len || strncmp(site, caller, len)))
        return;
    i->stack[i->event.depth] = i->event.depth ? call : i->event.call_site;
    i->event.depth++;
    i->event.stack = i->stack;
}

void kernel_import_line(struct kernel_import *i, const char *line, size_t len)
{
    struct ftrace_text_line l;
    ftrace_text_read(line, len, &l);
    i->counts.lines++;
    switch (l.kind) {
    case FTRACE_TEXT_ALLOC:
    case FTRACE_TEXT_FREE:
        take_event(i, &l);
        break;
    case FTRACE_TEXT_LOST:
        i->counts.lost += l.lost;
        break;
    case FTRACE_TEXT_STACK:
        i->takes_callers = i->waits && i->event.pid == l.pid && i->event.cpu == l.cpu;
        break;
    case FTRACE_TEXT_CALLER:
        take_caller(i, l.call_site);
        break;
    case FTRACE_TEXT_BROKEN:
        i->counts.broken++;
        break;
    case FTRACE_TEXT_OTHER:
        break;
    }
}

void kernel_import_end(struct kernel_import *i, uint64_t written_ns)
{
    account(i);
    i->capture.realtime_ns = (int64_t)(written_ns - i->last_ns);
    i->capture.lost = i->counts.lost + i->counts.broken + i->counts.without_address;
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
