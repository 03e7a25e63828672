/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/kernel/trace/boot_trace.h"

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
#include "collect/kernel/trace/task_format.h"
#include "model/kernel/boot_parameters.h"

#define FILE_BYTES_MAX    (1u << 20)
#define NAME_BYTES        128
#define PAGE_HEADER_BYTES 16u

/* Clocks that do not count time: a record would have no time. */
static const char *const tick_clocks[] = {"[counter]", "[uptime]", "[x86-tsc]", NULL};

/* The number behind `name` in the stats of all CPUs, added up. */
static uint64_t sum_of_stats(const struct trace_instance *top, const char *name)
{
    uint64_t sum = 0;
    const long possible = sysconf(_SC_NPROCESSORS_CONF);
    for (long cpu = 0; cpu < possible; cpu++) {
        char path[64];
        struct buf text = BUF_INIT;
        snprintf(path, sizeof(path), "per_cpu/cpu%ld/stats", cpu);
        const char *at =
            file_read_at(top->fd, path, FILE_BYTES_MAX, &text) ? NULL : strstr(buf_str(&text), name);
        sum += at ? strtoull(at + strlen(name), NULL, 10) : 0;
        buf_release(&text);
    }
    return sum;
}

/* A buffer is pages with headers, one of which is the reader's. */
static void measure_buffers(struct boot_trace *b, const struct trace_instance *top)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const long possible = sysconf(_SC_NPROCESSORS_CONF);
    for (long cpu = 0; cpu < possible; cpu++) {
        char path[64];
        struct buf text = BUF_INIT;
        snprintf(path, sizeof(path), "per_cpu/cpu%ld/buffer_size_kb", cpu);
        if (!file_read_at(top->fd, path, FILE_BYTES_MAX, &text)) {
            const uint64_t bytes = strtoull(buf_str(&text), NULL, 10) * 1024, data = page - PAGE_HEADER_BYTES;
            const uint64_t pages = (bytes + data - 1) / data + 1;
            b->buffer_pages += pages;
            b->buffer_bytes += pages * page;
        }
        buf_release(&text);
    }
}

static bool asks_for_kmem(const char *command_line)
{
    for (size_t i = 0; kmem_format_events[i]; i++)
        if (boot_parameters_trace(command_line, "kmem", kmem_format_events[i]))
            return true;
    return false;
}

/* Lines "SYSTEM:EVENT" of the events that are on. */
static int check_events(const char *events, const char *command_line, struct error *e)
{
    char system[NAME_BYTES], event[NAME_BYTES];
    for (const char *line = events; *line; line += strcspn(line, "\n"), line += *line == '\n')
        if (sscanf(line, "%127[^:\n]:%127[^ \n]", system, event) == 2 &&
            !boot_parameters_trace(command_line, system, event))
            return error_set(e, EBUSY,
                             "somebody traces %s:%s in the top-level buffers of tracefs, which the kernel's "
                             "command line does not ask for: end that tracing first",
                             system, event);
    return 0;
}

/* What else could use the buffers. */
static int check_use(const struct trace_instance *top, const char *command_line, struct error *e)
{
    struct buf tracer = BUF_INIT, events = BUF_INIT, clock = BUF_INIT;
    int bad = file_read_at(top->fd, "current_tracer", FILE_BYTES_MAX, &tracer);
    bad = bad ? bad : file_read_at(top->fd, "set_event", FILE_BYTES_MAX, &events);
    bad = bad ? bad : file_read_at(top->fd, "trace_clock", FILE_BYTES_MAX, &clock);
    if (bad)
        error_set(e, -bad, "cannot read tracefs: %s", strerror(-bad));
    else if (strcmp(buf_str(&tracer), "nop\n") != 0)
        bad = error_set(e, EBUSY, "the tracer %.*s is in use, and writes into the same buffers: end it first",
                        (int)strcspn(buf_str(&tracer), "\n"), buf_str(&tracer));
    else
        bad = check_events(buf_str(&events), command_line, e);
    for (size_t i = 0; tick_clocks[i] && !bad; i++)
        if (strstr(buf_str(&clock), tick_clocks[i]))
            bad =
                error_set(e, ENODATA,
                          "the trace's clock is %s, which does not count time: boot with trace_clock=global",
                          tick_clocks[i]);
    buf_release(&tracer);
    buf_release(&events);
    buf_release(&clock);
    return bad;
}

int boot_trace_check(struct boot_trace *b, const struct trace_instance *top, const char *command_line,
                     struct error *e)
{
    *b = (struct boot_trace){.read_before = sum_of_stats(top, "read events: ")};
    measure_buffers(b, top);
    if (!asks_for_kmem(command_line))
        return error_set(
            e, ENODATA,
            "no event of kmem is traced since the boot: `allium doctor --boot` prints what to add "
            "to the kernel's command line");
    int bad = check_use(top, command_line, e);
    if (!bad && !sum_of_stats(top, "entries: "))
        bad = error_set(e, ENODATA, "the top-level buffers of tracefs are empty: %s",
                        b->read_before ? "they were read before" : "nothing was traced since the boot");
    return bad;
}

static bool is_on(const struct trace_instance *top, const char *file)
{
    struct buf text = BUF_INIT;
    bool on = !file_read_at(top->fd, file, FILE_BYTES_MAX, &text) && buf_str(&text)[0] == '1';
    buf_release(&text);
    return on;
}

bool boot_trace_has(const struct trace_instance *top, const char *event)
{
    char path[NAME_BYTES];
    snprintf(path, sizeof(path), "events/%s/enable", event);
    return is_on(top, path);
}

/* "now ts:  1065.939114": the trace's clock has no other file. */
static int64_t clock_offset(const struct trace_instance *top)
{
    static const char name[] = "now ts:";
    struct buf text = BUF_INIT;
    double seconds = 0;
    int64_t offset = (int64_t)(clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC));
    const char *at = file_read_at(top->fd, "per_cpu/cpu0/stats", FILE_BYTES_MAX, &text)
                         ? NULL
                         : strstr(buf_str(&text), name);
    if (at && sscanf(at + sizeof(name) - 1, "%lf", &seconds) == 1)
        offset = (int64_t)clock_ns(CLOCK_REALTIME) - (int64_t)(seconds * 1e9);
    buf_release(&text);
    return offset;
}

static int end_event(const struct trace_instance *top, const char *event, struct error *e)
{
    char path[NAME_BYTES];
    snprintf(path, sizeof(path), "events/%s/enable", event);
    return is_on(top, path) ? trace_instance_write(top, path, "0", e) : 0;
}

int boot_trace_stop(struct boot_trace *b, const struct trace_instance *top, int64_t *offset_ns,
                    struct error *e)
{
    b->was_on = is_on(top, "tracing_on");
    int bad = trace_instance_write(top, "tracing_on", "0", e);
    *offset_ns = clock_offset(top);
    bad = bad ? bad
              : trace_instance_write(top, "events/kmem/enable", "0", e); /* also those that are not read */
    for (size_t k = 0; k < TASK_EVENT_KINDS && !bad; k++)
        bad = end_event(top, task_format_events[k], e);
    return bad;
}

void boot_trace_resume(const struct boot_trace *b, const struct trace_instance *top)
{
    struct error ignored; /* the buffers were read; who traces next switches it on */
    if (b->was_on)
        trace_instance_write(top, "tracing_on", "1", &ignored);
}
