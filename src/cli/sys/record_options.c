/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/sys/record_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/debuginfod.h"
#include "cli/option_values.h"
#include "collect/kernel/cgroup.h"
#include "sys/record/kernel_recorder.h"
#include "sys/record/record_where.h"

#define BUFFER_BYTES  (UINT64_C(8) << 20)
#define BUFFER_LEAST  (UINT64_C(64) << 10)
#define BUFFER_MOST   (UINT64_C(1) << 30)
#define INTERVAL_NS   UINT64_C(60000000000)
#define SETTLE_NS     UINT64_C(1000000000)
#define TIME_LEAST_NS 10000000u

const struct option_doc record_options[] = {
    {"output", 'o', "FILE", "write the recording to FILE (kernel.PID.allium)"},
    {"force", 0, NULL, "replace FILE if it exists"},
    {"events", 0, "LIST", "record these, with commas between them: slab,page,extfrag (default), percpu"},
    {"stacks", 0, "WHICH", "record the stacks of allocations: kernel, or none (default)"},
    {"pid", 'p', "PID", "record only allocations of this process, all its threads, not its children"},
    {"tid", 't', "TID", "record only allocations of this thread"},
    {"comm", 0, "NAME", "record only allocations of threads with this name"},
    {"cgroup", 0, "PATH", "record only allocations of processes in this cgroup and its descendants"},
    {"where", 0, "QUERY", "record only allocations that match, see allium-query(7): cache, allocated ..."},
    {"buffer", 0, "SIZE", "use a buffer of SIZE on each CPU (8M) for events that are not read yet"},
    {"raw", 0, "DIR", "also keep the pages of events in the new folder DIR, for allium sys import"},
    {"interval", 0, "INTERVAL",
     "store the accounts at each INTERVAL (1m), for FILE@TIME, and in case of a crash"},
    {"settle", 0, "DURATION", "after the end, observe for DURATION (1s) which live objects are freed"},
    {"duration", 0, "DURATION", "stop after DURATION, if CMD or Ctrl-C does not end it before"},
    {"vmlinux", 0, "FILE", "read the kernel's debug information from FILE, for files and directories"},
    {"source", 0, "PATH",
     "take files of code without debug information from PATH, the kernel's source: a folder, or its archive"},
    DEBUGINFOD_OPTION,
    {"quiet", 0, NULL, "print only errors"},
    {NULL, 0, NULL, NULL},
};

static const struct word stack_words[] = {{"none", 0}, {"kernel", 1}, {NULL, 0}};

static int parse_events(const struct command *c, const char *list, unsigned *events)
{
    static const struct word words[] = {{"slab", RECORDER_SLAB},
                                        {"page", RECORDER_PAGE},
                                        {"percpu", RECORDER_PERCPU},
                                        {"extfrag", RECORDER_EXTFRAG},
                                        {NULL, 0}};
    *events = list ? 0 : RECORDER_SLAB | RECORDER_PAGE | RECORDER_EXTFRAG;
    for (size_t len; list; list = list[len] ? list + len + 1 : NULL) {
        int one = 0;
        len = strcspn(list, ",");
        char *name = mem_strndup(list, len);
        int code = option_values_parse(c, "events", name, words, &one);
        free(name);
        if (code >= 0)
            return code;
        *events |= (unsigned)one;
    }
    return -1;
}

/* ---- whose allocations ---- */

static void add_filter_text(struct record_request *q, const char *option, const char *value)
{
    buf_printf(&q->filter_text, "%s--%s %s", q->filter_text.len ? " " : "", option, value);
}

static int parse_id(const struct command *c, const struct arguments *a, const char *option, uint32_t *id)
{
    const char *text = command_value(c, a, option);
    return option_values_parse_count(c, option, text, 1, INT32_MAX, id);
}

static int parse_comm(struct record_request *q, const struct command *c, const char *comm)
{
    if (comm && !*comm)
        return command_misuse(c, "invalid --comm '': use the name of a thread, as ps -L shows it");
    if (comm && strlen(comm) >= TASK_NAME_BYTES)
        return command_misuse(c, "invalid --comm '%s': use at most 15 characters, the kernel's limit", comm);
    q->filter.comm = comm;
    return -1;
}

static int parse_cgroup(struct record_request *q, const struct command *c, const char *path)
{
    struct error e = {""};
    if (!path)
        return -1;
    q->cgroup = mem_alloc(sizeof(*q->cgroup));
    if (cgroup_find(path, q->cgroup, &e))
        return command_misuse(c, "--cgroup: %s", e.text);
    q->filter.cgroup = q->cgroup->path;
    q->filter.cgroup_is_v2 = q->cgroup->hierarchy == CGROUP_V2;
    return -1;
}

static int parse_where(struct record_request *q, const struct command *c, const char *text)
{
    struct record_where where;
    struct error e = {""};
    int bad = record_where_init(&where, text, &e);
    record_where_release(&where);
    q->where = text;
    if (bad)
        return command_misuse(c, "--where: %s", e.text);
    if (text && q->events & (RECORDER_PAGE | RECORDER_EXTFRAG))
        return command_misuse(c, "--where is about objects, and pages have none: add --events slab");
    return -1;
}

static int parse_filter(struct record_request *q, const struct command *c, const struct arguments *a)
{
    static const char *const names[] = {"pid", "tid", "comm", "cgroup", "where"};
    int code = parse_id(c, a, "pid", &q->filter.process);
    if (code < 0)
        code = parse_id(c, a, "tid", &q->filter.tid);
    if (code < 0)
        code = parse_comm(q, c, command_value(c, a, "comm"));
    if (code < 0)
        code = parse_cgroup(q, c, command_value(c, a, "cgroup"));
    if (code < 0)
        code = parse_where(q, c, command_value(c, a, "where"));
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (command_value(c, a, names[i]))
            add_filter_text(q, names[i], command_value(c, a, names[i]));
    return code;
}

void record_options_release(struct record_request *q)
{
    free(q->cgroup);
    buf_release(&q->filter_text);
}

int record_options_parse(struct record_request *q, const struct command *c, int argc, char **argv)
{
    struct arguments a;
    *q = (struct record_request){
        .buffer_bytes = BUFFER_BYTES, .interval_ns = INTERVAL_NS, .settle_ns = SETTLE_NS};
    int code = command_parse(c, argc, argv, true, &a);
    if (code < 0)
        code = option_values_parse_size(c, "buffer", command_value(c, &a, "buffer"), BUFFER_LEAST,
                                        BUFFER_MOST, &q->buffer_bytes);
    if (code < 0)
        code = option_values_parse_time(c, "interval", command_value(c, &a, "interval"), RECORD_READ_NS,
                                        &q->interval_ns);
    if (code < 0)
        code = option_values_parse_time(c, "duration", command_value(c, &a, "duration"), TIME_LEAST_NS,
                                        &q->duration_ns);
    if (code < 0)
        code = option_values_parse_time(c, "settle", command_value(c, &a, "settle"), 0, &q->settle_ns);
    if (code < 0)
        code = option_values_parse(c, "stacks", command_value(c, &a, "stacks"), stack_words, &q->stacks);
    if (code < 0)
        code = parse_events(c, command_value(c, &a, "events"), &q->events);
    if (code < 0)
        code = parse_filter(q, c, &a);
    if (code >= 0)
        return code;
    if (a.n_rest && strcmp(argv[argc - a.n_rest - 1], "--"))
        return command_misuse(c, "sys record does not take %s: write a command to start after --", a.rest[0]);
    snprintf(q->own_name, sizeof(q->own_name), "kernel.%d.allium", (int)getpid());
    q->output = command_value(c, &a, "output") ? command_value(c, &a, "output") : q->own_name;
    q->vmlinux_file = command_value(c, &a, "vmlinux");
    q->source_file = command_value(c, &a, "source");
    q->raw = command_value(c, &a, "raw");
    q->force = command_value(c, &a, "force") != NULL;
    q->quiet = command_value(c, &a, "quiet") != NULL;
    q->command = a.n_rest ? a.rest : NULL;
    return -1;
}
