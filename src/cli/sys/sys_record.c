/* SPDX-License-Identifier: BSD-2-Clause */
/* `allium sys record`: every event of the kernel's allocators, accounted while it is read, and a recording of that. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/sigsafe/clock_ns.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/intervals.h"
#include "cli/sys/frag/frag_rows.h"
#include "cli/sys/kernel_store.h"
#include "cli/sys/record_options.h"
#include "cli/sys/state_rows.h"
#include "cli/sys/sys_source.h"
#include "cli/sys/sys_vmlinux.h"
#include "cli/wrapper_lists.h"
#include "run/workload.h"
#include "store/recording.h"
#include "sys/record/kernel_recorder.h"
#include "sys/record/raw_folder.h"
#include "sys/record/raw_states.h"
#include "sys/session.h"
#include "view/text/text.h"

static const char *const examples[] = {
    "sudo allium sys record -o find.allium -- find / -xdev",
    "record all kernel allocations of the machine while a command runs",
    "allium report find.allium --sort peak",
    "show which functions held most at the peak",
    "sudo allium sys record --raw pages -o find.allium -- find / -xdev",
    "also keep the events themselves, for allium sys import pages",
    "allium sys kmem --from find.allium --by function",
    "show the same as a table, with slack and frees",
    NULL,
};

static int run(int argc, char **argv);

const struct command command_sys_record = {
    .name = "sys record",
    .usage = "[-o FILE] [--force] [--events LIST] [--stacks WHICH] [-p PID] [--tid TID] [--comm NAME] "
             "[--cgroup PATH] [--where QUERY] [--buffer SIZE] [--raw DIR] [--interval "
             "INTERVAL] [--settle DURATION] [--duration DURATION] [--vmlinux FILE] [--source PATH] "
             "[--debuginfod DURATION] "
             "[--quiet] [-- CMD ARG...]",
    .summary = "record every allocation and free of kernel objects, without sampling (needs root)",
    .examples = examples,
    .options = record_options,
    .run = run,
};

struct session {
    const struct record_request *q;
    struct kernel_recorder *recorder;
    struct recording *recording;
    struct workload command;
    struct raw_folder *raw; /* NULL: none */
    bool raw_failed;        /* and that was said */
    struct wrappers helpers;
    struct kernel_state state;           /* of the newest moment */
    uint64_t began_ns, took_ns, next_ns; /* of CLOCK_MONOTONIC; when to store the accounts next */
    bool stored;                         /* the image is in the recording */
    int code;                            /* of the command */
};

/* ---- recording ---- */

static bool has_ended(struct session *s)
{
    siginfo_t ended = {0};
    if (!s->q->command || waitid(P_PID, (id_t)s->command.pid, &ended, WEXITED | WNOHANG | WNOWAIT) ||
        !ended.si_pid)
        return false;
    s->code = workload_reap(&s->command);
    return true;
}

/* What the kernel tells of its memory. */
static int store_state(struct session *s, unsigned which, struct error *e)
{
    const uint64_t now = clock_ns(CLOCK_REALTIME);
    struct kernel_state state = {.texts = {0}};
    kernel_state_read(&state, "", which);
    int bad = state_rows_put(s->recording, &state, &s->state, now, e);
    if (s->raw)
        raw_states_put(s->raw, &state, now);
    kernel_state_release(&s->state);
    s->state = state;
    return bad;
}

static int store_accounts(struct session *s, struct error *e)
{
    int bad = kernel_store_moment(s->recording, kernel_recorder_capture(s->recorder), !s->stored, e);
    s->stored = true;
    return bad;
}

/* A crash leaves the recording as it was then. */
static int store_moment(struct session *s, struct error *e)
{
    int bad = store_state(s, KERNEL_STATE_MEMORY, e);
    return bad ? bad : store_accounts(s, e);
}

/* A full disk ends the keeping of pages, and not the recording. */
static void drop_failed_raw(struct session *s)
{
    const char *line = raw_folder_failed(s->raw);
    if (!line || s->raw_failed)
        return;
    s->raw_failed = true;
    command_fail(0, "%s", line);
    raw_folder_remove(s->raw);
}

static int step(struct session *s, struct error *e)
{
    const uint64_t now = clock_ns(CLOCK_MONOTONIC);
    int bad = kernel_recorder_step(s->recorder, e);
    drop_failed_raw(s);
    if (bad || now < s->next_ns)
        return bad;
    s->next_ns += s->q->interval_ns;
    if (s->next_ns < now) /* we were stopped */
        s->next_ns = now + s->q->interval_ns;
    return store_moment(s, e);
}

static int loop(struct session *s, struct intervals_loop *l, struct error *e)
{
    struct pollfd ended = {.fd = s->command.process_fd, .events = POLLIN};
    int bad = 0;
    for (bool over = false; !bad && !over;) {
        over = intervals_wait(l, &ended, s->q->command ? 1 : 0, -1) == INTERVALS_OVER;
        over = has_ended(s) || over; /* its code is ours, also if Ctrl-C ended it */
        bad = step(s, e);
    }
    return bad;
}

/* From here on Ctrl-C ends the recording, and not the recorder. */
static int begin(struct session *s, struct intervals_loop *l, struct error *e)
{
    const struct intervals every = {.every_ns = RECORD_READ_NS, .duration_ns = s->q->duration_ns};
    int bad = store_state(s, KERNEL_STATE_MEMORY | KERNEL_STATE_KERNEL, e);
    if (bad)
        return bad;
    bad = intervals_begin(l, &every, NULL); /* --duration counts from here */
    if (bad)
        return error_set(e, -bad, "cannot wait for signals: %s", strerror(-bad));
    l->reports_at_end = true;
    bad = kernel_recorder_begin(s->recorder, e);
    s->began_ns = clock_ns(CLOCK_MONOTONIC);
    s->next_ns = s->began_ns + s->q->interval_ns;
    if (!bad && !s->q->quiet)
        fprintf(stderr, "allium: ready: record using tracefs\n");
    return bad;
}

/* The state is that of the end, as the live objects are; Ctrl-C ends this, too. */
static int settle(struct session *s, struct error *e)
{
    struct intervals_loop l;
    const struct intervals every = {.every_ns = RECORD_READ_NS, .duration_ns = s->q->settle_ns};
    kernel_recorder_settle(s->recorder, s->q->settle_ns);
    int bad = store_state(s, KERNEL_STATE_MEMORY, e);
    if (bad || intervals_begin(&l, &every, NULL))
        return bad;
    l.reports_at_end = true;
    for (bool over = false; !bad && !over;) {
        over = intervals_wait(&l, NULL, 0, -1) == INTERVALS_OVER;
        bad = kernel_recorder_step(s->recorder, e);
    }
    intervals_end(&l);
    return bad;
}

/* From the start to the end of what is recorded. */
static int observe_all(struct session *s, struct error *e)
{
    struct intervals_loop l;
    int bad = begin(s, &l, e);
    if (bad)
        return bad;
    bad = s->q->command ? workload_go(&s->command) : 0;
    if (bad) {
        s->code = bad == -ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
        error_set(e, -bad, "cannot run %s: %s", s->q->command[0], strerror(-bad));
    } else {
        bad = loop(s, &l, e);
    }
    intervals_end(&l);
    s->took_ns = clock_ns(CLOCK_MONOTONIC) - s->began_ns;
    return bad;
}

static int observe(struct session *s, struct error *e)
{
    struct error later;
    int bad = observe_all(s, e);
    if (!bad && s->q->settle_ns)
        bad = settle(s, e);
    int failed = kernel_recorder_end(s->recorder, bad ? &later : e);
    if (!bad && !failed && !s->q->settle_ns)
        bad = store_state(s, KERNEL_STATE_MEMORY, e);
    return bad ? bad : failed;
}

/* ---- summary ---- */

static void say(const struct session *s)
{
    char took[UNITS_TEXT_BYTES];
    const struct kernel_recorder_losses lost = kernel_recorder_losses(s->recorder);
    struct buf b = BUF_INIT;
    buf_printf(&b, "the kernel, %s, ", units_format_duration(took, (double)s->took_ns));
    kernel_store_add_summary(&b, kernel_recorder_capture(s->recorder));
    kernel_store_add_lost(&b, lost.events, "a larger --buffer makes room");
    if (lost.broken + lost.late) {
        buf_addstr(&b, "\n             ");
        text_add_number(&b, lost.broken, NULL);
        buf_addstr(&b, " records (or pages of records) could not be decoded, ");
        text_add_number(&b, lost.late, NULL);
        buf_addstr(&b, " came after younger ones (frees may seem to precede allocations)");
    }
    if (lost.stackless) {
        buf_addstr(&b, "\n             ");
        text_add_words(&b, lost.stackless,
                       "allocation{s} {is|are} shown without a stack, as none was found in the trace");
    }
    fprintf(stderr, "allium: %s\n", buf_str(&b));
    if (s->q->events & (RECORDER_SLAB | RECORDER_PERCPU))
        fprintf(stderr,
                "  next       allium report %s\n             allium sys kmem --from %s --by function\n",
                s->q->output, s->q->output);
    else
        fprintf(stderr, "  next       allium sys kpages --from %s --by comm\n", s->q->output);
    buf_release(&b);
}

/* The recorder is open, and there is a file. */
static int record_into(struct session *s, struct error *e)
{
    const struct buf *filter = &s->q->filter_text;
    if (s->q->raw) {
        int bad = raw_folder_create(&s->raw, s->q->raw, e);
        if (bad)
            return bad;
        kernel_recorder_keep(s->recorder, s->raw);
    }
    int bad = recording_set_number(s->recording, RECORDING_PERIOD, 1, e);
    bad = bad ? bad
              : recording_set_number(s->recording, RECORDING_STARTED, (int64_t)clock_ns(CLOCK_REALTIME), e);
    bad = bad || !filter->len ? bad
                              : recording_set_text(s->recording, RECORDING_KERNEL_FILTER, buf_str(filter), e);
    bad = bad ? bad : observe(s, e);
    drop_failed_raw(s);
    struct kernel_capture *c = kernel_recorder_capture(s->recorder);
    bad = bad ? bad : store_accounts(s, e);
    bad = bad ? bad : frag_rows_put(s->recording, c, &s->state, e);
    bad = bad ? bad : kernel_store_cost(s->recording, e);
    return bad ? bad : kernel_store_end(s->recording, c, "tracefs", clock_ns(CLOCK_REALTIME), e);
}

/* The recorder is open. */
static int record(struct session *s)
{
    struct error e = {""}, closing = {""};
    if (recording_create(&s->recording, s->q->output, s->q->force, &e))
        return command_fail(EXIT_FAILED, "%s", e.text);
    int bad = record_into(s, &e);
    const int code = s->code;
    int closed = recording_close(s->recording, bad ? &closing : &e);
    if (bad && !s->stored) { /* a command that could not be started, for example: the file holds nothing */
        unlink(s->q->output);
        raw_folder_remove(s->raw);
    }
    if (bad || closed)
        return command_fail(code >= EXIT_CANNOT_RUN ? code : EXIT_FAILED, "%s", e.text);
    if (!s->q->quiet)
        say(s);
    return s->raw_failed && !code ? EXIT_FAILED : code;
}

static int record_as(const struct record_request *q)
{
    struct error e = {""};
    struct session s = {.q = q};
    if (q->raw && !access(q->raw, F_OK))
        return command_fail(EXIT_FAILED, "--raw: cannot make the folder %s: %s", q->raw, strerror(EEXIST));
    if (q->command && workload_prepare(&s.command, q->command, NULL, &e))
        return command_fail(EXIT_FAILED, "%s", e.text);
    struct vmlinux vmlinux = {.path = NULL};
    struct source_finder *finder = NULL;
    int code = sys_vmlinux_open(&vmlinux, q->vmlinux_file, q->quiet);
    code = code < 0 ? sys_source_of_running(&finder, q->source_file, vmlinux.path, q->quiet) : code;
    const struct kernel_recorder_options o = {.buffer_kib = (uint32_t)(q->buffer_bytes >> 10),
                                              .events = q->events,
                                              .stacks = q->stacks,
                                              .filter = q->filter,
                                              .where = q->where,
                                              .vmlinux = vmlinux.path ? &vmlinux : NULL,
                                              .finder = finder};
    const int bad = code < 0 ? kernel_recorder_open(&s.recorder, &o, &e) : 0;
    if (bad)
        code = command_fail(bad == -ESRCH || bad == -EINVAL ? EXIT_FAILED : EXIT_IMPOSSIBLE, "%s", e.text);
    if (code < 0) {
        wrapper_lists_read_helpers(&s.helpers);
        kernel_recorder_capture(s.recorder)->helpers = &s.helpers;
        code = record(&s);
    }
    kernel_recorder_close(s.recorder);
    wrappers_release(&s.helpers);
    raw_folder_close(s.raw);
    kernel_state_release(&s.state);
    sys_vmlinux_report(&vmlinux, q->quiet);
    vmlinux_release(&vmlinux);
    source_finder_free(finder);
    if (q->command)
        workload_release(&s.command);
    return code;
}

static int run(int argc, char **argv)
{
    struct record_request q;
    int code = record_options_parse(&q, &command_sys_record, argc, argv);
    code = code < 0 ? record_as(&q) : code;
    record_options_release(&q);
    return code;
}
