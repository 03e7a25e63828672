/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/sigsafe/clock_ns.h"
#include "cli/debuginfod.h"
#include "cli/watch_loop.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/option_values.h"
#include "cli/screen_options.h"
#include "cli/terminal.h"
#include "model/profile/growth.h"
#include "view/profile/watch_view.h"

#define NEXT_LEAST_NS 5000000000u

enum wish { NOTHING, LIST, FREES, DISMISS, HELP, QUIT };

struct loop {
    const struct watch_loop *o;
    struct intervals_loop intervals;
    int process_fd; /* pidfd of the watched process until its end is noticed; -1: none */
    bool keys;      /* keys are read, and the terminal has our mode */
    struct termios before;
    struct error said; /* the last complaint about a ledger: not repeated at every snapshot */
    int code;          /* exit code, once it is known; -1 */
};

/* ---- the terminal ---- */

/* In the background the terminal belongs to another process group, and changing its mode would stop this one. */
static bool may_read_keys(void)
{
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp();
}

static void take_terminal(struct loop *l)
{
    struct termios mode;
    if (tcgetattr(STDIN_FILENO, &l->before))
        return;
    mode = l->before;
    mode.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    mode.c_cc[VMIN] = 1;
    mode.c_cc[VTIME] = 0;
    signal(SIGPIPE,
           SIG_IGN); /* a write to a closed stderr must not end the process before the terminal is restored */
    l->keys = !tcsetattr(STDIN_FILENO, TCSADRAIN, &mode);
}

static void give_terminal_back(struct loop *l)
{
    if (l->keys)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &l->before);
}

static void stop(struct loop *l)
{
    give_terminal_back(l);
    raise(SIGSTOP);
    l->keys = false;
    if (may_read_keys())
        take_terminal(l);
}

/* ---- keys and signals ---- */

static enum wish wish_of_signal(struct loop *l, int sig)
{
    switch (sig) {
    case SIGUSR1:
        return DISMISS;
    case SIGUSR2:
        return FREES;
    case SIGHUP:
        return l->keys ? QUIT : LIST;
    case SIGTSTP:
        stop(l);
        return NOTHING;
    default:
        return QUIT;
    }
}

static enum wish wish_of_key(char key)
{
    switch (key) {
    case 'l':
    case '\n':
    case '\r':
        return LIST;
    case 'f':
        return FREES;
    case 'd':
        return DISMISS;
    case 'q':
    case 4: /* ^D */
        return QUIT;
    default:
        return HELP;
    }
}

/* Reads one key. */
static enum wish read_key(void)
{
    char key;
    ssize_t n = read(STDIN_FILENO, &key, 1);
    return n == 1 ? wish_of_key(key) : n < 0 && errno == EINTR ? NOTHING : QUIT;
}

static void print_help(void)
{
    printf(
        "l, Enter  list all old memory      d  dismiss it: report only new memory      f  recent frees      "
        "q  quit\n");
    fflush(stdout);
}

/* ---- snapshots ---- */

void watch_print(struct sink *out, const struct watch_snapshot *l, uint32_t top, bool json)
{
    struct watch_view v = {
        .style = terminal_style(stdout), .top = top, .frames = OPTION_VALUES_FRAMES_DEFAULT};
    if (json)
        watch_json_write(out, l, top);
    else
        watch_write(out, l, &v);
}

static void add_variable(char **variables, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void add_variable(char **variables, const char *fmt, ...)
{
    struct buf b = BUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&b, fmt, ap);
    va_end(ap);
    while (*variables)
        variables++;
    *variables = buf_detach(&b);
}

static char **variables_of(const struct watch_snapshot *l, const struct watch_snapshot_alert *alert)
{
    const struct watch_snapshot_image *i = &l->images.at[alert->image];
    const struct profile_image *of = &i->profile->images.at[0];
    struct interval live = estimate_interval(&i->live);
    char **v = mem_array(16, sizeof(*v));
    add_variable(v, "ALLIUM_ALERT=%s", alert->condition);
    if (of->pid)
        add_variable(v, "ALLIUM_PID=%d", of->pid);
    else
        add_variable(v, "ALLIUM_PID="); /* unknown here: inside the container the number is another process */
    add_variable(v, "ALLIUM_IMAGE=0x%" PRIx64, of->id);
    add_variable(v, "ALLIUM_COMM=%s", profile_text(i->profile, of->comm));
    add_variable(v, "ALLIUM_LIVE_BYTES=%.0f", i->live.value);
    add_variable(v, "ALLIUM_LIVE_BYTES_LOW=%.0f", floor(live.low));
    add_variable(v, "ALLIUM_LIVE_BYTES_HIGH=%.0f", ceil(live.high));
    add_variable(v, "ALLIUM_OLD_BYTES=%.0f", watch_snapshot_old(i)->value);
    if (alert->row == PROFILE_NONE)
        return v;
    const struct watch_snapshot_row *row = &i->rows.at[alert->row];
    char scratch[FRAME_NAME_BYTES];
    struct frames frames = {0};
    frames_of(&frames, i->profile, watch_snapshot_rollup_row(i, row)->index);
    add_variable(v, "ALLIUM_FUNCTION=%s",
                 frame_function(i->profile, frames_asker(i->profile, &frames), scratch));
    add_variable(v, "ALLIUM_SLOPE_BYTES_PER_HOUR=%.0f", row->growth.bytes_per_hour);
    add_variable(v, "ALLIUM_SLOPE_BYTES_PER_HOUR_LOW=%.0f", floor(row->growth.interval.low));
    add_variable(v, "ALLIUM_SLOPE_BYTES_PER_HOUR_HIGH=%.0f", ceil(row->growth.interval.high));
    vec_release(&frames);
    return v;
}

static void complain(const char *what)
{
    fprintf(stderr, "allium: %s\n", what);
}

static void run_commands(struct loop *l, const struct watch_snapshot *snapshot)
{
    vec_each (const struct watch_snapshot_alert, alert, &snapshot->alerts) {
        struct error e = {""};
        if (l->o->exec && alert_exec_add(l->o->exec, variables_of(snapshot, alert), &e))
            complain(e.text);
    }
}

/* Returns whether the number of snapshots of --count is reached. */
static bool is_last(const struct loop *l)
{
    return l->o->intervals.count && l->intervals.ticks >= l->o->intervals.count;
}

/* Prints the time of the next snapshot if there is one and it is at least NEXT_LEAST_NS away. */
static void print_next(const struct loop *l, const struct watch_snapshot *snapshot, struct sink *out)
{
    bool is_none = is_last(l) || watch_is_over(l->o->watch) || l->intervals.due_ns > l->intervals.end_ns;
    uint64_t left_ns = intervals_left_ns(&l->intervals);
    if (l->o->json || is_none || left_ns < NEXT_LEAST_NS)
        return;
    struct text_style style = terminal_style(stdout);
    char left[UNITS_TEXT_BYTES];
    struct buf at = BUF_INIT;
    text_add_instant(&at, clock_ns(CLOCK_REALTIME) + left_ns);
    buf_printf(&at, ", in %s", units_format_duration(left, (double)left_ns));
    if (snapshot->number < GROWTH_SNAPSHOTS)
        buf_printf(&at, "; growth is judged from snapshot %d on, this was %" PRIu64, GROWTH_SNAPSHOTS,
                   snapshot->number);
    sink_text(out, text_begin(&style, TEXT_FAINT));
    text_paragraph(out, &style, "    next snapshot at ", 4, buf_str(&at));
    sink_text(out, text_end(&style, TEXT_FAINT));
    buf_release(&at);
}

static void take_snapshot(struct loop *l, enum watch_snapshot_kind kind)
{
    struct error e = {""};
    struct watch_snapshot *snapshot = watch_take_snapshot(l->o->watch, kind, &e);
    if (*e.text && strcmp(e.text, l->said.text))
        complain(e.text);
    l->said = e;
    struct sink out = sink_to_file(stdout);
    watch_print(&out, snapshot, l->o->top, l->o->json);
    print_next(l, snapshot, &out);
    int bad = sink_finish(&out);
    debuginfod_report();
    run_commands(l, snapshot);
    watch_snapshot_free(snapshot);
    if (bad)
        l->code = command_written(&out, EXIT_DONE);
}

static int save(struct loop *l)
{
    struct error e = {""};
    if (!l->o->state || !suppressions_changed(l->o->dismissed) ||
        !suppressions_save(l->o->dismissed, l->o->state, &e))
        return 0;
    complain(e.text);
    return -1;
}

static void dismiss(struct loop *l)
{
    take_snapshot(l, WATCH_SNAPSHOT_CHANGES); /* to know which samples are old now */
    uint64_t n = watch_dismiss(l->o->watch);
    if (!save(l))
        fprintf(stderr, "allium: %" PRIu64 " sample%s dismissed\n", n, n == 1 ? "" : "s");
}

static void grant(struct loop *l, enum wish wish)
{
    if (wish == LIST)
        take_snapshot(l, WATCH_SNAPSHOT_ALL);
    else if (wish == FREES)
        take_snapshot(l, WATCH_SNAPSHOT_FREES);
    else if (wish == DISMISS)
        dismiss(l);
    else if (wish == HELP)
        print_help();
    else if (wish == QUIT)
        l->code = EXIT_DONE;
}

/* ---- the loop ---- */

static void step_hook(struct loop *l)
{
    struct error e = {""};
    int status = -1;
    if (!l->o->exec) /* at every step: the command may have no descriptor to wait for */
        return;
    if (alert_exec_step(l->o->exec, &status, &e))
        complain(e.text);
    if (status > 0 && WIFEXITED(status))
        fprintf(stderr, "allium: the command of --exec ended with %d\n", WEXITSTATUS(status));
    else if (status > 0 && WIFSIGNALED(status))
        fprintf(stderr, "allium: the command of --exec was killed by signal %d\n", WTERMSIG(status));
}

static void close_process(struct loop *l)
{
    if (l->process_fd >= 0)
        close(l->process_fd);
    l->process_fd = -1;
}

/* Waits for the next snapshot, a signal, a key, the end of the watched process or that of the command of --exec. */
static void step(struct loop *l)
{
    enum { PROCESS, KEYS, EXEC };
    struct pollfd fds[] = {[PROCESS] = {.fd = l->process_fd, .events = POLLIN},
                           [KEYS] = {.fd = l->keys ? STDIN_FILENO : -1, .events = POLLIN},
                           [EXEC] = {.fd = l->o->exec ? alert_exec_fd(l->o->exec) : -1, .events = POLLIN}};
    enum intervals_event event =
        intervals_wait(&l->intervals, fds, sizeof(fds) / sizeof(*fds), alert_exec_patience_ms(l->o->exec));
    step_hook(l);
    if (event == INTERVALS_SIGNAL)
        grant(l, wish_of_signal(l, l->intervals.signal));
    else if (event == INTERVALS_OVER)
        grant(l, QUIT);
    else if (event == INTERVALS_TICK)
        take_snapshot(l, WATCH_SNAPSHOT_CHANGES);
    if (l->code < 0 && fds[KEYS].revents)
        grant(l, read_key());
    if (fds[PROCESS].revents) {
        close_process(l); /* it stays readable */
        l->intervals.due_ns = clock_ns(CLOCK_MONOTONIC);
    }
}

static void run(struct loop *l)
{
    l->intervals.due_ns = l->intervals.began_ns; /* the first snapshot is taken at once */
    while (l->code < 0) {
        step(l);
        if (l->code < 0 && (is_last(l) || watch_is_over(l->o->watch)))
            l->code = EXIT_DONE;
    }
}

int watch_loop(const struct watch_loop *o)
{
    static const int own_signals[] = {SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2, SIGTSTP, 0};
    struct loop l = {.o = o, .code = -1, .process_fd = -1};
    signal(SIGCHLD, SIG_DFL); /* where the parent ignored it, the command of --exec would have no status */
    int bad = intervals_begin(&l.intervals, &o->intervals, own_signals);
    if (bad)
        return command_fail(EXIT_FAILED, "cannot wait for signals: %s", strerror(-bad));
    if (o->intervals.count != 1 && may_read_keys()) {
        take_terminal(&l);
        fprintf(stderr, "allium: press ? for keys, q to quit\n");
    }
    if (o->pid) /* without a pidfd the end is noticed at the next snapshot */
        l.process_fd = (int)syscall(SYS_pidfd_open, o->pid, 0);
    run(&l);
    close_process(&l);
    give_terminal_back(&l);
    if (save(&l) && l.code == EXIT_DONE)
        l.code = EXIT_FAILED;
    if (o->exec && alert_exec_waiting(o->exec))
        fprintf(stderr, "allium: %u alerts were still waiting for the command of --exec\n",
                alert_exec_waiting(o->exec));
    intervals_end(&l.intervals);
    return screen_options_check(l.code);
}
