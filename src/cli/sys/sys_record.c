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
#include "cli/debuginfod.h"
#include "cli/intervals.h"
#include "cli/option_values.h"
#include "cli/sys/frag/frag_rows.h"
#include "cli/sys/kernel_store.h"
#include "cli/sys/state_rows.h"
#include "cli/sys/sys_vmlinux.h"
#include "run/workload.h"
#include "store/recording.h"
#include "sys/record/kernel_recorder.h"
#include "sys/record/raw_folder.h"
#include "sys/record/raw_states.h"
#include "sys/session.h"
#include "view/text/text.h"

#define BUFFER_BYTES  (UINT64_C(8) << 20)
#define BUFFER_LEAST  (UINT64_C(64) << 10)
#define BUFFER_MOST   (UINT64_C(1) << 30)
#define INTERVAL_NS   UINT64_C(60000000000)
#define TIME_LEAST_NS 10000000u
/* The interval between reads: at a million events a second, of 55 bytes each, half a CPU's 8 MiB come in 70 ms. */
#define READ_NS UINT64_C(50000000)

static const struct option_doc options[] = {
    {"output", 'o', "FILE", "write the recording to FILE (kernel.PID.allium)"},
    {"force", 0, NULL, "replace FILE if it exists"},
    {"events", 0, "LIST", "record these, with commas between them: slab,page,extfrag (default), percpu"},
    {"stacks", 0, "WHICH", "record the stacks of allocations: kernel, or none (default)"},
    {"buffer", 0, "SIZE", "use a buffer of SIZE on each CPU (8M) for events that are not read yet"},
    {"raw", 0, "DIR", "also keep the pages of events in the new folder DIR, for allium sys import"},
    {"interval", 0, "INTERVAL",
     "store the accounts at each INTERVAL (1m), for FILE@TIME, and in case of a crash"},
    {"duration", 0, "DURATION", "stop after DURATION, if CMD or Ctrl-C does not end it before"},
    {"vmlinux", 0, "FILE", "read the kernel's debug information from FILE, for files and directories"},
    DEBUGINFOD_OPTION,
    {"quiet", 0, NULL, "print only errors"},
    {NULL, 0, NULL, NULL},
};

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
    .usage = "[-o FILE] [--force] [--events LIST] [--stacks WHICH] [--buffer SIZE] [--raw DIR] [--interval "
             "INTERVAL] [--duration "
             "DURATION] [--vmlinux FILE] [--debuginfod DURATION] [--quiet] [-- CMD ARG...]",
    .summary = "record every allocation and free of kernel objects, without sampling (needs root)",
    .examples = examples,
    .options = options,
    .run = run,
};

static const struct word stack_words[] = {{"none", 0}, {"kernel", 1}, {NULL, 0}};

struct request {
    const char *output, *vmlinux_file, *raw;
    char own_name[32];
    bool force, quiet;
    int stacks;
    unsigned events; /* enum kernel_recorder_events */
    uint64_t buffer_bytes, interval_ns, duration_ns;
    char **command; /* NULL: none */
};

struct session {
    const struct request *q;
    struct kernel_recorder *recorder;
    struct raw_folder *raw; /* NULL: none */
    struct recording *recording;
    struct workload command;
    struct kernel_state state;           /* of the newest moment */
    uint64_t began_ns, took_ns, next_ns; /* of CLOCK_MONOTONIC; when to store the accounts next */
    bool stored;                         /* the image is in the recording */
    int code;                            /* of the command */
};

static int parse_events(const char *list, unsigned *events)
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
        int code = option_values_parse(&command_sys_record, "events", name, words, &one);
        free(name);
        if (code >= 0)
            return code;
        *events |= (unsigned)one;
    }
    return -1;
}

static int parse(struct request *q, int argc, char **argv)
{
    const struct command *c = &command_sys_record;
    struct arguments a;
    *q = (struct request){.buffer_bytes = BUFFER_BYTES, .interval_ns = INTERVAL_NS};
    int code = command_parse(c, argc, argv, true, &a);
    if (code < 0)
        code = option_values_parse_size(c, "buffer", command_value(c, &a, "buffer"), BUFFER_LEAST,
                                        BUFFER_MOST, &q->buffer_bytes);
    if (code < 0)
        code = option_values_parse_time(c, "interval", command_value(c, &a, "interval"), READ_NS,
                                        &q->interval_ns);
    if (code < 0)
        code = option_values_parse_time(c, "duration", command_value(c, &a, "duration"), TIME_LEAST_NS,
                                        &q->duration_ns);
    if (code < 0)
        code = option_values_parse(c, "stacks", command_value(c, &a, "stacks"), stack_words, &q->stacks);
    if (code < 0)
        code = parse_events(command_value(c, &a, "events"), &q->events);
    if (code >= 0)
        return code;
    if (a.n_rest && strcmp(argv[argc - a.n_rest - 1], "--"))
        return command_misuse(c, "sys record does not take %s: write a command to start after --", a.rest[0]);
    snprintf(q->own_name, sizeof(q->own_name), "kernel.%d.allium", (int)getpid());
    q->output = command_value(c, &a, "output") ? command_value(c, &a, "output") : q->own_name;
    q->vmlinux_file = command_value(c, &a, "vmlinux");
    q->raw = command_value(c, &a, "raw");
    q->force = command_value(c, &a, "force") != NULL;
    q->quiet = command_value(c, &a, "quiet") != NULL;
    q->command = a.n_rest ? a.rest : NULL;
    return -1;
}

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
    kernel_state_release(&s->state);
    kernel_state_read(&s->state, "", which);
    int bad = s->raw ? raw_states_put(s->raw, &s->state, now, e) : 0;
    return bad ? bad : state_rows_put(s->recording, &s->state, now, e);
}

/* A crash leaves the recording as it was then. */
static int store_moment(struct session *s, struct error *e)
{
    int bad = store_state(s, KERNEL_STATE_MEMORY, e);
    bad = bad ? bad : kernel_store_moment(s->recording, kernel_recorder_capture(s->recorder), !s->stored, e);
    s->stored = true;
    return bad;
}

static int step(struct session *s, struct error *e)
{
    const uint64_t now = clock_ns(CLOCK_MONOTONIC);
    int bad = kernel_recorder_step(s->recorder, e);
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
    const struct intervals every = {.every_ns = READ_NS, .duration_ns = s->q->duration_ns};
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

static int observe(struct session *s, struct error *e)
{
    struct intervals_loop l;
    struct error later;
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
    int failed = kernel_recorder_end(s->recorder, bad ? &later : e);
    return bad ? bad : failed;
}

/* ---- summary ---- */

static void say(const struct session *s)
{
    char took[UNITS_TEXT_BYTES];
    const struct kmem_totals *t = kmem_accounts_totals(kernel_recorder_capture(s->recorder)->accounts);
    const struct kernel_recorder_losses lost = kernel_recorder_losses(s->recorder);
    struct buf b = BUF_INIT;
    buf_addstr(&b, "the kernel, ");
    buf_printf(&b, "%s, ", units_format_duration(took, (double)s->took_ns));
    text_add_number(&b, t->events, "event");
    kernel_store_add_summary(&b, t);
    if (kernel_recorder_capture(s->recorder)->pages)
        kernel_store_add_pages(&b, page_accounts_totals(kernel_recorder_capture(s->recorder)->pages));
    buf_addstr(&b, "\n  lost       ");
    if (lost.events) {
        text_add_number(&b, lost.events, "event");
        buf_addstr(&b, ": live figures may be too high or too low (a larger --buffer makes room)");
    } else {
        buf_addstr(&b, "nothing");
    }
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

/* The recorder is open. */
static int record(struct session *s)
{
    struct error e = {""};
    if (recording_create(&s->recording, s->q->output, s->q->force, &e))
        return command_fail(EXIT_FAILED, "%s", e.text);
    int bad = recording_set_number(s->recording, RECORDING_PERIOD, 1, &e);
    bad = bad ? bad
              : recording_set_number(s->recording, RECORDING_STARTED, (int64_t)clock_ns(CLOCK_REALTIME), &e);
    bad = bad ? bad : observe(s, &e);
    int code = s->code;
    bad = bad ? bad : store_moment(s, &e);
    bad = bad ? bad : frag_rows_put(s->recording, kernel_recorder_capture(s->recorder), &s->state, &e);
    bad = bad ? bad : kernel_store_cost(s->recording, &e);
    bad = bad ? bad
              : kernel_store_end(s->recording, kernel_recorder_capture(s->recorder), "tracefs",
                                 clock_ns(CLOCK_REALTIME), &e);
    struct error closing = {""};
    int closed = recording_close(s->recording, bad ? &closing : &e);
    if (bad && !s->stored) /* a command that could not be started, for example: the file holds nothing */
        unlink(s->q->output);
    if (bad || closed)
        return command_fail(code >= EXIT_CANNOT_RUN ? code : EXIT_FAILED, "%s", e.text);
    if (!s->q->quiet)
        say(s);
    return code;
}

static int run(int argc, char **argv)
{
    struct request q;
    struct error e = {""};
    int code = parse(&q, argc, argv);
    if (code >= 0)
        return code;
    struct session s = {.q = &q};
    if (q.command && workload_prepare(&s.command, q.command, NULL, &e))
        return command_fail(EXIT_FAILED, "%s", e.text);
    struct vmlinux vmlinux = {.path = NULL};
    code = sys_vmlinux_open(&vmlinux, q.vmlinux_file, q.quiet);
    if (code < 0 && q.raw && raw_folder_create(&s.raw, q.raw, &e))
        code = command_fail(EXIT_FAILED, "%s", e.text);
    const struct kernel_recorder_options o = {.buffer_kib = (uint32_t)(q.buffer_bytes >> 10),
                                              .events = q.events,
                                              .stacks = q.stacks,
                                              .raw = s.raw,
                                              .vmlinux = vmlinux.path ? &vmlinux : NULL};
    if (code < 0 && kernel_recorder_open(&s.recorder, &o, &e))
        code = command_fail(EXIT_IMPOSSIBLE, "%s", e.text);
    code = code < 0 ? record(&s) : code;
    kernel_recorder_close(s.recorder);
    raw_folder_close(s.raw);
    kernel_state_release(&s.state);
    vmlinux_release(&vmlinux);
    if (q.command)
        workload_release(&s.command);
    return code;
}
