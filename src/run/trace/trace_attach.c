/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/trace/trace_attach.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/sigsafe/clock_ns.h"
#include "collect/process/proc.h"
#include "collect/trace/ring_image.h"
#include "collect/trace/trace_dir.h"
#include "collect/trace/trace_switch.h"
#include "run/trace/traced_process.h"

#define NS_PER_MS 1000000u
#define STEP_MS   50u

static int open_signals(void)
{
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGHUP);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    return signalfd(-1, &ends, SFD_CLOEXEC);
}

struct ends {
    struct pollfd fds[2]; /* of the process, and of signals */
};

static int begin_ends(struct ends *ends, pid_t pid, struct error *e)
{
    *ends = (struct ends){{{.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN},
                           {.fd = open_signals(), .events = POLLIN}}};
    if (ends->fds[0].fd >= 0 && ends->fds[1].fd >= 0)
        return 0;
    return error_set(e, errno, "cannot watch process %d: %s", (int)pid, strerror(errno));
}

static void wait_for_end(struct ends *ends, const struct trace_attach_options *o)
{
    const uint64_t until_ns = o->duration_ns ? clock_ns(CLOCK_MONOTONIC) + o->duration_ns : UINT64_MAX;
    for (;;) {
        const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
        if (now_ns >= until_ns)
            return;
        const uint64_t ms =
            until_ns == UINT64_MAX ? INT32_MAX : (until_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS;
        const uint64_t most = o->step ? STEP_MS : INT32_MAX;
        if (poll(ends->fds, 2, (int)(ms < most ? ms : most)) > 0)
            return;
        if (o->step)
            o->step(o->arg);
    }
}

static void release_ends(const struct ends *ends)
{
    for (int i = 0; i < 2; i++)
        if (ends->fds[i].fd >= 0)
            close(ends->fds[i].fd);
}

/* Finds a process that writes events. */
static int find(struct traced_process *t, pid_t pid, struct error *e)
{
    struct ring_image image;
    int bad = traced_process_find(t, pid, true, e);
    if (bad)
        return bad;
    if (!t->entry->alive) {
        bad = error_set(e, ESRCH, "process %d has ended: allium snapshot %d --trace stores its last events",
                        (int)pid, (int)pid);
    } else if (t->has_rings && (bad = ring_image_open(&image, t->dir, t->rings))) {
        bad = error_set(e, -bad,
                        bad == -EBUSY ? "another allium trace reads the events of process %d"
                                      : "cannot read the events of process %d",
                        (int)pid);
    } else if (t->has_rings) {
        ring_image_close(&image);
    }
    if (bad)
        traced_process_release(t);
    return bad;
}

struct attached {
    const struct trace_attach_options *o;
    struct traced_process target; /* `entry` NULL: it writes no events, and those of the kernel are all */
    struct trace_switch before;
    bool is_switched;
    struct ends ends;
    struct kernel_follow *kernel;
    struct ring_follow *rings;
};

static int begin_kernel(struct attached *a, const char *folder, struct error *e)
{
    struct buf kernel = BUF_INIT;
    if (!a->o->kernel_groups && !a->o->probes)
        return 0;
    int bad = kernel_follow_begin(&a->kernel,
                                  &(struct kernel_follow_options){.groups = a->o->kernel_groups,
                                                                  .probes = a->o->probes,
                                                                  .ring_bytes = a->o->kernel_ring_bytes,
                                                                  .pid = a->o->pid},
                                  e);
    if (!bad && a->o->probes && a->o->priced) {
        kernel_follow_price(a->kernel, &kernel);
        a->o->priced(buf_str(&kernel));
        buf_reset(&kernel);
    }
    buf_printf(&kernel, "%s/kernel", folder ? folder : "");
    if (!bad)
        bad = a->o->sums ? kernel_follow_start_sums(a->kernel, a->o->sums, e)
                         : kernel_follow_start(a->kernel, buf_str(&kernel), e);
    buf_release(&kernel);
    return bad;
}

static int begin_rings(struct attached *a, const char *folder, struct error *e)
{
    const struct ledger_entry *ledger = a->target.entry;
    if (!ledger)
        return 0;
    int bad = trace_switch_read(&a->before, ledger, e);
    bad = bad ? bad
              : ring_follow_begin(&a->rings,
                                  &(struct ring_follow_options){.dir = a->target.dir,
                                                                .folder = folder,
                                                                .sums = a->o->sums,
                                                                .limit_bytes = a->o->limit_bytes,
                                                                .duration_ns = a->o->duration_ns,
                                                                .where = a->o->where,
                                                                .only = a->target.named},
                                  e);
    if (bad || (!a->o->events && a->before.is_on))
        return bad;
    bad = a->o->events ? trace_switch_select(&a->before, ledger, a->o->events, e)
                       : trace_switch_turn(&a->before, ledger, true, e);
    a->is_switched = !bad;
    return bad;
}

/* Returns the first of the errors. */
static int end(struct attached *a, int bad, struct trace_attach_result *out, struct error *e)
{
    release_ends(&a->ends);
    if (a->is_switched)
        trace_switch_restore(&a->before, a->target.entry, NULL);
    const int unfollowed = kernel_follow_end(a->kernel, &out->kernel, bad ? NULL : e);
    bad = bad ? bad : unfollowed;
    const int unread = ring_follow_end(a->rings, &out->traced, bad ? NULL : e);
    return bad ? bad : unread;
}

static int follow(struct attached *a, struct trace_attach_result *out, struct error *e)
{
    int bad = begin_ends(&a->ends, a->o->pid, e);
    bad = bad ? bad : begin_kernel(a, out->folder, e);
    bad = bad ? bad : begin_rings(a, out->folder, e);
    const bool has_begun = !bad;
    out->has_agent = a->before.has_agent;
    if (has_begun) {
        if (a->o->started)
            a->o->started(a->o->arg, out->folder);
        wait_for_end(&a->ends, a->o);
    }
    bad = end(a, bad, out, e);
    if (!has_begun && out->folder)
        trace_dir_remove(out->folder);
    return bad;
}

static char *name_folder(const struct attached *a)
{
    struct buf name = BUF_INIT;
    if (a->o->folder)
        return mem_strdup(a->o->folder);
    if (a->target.entry)
        buf_addstr(&name, a->target.comm);
    else
        proc_name(a->o->pid, &name);
    for (char *c = name.data; c && (c = strchr(c, '/'));)
        *c = '_';
    buf_printf(&name, ".%d.trace", (int)a->o->pid);
    return buf_detach(&name);
}

int trace_attach(const struct trace_attach_options *o, struct trace_attach_result *out, struct error *e)
{
    struct attached a = {.o = o, .ends = {{{.fd = -1}, {.fd = -1}}}};
    *out = (struct trace_attach_result){.folder = NULL};
    const bool only_kernel = o->sums && o->kernel_groups;
    int bad = only_kernel ? 0 : find(&a.target, o->pid, e);
    if (bad == -ENOENT && (o->kernel_groups || o->probes) && !o->events) {
        a.target = (struct traced_process){.entry = NULL};
        bad = 0;
    }
    if (bad)
        return bad;
    out->writes = a.target.entry != NULL;
    out->folder = o->sums ? NULL : name_folder(&a);
    bad = o->sums ? 0 : trace_dir_make(out->folder, o->force, e);
    bad = bad ? bad : follow(&a, out, e);
    if (a.target.entry)
        traced_process_release(&a.target);
    return bad;
}
