/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/record/kernel_recorder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/read_file.h"
#include "base/sigsafe/clock_ns.h"
#include "collect/kernel/trace/kmem_format.h"
#include "collect/kernel/trace/trace_losses.h"
#include "collect/kernel/trace/trace_reader.h"
#include "sys/record/raw_folder.h"
#include "sys/record/record_stack.h"
#include "sys/record/task_names.h"
#include "sys/resolver.h"
#include "sys/session.h"

#define FORMAT_BYTES_MAX (1u << 20)

/* The call_site of allocations by this process: no code is at this address. */
#define OWN_SITE 0
#define OWN_NAME "allium itself"
/* In place of a program that was only interrupted. */
#define INTERRUPT_NAME "[interrupt]"
/* Code that has no symbol any more, or that the kernel does not show; its address is stored nowhere. */
#define UNKNOWN_NAME "[unknown]"

/* Sizes of kmalloc()'s caches are multiples of this. */
#define KMALLOC_STEP 8u
#define KMALLOC_NAME 24u

struct kernel_recorder {
    struct trace_instance instance;
    struct trace_reader *reader;
    struct kmem_format *format;
    struct kernel_capture capture;
    struct sys_session names; /* only its names: the resolver wants a session */
    struct task_names tasks;
    struct raw_folder *raw; /* where pages are kept; NULL: nowhere */
    int32_t own_tid;
    uint64_t broken_records;
    uint64_t lost; /* events that found no room */
    bool stacks;
    uint64_t stackless;                   /* allocations whose stack was not found */
    uint64_t stack[KMEM_EVENT_DEPTH_MAX]; /* of the event that is accounted */
    uint64_t kmalloc_bytes_max;           /* two pages: larger objects have no cache */
    char (*kmalloc_names)[KMALLOC_NAME];  /* by size / KMALLOC_STEP; "": not met yet */
};

/* ---- names ---- */

/* What stands for the name of a call that has none in the kernel: our own, or unknown. NULL: it has one. */
static const char *name_instead(struct kernel_recorder *r, uint64_t call)
{
    if (call == OWN_SITE)
        return OWN_NAME;
    return resolver_kernel_number(r->names.names, call) ? NULL : UNKNOWN_NAME;
}

static void add_name(struct kernel_recorder *r, struct buf *b, uint64_t call,
                     void (*add)(struct names *n, struct buf *b, uint64_t address))
{
    const char *instead = name_instead(r, call);
    if (instead)
        buf_addstr(b, instead);
    else
        add(r->names.names, b, call);
}

static void add_call(void *arg, struct buf *b, uint64_t call)
{
    add_name(arg, b, call, resolver_add_kernel_call);
}

static void add_function(void *arg, struct buf *b, uint64_t call)
{
    add_name(arg, b, call, resolver_add_kernel_function);
}

static uint64_t number(void *arg, uint64_t call)
{
    struct kernel_recorder *r = arg;
    return call == OWN_SITE ? 0 : resolver_kernel_number(r->names.names, call);
}

static void add_file(void *arg, struct buf *b, uint64_t call)
{
    struct kernel_recorder *r = arg;
    const char *instead = name_instead(r, call);
    if (instead)
        buf_printf(b, UNKNOWN_NAME "%s%s", call == OWN_SITE ? " " : "", call == OWN_SITE ? instead : "");
    else
        resolver_add_kernel_file(r->names.names, b, call);
}

static bool frames(void *arg, uint64_t call, struct symbol_frames *out)
{
    struct kernel_recorder *r = arg;
    return call != OWN_SITE && resolver_kernel_frames(r->names.names, call, out);
}

static const char *frame_file(void *arg, const struct symbol_frame *f)
{
    const struct kernel_recorder *r = arg;
    return resolver_kernel_frame_file(r->names.names, f);
}

static struct kernel_code_names names_of(struct kernel_recorder *r, bool source)
{
    struct kernel_code_names n = {
        .arg = r, .add_call = add_call, .add_function = add_function, .number = number};
    if (source) {
        n.add_file = add_file;
        n.frames = frames;
        n.frame_file = frame_file;
    }
    return n;
}

static int read_format(const struct kernel_recorder *r, const char *event, struct buf *text, struct error *e)
{
    struct buf path = BUF_INIT;
    buf_printf(&path, "events/%s/format", event);
    int bad = file_read_at(r->instance.tracefs_fd, buf_str(&path), FORMAT_BYTES_MAX, text);
    if (bad)
        error_set(e, -bad, "cannot read %s of tracefs: %s", buf_str(&path), strerror(-bad));
    if (!bad && r->raw)
        bad = raw_folder_put(r->raw, buf_str(&path), text->data, text->len, e);
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

/* The names of threads; a kernel without these events has none. */
static int enable_tasks(struct kernel_recorder *r, struct error *e)
{
    char event[64], path[96];
    int bad = 0;
    r->capture.comms = true;
    for (size_t i = 0; kmem_format_task_events[i] && !bad; i++) {
        struct buf text = BUF_INIT;
        snprintf(event, sizeof(event), "task/%s", kmem_format_task_events[i]);
        bad = read_format(r, event, &text, e);
        if (bad == -ENOENT) {
            r->capture.comms = false;
            bad = 0;
        } else if (!bad) {
            snprintf(path, sizeof(path), "events/%s/enable", event);
            bad = kmem_format_add_task(r->format, i, buf_str(&text), text.len, e);
            bad = bad ? bad : trace_instance_write(&r->instance, path, "1", e);
        }
        buf_release(&text);
    }
    return bad;
}

/* Each event of an allocation is followed by a record with its stack. */
static int enable(struct kernel_recorder *r, bool stacks, struct error *e)
{
    char path[64];
    int bad = stacks ? add_stack_format(r, e) : 0;
    bad = bad ? bad : enable_tasks(r, e);
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

int kernel_recorder_open(struct kernel_recorder **out, const struct kernel_recorder_options *o,
                         struct error *e)
{
    struct kernel_recorder *r = *out = mem_alloc(sizeof(*r));
    char size[16];
    r->own_tid = (int32_t)getpid();
    r->stacks = o->stacks;
    r->format = kmem_format_new();
    r->kmalloc_bytes_max = 2 * (uint64_t)sysconf(_SC_PAGESIZE);
    r->kmalloc_names = mem_array(r->kmalloc_bytes_max / KMALLOC_STEP + 1, sizeof(*r->kmalloc_names));
    const struct kernel_code_names names = names_of(r, o->vmlinux != NULL);
    kernel_capture_init(&r->capture, &names);
    r->names.names = resolver_new(&(struct resolver_wanted){.vmlinux = o->vmlinux});
    snprintf(size, sizeof(size), "%u", o->buffer_kib);
    r->raw = o->raw;
    int bad = trace_instance_create(&r->instance, e);
    bad = bad ? bad : trace_instance_write(&r->instance, "trace_clock", "mono", e);
    if (!bad && trace_instance_write(&r->instance, "buffer_size_kb", size, e))
        bad = error_set(e, ENOMEM,
                        "the kernel has no memory for buffers of %s KiB on each CPU: use a smaller --buffer",
                        size);
    for (size_t i = 0; kmem_format_events[i] && !bad; i++)
        bad = add_format(r, i, e);
    bad = bad ? bad : trace_reader_open(&r->reader, &r->instance, e);
    bad = bad ? bad : enable(r, o->stacks, e);
    bad = bad || !r->raw ? bad : raw_folder_begin(r->raw, &r->instance, r->reader, e);
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
    kernel_capture_release(&r->capture);
    resolver_free(r->names.names);
    free(r->kmalloc_names);
    task_names_release(&r->tasks);
    free(r);
}

int kernel_recorder_begin(struct kernel_recorder *r, struct error *e)
{
    r->capture.realtime_ns = (int64_t)(clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC));
    int bad = trace_instance_write(&r->instance, "tracing_on", "1", e);
    if (!bad) /* events tell of those that begin meanwhile */
        task_names_read(&r->tasks);
    return bad || !r->raw ? bad : raw_folder_put_tasks(r->raw, &r->tasks, e);
}

/*
 * The events of kmalloc() do not name a cache. Its objects are named by their size, not as in slabinfo: of one size
 * there are several caches, and the event does not tell which.
 */
static const char *kmalloc_name(struct kernel_recorder *r, uint64_t allocated_bytes)
{
    if (allocated_bytes > r->kmalloc_bytes_max)
        return "(pages)";
    char *name = r->kmalloc_names[allocated_bytes / KMALLOC_STEP];
    if (!*name)
        snprintf(name, KMALLOC_NAME, "(kmalloc %u)", (unsigned)allocated_bytes);
    return name;
}

static void take_name(struct kernel_recorder *r, const struct trace_record *record)
{
    struct kmem_task task;
    if (kmem_format_task(r->format, record->data, record->bytes, &task) > 0)
        task_names_set(&r->tasks, task.tid, task.name, task.name_bytes);
}

static void account(void *arg, const struct trace_record *record, uint32_t cpu)
{
    struct kernel_recorder *r = arg;
    struct kmem_event event;
    int found = kmem_format_decode(r->format, record->data, record->bytes, &event);
    r->broken_records += found < 0;
    if (!found)
        take_name(r, record);
    if (found <= 0)
        return;
    event.time_ns = record->time;
    event.cpu = cpu;
    event.comm = event.context ? INTERRUPT_NAME : task_names_find(&r->tasks, event.pid);
    if (event.kind == KMEM_EVENT_ALLOC && event.is_kmalloc)
        event.cache = kmalloc_name(r, event.allocated_bytes);
    if (event.pid == r->own_tid && !event.context && event.kind == KMEM_EVENT_ALLOC) {
        event.call_site = OWN_SITE;
        event.cache = "";
    } else if (r->stacks && event.kind == KMEM_EVENT_ALLOC) {
        r->stackless += !record_stack_find(r->reader, r->format, &event, r->stack);
    }
    kmem_accounts_add(r->capture.accounts, &event);
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

static void count_losses(struct kernel_recorder *r)
{
    char path[64];
    r->lost = 0;
    long possible = sysconf(_SC_NPROCESSORS_CONF);
    for (long cpu = 0; cpu < possible; cpu++) {
        struct buf text = BUF_INIT;
        snprintf(path, sizeof(path), "per_cpu/cpu%ld/stats", cpu);
        if (!file_read_at(r->instance.fd, path, FORMAT_BYTES_MAX, &text))
            r->lost += trace_losses_of(buf_str(&text));
        buf_release(&text);
    }
}

int kernel_recorder_end(struct kernel_recorder *r, struct error *e)
{
    if (r->capture.over)
        return 0;
    r->capture.over = true;
    int bad = trace_instance_write(&r->instance, "tracing_on", "0", e);
    bad = bad ? bad : read_all(r, true, e);
    return bad || !r->raw ? bad : raw_folder_end(r->raw, &r->instance, r->capture.realtime_ns, r->own_tid, e);
}

static uint64_t broken(const struct kernel_recorder *r)
{
    return trace_reader_counts(r->reader)->broken_pages + r->broken_records;
}

struct kernel_recorder_losses kernel_recorder_losses(const struct kernel_recorder *r)
{
    return (struct kernel_recorder_losses){r->lost, broken(r), trace_reader_counts(r->reader)->late,
                                           r->stackless};
}

struct kernel_capture *kernel_recorder_capture(struct kernel_recorder *r)
{
    count_losses(r);
    r->capture.lost = r->lost + broken(r);
    return &r->capture;
}
