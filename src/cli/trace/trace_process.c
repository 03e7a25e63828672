/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/trace/trace_process.h"

#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "cli/process_record.h"
#include "cli/source.h"
#include "cli/source_trace.h"
#include "cli/trace/trace_allocator.h"
#include "cli/trace/trace_functions.h"
#include "cli/trace/trace_summary.h"
#include "collect/process/mapped_code.h"
#include "run/trace/trace_attach.h"

static void say_started(void *arg, const char *folder)
{
    const pid_t *pid = arg;
    command_fail(0, "tracing process %d into %s; Ctrl-C ends the trace", (int)*pid, folder);
}

/* The ledger of the process knows the modules and calls of its events. A process without the agent may have none. */
static int store_names(const struct trace_attach_result *r, pid_t pid, struct error *e)
{
    struct process_record f;
    struct buf path = BUF_INIT;
    if (!r->writes)
        return 0;
    buf_printf(&path, "%s/" SOURCE_TRACE_RECORDING, r->folder);
    int bad = process_record_read(&f, pid, e);
    const bool none = bad && !r->has_agent;
    bad = bad ? bad : process_record_store(&f, buf_str(&path), false, e);
    process_record_release(&f);
    buf_release(&path);
    return none ? 0 : bad;
}

static void print_summary(const struct record_trace *t, const struct trace_attach_result *r)
{
    if (r->writes)
        trace_summary_print(&r->traced, r->folder);
    if (t->kernel_groups || t->probes)
        trace_summary_print_kernel(t, &r->kernel, 0);
    if (!r->writes)
        command_fail(0, "the process itself writes no events; next: allium events %s", r->folder);
    else if (t->kernel_groups)
        trace_allocator_print(r->folder, r->traced.events + r->kernel.events);
}

static int attach(const struct record_options *o, pid_t pid, const struct probe_list *functions, bool quiet)
{
    struct record_trace with_functions = *o->trace, *t = &with_functions;
    struct trace_attach_result result;
    struct error e = {""};
    t->probes = functions;
    const struct trace_attach_options how = {.pid = pid,
                                             .folder = t->folder,
                                             .force = o->force,
                                             .events = t->events,
                                             .where = t->where,
                                             .kernel_groups = t->kernel_groups,
                                             .probes = t->probes,
                                             .priced = quiet ? NULL : trace_functions_print_price,
                                             .kernel_ring_bytes = t->kernel_ring_bytes,
                                             .limit_bytes = t->limit_bytes,
                                             .duration_ns = t->duration_ns,
                                             .started = quiet || t->duration_ns ? NULL : say_started,
                                             .arg = &pid};
    const int failed = trace_attach(&how, &result, &e);
    const int bad = failed ? failed : store_names(&result, pid, &e);
    if (bad)
        command_fail(0, "%s", e.text);
    else if (!quiet)
        print_summary(t, &result);
    free(result.folder);
    const bool impossible = (t->kernel_groups || t->probes) && (failed == -EOPNOTSUPP || failed == -EPERM);
    return !bad ? EXIT_DONE : impossible ? EXIT_IMPOSSIBLE : EXIT_FAILED;
}

/* Returns the first given option that needs a command, or NULL. */
static const char *option_of_commands(const struct command *c, const struct arguments *a)
{
    static const char *const names[] = {
        "buffer", "clock", "stacks", "period", "no-follow", "no-args",
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (command_value(c, a, names[i]))
            return names[i];
    return NULL;
}

/* Returns -1, or an exit code after a line. *functions: NULL: none are wanted. */
static int find_functions(const struct arguments *a, pid_t pid, struct probe_list **functions)
{
    if (!command_value(&command_trace, a, "function"))
        return -1;
    struct error e = {""};
    if (kernel_follow_check(&e))
        return command_fail(EXIT_IMPOSSIBLE, "%s", e.text);
    char *program = mapped_code_program(pid);
    if (!program)
        return command_fail(EXIT_FAILED, "process %d has ended, or is a thread of the kernel", (int)pid);
    const int code =
        trace_functions_parse(a, &(struct probe_target){.program = program, .pid = pid}, functions);
    free(program);
    return code;
}

int trace_process_run(const struct command *c, const struct arguments *a, const struct record_options *o)
{
    pid_t pid;
    if (a->n_rest > 1)
        return command_misuse(c, "too many arguments after PID: leave out %s", a->rest[1]);
    if (o->trace->flight)
        return command_misuse(c,
                              "--flight needs a command: for a process, use allium env --trace "
                              "--flight and allium snapshot %s --trace",
                              a->rest[0]);
    const char *option = option_of_commands(c, a);
    if (option)
        return command_misuse(c, "--%s needs a command: allium trace --%s ... -- CMD ARG...", option, option);
    int code = source_parse_pid(c, a->rest[0], &pid);
    struct probe_list *functions = NULL;
    code = code >= 0 ? code : find_functions(a, pid, &functions);
    code = code >= 0 ? code : attach(o, pid, functions, command_value(c, a, "quiet") != NULL);
    probe_list_free(functions);
    return code;
}
