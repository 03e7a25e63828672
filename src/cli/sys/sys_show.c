/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/sys/sys_show.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sigsafe/clock_ns.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/intervals.h"
#include "cli/sys/sys_columns.h"
#include "model/table/event_buffer.h"
#include "cli/sys/sys_losses.h"
#include "cli/terminal.h"
#include "sys/resolver.h"
#include "store/profile_load.h"
#include "view/formats/json.h"
#include "view/table/table_folded.h"
#include "view/table/table_stream.h"
#include "view/table/table_view.h"

#define JSON_VERSION 1
#define COMMIT_NS    1000000000u
#define NS_PER_MS    1000000u
#define ENDING_MS    100
#define CLEAR_SCREEN "\033[H\033[2J"

struct show {
    struct sys_show *o;
    const struct sys_tool *tool;
    struct table *table;
    struct sink out;
    struct text_style style;
    struct table_stream stream;
    struct table_measure measured;
    struct event_buffer kept;
    struct buf heading; /* of the next report; empty: it has none */
    struct intervals_loop intervals;
    uint64_t began_ns, shown_ns, committed_ns;
    uint64_t recorded;         /* rows */
    const char *recorded_name; /* of what is shown again */
    uint64_t shown, all;       /* of the last report: rows, and how many there were before it was cut */
    bool redraws;              /* each report stands where the last one stood */
    uint64_t report_ns;        /* of rows that come every interval: when, since 1970 */
    bool over;
    int code;
};

/* Anew at each change of the terminal's size. */
static struct text_style style_of(const struct sys_show *o)
{
    struct text_style style = terminal_style(stdout);
    style.exact = o->exact;
    style.columns = o->wide ? 0 : style.columns;
    return style;
}

/* Alerts are checked against all rows, before --where and --top. */
static void alert(struct show *w)
{
    struct sys_alert *a = &w->o->alert;
    if (!w->o->session)
        return;
    sys_alert_check(a, w->tool->name, w->table, clock_ns(CLOCK_MONOTONIC));
    sys_alert_step(a);
    struct epoll_event ev = {.events = EPOLLIN, .data.fd = a->exec ? alert_exec_fd(a->exec) : -1};
    if (ev.data.fd >= 0)
        epoll_ctl(w->o->session->poll_fd, EPOLL_CTL_ADD, ev.data.fd, &ev); /* or it is there already */
}

/* A recording gets all rows that --where lets pass, and is committed so often that a crash takes no more than that
 * along. */
static void record(struct show *w)
{
    struct error e = {""};
    char name[64];
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    snprintf(name, sizeof(name), "sys_%s", w->tool->name);
    int bad = recording_put_rows(w->o->recording, name, w->table, clock_ns(CLOCK_REALTIME), &e);
    w->recorded += table_rows(w->table);
    if (!bad && now - w->committed_ns >= COMMIT_NS) {
        bad = recording_commit(w->o->recording, &e);
        w->committed_ns = now;
    }
    if (bad) {
        w->code = command_fail(EXIT_FAILED, "%s", e.text);
        w->over = true;
    }
}

/* "--- 5.00 s after the start, the last 5.00 s: 10 of 133 events" */
static void put_heading(struct show *w)
{
    if (!w->heading.len)
        return;
    if (w->shown < w->all || w->tool->event)
        buf_addstr(&w->heading, ": ");
    if (w->shown < w->all) {
        text_add_number(&w->heading, w->shown, NULL);
        buf_addstr(&w->heading, " of ");
    }
    if (w->shown < w->all || w->tool->event)
        text_add_number(&w->heading, w->all, w->tool->event ? "event" : "row");
    sink_printf(&w->out, "%s\n", buf_str(&w->heading));
    buf_reset(&w->heading);
}

/* All rows of a table that is sorted and cut. */
static void draw(struct show *w, const struct table *all)
{
    struct table shown = *all, *t = &shown;
    t->hidden |= w->o->columns ? ~w->o->columns : 0;
    put_heading(w);
    if (w->o->folded)
        table_folded_write(&w->out, t, w->tool->weight);
    else if (w->o->json)
        for (uint32_t row = 0; row < table_rows(t); row++)
            table_view_json_row_at(&w->out, t, row, w->report_ns);
    else if (w->tool->event)
        table_stream_write(&w->stream, &w->out, t, &w->style);
    else
        table_view_text(&w->out, t, &w->style);
    if (sink_finish(&w->out))
        w->over = true;
}

/* What has come: rows of a report, or events, which are shown at once, kept, or counted. */
static void write_table(struct show *w)
{
    const struct sys_show *o = w->o;
    struct table *t = w->table;
    alert(w);
    table_query_apply(&o->where, t);
    if (o->recording)
        record(w);
    else if (w->tool->event && o->histogram)
        table_measure_add(&w->measured, w->tool->measure->columns, t);
    else if (w->tool->event && o->keep)
        event_buffer_add(&w->kept, t);
    else {
        w->all = table_rows(t);
        if (!w->tool->event)
            table_sort(t, o->sort, o->order);
        if (!w->tool->event && o->top)
            table_cut(t, o->top);
        w->shown = table_rows(t);
        draw(w, t);
    }
    table_clear(t);
}

static void begin_heading(struct show *w, uint64_t now)
{
    char took[UNITS_TEXT_BYTES], last[UNITS_TEXT_BYTES];
    if (w->o->json || w->o->folded || w->o->recording || !w->o->interval_ns)
        return;
    buf_printf(&w->heading, "%s--- %s after the start, the last %s",
               w->redraws                   ? CLEAR_SCREEN
               : w->shown_ns == w->began_ns ? ""
                                            : "\n",
               units_format_duration(took, (double)(now - w->began_ns)),
               units_format_duration(last, (double)(now - w->shown_ns)));
}

/* What was kept of the events since the last report, or what was measured of them. */
static void report_events(struct show *w)
{
    struct event_buffer *k = &w->kept;
    if (w->o->recording || (!w->o->keep && !w->o->histogram))
        return;
    if (w->o->histogram) {
        w->all = w->shown = w->measured.rows;
        put_heading(w);
        struct table *t = table_measure_table(&w->measured, w->tool->measure->summary);
        if (w->o->json)
            table_view_json_row_at(&w->out, t, 0, w->report_ns);
        else
            table_view_text(&w->out, t, &w->style);
        table_free(t);
        w->measured = (struct table_measure){0};
        return;
    }
    w->all = k->come;
    event_buffer_sort(k);
    w->shown = table_rows(k->table);
    w->stream.rows = 0;
    draw(w, k->table);
    event_buffer_clear(k);
}

/* What has come since the last report. */
static int report(struct show *w)
{
    struct sys_session *s = w->o->session;
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    int error = w->tool->event ? 0 : sys_take_rows(s, w->table);
    if (error)
        return command_fail(EXIT_FAILED, "cannot read the rows of sys %s: %s", s->tool->name,
                            strerror(-error));
    begin_heading(w, now);
    w->shown_ns = now;
    w->report_ns = w->o->interval_ns && !w->o->keep ? clock_ns(CLOCK_REALTIME) : 0;
    if (w->tool->event)
        report_events(w);
    else
        write_table(w);
    return EXIT_DONE;
}

/* A report without a heading has its counts here. */
static void say_cut(const struct show *w)
{
    const struct sys_show *o = w->o;
    bool reported = o->interval_ns || w->kept.not_stored;
    struct buf b = BUF_INIT;
    if (w->shown >= w->all || reported || o->recording || o->quiet || o->json)
        return;
    text_add_number(&b, w->shown, NULL);
    buf_addstr(&b, " of ");
    text_add_number(&b, w->all, w->tool->event ? "event" : "row");
    fprintf(stderr, "allium: %s are shown; --top 0 shows all\n", buf_str(&b));
    buf_release(&b);
}

static void say_recorded(const struct show *w)
{
    struct buf b = BUF_INIT;
    text_add_number(&b, w->recorded, "row");
    fprintf(stderr, "allium: recorded %s; `allium sys %s --from %s` shows %s\n", buf_str(&b), w->tool->name,
            w->o->recording_name, w->recorded == 1 ? "it" : "them");
    buf_release(&b);
}

/* A command that the same Ctrl-C ends has ENDING_MS to end before it is reported as running. */
static void say_goes_on(const struct show *w)
{
    const struct workload *command = w->o->command;
    struct pollfd ended = {.fd = command ? command->process_fd : -1, .events = POLLIN};
    if (command && command->pid > 0 && !poll(&ended, 1, ENDING_MS))
        fprintf(stderr, "allium: %s (pid %d) keeps running\n", w->o->command_name, (int)command->pid);
}

/* Every report ends so. */
static void close_report(struct show *w)
{
    struct error e = {""};
    const struct sys_show *o = w->o;
    sys_read_counts(o->session);
    struct sys_losses lost = {w->tool, o->session, o->session->counted, w->kept.not_stored};
    if (o->recording && sys_losses_record(o->session, o->recording, &e))
        w->code = command_fail(EXIT_FAILED, "%s", e.text);
    if (*resolver_kernel_hidden(o->session->names) && !o->quiet)
        fprintf(stderr, "allium: %s\n", resolver_kernel_hidden(o->session->names));
    if (o->json && !o->recording) {
        sys_losses_write_json(&lost, &w->out);
        return;
    }
    if (o->quiet)
        return;
    sys_losses_say(&lost);
    say_cut(w);
    say_goes_on(w);
    if (o->recording)
        say_recorded(w);
}

static void check_command(struct show *w)
{
    struct workload *command = w->o->command;
    siginfo_t ended = {0};
    if (command && command->pid > 0 &&
        !waitid(P_PID, (id_t)command->pid, &ended, WEXITED | WNOHANG | WNOWAIT) && ended.si_pid) {
        w->code = workload_reap(command);
        w->over = true;
    }
}

/* Waits for events until the next report, the end, a signal, or something else that poll_fd has. */
static int wait_for_events(struct show *w)
{
    uint64_t left_ms = (intervals_left_ns(&w->intervals) + NS_PER_MS - 1) / NS_PER_MS;
    int timeout = left_ms > INT_MAX ? -1 : (int)left_ms, patience = alert_exec_patience_ms(w->o->alert.exec);
    if (patience >= 0 && (timeout < 0 || timeout > patience))
        timeout = patience;
    int n = sys_wait(w->o->session, timeout, w->table);
    return n < 0 && n != -EINTR ? n : 0;
}

static int step(struct show *w)
{
    int bad = wait_for_events(w);
    if (bad)
        return command_fail(EXIT_FAILED, "cannot wait for events: %s", strerror(-bad));
    check_command(w);
    sys_alert_step(&w->o->alert);
    if (w->tool->event)
        write_table(w);
    switch (intervals_next(&w->intervals)) {
    case INTERVALS_TICK:
        return w->over ? EXIT_DONE : report(w);
    case INTERVALS_RESIZED:
        w->style = style_of(w->o);
        break;
    case INTERVALS_OVER:
        w->over = true;
        break;
    default:
        break;
    }
    return EXIT_DONE;
}

static int loop(struct show *w)
{
    struct sys_session *s = w->o->session;
    while (!w->over)
        if (step(w))
            return EXIT_FAILED;
    /* What was under way when we stopped is in the ring, or in the rows, or did not happen yet. */
    sys_stop(s);
    if (s->tool->event) {
        while (sys_wait(s, 0, w->table) > 0)
            write_table(w);
        if (s->tool->rest)
            s->tool->rest(s, w->table);
        write_table(w);
    }
    if (report(w))
        return EXIT_FAILED;
    close_report(w);
    sys_alert_end(&w->o->alert);
    return command_written(&w->out, w->code);
}

static int begin_command(struct show *w)
{
    struct workload *command = w->o->command;
    struct epoll_event ev = {.events = EPOLLIN, .data.fd = command->process_fd};
    epoll_ctl(w->o->session->poll_fd, EPOLL_CTL_ADD, command->process_fd, &ev);
    resolver_know(w->o->session->names, command->pid);
    int error = workload_go(command);
    return error ? -error : 0;
}

static void say_ready(const struct sys_session *s)
{
    fprintf(stderr, "allium: ready: %s using %s%s%s\n", s->tool->name, s->method->name,
            s->lacks.len ? ", which cannot show " : "", buf_str(&s->lacks));
}

/* The first line of a stream of JSON. */
static void put_schema(struct show *w)
{
    struct json j = {.out = &w->out, .line = true};
    struct buf name = BUF_INIT;
    buf_printf(&name, "allium-sys-%s", w->tool->name);
    json_open(&j, NULL, '{');
    json_text(&j, "schema", buf_str(&name));
    json_whole(&j, "version", JSON_VERSION);
    json_close(&j, '}');
    buf_release(&name);
}

static void begin(struct show *w)
{
    const struct sys_show *o = w->o;
    const struct sys_tool *tool = w->tool;
    w->out = sink_to_file(stdout);
    w->style = style_of(o);
    w->table = table_new("sys", 1, tool->columns, tool->n_columns);
    w->table->hidden = o->hidden;
    w->stream.repeat = isatty(STDOUT_FILENO);
    if (o->json && !o->recording)
        put_schema(w);
    if (!o->keep)
        return;
    w->kept = (struct event_buffer){
        .sort = o->sort, .order = o->order, .top = o->top, .room = o->room ? o->room : EVENT_BUFFER_DEFAULT};
    w->kept.table = table_new("sys", 1, tool->columns, tool->n_columns);
    w->kept.table->hidden = o->hidden;
}

static void end(struct show *w)
{
    table_free(w->table);
    event_buffer_release(&w->kept);
    buf_release(&w->heading);
}

int sys_show(struct sys_show *o)
{
    struct sys_session *s = o->session;
    struct show w = {.o = o, .tool = s->tool};
    begin(&w);
    w.redraws = s->tool->interval_ns && isatty(STDOUT_FILENO);
    const struct intervals intervals = {.every_ns = o->interval_ns, .duration_ns = o->duration_ns};
    int error = -intervals_begin(&w.intervals, &intervals, NULL), code;
    if (error) {
        end(&w);
        return command_fail(EXIT_FAILED, "cannot wait for signals: %s", strerror(error));
    }
    w.intervals.reports_at_end = true;
    struct epoll_event ev = {.events = EPOLLIN, .data.fd = w.intervals.signal_fd};
    epoll_ctl(s->poll_fd, EPOLL_CTL_ADD, w.intervals.signal_fd, &ev);
    if (!o->quiet) /* from here on Ctrl-C ends with a report */
        say_ready(s);
    w.began_ns = w.shown_ns = w.intervals.began_ns;
    error = o->command ? begin_command(&w) : 0;
    if (error)
        code = command_fail(error == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN, "cannot run %s: %s",
                            o->command_name, strerror(error));
    else
        code = loop(&w);
    intervals_end(&w.intervals);
    end(&w);
    return code;
}

static void show_recorded(void *arg, uint64_t time_ns)
{
    struct show *w = arg;
    int code = w->over ? w->code : sys_columns_check_recorded(w->o, w->table, w->recorded_name);
    if (code >= 0) {
        w->code = code;
        w->over = true;
        return;
    }
    w->report_ns = w->tool->event ? 0 : time_ns;
    if (!w->tool->event && !w->o->json && !w->o->folded) {
        buf_printf(&w->heading, "%s--- ", w->shown_ns ? "\n" : "");
        text_add_instant(&w->heading, time_ns);
        w->shown_ns = time_ns;
    }
    write_table(w);
}

/* As close_report(), with what was lost when it was recorded. */
static int close_recorded(struct show *w, struct error *e)
{
    struct recording_summary recording;
    uint64_t counted[SYS_COUNTS] = {0};
    struct sys_losses lost = {w->tool, NULL, counted, w->kept.not_stored};
    int bad = recording_summarize(&recording, w->recorded_name, e);
    if (bad)
        return bad;
    if (!sys_losses_recorded(w->tool, &recording, counted))
        lost.counted = NULL;
    if (w->o->json)
        sys_losses_write_json(&lost, &w->out);
    else if (!w->o->quiet) {
        sys_losses_say(&lost);
        if (w->tool->event)
            say_cut(w);
    }
    recording_summary_release(&recording);
    return 0;
}

int sys_show_recorded(struct sys_show *o, const struct sys_tool *tool, const char *path)
{
    struct error e = {""};
    char name[64];
    struct show w = {.o = o, .tool = tool, .recorded_name = path};
    begin(&w);
    snprintf(name, sizeof(name), "sys_%s", tool->name);
    int bad = recording_load_rows(path, name, w.table, show_recorded, &w, &e);
    if (!bad && w.code == EXIT_DONE && tool->event)
        report_events(&w);
    if (!bad && w.code == EXIT_DONE)
        bad = close_recorded(&w, &e);
    end(&w);
    return bad ? command_fail(EXIT_FAILED, "%s", e.text) : command_written(&w.out, w.code);
}
