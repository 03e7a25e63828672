/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/stop.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "base/buf.h"
#include "base/read_file.h"
#include "base/sigsafe/clock_ns.h"

#define SYSCALL_BYTES 2
#define STOP_MOST_MS  100u

/* Those that return EINTR after any stop, also if no handler ran: signal(7), "Interruption of system calls". */
static bool ends_by_a_stop(uint64_t number)
{
    switch (number) {
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2:
    case SYS_semop:
    case SYS_semtimedop:
    case SYS_rt_sigtimedwait:
    case SYS_io_getevents:
    case SYS_io_pgetevents:
        return true;
    default:
        return false;
    }
}

bool stop_list(pid_t pid, struct thread_ids *out)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *dir = opendir(path);
    if (!dir)
        return false;
    for (const struct dirent *d; (d = readdir(dir));)
        if (d->d_name[0] != '.')
            *vec_push(out) = (pid_t)strtol(d->d_name, NULL, 10);
    closedir(dir);
    return true;
}

int stop_wait_any(pid_t tid, uint64_t deadline_ns, int *status)
{
    const struct timespec shortly = {.tv_nsec = 20000};
    for (;;) {
        const pid_t got = waitpid(tid, status, __WALL | WNOHANG);
        if (got)
            return got == tid && WIFSTOPPED(*status);
        if (clock_ns(CLOCK_MONOTONIC) > deadline_ns)
            return -1;
        nanosleep(&shortly, NULL);
    }
}

static int wait_for_stop(pid_t tid)
{
    const uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + STOP_MOST_MS * 1000000ull;
    int status;
    for (;;) {
        const int stops = stop_wait_any(tid, deadline, &status);
        if (stops <= 0)
            return stops;
        if (status >> 16 == PTRACE_EVENT_STOP)
            return 1;
        /* Another stop takes the place of the one that was asked for. */
        const int signal = WSTOPSIG(status) == (SIGTRAP | 0x80) ? 0 : WSTOPSIG(status);
        if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) < 0 || ptrace(PTRACE_CONT, tid, 0, signal) < 0)
            return 0;
    }
}

bool stop_wait(pid_t tid)
{
    return wait_for_stop(tid) == 1;
}

void stop_hurry(bool hurry)
{
    const struct sched_param p = {.sched_priority = hurry};
    sched_setscheduler(0, hurry ? SCHED_FIFO | SCHED_RESET_ON_FORK : SCHED_OTHER, &p);
}

static bool is_stopped(const struct stopped *s, pid_t tid)
{
    vec_each (const struct stopped_thread, t, &s->threads)
        if (t->tid == tid)
            return true;
    return false;
}

/* Returns whether it is not there, or a zombie, which the kernel refuses to trace. */
static bool has_ended(pid_t pid, pid_t tid)
{
    char path[64];
    struct buf text = BUF_INIT;
    const int error = errno;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
    const char *state = file_read(path, 4096, &text) ? NULL : strrchr(buf_str(&text), ')');
    const bool ended = !state || (state[1] && strchr("ZX", state[2]));
    buf_release(&text);
    errno = error;
    return ended;
}

/* The thread stops when it runs next: it is not waited for. */
static int begin_stop(struct stopped *s, pid_t tid, struct error *e)
{
    if (ptrace(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACESYSGOOD) < 0)
        return error_set(e, has_ended(s->pid, tid) ? ESRCH : errno, "cannot trace thread %d: %s", (int)tid,
                         strerror(errno));
    if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) < 0)
        return error_set(e, ESRCH, "thread %d has ended", (int)tid);
    *vec_push(&s->threads) = (struct stopped_thread){.tid = tid};
    return 0;
}

/* Waits for those from `first` on; forgets those that have ended. Returns 0, or -EBUSY: one does not stop. */
static int end_stop(struct stopped *s, size_t first, struct error *e)
{
    size_t kept = first;
    int bad = 0;
    for (size_t i = first; i < s->threads.len; i++) {
        struct stopped_thread *t = &s->threads.at[i];
        const int stops = wait_for_stop(t->tid);
        if (stops < 0)
            bad = error_set(e, EBUSY,
                            "thread %d of process %d does not stop: it waits in the kernel, try again later",
                            (int)t->tid, (int)s->pid);
        else if (stops && ptrace(PTRACE_GETREGS, t->tid, 0, &t->regs) == 0)
            s->threads.at[kept++] = *t;
    }
    s->threads.len = kept;
    return bad;
}

int stop_thread(struct stopped *s, pid_t tid, struct error *e)
{
    const size_t before = s->threads.len;
    int bad = begin_stop(s, tid, e);
    if (!bad)
        bad = end_stop(s, before, e);
    if (bad)
        return bad;
    return s->threads.len > before ? 0 : error_set(e, ESRCH, "thread %d has ended", (int)tid);
}

/* Stops those in the list that are not stopped yet. Returns how many there were, or -errno. */
static int stop_more(struct stopped *s, const struct thread_ids *ids, struct error *e)
{
    const size_t before = s->threads.len;
    int n = 0;
    vec_each (const pid_t, tid, ids) {
        struct error why = {""};
        const int bad = is_stopped(s, *tid) ? 0 : begin_stop(s, *tid, &why);
        if (bad && bad != -ESRCH) { /* one that has ended is not in the next list */
            end_stop(s, before, NULL);
            return error_set(e, -bad, "%s", why.text);
        }
        n += !bad && s->threads.len > before + (size_t)n;
    }
    const int bad = end_stop(s, before, e);
    return bad ? bad : n;
}

int stop_all(struct stopped *s, struct error *e)
{
    for (int n = 1; n;) {
        struct thread_ids ids = {0};
        n = stop_list(s->pid, &ids) ? stop_more(s, &ids, e)
                                    : error_set(e, ESRCH, "process %d has ended", (int)s->pid);
        vec_release(&ids);
        if (n < 0)
            return n;
    }
    return 0;
}

/* Returns whether a signal waits for the thread that has a handler: it would have ended the call, too. */
static bool has_signal(pid_t pid, pid_t tid)
{
    char path[64];
    struct buf text = BUF_INIT;
    uint64_t own = 0, shared = 0, blocked = 0, caught = 0;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, (int)tid);
    if (file_read(path, 1 << 16, &text) == 0) {
        const struct {
            const char *name;
            uint64_t *value;
        } lines[] = {
            {"\nSigPnd:", &own}, {"\nShdPnd:", &shared}, {"\nSigBlk:", &blocked}, {"\nSigCgt:", &caught}};
        for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
            const char *at = strstr(buf_str(&text), lines[i].name);
            if (at)
                *lines[i].value = strtoull(at + strlen(lines[i].name), NULL, 16);
        }
    }
    buf_release(&text);
    return (own | shared) & ~blocked & caught;
}

static void issue_again(const struct stopped *s, struct stopped_thread *t)
{
    if (t->is_away || (int64_t)t->regs.rax != -EINTR || !ends_by_a_stop(t->regs.orig_rax) ||
        has_signal(s->pid, t->tid))
        return;
    t->regs.rip -= SYSCALL_BYTES;
    t->regs.rax = t->regs.orig_rax;
    t->regs.orig_rax = (uint64_t)-1;
    ptrace(PTRACE_SETREGS, t->tid, 0, &t->regs);
}

void stop_release(struct stopped *s)
{
    vec_each (struct stopped_thread, t, &s->threads) {
        issue_again(s, t);
        ptrace(PTRACE_DETACH, t->tid, 0, 0);
    }
    vec_release(&s->threads);
    s->threads = (__typeof__(s->threads)){0};
}
