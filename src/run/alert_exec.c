/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/alert_exec.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/vec.h"

#define BLIND_MS 100 /* interval of checking for the end of a command that has no descriptor */

struct alert_exec {
    const char *command;
    pid_t pid; /* 0: none runs */
    int fd;    /* of that process; -1: none */
    struct VEC(char **) waiting;
};

struct alert_exec *alert_exec_new(const char *command)
{
    struct alert_exec *h = mem_alloc(sizeof(*h));
    h->command = command;
    h->fd = -1;
    return h;
}

static void free_variables(char **variables)
{
    for (char **v = variables; *v; v++)
        free(*v);
    free(variables);
}

void alert_exec_free(struct alert_exec *h)
{
    if (!h)
        return;
    vec_each (char **, variables, &h->waiting)
        free_variables(*variables);
    vec_release(&h->waiting);
    if (h->fd >= 0)
        close(h->fd);
    free(h);
}

int alert_exec_fd(const struct alert_exec *h)
{
    return h->fd;
}

int alert_exec_patience_ms(const struct alert_exec *h)
{
    return h && h->pid && h->fd < 0 ? BLIND_MS : -1;
}

unsigned alert_exec_waiting(const struct alert_exec *h)
{
    return (unsigned)h->waiting.len;
}

static _Noreturn void become_command(const char *command, char **variables)
{
    sigset_t none;
    int null = open("/dev/null", O_RDONLY);
    if (null >= 0)
        dup2(null, STDIN_FILENO);
    if (null > STDERR_FILENO)
        close(null);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    for (char **v = variables; *v; v++)
        putenv(*v);
    signal(SIGPIPE, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
}

static int start(struct alert_exec *h, char **variables, struct error *e)
{
    pid_t pid = fork();
    if (pid == 0)
        become_command(h->command, variables);
    int code = errno;
    free_variables(variables);
    if (pid < 0)
        return error_set(e, code, "cannot run the command of --exec: %s", strerror(code));
    h->pid = pid;
    /* -1: no descriptor is left, or a seccomp filter forbids the call */
    h->fd = (int)syscall(SYS_pidfd_open, pid, 0);
    return 0;
}

int alert_exec_add(struct alert_exec *h, char **variables, struct error *e)
{
    if (!h->pid)
        return start(h, variables, e);
    *vec_push(&h->waiting) = variables;
    return 0;
}

int alert_exec_step(struct alert_exec *h, int *status, struct error *e)
{
    pid_t ended = h->pid ? waitpid(h->pid, status, WNOHANG) : -1;
    if (ended <= 0) /* 0: it still runs; -1: there is none, or other code has reaped it */
        *status = -1;
    if (!ended)
        return 0;
    if (h->fd >= 0)
        close(h->fd);
    h->fd = -1;
    h->pid = 0;
    if (!h->waiting.len)
        return 0;
    char **next = h->waiting.at[0];
    h->waiting.len--;
    memmove(h->waiting.at, h->waiting.at + 1, h->waiting.len * sizeof(*h->waiting.at));
    return start(h, next, e);
}
