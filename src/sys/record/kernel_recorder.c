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
#include "collect/kernel/kernel_state.h"
#include "collect/kernel/trace/boot_trace.h"
#include "collect/kernel/trace/kmem_format.h"
#include "collect/kernel/trace/trace_losses.h"
#include "collect/kernel/trace/trace_reader.h"
#include "sys/record/raw_folder.h"
#include "sys/record/record_stack.h"
#include "sys/record/tasks.h"
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
    struct trace_instance instance; /* with `is_boot` the top level */
    bool is_boot;
    struct boot_trace boot;
    struct trace_reader *reader;
    struct kmem_format *format;
    struct task_format *task_format;
    struct kernel_capture capture;
    struct sys_session names; /* only its names: the resolver wants a session */
    struct tasks tasks;
    struct raw_folder *raw; /* where pages are kept; NULL: nowhere */
    int32_t own_tid;        /* as the machine numbers threads */
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

static void add_gfp(void *arg, struct buf *b, uint64_t gfp)
{
    struct kernel_recorder *r = arg;
    resolver_add_gfp(r->names.names, b, gfp);
}

static const char *cgroup(void *arg, int32_t process)
{
    const struct kernel_recorder *r = arg;
    return tasks_cgroup(&r->tasks, process);
}

static struct kernel_code_names names_of(struct kernel_recorder *r, bool source)
{
    struct kernel_code_names n = {.arg = r,
                                  .add_call = add_call,
                                  .add_function = add_function,
                                  .number = number,
                                  .add_gfp = add_gfp,
                                  .cgroup = cgroup};
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

/* Events of the boot are on already. */
static int start_event(const struct kernel_recorder *r, const char *event, struct error *e)
{
    char path[96];
    snprintf(path, sizeof(path), "events/%s/enable", event);
    return r->is_boot ? 0 : trace_instance_write(&r->instance, path, "1", e);
}

/* A kernel may lack these events. The mark needs no switch. */
static int enable_tasks(struct kernel_recorder *r, struct error *e)
{
    int bad = 0;
    for (int k = 0; k < TASK_EVENT_KINDS && !bad; k++) {
        struct buf text = BUF_INIT;
        const char *event = task_format_events[k];
        bad = read_format(r, event, &text, e);
        if (bad == -ENOENT) {
            r->capture.comms = r->capture.comms && k == TASK_MOVED;
            bad = 0;
        } else if (!bad) {
            bad = task_format_add(r->task_format, (enum task_event_kind)k, buf_str(&text), text.len, e);
            if (k != TASK_MARKED)
                bad = bad ? bad : start_event(r, event, e);
            if (k == TASK_RENAMED || k == TASK_BEGAN)
                r->capture.comms &= !r->is_boot || boot_trace_has(&r->instance, event);
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
        snprintf(path, sizeof(path), "kmem/%s", name);
        bad = bad ? bad : start_event(r, path, e);
    }
    return bad;
}

/* Buffers of our own. */
static int open_instance(struct kernel_recorder *r, uint32_t buffer_kib, struct error *e)
{
    char size[16];
    snprintf(size, sizeof(size), "%u", buffer_kib);
    int bad = trace_instance_create(&r->instance, e);
    bad = bad ? bad : trace_instance_write(&r->instance, "trace_clock", "mono", e);
    if (!bad && trace_instance_write(&r->instance, "buffer_size_kb", size, e))
        bad = error_set(e, ENOMEM,
                        "the kernel has no memory for buffers of %s KiB on each CPU: use a smaller --buffer",
                        size);
    return bad;
}

static int open_boot(struct kernel_recorder *r, struct error *e)
{
    struct buf words = BUF_INIT;
    int bad = trace_instance_open_top(&r->instance, e);
    if (!bad) {
        file_read(KERNEL_STATE_CMDLINE, FORMAT_BYTES_MAX, &words);
        bad = boot_trace_check(&r->boot, &r->instance, buf_str(&words), e);
    }
    buf_release(&words);
    return bad;
}

int kernel_recorder_open(struct kernel_recorder **out, const struct kernel_recorder_options *o,
                         struct error *e)
{
    struct kernel_recorder *r = *out = mem_alloc(sizeof(*r));
    r->is_boot = o->boot;
    r->own_tid = (int32_t)getpid();
    r->stacks = o->stacks;
    r->format = kmem_format_new();
    r->task_format = task_format_new();
    r->kmalloc_bytes_max = 2 * (uint64_t)sysconf(_SC_PAGESIZE);
    r->kmalloc_names = mem_array(r->kmalloc_bytes_max / KMALLOC_STEP + 1, sizeof(*r->kmalloc_names));
    const struct kernel_code_names names = names_of(r, o->vmlinux != NULL);
    kernel_capture_init(&r->capture, &names);
    if (o->keep_freed)
        kmem_accounts_keep_freed(r->capture.accounts);
    r->capture.comms = true;
    r->names.names = resolver_new(&(struct resolver_wanted){.vmlinux = o->vmlinux});
    r->raw = o->raw;
    int bad = o->boot ? open_boot(r, e) : open_instance(r, o->buffer_kib, e);
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
    task_format_free(r->task_format);
    kernel_capture_release(&r->capture);
    resolver_free(r->names.names);
    free(r->kmalloc_names);
    tasks_release(&r->tasks);
    free(r);
}

int kernel_recorder_begin(struct kernel_recorder *r, struct error *e)
{
    struct error unmarked; /* then our number is taken for the machine's */
    if (r->is_boot)
        return boot_trace_stop(&r->boot, &r->instance, &r->capture.realtime_ns, e);
    r->capture.realtime_ns = (int64_t)(clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC));
    int bad = trace_instance_write(&r->instance, "tracing_on", "1", e);
    if (bad)
        return bad;
    tasks_read(&r->tasks); /* events tell of those that begin meanwhile */
    trace_instance_write(&r->instance, "trace_marker", OWN_NAME, &unmarked);
    return r->raw ? raw_folder_put_tasks(r->raw, &r->tasks, e) : 0;
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

static void take_task_event(struct kernel_recorder *r, const struct trace_record *record)
{
    struct task_event event;
    if (task_format_decode(r->task_format, record->data, record->bytes, &event) <= 0)
        return;
    if (event.kind == TASK_MARKED) /* by this process: the buffers are ours */
        r->own_tid = event.tid;
    tasks_add(&r->tasks, &event);
}

/* What an interrupt does has nothing to do with the thread. */
static void name_task(struct kernel_recorder *r, struct kmem_event *event)
{
    const struct task *task = tasks_find(&r->tasks, event->pid);
    event->comm = event->context ? INTERRUPT_NAME : task->name;
    event->process = event->context ? 0 : task->process;
    if (event->process == TASK_UNKNOWN)
        event->process = event->pid;
}

static void account(void *arg, const struct trace_record *record, uint32_t cpu)
{
    struct kernel_recorder *r = arg;
    struct kmem_event event;
    int found = kmem_format_decode(r->format, record->data, record->bytes, &event);
    r->broken_records += found < 0;
    if (!found)
        take_task_event(r, record);
    if (found <= 0)
        return;
    event.time_ns = record->time;
    event.cpu = cpu;
    name_task(r, &event);
    if (event.kind == KMEM_EVENT_ALLOC && event.is_kmalloc)
        event.cache = kmalloc_name(r, event.allocated_bytes);
    if (event.pid == r->own_tid && !event.context && event.kind == KMEM_EVENT_ALLOC) {
        event.call_site = OWN_SITE;
        event.cache = "";
    } else if (r->stacks && event.kind == KMEM_EVENT_ALLOC) {
        r->stackless += !record_stack_find(r->reader, r->format, &event, r->stack);
    }
    r->broken_records += !kmem_accounts_add(r->capture.accounts, &event);
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
    r->lost = r->boot.read_before;
    long possible = sysconf(_SC_NPROCESSORS_CONF);
    for (long cpu = 0; cpu < possible; cpu++) {
        struct buf text = BUF_INIT;
        snprintf(path, sizeof(path), "per_cpu/cpu%ld/stats", cpu);
        if (!file_read_at(r->instance.fd, path, FORMAT_BYTES_MAX, &text))
            r->lost += trace_losses_of(buf_str(&text));
        buf_release(&text);
    }
}

/* Of a boot there may be more than the memory should hold at once, so the steps before the last one take most of it. */
int kernel_recorder_end(struct kernel_recorder *r, struct error *e)
{
    const struct trace_reader_counts *n = trace_reader_counts(r->reader);
    uint64_t before;
    if (r->capture.over)
        return 0;
    r->capture.over = true;
    int bad = r->is_boot ? 0 : trace_instance_write(&r->instance, "tracing_on", "0", e);
    do {
        before = n->bytes;
        bad = bad ? bad : read_all(r, false, e);
    } while (!bad && n->bytes > before);
    bad = bad ? bad : read_all(r, true, e);
    if (r->is_boot)
        boot_trace_resume(&r->boot, &r->instance);
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
