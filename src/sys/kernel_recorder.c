/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/kernel_recorder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/hash_map.h"
#include "base/read_file.h"
#include "base/sigsafe/clock_ns.h"
#include "bpf/kmem.h"
#include "collect/kernel/trace/kmem_format.h"
#include "collect/kernel/trace/trace_reader.h"
#include "sys/resolver.h"
#include "sys/session.h"

#define FORMAT_BYTES_MAX (1u << 20)
/* The call_site of allocations by this process: no code is at this address. */
#define OWN_SITE 0
#define PEEK_MAX 64u /* records between an event and its stack */
#define OWN_NAME "allium itself"
/* Code that has no symbol any more, or that the kernel does not show; its address is stored nowhere. */
#define UNKNOWN_NAME "[unknown]"

struct cell_key {
    uint64_t call_site;
    uint32_t stack, size_class;
};

struct kernel_recorder {
    struct trace_instance instance;
    struct trace_reader *reader;
    struct kmem_format *format;
    struct kmem_accounts *accounts;
    struct sys_session names; /* only its names: the resolver wants a session */
    int32_t own_tid;
    uint64_t broken_records;
    uint64_t lost;
    int64_t realtime_ns; /* CLOCK_REALTIME minus CLOCK_MONOTONIC */
    uint64_t image_id;
    /* The cells of the profile. Each new profile keeps the order of the earlier cells, and appends new ones. */
    struct VEC(struct cell_key) cells;
    struct map cell_index;
    bool stacks;
    uint64_t stack[KMEM_EVENT_DEPTH_MAX]; /* of the event that is accounted */
    bool over;
};

static int read_format(const struct kernel_recorder *r, const char *event, struct buf *text, struct error *e)
{
    struct buf path = BUF_INIT;
    buf_printf(&path, "events/%s/format", event);
    int bad = file_read_at(r->instance.tracefs_fd, buf_str(&path), FORMAT_BYTES_MAX, text);
    if (bad)
        error_set(e, -bad, "cannot read %s of tracefs: %s", buf_str(&path), strerror(-bad));
    buf_release(&path);
    return bad;
}

static int add_format(struct kernel_recorder *r, size_t i, struct error *e)
{
    char event[64];
    struct buf text = BUF_INIT;
    const char *name = kmem_format_events[i];
    snprintf(event, sizeof(event), "kmem/%s", name);
    int bad = read_format(r, event, &text, e);
    if (bad == -ENOENT && i >= KMEM_FORMAT_REQUIRED)
        bad = 0;
    else if (!bad)
        bad = kmem_format_add(r->format, name, buf_str(&text), text.len, e);
    buf_release(&text);
    return bad;
}

static int add_stack_format(struct kernel_recorder *r, struct error *e)
{
    struct buf text = BUF_INIT;
    int bad = read_format(r, "ftrace/kernel_stack", &text, e);
    bad = bad ? bad : kmem_format_add_stack(r->format, buf_str(&text), text.len, e);
    buf_release(&text);
    return bad;
}

/* Each event of an allocation is followed by a record with its stack. */
static int enable(struct kernel_recorder *r, bool stacks, struct error *e)
{
    char path[64];
    int bad = stacks ? add_stack_format(r, e) : 0;
    for (size_t i = 0; kmem_format_events[i] && !bad; i++) {
        const char *name = kmem_format_events[i];
        snprintf(path, sizeof(path), "events/kmem/%s", name);
        if (i >= KMEM_FORMAT_REQUIRED && faccessat(r->instance.fd, path, F_OK, 0))
            continue;
        snprintf(path, sizeof(path), "events/kmem/%s/trigger", name);
        if (stacks && strstr(name, "alloc"))
            bad = trace_instance_write(&r->instance, path, "stacktrace", e);
        snprintf(path, sizeof(path), "events/kmem/%s/enable", name);
        bad = bad ? bad : trace_instance_write(&r->instance, path, "1", e);
    }
    return bad;
}

int kernel_recorder_open(struct kernel_recorder **out, uint32_t buffer_kib, bool stacks, struct error *e)
{
    struct kernel_recorder *r = *out = mem_alloc(sizeof(*r));
    char size[16];
    r->own_tid = (int32_t)getpid();
    r->stacks = stacks;
    r->format = kmem_format_new();
    r->accounts = kmem_accounts_new();
    r->names.names = resolver_new(&(struct resolver_wanted){.spaces = false});
    snprintf(size, sizeof(size), "%u", buffer_kib);
    int bad = trace_instance_create(&r->instance, e);
    bad = bad ? bad : trace_instance_write(&r->instance, "trace_clock", "mono", e);
    if (!bad && trace_instance_write(&r->instance, "buffer_size_kb", size, e))
        bad = error_set(e, ENOMEM,
                        "the kernel has no memory for buffers of %s KiB on each CPU: use a smaller --buffer",
                        size);
    for (size_t i = 0; kmem_format_events[i] && !bad; i++)
        bad = add_format(r, i, e);
    bad = bad ? bad : trace_reader_open(&r->reader, &r->instance, e);
    bad = bad ? bad : enable(r, stacks, e);
    if (!bad) {
        resolver_kernel_number(r->names.names, 1); /* reads the kernel's symbols now, as no event waits */
        return 0;
    }
    kernel_recorder_close(r);
    *out = NULL;
    return bad;
}

void kernel_recorder_close(struct kernel_recorder *r)
{
    if (!r)
        return;
    trace_reader_close(r->reader); /* an instance whose buffers are open cannot be removed */
    trace_instance_remove(&r->instance);
    kmem_format_free(r->format);
    kmem_accounts_free(r->accounts);
    resolver_free(r->names.names);
    vec_release(&r->cells);
    map_release(&r->cell_index);
    free(r);
}

int kernel_recorder_begin(struct kernel_recorder *r, struct error *e)
{
    r->realtime_ns = (int64_t)(clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC));
    r->image_id = clock_ns(CLOCK_REALTIME) | 1; /* never 0 */
    return trace_instance_write(&r->instance, "tracing_on", "1", e);
}

/*
 * The record with the event's stack comes behind it, on the same CPU and in the same context; what interrupts do may
 * come in between. The stack begins with the tracing and the allocator itself, up to the call.
 */
static void find_stack(struct kernel_recorder *r, struct kmem_event *event)
{
    struct trace_peek peek = trace_reader_peek(r->reader);
    struct trace_record record;
    struct kmem_stack stack;
    struct kmem_event other;
    for (unsigned n = 0; n < PEEK_MAX && trace_peek_next(r->reader, &peek, &record); n++) {
        if (kmem_format_stack(r->format, record.data, record.bytes, &stack) <= 0) {
            if (kmem_format_decode(r->format, record.data, record.bytes, &other) > 0 &&
                other.context == event->context)
                return; /* it had none */
            continue;
        }
        if (stack.context != event->context)
            continue;
        uint32_t depth = 0;
        for (uint32_t i = 0; i < stack.n && depth < KMEM_EVENT_DEPTH_MAX; i++) {
            uint64_t caller;
            memcpy(&caller, stack.callers + 8 * i, sizeof(caller));
            if (depth || caller == event->call_site)
                r->stack[depth++] = caller;
        }
        event->stack = r->stack;
        event->depth = depth;
        return;
    }
}

static void account(void *arg, const struct trace_record *record, uint32_t cpu)
{
    struct kernel_recorder *r = arg;
    struct kmem_event event;
    int found = kmem_format_decode(r->format, record->data, record->bytes, &event);
    r->broken_records += found < 0;
    if (found <= 0)
        return;
    event.time_ns = record->time;
    event.cpu = cpu;
    if (event.pid == r->own_tid && !event.context && event.kind == KMEM_EVENT_ALLOC) {
        event.call_site = OWN_SITE;
        event.cache = "";
    } else if (r->stacks && event.kind == KMEM_EVENT_ALLOC) {
        find_stack(r, &event);
    }
    kmem_accounts_add(r->accounts, &event);
}

static int read_all(struct kernel_recorder *r, bool last, struct error *e)
{
    int bad = trace_reader_step(r->reader, last, account, r);
    return bad ? error_set(e, -bad, "cannot read the kernel's trace buffers: %s", strerror(-bad)) : 0;
}

int kernel_recorder_step(struct kernel_recorder *r, struct error *e)
{
    return read_all(r, false, e);
}

/* "overrun: 12", "commit overrun: 0", "dropped events: 0" */
static uint64_t losses_of(const char *stats)
{
    static const char *const lost[] = {"overrun: ", "commit overrun: ", "dropped events: "};
    uint64_t sum = 0;
    for (const char *line = stats; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        for (size_t i = 0; i < sizeof(lost) / sizeof(*lost); i++)
            if (!strncmp(line, lost[i], strlen(lost[i])))
                sum += strtoull(line + strlen(lost[i]), NULL, 10);
    return sum;
}

static void count_losses(struct kernel_recorder *r)
{
    char path[64];
    r->lost = 0;
    long possible = sysconf(_SC_NPROCESSORS_CONF);
    for (long cpu = 0; cpu < possible; cpu++) {
        struct buf text = BUF_INIT;
        snprintf(path, sizeof(path), "per_cpu/cpu%ld/stats", cpu);
        if (!file_read_at(r->instance.fd, path, FORMAT_BYTES_MAX, &text))
            r->lost += losses_of(buf_str(&text));
        buf_release(&text);
    }
}

int kernel_recorder_end(struct kernel_recorder *r, struct error *e)
{
    if (r->over)
        return 0;
    r->over = true;
    int bad = trace_instance_write(&r->instance, "tracing_on", "0", e);
    return bad ? bad : read_all(r, true, e);
}

const struct kmem_accounts *kernel_recorder_accounts(const struct kernel_recorder *r)
{
    return r->accounts;
}

static uint64_t broken(const struct kernel_recorder *r)
{
    return trace_reader_counts(r->reader)->broken_pages + r->broken_records;
}

struct kernel_recorder_losses kernel_recorder_losses(const struct kernel_recorder *r)
{
    return (struct kernel_recorder_losses){r->lost, broken(r), trace_reader_counts(r->reader)->late};
}

void kernel_recorder_count(const struct kernel_recorder *r, uint64_t counted[static SYS_COUNTS])
{
    const struct kmem_totals *t = kmem_accounts_totals(r->accounts);
    counted[SYS_RING_FULL] = r->lost + broken(r);
    counted[KMEM_NULL_FREES] = t->null_frees;
    counted[KMEM_REUSED] = t->frees_without_event;
    counted[KMEM_FREED_BEFORE] = t->unmatched_frees;
}

/* ---- rows of sys kmem ---- */

static uint32_t column_of(const struct table *t, const char *name)
{
    uint32_t i = 0;
    while (strcmp(t->columns[i].name, name) != 0)
        i++;
    return i;
}

static void add_account(struct kmem_account *to, const struct kmem_account *a)
{
    to->allocations += a->allocations;
    to->requested_bytes += a->requested_bytes;
    to->allocated_bytes += a->allocated_bytes;
    to->frees += a->frees;
    to->freed_bytes += a->freed_bytes;
    to->frees_here += a->frees_here;
    to->freed_here_bytes += a->freed_here_bytes;
}

void kernel_recorder_add_rows(struct kernel_recorder *r, struct table *t)
{
    static const char *const filled[] = {"call_site", "allocated", "slack", "requested",    "allocations",
                                         "frees",     "freed",     "live",  "live_objects", "cache"};
    enum { SITE, ALLOCATED, SLACK, REQUESTED, ALLOCATIONS, FREES, FREED, LIVE, LIVE_OBJECTS, CACHE, FILLED };
    uint32_t at[FILLED];
    size_t n;
    const struct kmem_account *rows = kmem_accounts_rows(r->accounts, &n);
    t->hidden = ~UINT64_C(0);
    for (int i = 0; i < FILLED; i++) {
        at[i] = column_of(t, filled[i]);
        t->hidden &= ~(UINT64_C(1) << at[i]);
    }
    struct map index = {0};
    struct VEC(struct kmem_account)
        merged = {0}; /* accounts of one call and cache, whatever their stacks and size classes */
    for (size_t i = 0; i < n; i++) {
        const struct {
            uint64_t call_site, cache;
        } key = {rows[i].call_site, rows[i].cache};
        bool added;
        size_t at_row = map_put(&index, &key, sizeof(key), merged.len, &added);
        if (added)
            *vec_push(&merged) = rows[i];
        else
            add_account(&merged.at[at_row], &rows[i]);
    }
    map_release(&index);
    vec_each (const struct kmem_account, a, &merged) {
        const char *cache = kmem_accounts_cache(r->accounts, a->cache);
        table_row(t);
        if (a->call_site == OWN_SITE)
            table_text(t, at[SITE], OWN_NAME);
        else if (!resolver_kernel_number(r->names.names, a->call_site))
            table_text(t, at[SITE], UNKNOWN_NAME);
        else
            resolver_kernel_call(&r->names, t, at[SITE], a->call_site);
        table_whole(t, at[ALLOCATED], a->allocated_bytes);
        table_whole(t, at[SLACK], a->allocated_bytes - a->requested_bytes);
        table_whole(t, at[REQUESTED], a->requested_bytes);
        table_whole(t, at[ALLOCATIONS], a->allocations);
        table_whole(t, at[FREES], a->frees_here);
        table_whole(t, at[FREED], a->freed_here_bytes);
        table_whole(t, at[LIVE], a->allocated_bytes - a->freed_bytes);
        table_whole(t, at[LIVE_OBJECTS], a->allocations - a->frees);
        if (*cache)
            table_text(t, at[CACHE], cache);
    }
    vec_release(&merged);
}

/* ---- profile ---- */

/* "ext4_alloc_inode [ext4]" is a function and its module; without one the module is the kernel. */
static uint32_t add_location(struct kernel_recorder *r, struct profile *p, struct map *modules,
                             uint64_t call_site)
{
    struct buf name = BUF_INIT;
    if (call_site == OWN_SITE)
        buf_addstr(&name, OWN_NAME);
    else if (!resolver_kernel_number(r->names.names, call_site))
        buf_addstr(&name, UNKNOWN_NAME);
    else
        resolver_add_kernel_function(r->names.names, &name, call_site);
    char *bracket = strstr(name.data, " [");
    const char *path = bracket ? bracket + 1 : "vmlinux";
    bool added;
    size_t module = map_put(modules, path, strlen(path), p->modules.len, &added);
    if (added) {
        uint32_t text = profile_string(p, path);
        *vec_push(&p->modules) = (struct profile_module){.path = text, .end = UINT64_MAX};
    }
    if (bracket)
        *bracket = '\0';
    uint32_t function = profile_string(p, buf_str(&name));
    *vec_push(&p->locations) = (struct profile_location){
        .module = (uint32_t)module,
        .address = call_site == OWN_SITE ? 0 : resolver_kernel_number(r->names.names, call_site),
        .first_line = (uint32_t)p->lines.len,
        .n_lines = 1};
    *vec_push(&p->lines) = (struct profile_line){.function = function};
    buf_release(&name);
    return (uint32_t)p->locations.len - 1;
}

static void add_sums(struct profile_sums *s, uint64_t count, uint64_t bytes)
{
    s->samples += count;
    s->count += (double)count;
    s->bytes += (double)bytes;
    s->seen_bytes = s->bytes;
}

/* What a profile that is being made has already, by content. */
struct known {
    struct map modules, locations;
};

static uint32_t location_of(struct kernel_recorder *r, struct profile *p, struct known *known,
                            uint64_t call_site)
{
    size_t location = map_get_u64(&known->locations, call_site);
    if (location == MAP_NONE) {
        location = add_location(r, p, &known->modules, call_site);
        map_put_u64(&known->locations, call_site, location, NULL);
    }
    return (uint32_t)location;
}

/* Without a stack there is the call alone. */
static void add_cell(struct kernel_recorder *r, struct profile *p, struct known *known,
                     const struct cell_key *key)
{
    uint32_t depth;
    const uint64_t *stack = kmem_accounts_stack(r->accounts, key->stack, &depth);
    const uint32_t first = (uint32_t)p->stack_locations.len;
    if (!stack) {
        stack = &key->call_site;
        depth = 1;
    }
    for (uint32_t i = 0; i < depth; i++) {
        uint32_t location = location_of(r, p, known, stack[i]);
        *vec_push(&p->stack_locations) = location;
    }
    *vec_push(&p->stacks) = (struct profile_stack){first, depth, PROFILE_STACK_WHOLE};
    *vec_push(&p->cells) = (struct profile_cell){
        .stack = (uint32_t)p->stacks.len - 1, .size_class = (uint8_t)key->size_class, .period_bytes = 1};
}

/* Returns the number of the account's cell, which may be new. */
static size_t cell_of(struct kernel_recorder *r, const struct kmem_account *a)
{
    const struct cell_key key = {a->call_site, a->stack, a->size_class};
    bool added;
    size_t number = map_put(&r->cell_index, &key, sizeof(key), r->cells.len, &added);
    if (added)
        *vec_push(&r->cells) = key;
    return number;
}

static void add_image(struct kernel_recorder *r, struct profile *p)
{
    const struct kmem_totals *t = kmem_accounts_totals(r->accounts);
    const uint64_t now = clock_ns(CLOCK_REALTIME);
    uint32_t kernel = profile_string(p, "kernel"), file = profile_string(p, "vmlinux");
    *vec_push(&p->images) = (struct profile_image){
        .id = r->image_id,
        .comm = kernel,
        .exe = file,
        .state = r->over ? PROFILE_IMAGE_ENDED : PROFILE_IMAGE_RUNNING,
        .began_ns = t->first_ns + (uint64_t)r->realtime_ns,
        .taken_ns = t->last_ns + (uint64_t)r->realtime_ns,
        .peak_ns = t->peak_ns + (uint64_t)r->realtime_ns,
        .peak_bytes = (double)t->peak_bytes,
        .losses = {[PROFILE_LOST_SAMPLES] = r->lost + broken(r)},
    };
    *vec_push(&p->threads) = (struct profile_thread){.image = 0};
    p->taken_ns = now;
    p->period_bytes = 1;
}

struct profile *kernel_recorder_profile(struct kernel_recorder *r)
{
    size_t n;
    struct known known = {.modules = {0}};
    struct profile *p = profile_new();
    kmem_accounts_update_peak(r->accounts);
    count_losses(r);
    const struct kmem_account *rows = kmem_accounts_rows(r->accounts, &n);
    add_image(r, p);
    for (size_t i = 0; i < n; i++)
        if (rows[i].allocations)
            cell_of(r, &rows[i]);
    vec_each (const struct cell_key, key, &r->cells)
        add_cell(r, p, &known, key);
    for (size_t i = 0; i < n; i++) {
        const struct kmem_account *a = &rows[i];
        if (!a->allocations)
            continue;
        struct profile_cell *c = &p->cells.at[cell_of(r, a)];
        add_sums(&c->allocated, a->allocations, a->allocated_bytes);
        add_sums(&c->freed, a->frees, a->freed_bytes);
        add_sums(&c->at_peak, a->at_peak_objects, a->at_peak_bytes);
    }
    map_release(&known.modules);
    map_release(&known.locations);
    return p;
}
