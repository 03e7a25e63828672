/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/stop.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/read_file.h"

#define SYSCALL_BYTES 2

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

bool stop_wait(pid_t tid)
{
    int status;
    for (;;) {
        if (waitpid(tid, &status, __WALL) != tid)
            return false;
        if (!WIFSTOPPED(status))
            return false;
        if (status >> 16 == PTRACE_EVENT_STOP)
            return true;
        const int signal = WSTOPSIG(status) == (SIGTRAP | 0x80) ? 0 : WSTOPSIG(status);
        if (ptrace(PTRACE_CONT, tid, 0, signal) < 0)
            return false;
    }
}

static bool is_stopped(const struct stopped *s, pid_t tid)
{
    vec_each (const struct stopped_thread, t, &s->threads)
        if (t->tid == tid)
            return true;
    return false;
}

int stop_thread(struct stopped *s, pid_t tid, struct error *e)
{
    struct stopped_thread t = {.tid = tid};
    if (ptrace(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACESYSGOOD) < 0)
        return error_set(e, errno, "cannot trace thread %d: %s", (int)tid, strerror(errno));
    if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) < 0 || !stop_wait(tid) ||
        ptrace(PTRACE_GETREGS, tid, 0, &t.regs) < 0)
        return error_set(e, ESRCH, "thread %d has ended", (int)tid);
    *vec_push(&s->threads) = t;
    return 0;
}

int stop_all(struct stopped *s, struct error *e)
{
    for (bool is_stable = false; !is_stable;) {
        struct thread_ids ids = {0};
        int bad = stop_list(s->pid, &ids) ? 0 : error_set(e, ESRCH, "process %d has ended", (int)s->pid);
        is_stable = true;
        vec_each (const pid_t, tid, &ids) {
            if (bad || is_stopped(s, *tid))
                continue;
            is_stable = false;
            struct error why = {""};
            bad = stop_thread(s, *tid, &why);
            if (bad == -ESRCH)
                bad = 0; /* it has ended, and is not in the next list */
            else if (bad)
                error_set(e, -bad, "%s", why.text);
        }
        vec_release(&ids);
        if (bad)
            return bad;
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
    if ((int64_t)t->regs.rax != -EINTR || !ends_by_a_stop(t->regs.orig_rax) || has_signal(s->pid, t->tid))
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
