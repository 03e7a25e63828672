/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/trace/trace_sum.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/sigsafe/clock_ns.h"
#include "cli/launched.h"
#include "cli/option_values.h"
#include "cli/output_file.h"
#include "cli/source.h"
#include "cli/sys/sys_alert.h"
#include "cli/terminal.h"
#include "cli/trace/trace_summary.h"
#include "cli/wrapper_lists.h"
#include "collect/trace/kernel_event_classes.h"
#include "collect/trace/sum_options.h"
#include "run/sum/sum_command.h"
#include "run/sum/sum_process.h"
#include "run/trace/kernel_follow.h"
#include "view/table/table_view.h"

#define ALERT_NS           UINT64_C(1000000000) /* between two tests without --interval */
#define HISTOGRAM          "value_histogram"
#define LOST               "lost_events"
#define INTERVAL_LEAST     10000000u
#define TEXT_BYTES         256u
#define KERNEL_FIELDS_MOST 256u /* bytes of the fields of an event, at least as many as any has */

struct request {
    const struct command *command;
    struct sum_spec spec;
    struct trace_sum_view view;
    uint64_t interval_ns, kernel_ring_bytes;
    const char *output, *alert, *exec;
    bool is_usual_alert; /* the alert was read with the types of the columns, which the first event tells */
    struct sys_alert alarm;
    FILE *file;
    bool failed; /* to write */
    pid_t pid;   /* of a process that runs already; 0: a command is started */
    bool quiet;
    uint64_t duration_ns, told_lost;
};

static const char *const own[] = {"interval", "top", "histogram", "alert", "exec", "json"};
static const char *const others[] = {"events", "where",  "kernel-all", "function", "buffer",
                                     "clock",  "stacks", "limit",      "flight",   "no-args"};
static const char *const of_agent[] = {"period", "no-follow"};

int trace_sum_check_absent(const struct command *command, const struct arguments *a)
{
    for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
        if (command_value(command, a, own[i]))
            return command_misuse(command, "--%s is for --sum: allium trace --sum malloc.size,by=site -- CMD",
                                  own[i]);
    return -1;
}

static void hide_columns(const struct trace_sum_view *v, struct table *t)
{
    for (uint32_t i = 0; i < t->n_columns; i++)
        if (!strcmp(t->columns[i].name, LOST) || /* a line says it */
            (!strcmp(t->columns[i].name, HISTOGRAM) && !v->histogram && table_rows(t) > 1))
            t->hidden |= UINT64_C(1) << i;
}

void trace_sum_write(const struct trace_sum_view *v, struct event_sums *sums, struct sink *out,
                     const struct text_style *style)
{
    struct table *t = event_sums_table(sums, 0);
    const uint32_t rows = table_rows(t);
    struct buf lacks = BUF_INIT;
    if (v->top)
        table_cut(t, v->top);
    if (v->json) {
        table_view_json(out, t);
    } else {
        hide_columns(v, t);
        table_view_text(out, t, style);
    }
    if (rows > table_rows(t))
        command_fail(0, "%" PRIu32 " more rows: use --top 0 to print all", rows - table_rows(t));
    if (!v->quiet)
        event_sums_add_lacks(&lacks, sums);
    if (lacks.len)
        command_fail(0, "%s", buf_str(&lacks));
    buf_release(&lacks);
    if (!v->quiet && event_sums_others(sums))
        command_fail(0, "%" PRIu64 " events are in the row of other keys: a process has room for 4095 keys",
                     event_sums_others(sums));
    if (event_sums_early(sums))
        command_fail(0, "%" PRIu64 " more events came before there was a table, and are in no row",
                     event_sums_early(sums));
    table_free(t);
}

/* Events of the kernel have a line at the end, which says more. */
static void tell_lost(struct request *q, const struct event_sums *sums, const struct text_style *style,
                      bool last)
{
    const uint64_t lost = event_sums_lost(sums);
    if (!lost || lost == q->told_lost || (last && sum_spec_is_kernel(&q->spec)))
        return;
    q->told_lost = lost;
    command_fail(
        0,
        "%" PRIu64
        " events were lost, and are in no row: %smarks lower bounds, ~ what may be too high or too low",
        lost, text_at_least(style));
}

/* The rows of one report of several, one a line. */
static void write_rows(struct request *q, struct event_sums *sums, struct sink *out)
{
    struct table *t = event_sums_table(sums, q->view.top);
    const uint64_t now = clock_ns(CLOCK_REALTIME);
    for (uint32_t row = 0; row < table_rows(t); row++)
        table_view_json_row_at(out, t, row, now);
    table_free(t);
}

/* Tests the alert. It is read when there is an event, as the types of a program's fields are not known before. */
static void judge(struct request *q, struct event_sums *sums)
{
    struct error e = {""};
    if (!q->alert)
        return;
    struct table *t = event_sums_table(sums, 0);
    if (!q->is_usual_alert && table_rows(t)) {
        sys_alert_release(&q->alarm);
        if (sys_alert_init(&q->alarm, q->alert, q->exec, t, false, &e)) {
            command_fail(0, "%s: there will be no alert", e.text);
            q->alert = NULL;
        }
        q->is_usual_alert = true;
    }
    if (q->alert)
        sys_alert_check(&q->alarm, "trace", t, clock_ns(CLOCK_MONOTONIC));
    table_free(t);
}

static void report(void *arg, struct event_sums *sums, bool last)
{
    struct request *q = arg;
    const bool is_stream = q->view.json && q->interval_ns;
    const struct text_style style = terminal_style(q->file);
    judge(q, sums);
    if (!last && !q->interval_ns)
        return; /* the call was for the alert alone */
    struct sink out = sink_to_file(q->file);
    q->view.quiet = !last;
    if (is_stream)
        write_rows(q, sums, &out);
    else
        trace_sum_write(&q->view, sums, &out, &style);
    if (!last && !is_stream)
        sink_char(&out, '\n');
    tell_lost(q, sums, &style, last);
    q->failed |= sink_finish(&out) != 0;
    fflush(q->file);
}

static void step(void *arg)
{
    struct request *q = arg;
    sys_alert_step(&q->alarm);
}

/* The key of a row, and the type of its values, for an event of the kernel. */
static enum sum_type kernel_row(const struct sum_spec *spec, struct event_sums_key *key, bool *bytes)
{
    static const unsigned char nothing[KERNEL_FIELDS_MOST];
    static char texts[SUM_SPEC_BY_MAX][TEXT_BYTES];
    uint32_t group;
    uint64_t value;
    const struct event_class *c = kernel_event_class(spec->event, &group);
    const struct trace_event event = {.class = c, .fields = nothing};
    for (unsigned i = 0; i < spec->n_by; i++)
        key->by[i] = event_sums_value_of(spec->by[i], &event, texts[i], TEXT_BYTES);
    return event_sums_number_of(spec, &event, &value, bytes);
}

/* The same for an event of the agent. */
static enum sum_type agent_row(const struct sum_spec *spec, struct event_sums_key *key, bool *bytes)
{
    for (unsigned i = 0; i < spec->n_by; i++) {
        const bool is_text = !strcmp(spec->by[i], "site") || !strcmp(spec->by[i], "event");
        key->by[i].kind = is_text ? EVENT_SUMS_TEXT : EVENT_SUMS_WHOLE;
        key->by[i].bytes = !strcmp(spec->by[i], "size");
    }
    *bytes = true;
    return spec->field ? SUM_UNSIGNED : SUM_NONE;
}

/* An alert on events that are known is read before the command begins. Returns -1, or the exit code. */
static int check_alert(struct request *q)
{
    struct error e = {""};
    if (!q->alert)
        return q->exec
                   ? command_misuse(q->command, "--exec needs --alert QUERY, such as --alert 'count>1000'")
                   : -1;
    if (sum_spec_is_user(&q->spec))
        return -1;
    struct event_sums *none = event_sums_new(&q->spec);
    struct event_sums_key key = {.others = false};
    bool bytes;
    const struct sum_cells nothing = {0};
    const enum sum_type type =
        (sum_spec_is_kernel(&q->spec) ? kernel_row : agent_row)(&q->spec, &key, &bytes);
    event_sums_add(none, &key, &nothing, type, bytes);
    event_sums_begin_span(none, NULL, 1);
    struct table *t = event_sums_table(none, 0);
    const int bad = sys_alert_init(&q->alarm, q->alert, q->exec, t, false, &e);
    sys_alert_release(&q->alarm);
    table_free(t);
    event_sums_free(none);
    return bad ? command_misuse(q->command, "%s", e.text) : -1;
}

/* Parses --kernel-buffer, and refuses the options that events of the kernel exclude. Returns -1, or the exit code. */
static int parse_kernel(struct request *q, const struct arguments *a)
{
    struct error e = {""};
    const char *buffer = command_value(q->command, a, "kernel-buffer");
    q->kernel_ring_bytes = KERNEL_FOLLOW_RING_BYTES;
    if (!sum_spec_is_kernel(&q->spec))
        return buffer ? command_misuse(q->command,
                                       "--kernel-buffer is for events of the kernel: --sum kernel:NAME")
                      : -1;
    for (size_t i = 0; i < sizeof(of_agent) / sizeof(*of_agent); i++)
        if (command_value(q->command, a, of_agent[i]))
            return command_misuse(q->command, "--%s is not for --sum of the kernel's events: leave it out",
                                  of_agent[i]);
    const int code = option_values_parse_size(q->command, "kernel-buffer", buffer, KERNEL_FOLLOW_RING_LEAST,
                                              KERNEL_FOLLOW_RING_MOST, &q->kernel_ring_bytes);
    if (code >= 0)
        return code;
    return kernel_follow_check(&e) ? command_fail(EXIT_IMPOSSIBLE, "%s", e.text) : -1;
}

/* A command, or a process that runs already. Returns -1, or the exit code. */
static int parse_target(struct request *q, const struct arguments *a)
{
    const char *duration = command_value(q->command, a, "duration"),
               *sum = command_value(q->command, a, "sum");
    if (!a->n_rest)
        return command_misuse(q->command, "missing command or PID: allium trace --sum %s -- CMD ARG...", sum);
    if (source_kind(a->rest[0]) != SOURCE_PROCESS)
        return duration ? command_misuse(
                              q->command,
                              "--duration with --sum needs a PID: allium trace --sum %s --duration %s PID",
                              sum, duration)
                        : -1;
    if (a->n_rest > 1)
        return command_misuse(q->command, "too many arguments after PID: leave out %s", a->rest[1]);
    for (size_t i = 0; i < sizeof(of_agent) / sizeof(*of_agent); i++)
        if (command_value(q->command, a, of_agent[i]))
            return command_misuse(q->command,
                                  "--%s needs a command: allium trace --sum %s --%s ... -- CMD ARG...",
                                  of_agent[i], sum, of_agent[i]);
    const int code = option_values_parse_time(q->command, "duration", duration, 1, &q->duration_ns);
    return code < 0 ? source_parse_pid(q->command, a->rest[0], &q->pid) : code;
}

/* The options that are not for --sum. Returns -1, or the exit code. */
static int check_others(const struct request *q, const struct arguments *a)
{
    if (command_value(q->command, a, "kernel"))
        return command_misuse(q->command,
                              "--kernel is not for --sum, which says the event: --sum kernel:mmap");
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        if (command_value(q->command, a, others[i]))
            return command_misuse(q->command, "--%s is not for --sum, which records nothing: leave it out",
                                  others[i]);
    if (command_value(q->command, a, "snapshot-on"))
        return command_misuse(q->command,
                              "--snapshot-on is not for --sum, which records nothing: leave it out");
    return -1;
}

static int parse(struct request *q, const struct arguments *a)
{
    struct error e = {""};
    int code = check_others(q, a);
    if (code >= 0)
        return code;
    code = parse_target(q, a);
    if (code >= 0)
        return code;
    if (sum_spec_parse(&q->spec, command_value(q->command, a, "sum"), &e) || sum_options_check(&q->spec, &e))
        return command_misuse(q->command, "--sum: %s", e.text);
    q->view.top = OPTION_VALUES_TOP_DEFAULT;
    q->view.json = command_value(q->command, a, "json") != NULL;
    q->view.histogram = command_value(q->command, a, "histogram") != NULL;
    q->alert = command_value(q->command, a, "alert");
    q->exec = command_value(q->command, a, "exec");
    q->output = command_value(q->command, a, "output");
    code = option_values_parse_top(q->command, command_value(q->command, a, "top"), &q->view.top);
    if (code < 0)
        code = option_values_parse_time(q->command, "interval", command_value(q->command, a, "interval"),
                                        INTERVAL_LEAST, &q->interval_ns);
    code = code < 0 ? check_alert(q) : code;
    return code < 0 ? parse_kernel(q, a) : code;
}

/* Events of the kernel come through rings, where they can be lost. */
static void tell_losses(const struct kernel_follow_counts *n, const struct sum_spec *spec)
{
    if (n->lost)
        command_fail(0,
                     "%" PRIu64
                     " events of the kernel, of %s or its group, were lost and are in no row: use a larger "
                     "--kernel-buffer",
                     n->lost, spec->event);
    if (n->missed)
        command_fail(0, "of the events of the kernel " TRACE_SUMMARY_MISSED, n->missed);
    if (n->counted) /* for tests */
        command_fail(0, "%" PRIu64 " events of the kernel, %" PRIu64 " counted apart", n->events, n->counted);
    if (n->damaged)
        command_fail(0, "%" PRIu64 " parts of the kernel's rings were damaged, and left out", n->damaged);
}

static struct sum_reports reports_of(struct request *q)
{
    return (struct sum_reports){.interval_ns = q->interval_ns ? q->interval_ns
                                               : q->alert     ? ALERT_NS
                                                              : 0,
                                .report = report,
                                .arg = q};
}

static void end_alarm(struct request *q)
{
    sys_alert_end(&q->alarm);
    sys_alert_release(&q->alarm);
}

static void say_started(pid_t pid)
{
    command_fail(0, "adding up events of process %d; Ctrl-C stops adding", (int)pid);
}

static void tell_process_losses(const struct ring_follow_counts *n)
{
    struct buf b = BUF_INIT;
    trace_summary_add_reasons(&b, n);
    if (b.len)
        command_fail(0, "lost: %s", buf_str(&b));
    if (n->filtered) /* by what was asked for at its start */
        command_fail(0, "%" PRIu64 " events were filtered by the process, and are in no row", n->filtered);
    trace_summary_print_damages(n);
    buf_release(&b);
}

static int run_process(struct request *q)
{
    struct error e = {""};
    struct trace_attach_result result;
    struct wrappers wrappers = {0};
    const bool of_kernel = sum_spec_is_kernel(&q->spec);
    wrapper_lists_read(&wrappers);
    const int bad =
        sum_process(&(struct sum_process_options){.spec = &q->spec,
                                                  .pid = q->pid,
                                                  .kernel_ring_bytes = q->kernel_ring_bytes,
                                                  .duration_ns = q->duration_ns,
                                                  .wrappers = &wrappers,
                                                  .reports = reports_of(q),
                                                  .started = q->quiet || q->duration_ns ? NULL : say_started,
                                                  .step = step},
                    &result, &e);
    wrappers_release(&wrappers);
    end_alarm(q);
    if (bad)
        command_fail(0, "%s", e.text);
    else if (of_kernel)
        tell_losses(&result.kernel, &q->spec);
    else
        tell_process_losses(&result.traced);
    free(result.folder);
    return !bad                                                 ? EXIT_DONE
           : of_kernel && (bad == -EOPNOTSUPP || bad == -EPERM) ? EXIT_IMPOSSIBLE
                                                                : EXIT_FAILED;
}

static int run_command(struct request *q, const struct arguments *a)
{
    struct error e = {""};
    struct record_result result;
    struct wrappers wrappers = {0};
    struct sum_command_options o = {.spec = &q->spec,
                                    .argv = a->rest,
                                    .kernel_ring_bytes = q->kernel_ring_bytes,
                                    .follow = !command_value(q->command, a, "no-follow"),
                                    .period_bytes = RECORD_PERIOD_DEFAULT_BYTES,
                                    .wrappers = &wrappers,
                                    .reports = reports_of(q),
                                    .step = step};
    const int code = option_values_parse_size(q->command, "period", command_value(q->command, a, "period"), 1,
                                              RECORD_PERIOD_MAX_BYTES, &o.period_bytes);
    if (code >= 0)
        return code;
    wrapper_lists_read(&wrappers);
    const int bad = sum_command(&o, &result, &e);
    wrappers_release(&wrappers);
    end_alarm(q);
    if (bad)
        command_fail(0, "%s", e.text);
    if (result.stage == RECORD_RAN && sum_spec_is_kernel(&q->spec))
        tell_losses(&result.kernel, &q->spec);
    const bool impossible = bad == -EOPNOTSUPP || (bad == -EPERM && sum_spec_is_kernel(&q->spec));
    return result.stage == RECORD_NOT_STARTED && impossible ? EXIT_IMPOSSIBLE : launched_exit_code(&result);
}

int trace_sum_run(const struct command *command, const struct arguments *a)
{
    struct error e = {""};
    struct request q = {
        .command = command, .file = stdout, .quiet = command_value(command, a, "quiet") != NULL};
    bool own_allocator = false;
    char *path = NULL;
    int code = parse(&q, a);
    if (code < 0 && !q.pid &&
        !sum_spec_is_kernel(&q.spec)) /* else there is no agent, and any program will do */
        code = launched_check(a->rest[0], q.quiet, &own_allocator, &path);
    free(path);
    if (code < 0 && q.output &&
        !(q.file = output_file_open(q.output, command_value(command, a, "force"), &e)))
        code = command_fail(EXIT_FAILED, "%s", e.text);
    if (code < 0) {
        code = q.pid ? run_process(&q) : run_command(&q, a);
        if (q.output && fclose(q.file))
            q.failed = true;
        if (q.failed)
            code = command_fail(EXIT_FAILED, "cannot write %s", q.output ? q.output : "standard output");
    }
    sum_spec_release(&q.spec);
    return code;
}
