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
#include "base/mem.h"

#define AGENT_NAME "liballium-agent.so"

static const int passed_on[] = {SIGTERM, SIGHUP};
static const int left_alone[] = {SIGINT, SIGQUIT};

int launch_find_agent(char **path, struct error *e)
{
    char self[4096];
    struct buf b = BUF_INIT;
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (len > 0) {
        self[len] = '\0';
        *(strrchr(self, '/') + 1) = '\0';
        buf_printf(&b, "%s" AGENT_NAME, self);
        if (!access(buf_str(&b), R_OK)) {
            *path = buf_detach(&b);
            goto found;
        }
    }
    buf_release(&b);
    if (access(ALLIUM_AGENT_DIR "/" AGENT_NAME, R_OK))
        return error_set(e, ENOENT,
                         "the agent " AGENT_NAME " is neither beside the command nor in " ALLIUM_AGENT_DIR
                         ": install allium again, or run `make`");
    /* $LIB lets the loader choose by word size where several agents are installed. */
    *path = mem_strdup(ALLIUM_AGENT_PRELOAD "/" AGENT_NAME);
found:
    if (strpbrk(*path, " :")) {
        error_set(e, EINVAL, "the agent's path has a blank or a colon, which LD_PRELOAD cannot carry: %s",
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
    buf_printf(&b, "%s%s%s", o->agent, before && *before ? ":" : "", before ? before : "");
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
    if (!o->follow)
        setenv("ALLIUM_FOLLOW", "0", 1);
    buf_release(&b);
}

static _Noreturn void become_command(const struct launch_options *o, int failure_fd, const sigset_t *mask)
{
    set_environment(o);
    sigprocmask(SIG_SETMASK, mask, NULL);
    execvp(o->argv[0], o->argv);
    int code = errno;
    if (write(failure_fd, &code, sizeof(code)) < 0)
        _exit(126);
    _exit(126);
}

/* Forks and waits until exec has happened or failed: 0 or its -errno. */
static int spawn(struct launch *l, const struct launch_options *o, const sigset_t *mask)
{
    int pipe_fd[2], code = 0;
    if (pipe2(pipe_fd, O_CLOEXEC))
        return -errno;
    l->pid = fork();
    if (l->pid < 0) {
        code = errno;
        close(pipe_fd[0]);
        close(pipe_fd[1]);
        return -code;
    }
    if (l->pid == 0)
        become_command(o, pipe_fd[1], mask);
    close(pipe_fd[1]);
    ssize_t n;
    do
        n = read(pipe_fd[0], &code, sizeof(code));
    while (n < 0 && errno == EINTR);
    close(pipe_fd[0]);
    if (n != sizeof(code))
        return 0;
    waitpid(l->pid, NULL, 0);
    return -code;
}

int launch_start(struct launch *l, const struct launch_options *o, struct error *e)
{
    sigset_t wanted, before;
    struct sigaction now;
    *l = (struct launch){.process_fd = -1, .signal_fd = -1};
    sigemptyset(&wanted);
    for (size_t i = 0; i < sizeof(passed_on) / sizeof(*passed_on); i++)
        if (!sigaction(passed_on[i], NULL, &now) && now.sa_handler != SIG_IGN)
            sigaddset(&wanted, passed_on[i]); /* nohup stays nohup */
    sigprocmask(SIG_BLOCK, &wanted, &before);
    int bad = spawn(l, o, &before);
    if (bad)
        return error_set(e, -bad, "%s: %s", o->argv[0], strerror(-bad));
    for (size_t i = 0; i < sizeof(left_alone) / sizeof(*left_alone); i++)
        signal(left_alone[i], SIG_IGN);
    l->signal_fd = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
    l->process_fd = (int)syscall(SYS_pidfd_open, l->pid, 0);
    if (l->signal_fd < 0 || l->process_fd < 0)
        return error_set(e, errno, "cannot watch %s: %s", o->argv[0], strerror(errno));
    return 0;
}

void launch_pass_signals(const struct launch *l)
{
    struct signalfd_siginfo info;
    while (read(l->signal_fd, &info, sizeof(info)) == sizeof(info))
        kill(l->pid, (int)info.ssi_signo);
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
    if (l->process_fd >= 0)
        close(l->process_fd);
    if (l->signal_fd >= 0)
        close(l->signal_fd);
    l->process_fd = l->signal_fd = -1;
}
