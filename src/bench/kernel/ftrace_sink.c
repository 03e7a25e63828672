/* SPDX-License-Identifier: BSD-2-Clause */
/* The sink of ftrace: the buffer of a tracing instance of our own. The event of a uprobe or a kprobe belongs to the
 * whole machine: it is named after our process, and removed with the probe. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/read_file.h"
#include "bench/kernel/kernel_event.h"
#include "bench/kernel/kernel_sinks.h"
#include "bench/undo_later.h"
#include "collect/kernel/trace/trace_instance.h"

#define GROUP        "allium_bench_"
#define UPROBES      "uprobe_events"
#define KPROBES      "kprobe_events"
#define EVENTS_BYTES (1u << 20)
#define BUFFER_KIB   "4096"
#define UNDO_TRIES   500 /* 10 ms apart */

struct ftrace_sink {
    struct trace_instance trace;
    struct undo_later undo;
    bool has_event;   /* of a uprobe or a kprobe, which is to be removed */
    const char *list; /* the file of tracefs that has it */
    char event[64];   /* "allium_bench_123/hit" */
};

/* ---- events of uprobes and kprobes ---- */

/* Adds a line to the list of the machine's events. Returns 0 or -errno. */
static int write_event(int tracefs, const char *list, const char *line)
{
    const int fd = openat(tracefs, list, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    const int bad = write(fd, line, strlen(line)) < 0 ? -errno : 0;
    close(fd);
    return bad;
}

/* An event can be removed as soon as no instance has it enabled. */
static int remove_event(int tracefs, const char *list, const char *event)
{
    char line[80];
    int bad = 0;
    snprintf(line, sizeof(line), "-:%s\n", event);
    for (int i = 0; i < UNDO_TRIES; i++) {
        bad = write_event(tracefs, list, line);
        if (bad != -EBUSY)
            break;
        usleep(10000);
    }
    return bad == -ENOENT ? 0 : bad;
}

static int undo(const void *arg)
{
    const struct ftrace_sink *s = arg;
    return -remove_event(s->trace.tracefs_fd, s->list, s->event);
}

/* Removes the events of commands that were killed together with the processes that undo. */
static void remove_ownerless(int tracefs, const char *list)
{
    struct buf text = BUF_INIT;
    file_read_at(tracefs, list, EVENTS_BYTES, &text);
    for (const char *line = buf_str(&text); *line; line += strcspn(line, "\n"), line += *line == '\n') {
        int pid, end = 0;
        char event[64];
        if (sscanf(line + 1, ":" GROUP "%d/hit%n", &pid, &end) != 1 || !end || pid <= 0)
            continue;
        if (!kill(pid, 0) || errno != ESRCH)
            continue;
        snprintf(event, sizeof(event), GROUP "%d/hit", pid);
        remove_event(tracefs, list, event);
    }
    buf_release(&text);
}

/* The line that defines the event. */
static void describe_event(struct buf *out, const char *event, const struct kernel_probe_target *target)
{
    if (target->kind == KERNEL_PROBE_KPROBE)
        buf_printf(out, "p:%s " KERNEL_PROBE_FUNCTION "\n", event);
    else
        buf_printf(out, "%c:%s %s:0x%" PRIx64 "\n", target->kind == KERNEL_PROBE_RETURN ? 'r' : 'p', event,
                   target->file, target->offset);
}

static int add_event(struct ftrace_sink *s, const struct kernel_probe_target *target, struct error *e)
{
    const int tracefs = s->trace.tracefs_fd;
    struct buf line = BUF_INIT;
    s->list = target->kind == KERNEL_PROBE_KPROBE ? KPROBES : UPROBES;
    remove_ownerless(tracefs, s->list);
    snprintf(s->event, sizeof(s->event), GROUP "%d/hit", (int)getpid());
    describe_event(&line, s->event, target);
    int bad = undo_later_start(&s->undo, undo, s, (int[]){tracefs, -1});
    if (bad)
        error_set(e, -bad, "cannot start the process that removes an event of tracefs: %s", strerror(-bad));
    s->has_event = !bad;
    if (!bad)
        bad = write_event(tracefs, s->list, buf_str(&line));
    if (bad && s->has_event)
        error_set(e, -bad, "tracefs, %s: %s; it takes a kernel with CONFIG_%s", s->list, strerror(-bad),
                  kernel_probe_is_uprobe(target) ? "UPROBE_EVENTS" : "KPROBE_EVENTS");
    buf_release(&line);
    return bad;
}

/* ---- the sink ---- */

static int list_threads(struct buf *out, pid_t pid, struct error *e)
{
    struct kernel_threads threads = {0};
    const int bad = kernel_threads_read(&threads, pid, e);
    vec_each (const pid_t, tid, &threads.ids)
        buf_printf(out, "%d ", (int)*tid);
    vec_release(&threads.ids);
    return bad;
}

int ftrace_sink_open(struct kernel_probe *p, struct error *e)
{
    struct ftrace_sink *s = mem_alloc(sizeof(*s));
    char enable[128];
    struct buf tids = BUF_INIT;
    int bad = trace_instance_create(&s->trace, e);
    if (bad) {
        free(s);
        return bad;
    }
    p->own = s;
    const bool is_call = p->target.kind == KERNEL_PROBE_CALL;
    if (!is_call)
        bad = add_event(s, &p->target, e);
    snprintf(enable, sizeof(enable), "events/%s/enable", is_call ? "syscalls/sys_enter_getppid" : s->event);
    if (!bad)
        bad = list_threads(&tids, p->target.pid, e);
    /* Full buffers discard: what they count as lost is then newer than all that is read. */
    const char *const writes[][2] = {{"options/overwrite", "0"},
                                     {"buffer_size_kb", BUFFER_KIB},
                                     {"set_event_pid", buf_str(&tids)},
                                     {enable, "1"},
                                     {"tracing_on", "1"}};
    for (size_t i = 0; i < sizeof(writes) / sizeof(*writes) && !bad; i++)
        bad = trace_instance_write(&s->trace, writes[i][0], writes[i][1], e);
    buf_release(&tids);
    if (bad)
        ftrace_sink_close(p);
    return bad;
}

/* Adds what a processor's statistics say. Returns 0 or -errno. */
static int read_statistics(const struct ftrace_sink *s, long cpu, struct kernel_probe_counts *out)
{
    static const char *const lost[] = {"overrun: ", "commit overrun: ", "dropped events: "};
    struct buf text = BUF_INIT;
    char path[64];
    snprintf(path, sizeof(path), "per_cpu/cpu%ld/stats", cpu);
    int bad = file_read_at(s->trace.fd, path, 4096, &text);
    const char *entries = strstr(buf_str(&text), "entries: "), *bytes = strstr(buf_str(&text), "bytes: ");
    if (!bad && (!entries || !bytes))
        bad = -EPROTO;
    if (!bad) {
        out->seen += strtoull(entries + strlen("entries: "), NULL, 10);
        out->bytes += strtoull(bytes + strlen("bytes: "), NULL, 10);
    }
    for (size_t i = 0; i < sizeof(lost) / sizeof(*lost) && !bad; i++)
        for (const char *line = buf_str(&text); *line; line += strcspn(line, "\n"), line += *line == '\n')
            if (!strncmp(line, lost[i], strlen(lost[i])))
                out->lost += strtoull(line + strlen(lost[i]), NULL, 10);
    buf_release(&text);
    return bad;
}

int ftrace_sink_read(struct kernel_probe *p, struct kernel_probe_counts *out)
{
    const struct ftrace_sink *s = p->own;
    const long cpus = sysconf(_SC_NPROCESSORS_CONF);
    int bad = 0;
    for (long cpu = 0; cpu < cpus && !bad; cpu++) {
        bad = read_statistics(s, cpu, out);
        bad = bad == -ENOENT ? 0 : bad; /* it has never been online */
    }
    /* Opening it so empties the buffers, and sets the statistics to 0. */
    const int fd = openat(s->trace.fd, "trace", O_WRONLY | O_TRUNC | O_CLOEXEC);
    if (fd < 0)
        return bad ? bad : -errno;
    close(fd);
    return bad;
}

/* As large as the instance says: it has buffers for all processors. */
uint64_t ftrace_sink_memory(const struct kernel_probe *p)
{
    const struct ftrace_sink *s = p->own;
    struct buf text = BUF_INIT;
    const int bad = file_read_at(s->trace.fd, "buffer_total_size_kb", 64, &text);
    const uint64_t bytes = bad ? 0 : strtoull(buf_str(&text), NULL, 10) * 1024;
    buf_release(&text);
    return bytes;
}

void ftrace_sink_close(struct kernel_probe *p)
{
    struct ftrace_sink *s = p->own;
    if (s->has_event) {
        /* The process that undoes waits until the instance, which has the event enabled, is gone. */
        char enable[128];
        snprintf(enable, sizeof(enable), "events/%s/enable", s->event);
        trace_instance_write(&s->trace, enable, "0", NULL);
        undo_later_end(&s->undo);
    }
    trace_instance_remove(&s->trace);
    free(s);
}
