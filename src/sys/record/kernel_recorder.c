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
#include "collect/kernel/trace/trace_losses.h"
#include "collect/kernel/trace/trace_reader.h"
#include "sys/record/event_decoder.h"
#include "sys/record/raw_folder.h"
#include "sys/record/recorder_names.h"
#include "sys/record/tasks.h"
#include "sys/resolver.h"

#define FORMAT_BYTES_MAX (1u << 20)
#define MUCH_BYTES       (1u << 20)
#define READS_AT_ONCE    16u

struct kernel_recorder {
    struct trace_instance instance; /* with `is_boot` the top level */
    bool is_boot;
    struct boot_trace boot;
    struct trace_reader *reader;
    struct event_decoder decoder;
    unsigned events; /* enum kernel_recorder_events */
    struct kernel_capture capture;
    struct recorder_names names;
    struct tasks tasks;
    struct raw_folder *raw; /* where pages are kept; NULL: nowhere */
    uint64_t broken_records;
    uint64_t lost; /* events that found no room */
    void (*older)(void *arg, const struct kmem_event *e);
    void *older_arg;
};

/* ---- events ---- */

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

static int add_format(struct kernel_recorder *r, const char *event, bool required, struct error *e)
{
    struct buf text = BUF_INIT;
    int bad = read_format(r, event, &text, e);
    if (bad == -ENOENT && !required)
        bad = 0;
    else if (!bad)
        bad = kmem_format_add(r->decoder.objects, strchr(event, '/') + 1, buf_str(&text), text.len, e);
    buf_release(&text);
    return bad;
}

static int add_formats(struct kernel_recorder *r, struct error *e)
{
    char event[64];
    int bad = 0;
    for (size_t i = 0; kmem_format_events[i] && !bad; i++) {
        snprintf(event, sizeof(event), "kmem/%s", kmem_format_events[i]);
        bad = add_format(r, event, i < KMEM_FORMAT_REQUIRED, e);
    }
    for (size_t i = 0; kmem_format_percpu_events[i] && !bad && r->events & RECORDER_PERCPU; i++) {
        snprintf(event, sizeof(event), "percpu/%s", kmem_format_percpu_events[i]);
        bad = add_format(r, event, true, e);
    }
    return bad;
}

static int add_stack_format(struct kernel_recorder *r, struct error *e)
{
    struct buf text = BUF_INIT;
    int bad = read_format(r, "ftrace/kernel_stack", &text, e);
    bad = bad ? bad : kmem_format_add_stack(r->decoder.objects, buf_str(&text), text.len, e);
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
            bad =
                task_format_add(r->decoder.task_events, (enum task_event_kind)k, buf_str(&text), text.len, e);
            if (k != TASK_MARKED)
                bad = bad ? bad : start_event(r, event, e);
            if (k == TASK_RENAMED || k == TASK_BEGAN)
                r->capture.comms &= !r->is_boot || boot_trace_has(&r->instance, event);
        }
        buf_release(&text);
    }
    return bad;
}

/* Each event of an allocation is followed by a record with its stack. One that the kernel does not have is left out. */
static int enable_one(struct kernel_recorder *r, const char *event, struct error *e)
{
    char path[96];
    int bad = 0;
    snprintf(path, sizeof(path), "events/%s", event);
    if (faccessat(r->instance.fd, path, F_OK, 0))
        return 0;
    snprintf(path, sizeof(path), "events/%s/trigger", event);
    if (r->decoder.stacks && strstr(event, "alloc"))
        bad = trace_instance_write(&r->instance, path, "stacktrace", e);
    return bad ? bad : start_event(r, event, e);
}

static int enable_list(struct kernel_recorder *r, const char *group, const char *const *events,
                       struct error *e)
{
    char event[64];
    int bad = 0;
    for (size_t i = 0; events[i] && !bad; i++) {
        snprintf(event, sizeof(event), "%s/%s", group, events[i]);
        bad = enable_one(r, event, e);
    }
    return bad;
}

static int enable_pages(struct kernel_recorder *r, struct error *e)
{
    char event[64];
    int bad = 0;
    for (int k = 0; k < PAGE_EVENT_KINDS && !bad; k++) {
        struct buf text = BUF_INIT;
        if (!(r->events & (k == PAGE_EVENT_FALLBACK ? RECORDER_EXTFRAG : RECORDER_PAGE)))
            continue;
        snprintf(event, sizeof(event), "kmem/%s", page_format_events[k]);
        bad = read_format(r, event, &text, e);
        bad = bad ? bad
                  : page_format_add(r->decoder.pages, (enum page_event_kind)k, buf_str(&text), text.len, e);
        bad = bad ? bad : enable_one(r, event, e);
        buf_release(&text);
    }
    return bad;
}

static int enable(struct kernel_recorder *r, struct error *e)
{
    int bad = r->decoder.stacks ? add_stack_format(r, e) : 0;
    bad = bad ? bad : enable_tasks(r, e);
    if (!bad && r->events & RECORDER_SLAB)
        bad = enable_list(r, "kmem", kmem_format_events, e);
    if (!bad && r->events & RECORDER_PERCPU)
        bad = enable_list(r, "percpu", kmem_format_percpu_events, e);
    return bad ? bad : enable_pages(r, e);
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
        tasks_set_name(&r->tasks, 0, "swapper",
                       sizeof("swapper")); /* the only thread at first, and not idle */
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
    r->events = o->boot ? RECORDER_SLAB : o->events;
    event_decoder_init(&r->decoder);
    r->decoder.tasks = &r->tasks;
    r->decoder.processes = true;
    r->decoder.own_marks = !o->boot;
    r->decoder.stacks = o->stacks;
    r->decoder.cpus = (uint64_t)sysconf(_SC_NPROCESSORS_CONF);
    if (!o->boot) /* reading does not add to the trace of a boot: it has ended */
        r->decoder.own_tid = (int32_t)getpid();
    r->older = o->older;
    r->older_arg = o->arg;
    r->names =
        (struct recorder_names){resolver_new(&(struct resolver_wanted){.vmlinux = o->vmlinux}), &r->tasks};
    const struct kernel_code_names names = recorder_names_of(&r->names, o->vmlinux != NULL);
    kernel_capture_init(&r->capture, &names);
    if (o->keep_freed)
        kmem_accounts_keep_freed(r->capture.accounts);
    r->capture.comms = true;
    r->capture.pages = r->events & (RECORDER_PAGE | RECORDER_EXTFRAG) ? page_accounts_new() : NULL;
    r->raw = o->raw;
    int bad = o->boot ? open_boot(r, e) : open_instance(r, o->buffer_kib, e);
    bad = bad ? bad : add_formats(r, e);
    bad = bad ? bad : trace_reader_open(&r->reader, &r->instance, e);
    r->decoder.reader = r->reader;
    bad = bad ? bad : enable(r, e);
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
    event_decoder_release(&r->decoder);
    kernel_capture_release(&r->capture);
    recorder_names_release(&r->names);
    tasks_release(&r->tasks);
    free(r);
}

int kernel_recorder_begin(struct kernel_recorder *r, struct error *e)
{
    struct error unmarked; /* then our number is taken for the machine's */
    if (r->is_boot)
        return boot_trace_stop(&r->boot, &r->instance, &r->capture.realtime_ns, e);
    r->capture.realtime_ns = (int64_t)(clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC));
    r->capture.began_ns = clock_ns(CLOCK_REALTIME);
    int bad = trace_instance_write(&r->instance, "tracing_on", "1", e);
    if (bad)
        return bad;
    tasks_read(&r->tasks); /* events tell of those that begin meanwhile */
    trace_instance_write(&r->instance, "trace_marker", RECORDER_OWN_NAME, &unmarked);
    return r->raw ? raw_folder_put_tasks(r->raw, &r->tasks, e) : 0;
}

/* What the recorder itself allocates has a row of its own. */
static void account_object(struct kernel_recorder *r, struct kmem_event *event, bool is_own)
{
    const uint64_t older = kmem_accounts_totals(r->capture.accounts)->unmatched_frees;
    const bool allocates = event->kind == KMEM_EVENT_ALLOC;
    kernel_capture_mark_pages(&r->capture, event);
    if (event->is_percpu && !allocates)
        event->call_site = RECORDER_NO_SITE;
    if (allocates && event->is_kmalloc)
        event->cache = kernel_capture_kmalloc_name(&r->capture, event);
    if (allocates && is_own) {
        event->call_site = RECORDER_OWN_SITE;
        event->cache = "";
    }
    r->broken_records += !kmem_accounts_add(r->capture.accounts, event);
    if (r->older && kmem_accounts_totals(r->capture.accounts)->unmatched_frees > older)
        r->older(r->older_arg, event);
}

static void account_pages(struct kernel_recorder *r, struct page_event *event, uint32_t cpu, bool is_own)
{
    if (is_own)
        event->comm = RECORDER_OWN_NAME;
    r->broken_records += !kernel_capture_add_pages(&r->capture, event, cpu);
}

static void account(void *arg, const struct trace_record *record, uint32_t cpu)
{
    struct kernel_recorder *r = arg;
    struct event_decoder_event e;
    event_decoder_take(&r->decoder, record, cpu, &e);
    if (e.kind == EVENT_DECODER_OBJECT)
        account_object(r, &e.object, e.is_own);
    else if (e.kind == EVENT_DECODER_PAGES)
        account_pages(r, &e.pages, cpu, e.is_own);
}

static int read_all(struct kernel_recorder *r, bool last, struct error *e)
{
    int bad = trace_reader_step(r->reader, last, account, r);
    return bad ? error_set(e, -bad, "cannot read the kernel's trace buffers: %s", strerror(-bad)) : 0;
}

/* While much comes, nothing is waited for: half a CPU's buffer is full in the time between two steps then. */
int kernel_recorder_step(struct kernel_recorder *r, struct error *e)
{
    const struct trace_reader_counts *n = trace_reader_counts(r->reader);
    uint64_t before;
    unsigned left = READS_AT_ONCE;
    int bad;
    do {
        before = n->bytes;
        bad = read_all(r, false, e);
    } while (!bad && --left && n->bytes - before >= MUCH_BYTES);
    return bad;
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
    return bad || !r->raw
               ? bad
               : raw_folder_end(r->raw, &r->instance, r->capture.realtime_ns, r->decoder.own_tid, e);
}

static uint64_t broken(const struct kernel_recorder *r)
{
    return trace_reader_counts(r->reader)->broken_pages + r->decoder.broken + r->broken_records;
}

struct kernel_recorder_losses kernel_recorder_losses(const struct kernel_recorder *r)
{
    return (struct kernel_recorder_losses){r->lost, broken(r), trace_reader_counts(r->reader)->late,
                                           r->decoder.stackless};
}

const struct boot_trace *kernel_recorder_boot(const struct kernel_recorder *r)
{
    return r->is_boot ? &r->boot : NULL;
}

struct kernel_capture *kernel_recorder_capture(struct kernel_recorder *r)
{
    count_losses(r);
    r->capture.lost = r->lost + broken(r);
    return &r->capture;
}
