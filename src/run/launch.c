/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "allium_version.h"
#include "base/buf.h"
#include "base/installed_file.h"
#include "base/mem.h"
#include "collect/ledger/control_events.h"

static const char *const agent_names[] = {
    [LAUNCH_AGENT_DEFAULT] = "liballium-agent.so",
    [LAUNCH_AGENT_FULL] = "liballium-agent-full.so",
};

static const int passed_on[] = {SIGTERM, SIGHUP};
static const int left_alone[] = {SIGINT, SIGQUIT};

/* *installed: receives whether it is the agent in the installed place. */
static int find_file(enum launch_agent which, char **path, bool *installed, struct error *e)
{
    *path = installed_file_find(agent_names[which], ALLIUM_AGENT_BESIDE, ALLIUM_AGENT_DIR);
    if (!*path)
        return error_set(e, ENOENT,
                         "cannot find the agent %s beside the command, in " ALLIUM_AGENT_BESIDE
                         " from there, or in " ALLIUM_AGENT_DIR ": install allium again, or run `make`",
                         agent_names[which]);
    struct buf at_prefix = BUF_INIT;
    buf_printf(&at_prefix, ALLIUM_AGENT_DIR "/%s", agent_names[which]);
    char *real = realpath(buf_str(&at_prefix), NULL);
    *installed = real && !strcmp(*path, real);
    free(real);
    buf_release(&at_prefix);
    return 0;
}

int launch_find_agent_file(enum launch_agent which, char **path, struct error *e)
{
    bool installed = false;
    return find_file(which, path, &installed, e);
}

int launch_find_agent(enum launch_agent which, char **path, struct error *e)
{
    bool installed = false;
    int bad = find_file(which, path, &installed, e);
    if (bad)
        return bad;
    if (installed) {
        /* $LIB lets the loader choose by word size where several agents are installed. */
        struct buf b = BUF_INIT;
        buf_printf(&b, ALLIUM_AGENT_PRELOAD "/%s", agent_names[which]);
        free(*path);
        *path = buf_detach(&b);
    }
    if (strpbrk(*path, " :")) {
        error_set(e, EINVAL,
                  "the path of the agent contains a blank or a colon, which LD_PRELOAD does not allow: %s: "
                  "install allium elsewhere",
                  *path);
        free(*path);
        *path = NULL;
        return -EINVAL;
    }
    return 0;
}

static void set_environment(const struct launch_options *o)
{
    struct buf b = BUF_INIT;
    const char *before = getenv("LD_PRELOAD");
    buf_printf(&b, "%s%s%s", o->agent, before ? ":" : "", before ? before : "");
    setenv("LD_PRELOAD", buf_str(&b), 1);
    buf_reset(&b);
    buf_printf(&b, "%" PRIu64, o->period_bytes);
    setenv("ALLIUM_PERIOD", buf_str(&b), 1);
    setenv("ALLIUM_DIR", o->dir, 1);
    if (o->ledger_limit_bytes) {
        buf_reset(&b);
        buf_printf(&b, "%" PRIu64, o->ledger_limit_bytes);
        setenv("ALLIUM_LEDGER_SIZE", buf_str(&b), 1);
    }
    const bool agent_traces = o->traces && (!o->events || event_list_has_agent(o->events));
    const unsigned full = (o->sites ? LAUNCH_SITES : 0) | (agent_traces ? LAUNCH_TRACE : 0) |
                          (agent_traces && o->flight ? LAUNCH_FLIGHT : 0);
    buf_reset(&b);
    buf_printf(&b, "%u%s", full, agent_traces && o->trace_options ? o->trace_options : "");
    if (full)
        setenv("ALLIUM_SITES", buf_str(&b), 1);
    if (o->events)
        setenv("ALLIUM_EVENTS", o->events, 1);
    if (o->wrappers)
        setenv("ALLIUM_WRAPPERS", o->wrappers, 1);
    if (!o->follow)
        setenv("ALLIUM_FOLLOW", "0", 1);
    buf_release(&b);
}

static _Noreturn void become_command(const struct launch_options *o, int gate_fd, int answer_fd,
                                     const sigset_t *mask)
{
    char go;
    ssize_t n;
    do
        n = read(gate_fd, &go, 1);
    while (n < 0 && errno == EINTR);
    if (n != 1)
        _exit(125);
    if (o->agent)
        set_environment(o);
    sigprocmask(SIG_SETMASK, mask, NULL);
    execvp(o->argv[0], o->argv);
    int code = errno;
    if (write(answer_fd, &code, sizeof(code)) < 0)
        _exit(126);
    _exit(126);
}

static int fork_at_gate(struct launch *l, const struct launch_options *o, const sigset_t *mask)
{
    int gate[2], answer[2];
    if (pipe2(gate, O_CLOEXEC))
        return -errno;
    if (pipe2(answer, O_CLOEXEC)) {
        close(gate[0]);
        close(gate[1]);
        return -errno;
    }
    /*
     * If our parent ignores SIGCHLD, so do we, and no exit code can be read: reset it. The command gets the
     * inherited setting.
     */
    bool ignored = signal(SIGCHLD, SIG_DFL) == SIG_IGN;
    l->pid = fork();
    int bad = l->pid < 0 ? -errno : 0;
    if (l->pid == 0) {
        if (ignored)
            signal(SIGCHLD, SIG_IGN);
        close(gate[1]);
        become_command(o, gate[0], answer[1], mask);
    }
    close(gate[0]);
    close(answer[1]);
    l->gate_fd = gate[1];
    l->answer_fd = answer[0];
    return bad;
}

int launch_prepare(struct launch *l, const struct launch_options *o, struct error *e)
{
    sigset_t before;
    struct sigaction now;
    *l = (struct launch){.process_fd = -1, .signal_fd = -1, .gate_fd = -1, .answer_fd = -1};
    sigemptyset(&l->handled);
    sigemptyset(&l->after);
    for (size_t i = 0; i < sizeof(passed_on) / sizeof(*passed_on); i++)
        if (!sigaction(passed_on[i], NULL, &now) && now.sa_handler != SIG_IGN)
            sigaddset(&l->handled, passed_on[i]); /* a signal that is ignored (nohup) stays ignored */
    sigprocmask(SIG_BLOCK, &l->handled, &before);
    int bad = fork_at_gate(l, o, &before);
    if (bad) {
        launch_release(l);
        return error_set(e, -bad, "cannot start a process: %s", strerror(-bad));
    }
    for (size_t i = 0; i < sizeof(left_alone) / sizeof(*left_alone); i++)
        if (signal(left_alone[i], SIG_IGN) != SIG_IGN)
            sigaddset(&l->after, left_alone[i]);
    l->signal_fd = signalfd(-1, &l->handled, SFD_CLOEXEC | SFD_NONBLOCK);
    l->process_fd = (int)syscall(SYS_pidfd_open, l->pid, 0);
    if (l->signal_fd < 0 || l->process_fd < 0) {
        bad = error_set(e, errno, "cannot watch %s: %s", o->argv[0], strerror(errno));
        launch_release(l);
    }
    return bad;
}

int launch_go(struct launch *l, const struct launch_options *o, struct error *e)
{
    int code = 0;
    ssize_t n = write(l->gate_fd, "g", 1);
    do
        n = read(l->answer_fd, &code, sizeof(code));
    while (n < 0 && errno == EINTR);
    if (n != sizeof(code))
        return 0;
    launch_reap(l);
    return error_set(e, code, "%s: %s", o->argv[0], strerror(code));
}

void launch_pass_signals(const struct launch *l)
{
    struct signalfd_siginfo info;
    while (read(l->signal_fd, &info, sizeof(info)) == sizeof(info))
        kill(l->pid, (int)info.ssi_signo);
}

void launch_handle_interrupts(struct launch *l)
{
    for (size_t i = 0; i < sizeof(left_alone) / sizeof(*left_alone); i++)
        if (sigismember(&l->after, left_alone[i]))
            sigaddset(&l->handled, left_alone[i]);
    sigprocmask(SIG_BLOCK, &l->handled, NULL);
    for (size_t i = 0; i < sizeof(left_alone) / sizeof(*left_alone); i++)
        if (sigismember(&l->after, left_alone[i]))
            signal(left_alone[i], SIG_DFL);
    signalfd(l->signal_fd, &l->handled, SFD_CLOEXEC | SFD_NONBLOCK);
}

int launch_reap(const struct launch *l)
{
    int status = 0;
    while (waitpid(l->pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

void launch_release(struct launch *l)
{
    int *fds[] = {&l->process_fd, &l->signal_fd, &l->gate_fd, &l->answer_fd};
    for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++) {
        if (*fds[i] >= 0)
            close(*fds[i]);
        *fds[i] = -1;
    }
}
