/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/record/kernel_recorder_parts.h"

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
#include "collect/kernel/trace/trace_losses.h"
#include "sys/record/raw_folder.h"
#include "sys/resolver.h"

#define FORMAT_BYTES_MAX (1u << 20)
#define MUCH_BYTES       (1u << 20)
#define READS_AT_ONCE    16u

/* ---- events ---- */

static int read_format(struct kernel_recorder *r, const char *event, struct buf *text, struct error *e)
{
    struct buf path = BUF_INIT;
    buf_printf(&path, "events/%s/format", event);
    int bad = file_read_at(r->instance.tracefs_fd, buf_str(&path), FORMAT_BYTES_MAX, text);
    if (bad)
        error_set(e, -bad, "cannot read %s of tracefs: %s", buf_str(&path), strerror(-bad));
    if (!bad)
        *vec_push(&r->formats_read) = buf_detach(&path);
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
        bad = kmem_format_add(r->format, strchr(event, '/') + 1, buf_str(&text), text.len, e);
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

/* Blocks change their migrate type so seldom that the stack costs nothing. */
#define FALLBACK_EVENT "kmem/mm_page_alloc_extfrag"

static bool has_stack(const struct kernel_recorder *r, const char *event)
{
    return (r->stacks && strstr(event, "alloc")) || !strcmp(event, FALLBACK_EVENT);
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
    if (has_stack(r, event))
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
        bad =
            bad ? bad : page_format_add(r->page_format, (enum page_event_kind)k, buf_str(&text), text.len, e);
        bad = bad ? bad : enable_one(r, event, e);
        buf_release(&text);
    }
    return bad;
}

static int enable(struct kernel_recorder *r, struct error *e)
{
    int bad = r->stacks || r->events & RECORDER_EXTFRAG ? add_stack_format(r, e) : 0;
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

static int check_filter(struct kernel_recorder *r, struct error *e)
{
    if (!record_filter_is_set(&r->filter))
        return 0;
    tasks_read(&r->tasks);
    return record_filter_check(&r->filter, &r->tasks, e);
}

int kernel_recorder_open(struct kernel_recorder **out, const struct kernel_recorder_options *o,
                         struct error *e)
{
    struct kernel_recorder *r = *out = mem_alloc(sizeof(*r));
    r->instance = (struct trace_instance){.tracefs_fd = -1, .fd = -1};
    r->is_boot = o->boot;
    r->own_tid =
        o->boot ? -1 : (int32_t)getpid(); /* reading does not add to the trace of a boot: it has ended */
    r->stacks = o->stacks;
    r->events = o->boot ? RECORDER_SLAB : o->events;
    r->cpus = (uint64_t)sysconf(_SC_NPROCESSORS_CONF);
    r->older = o->older;
    r->older_arg = o->arg;
    r->format = kmem_format_new();
    r->page_format = page_format_new();
    r->task_format = task_format_new();
    r->names = (struct recorder_names){
        resolver_new(&(struct resolver_wanted){.vmlinux = o->vmlinux, .finder = o->finder}), &r->tasks};
    const struct kernel_code_names names = recorder_names_of(&r->names, o->vmlinux || o->finder);
    kernel_capture_init(&r->capture, &names);
    if (o->keep_freed)
        kmem_accounts_keep_freed(r->capture.accounts);
    r->capture.comms = true;
    r->capture.is_filtered = r->is_filtered = record_filter_is_set(&o->filter) || o->where;
    r->filter = o->filter;
    r->capture.pages = r->events & (RECORDER_PAGE | RECORDER_EXTFRAG) ? page_accounts_new() : NULL;
    int bad = record_where_init(&r->where, o->where, e);
    bad = bad ? bad : check_filter(r, e);
    if (!bad)
        bad = o->boot ? open_boot(r, e) : open_instance(r, o->buffer_kib, e);
    bad = bad ? bad : add_formats(r, e);
    bad = bad ? bad : trace_reader_open(&r->reader, &r->instance, e);
    r->counts = bad ? NULL : trace_reader_counts(r->reader);
    bad = bad ? bad : enable(r, e);
    if (!bad) {
        resolver_kernel_number(r->names.names, 1); /* reads the kernel's symbols now, as no event waits */
        return 0;
    }
    kernel_recorder_close(r);
    *out = NULL;
    return bad;
}

void kernel_recorder_keep(struct kernel_recorder *r, struct raw_folder *raw)
{
    r->raw = raw;
    vec_each (char *, path, &r->formats_read)
        raw_folder_put_format(raw, &r->instance, *path);
    raw_folder_begin(raw, &r->instance, r->reader);
}

void kernel_recorder_close(struct kernel_recorder *r)
{
    if (!r)
        return;
    trace_reader_close(r->reader); /* an instance whose buffers are open cannot be removed */
    trace_instance_remove(&r->instance);
    kmem_format_free(r->format);
    task_format_free(r->task_format);
    page_format_free(r->page_format);
    kernel_capture_release(&r->capture);
    recorder_names_release(&r->names);
    record_where_release(&r->where);
    vec_each (char *, path, &r->formats_read)
        free(*path);
    vec_release(&r->formats_read);
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
    if (r->raw)
        raw_folder_put_tasks(r->raw, &r->tasks);
    return 0;
}

static int read_all(struct kernel_recorder *r, bool last, struct error *e)
{
    int bad = trace_reader_step(r->reader, last, recorder_account, r);
    return bad ? error_set(e, -bad, "cannot read the kernel's trace buffers: %s", strerror(-bad)) : 0;
}

/* While much comes, nothing is waited for: half a CPU's buffer is full in the time between two steps then. */
int kernel_recorder_step(struct kernel_recorder *r, struct error *e)
{
    const struct trace_reader_counts *n = r->counts;
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

void kernel_recorder_settle(struct kernel_recorder *r, uint64_t settle_ns)
{
    r->capture.end_ns = clock_ns(CLOCK_MONOTONIC);
    r->capture.settle_ns = settle_ns;
    kmem_accounts_end_at(r->capture.accounts, r->capture.end_ns, settle_ns);
}

/* Of a boot there may be more than the memory should hold at once, so the steps before the last one take most of it. */
int kernel_recorder_end(struct kernel_recorder *r, struct error *e)
{
    const struct trace_reader_counts *n = r->counts;
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
    if (r->raw)
        raw_folder_end(r->raw, &r->instance, &r->capture, r->own_tid);
    return bad;
}

static uint64_t broken(const struct kernel_recorder *r)
{
    return r->counts->broken_pages + r->broken_records;
}

struct kernel_recorder_losses kernel_recorder_losses(const struct kernel_recorder *r)
{
    return (struct kernel_recorder_losses){r->lost, broken(r), r->counts->late, r->stackless};
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
