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
#include "collect/trace/ring_image.h"
#include "collect/trace/trace_dir.h"
#include "run/trace/traced_process.h"

#define NS_PER_MS 1000000u

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

static void wait_for_end(struct ends *ends, uint64_t duration_ns)
{
    const uint64_t ms = (duration_ns + NS_PER_MS - 1) / NS_PER_MS;
    poll(ends->fds, 2, !duration_ns ? -1 : ms < INT32_MAX ? (int)ms : INT32_MAX);
}

static void release_ends(const struct ends *ends)
{
    for (int i = 0; i < 2; i++)
        if (ends->fds[i].fd >= 0)
            close(ends->fds[i].fd);
}

static int find(struct traced_process *t, pid_t pid, struct error *e)
{
    struct ring_image image;
    int bad = traced_process_find(t, pid, e);
    if (bad)
        return bad;
    if (!t->entry->alive) {
        bad = error_set(e, ESRCH, "process %d has ended: allium snapshot %d --trace stores its last events",
                        (int)pid, (int)pid);
    } else if ((bad = ring_image_open(&image, t->dir, t->rings))) {
        bad = error_set(e, -bad,
                        bad == -EBUSY ? "another allium trace reads the events of process %d"
                                      : "cannot read the events of process %d",
                        (int)pid);
    } else {
        ring_image_close(&image);
    }
    if (bad)
        traced_process_release(t);
    return bad;
}

static int follow(const struct trace_attach_options *o, const struct traced_process *t, const char *folder,
                  struct ring_follow_counts *out, struct error *e)
{
    struct ring_follow *f = NULL;
    struct ends ends;
    bool was = false;
    int bad = begin_ends(&ends, o->pid, e);
    bad = bad ? bad
              : ring_follow_begin(&f,
                                  &(struct ring_follow_options){.dir = t->dir,
                                                                .folder = folder,
                                                                .limit_bytes = o->limit_bytes,
                                                                .duration_ns = o->duration_ns,
                                                                .where = o->where,
                                                                .only = t->named},
                                  e);
    bad = bad ? bad : traced_process_switch(t, true, &was, e);
    if (!bad) {
        if (o->started)
            o->started(o->pid, folder);
        wait_for_end(&ends, o->duration_ns);
        if (!was)
            traced_process_switch(t, false, NULL, NULL);
    }
    release_ends(&ends);
    const int unread = ring_follow_end(f, out, e);
    return bad ? bad : unread;
}

int trace_attach(const struct trace_attach_options *o, char **folder, struct ring_follow_counts *out,
                 struct error *e)
{
    struct traced_process t;
    struct buf name = BUF_INIT;
    *folder = NULL;
    int bad = find(&t, o->pid, e);
    if (bad)
        return bad;
    if (o->folder)
        buf_addstr(&name, o->folder);
    else
        buf_printf(&name, "%s.%d.trace", t.comm, (int)o->pid);
    *folder = buf_detach(&name);
    bad = trace_dir_make(*folder, o->force, e);
    bad = bad ? bad : follow(o, &t, *folder, out, e);
    traced_process_release(&t);
    return bad;
}
