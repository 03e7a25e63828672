/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/sys/frag/frag_capture.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/intervals.h"
#include "collect/kernel/state/memory_parse.h"
#include "run/workload.h"
#include "sys/record/capture_frag.h"
#include "sys/record/kernel_recorder.h"

#define READ_NS UINT64_C(50000000) /* between reads of the kernel's buffers, as of sys record */

struct session {
    const struct frag_capture_request *q;
    struct kernel_recorder *recorder;
    struct workload command;
    int code; /* of the command */
};

static bool has_ended(struct session *s)
{
    siginfo_t ended = {0};
    if (waitid(P_PID, (id_t)s->command.pid, &ended, WEXITED | WNOHANG | WNOWAIT) || !ended.si_pid)
        return false;
    s->code = workload_reap(&s->command);
    return true;
}

static int loop(struct session *s, struct intervals_loop *l, struct error *e)
{
    struct pollfd ended = {.fd = s->command.process_fd, .events = POLLIN};
    int bad = 0;
    for (bool over = false; !bad && !over;) {
        over = intervals_wait(l, &ended, 1, -1) == INTERVALS_OVER;
        over = has_ended(s) || over;
        bad = kernel_recorder_step(s->recorder, e);
    }
    return bad;
}

static int start(struct session *s, struct error *e)
{
    int bad = workload_go(&s->command);
    if (!bad)
        return 0;
    s->code = bad == -ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
    return error_set(e, -bad, "cannot run %s: %s", s->q->command[0], strerror(-bad));
}

/* Ctrl-C ends the capture, and not this process. */
static int observe(struct session *s, struct error *e)
{
    struct intervals_loop l;
    struct error later = {""};
    const struct intervals every = {.every_ns = READ_NS, .duration_ns = s->q->duration_ns};
    int bad = intervals_begin(&l, &every, NULL);
    if (bad)
        return error_set(e, -bad, "cannot wait for signals: %s", strerror(-bad));
    l.reports_at_end = true;
    bad = kernel_recorder_begin(s->recorder, e);
    bad = bad ? bad : start(s, e);
    bad = bad ? bad : loop(s, &l, e);
    intervals_end(&l);
    int failed = kernel_recorder_end(s->recorder, bad ? &later : e);
    return bad ? bad : failed;
}

static int capture(struct session *s, struct frag_capture *out)
{
    struct error e = {""};
    if (observe(s, &e))
        return command_fail(s->code >= EXIT_CANNOT_RUN ? s->code : EXIT_FAILED, "%s", e.text);
    kernel_state_read(out->texts, "", KERNEL_STATE_MEMORY);
    memory_parse_state(out->state, out->texts, (uint64_t)sysconf(_SC_PAGESIZE));
    kernel_capture_add_frag(kernel_recorder_capture(s->recorder), out->state, true, out->sites);
    kernel_capture_add_fallbacks(kernel_recorder_capture(s->recorder), out->fallbacks);
    const struct kernel_recorder_losses lost = kernel_recorder_losses(s->recorder);
    out->lost = lost.events + lost.broken;
    return -1;
}

int frag_capture_run(const struct frag_capture_request *q, struct frag_capture *out, int *code)
{
    struct error e = {""};
    struct session s = {.q = q};
    const struct kernel_recorder_options o = {.buffer_kib = (uint32_t)(q->buffer_bytes >> 10),
                                              .events = RECORDER_SLAB | RECORDER_EXTFRAG,
                                              .keep_freed = true};
    if (workload_prepare(&s.command, q->command, NULL, &e))
        return command_fail(EXIT_FAILED, "%s", e.text);
    int failed = kernel_recorder_open(&s.recorder, &o, &e) ? command_fail(EXIT_IMPOSSIBLE, "%s", e.text)
                                                           : capture(&s, out);
    kernel_recorder_close(s.recorder);
    workload_release(&s.command);
    *code = s.code;
    return failed;
}
