/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/sys/sys_show.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sigsafe/clock_ns.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/intervals.h"
#include "cli/sys/sys_losses.h"
#include "cli/sys/sys_page.h"
#include "cli/sys/sys_report.h"
#include "sys/resolver.h"

#define NS_PER_MS    1000000u
#define ENDING_MS    100
#define CLEAR_SCREEN "\033[H\033[2J"

struct show {
    struct sys_report report;
    struct sys_show *o;
    struct sys_session *session;
    struct intervals_loop intervals;
    uint64_t began_ns, shown_ns;
    bool redraws;        /* each report stands where the last one stood */
    uint64_t unshown_ns; /* the length of the last report, if it was not shown */
    bool over;
    int code;
};

/* Alerts are checked against all rows, before --where and --top. */
static void alert(struct show *w)
{
    struct sys_alert *a = &w->o->alert;
    sys_alert_check(a, w->session->tool->name, w->report.table, clock_ns(CLOCK_MONOTONIC));
    sys_alert_step(a);
    struct epoll_event ev = {.events = EPOLLIN, .data.fd = a->exec ? alert_exec_fd(a->exec) : -1};
    if (ev.data.fd >= 0)
        epoll_ctl(w->session->poll_fd, EPOLL_CTL_ADD, ev.data.fd, &ev); /* or it is there already */
}

static void write_table(struct show *w)
{
    alert(w);
    sys_report_write(&w->report);
    if (w->report.over) {
        w->code = w->report.code ? w->report.code : w->code;
        w->over = true;
    }
}

static void begin_heading(struct show *w, uint64_t now)
{
    char took[UNITS_TEXT_BYTES], last[UNITS_TEXT_BYTES];
    if (w->report.unshown || w->o->json || w->o->folded || !w->o->interval_ns)
        return;
    buf_printf(&w->report.heading, "%s--- %s after the start, the last %s",
               w->redraws                   ? CLEAR_SCREEN
               : w->shown_ns == w->began_ns ? ""
                                            : "\n",
               units_format_duration(took, (double)(now - w->began_ns)),
               units_format_duration(last, (double)(now - w->shown_ns)));
}

/*
 * At the end: a part of an interval does not take the place of the last whole one on the screen.
 */
static bool keeps_the_last(const struct show *w, uint64_t now)
{
    return w->over && w->redraws && w->shown_ns > w->began_ns &&
           now - w->shown_ns < w->o->interval_ns - w->o->interval_ns / 20;
}

/* What has come since the last report. */
static int report(struct show *w)
{
    struct sys_session *s = w->session;
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    int error = w->session->tool->event ? 0 : sys_take_rows(s, w->report.table);
    if (error)
        return command_fail(EXIT_FAILED, "cannot read the rows of sys %s: %s", s->tool->name,
                            strerror(-error));
    w->report.unshown = keeps_the_last(w, now);
    w->unshown_ns = now - w->shown_ns;
    begin_heading(w, now);
    w->shown_ns = now;
    w->report.report_ns = w->o->interval_ns && !w->o->keep ? clock_ns(CLOCK_REALTIME) : 0;
    if (w->session->tool->event)
        sys_report_events(&w->report);
    else
        write_table(w);
    return EXIT_DONE;
}

/* Says that there was no event: an empty screen does not show whether the tool worked. */
static void say_none(const struct show *w)
{
    char took[UNITS_TEXT_BYTES];
    if (w->session->tool->event && !w->report.any && !w->o->interval_ns)
        fprintf(stderr, "allium: no event%s in %s\n", w->o->where.query ? " that matches --where" : "",
                units_format_duration(took, (double)(w->shown_ns - w->began_ns)));
}

static void say_unshown(const struct show *w)
{
    char rest[UNITS_TEXT_BYTES];
    if (w->report.unshown)
        fprintf(stderr, "allium: the last %s, less than an interval, are not shown above\n",
                units_format_duration(rest, (double)w->unshown_ns));
}

static void say_recorded(const struct show *w)
{
    struct buf b = BUF_INIT;
    text_add_number(&b, w->report.recorded, "row");
    buf_addstr(&b, "; `allium ");
    sys_tool_add_words(&b, w->session->tool->name, strlen(w->session->tool->name));
    fprintf(stderr, "allium: recorded %s --from %s` shows %s\n", buf_str(&b), w->o->recording_name,
            w->report.recorded == 1 ? "it" : "them");
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

/* Each line that the tool has for the user. */
static void say_words(const struct show *w)
{
    struct buf *says = &w->session->says;
    for (char *line = says->len ? says->data : NULL, *end; line && (end = strchr(line, '\n')); line = end + 1)
        if (!w->o->quiet)
            fprintf(stderr, "allium: %.*s\n", (int)(end - line), line);
    buf_reset(says);
}

/* Every report ends so. */
static void close_report(struct show *w)
{
    struct error e = {""};
    const struct sys_show *o = w->o;
    sys_read_counts(o->session);
    say_words(w);
    struct sys_losses lost = {w->session->tool, o->session, o->session->counted, w->report.kept.not_stored};
    if (o->recording && sys_losses_record(o->session, o->recording, &e))
        w->code = command_fail(EXIT_FAILED, "%s", e.text);
    if (*resolver_kernel_hidden(o->session->names) && !o->quiet)
        fprintf(stderr, "allium: %s\n", resolver_kernel_hidden(o->session->names));
    if (o->page) {
        struct buf notes = BUF_INIT;
        sys_losses_note(&lost, &notes);
        sys_page_note(o->page, &notes);
        buf_release(&notes);
    }
    if (o->json)
        sys_losses_write_json(&lost, &w->report.out);
    if (o->quiet)
        return;
    if (!o->json) {
        say_none(w);
        sys_losses_say(&lost);
        sys_report_say_cut(&w->report);
        say_unshown(w);
        say_goes_on(w);
    }
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
    int n = sys_wait(w->session, timeout, w->report.table);
    return n < 0 && n != -EINTR ? n : 0;
}

static int step(struct show *w)
{
    int bad = wait_for_events(w);
    say_words(w);
    if (bad)
        return command_fail(EXIT_FAILED, "cannot wait for events: %s", strerror(-bad));
    check_command(w);
    sys_alert_step(&w->o->alert);
    if (w->session->tool->event)
        write_table(w);
    switch (intervals_next(&w->intervals)) {
    case INTERVALS_TICK:
        return w->over ? EXIT_DONE : report(w);
    case INTERVALS_RESIZED:
        sys_report_resize(&w->report);
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
    struct sys_session *s = w->session;
    while (!w->over)
        if (step(w))
            return EXIT_FAILED;
    /* What was under way when we stopped is in the ring, or in the rows, or did not happen yet. */
    sys_stop(s);
    if (s->tool->event) {
        while (sys_wait(s, 0, w->report.table) > 0)
            write_table(w);
        if (s->tool->rest)
            s->tool->rest(s, w->report.table);
        write_table(w);
    }
    if (report(w))
        return EXIT_FAILED;
    close_report(w);
    sys_alert_end(&w->o->alert);
    return command_written(&w->report.out, w->code);
}

static int begin_command(struct show *w)
{
    struct workload *command = w->o->command;
    struct epoll_event ev = {.events = EPOLLIN, .data.fd = command->process_fd};
    epoll_ctl(w->session->poll_fd, EPOLL_CTL_ADD, command->process_fd, &ev);
    resolver_know(w->session->names, command->pid);
    int error = workload_go(command);
    return error ? -error : 0;
}

static void say_ready(const struct sys_session *s)
{
    struct buf words = BUF_INIT;
    sys_tool_add_words(&words, s->tool->name, strlen(s->tool->name));
    fprintf(stderr, "allium: ready: %s using %s%s%s\n", buf_str(&words) + strlen("sys "), s->method->name,
            s->lacks.len ? ", which cannot show " : "", buf_str(&s->lacks));
    buf_release(&words);
}

int sys_show(struct sys_show *o)
{
    struct sys_session *s = o->session;
    struct show w = {.o = o, .session = s};
    sys_report_begin(&w.report, o, s->tool);
    if (o->json)
        sys_report_begin_json(&w.report);
    w.redraws = s->tool->interval_ns && isatty(STDOUT_FILENO) && !o->json && !o->folded;
    if (o->recording) /* the command, which would inherit this, was forked before */
        signal(SIGPIPE, SIG_IGN);
    const struct intervals intervals = {.every_ns = o->interval_ns, .duration_ns = o->duration_ns};
    int error = -intervals_begin(&w.intervals, &intervals, NULL), code;
    if (error) {
        sys_report_end(&w.report);
        return command_fail(EXIT_FAILED, "cannot wait for signals: %s", strerror(error));
    }
    w.intervals.reports_at_end = true;
    struct epoll_event ev = {.events = EPOLLIN, .data.fd = w.intervals.signal_fd};
    epoll_ctl(s->poll_fd, EPOLL_CTL_ADD, w.intervals.signal_fd, &ev);
    if (!o->quiet) /* from here on Ctrl-C ends with a report */
        say_ready(s);
    say_words(&w);
    w.began_ns = w.shown_ns = w.intervals.began_ns;
    error = o->command ? begin_command(&w) : 0;
    if (error)
        code = command_fail(error == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN, "cannot run %s: %s",
                            o->command_name, strerror(error));
    else
        code = loop(&w);
    intervals_end(&w.intervals);
    sys_report_end(&w.report);
    return code;
}
