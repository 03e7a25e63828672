/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/workload.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int find_user(const char *user, struct passwd **found, struct error *e)
{
    char *end;
    errno = 0;
    *found = getpwnam(user);
    unsigned long uid = *found ? 0 : strtoul(user, &end, 10);
    if (!*found && *user && !*end)
        *found = getpwuid((uid_t)uid);
    return *found ? 0 : error_set(e, EINVAL, "unknown user '%s' of --user", user);
}

static int become(const struct passwd *user)
{
    if (initgroups(user->pw_name, user->pw_gid) || setgid(user->pw_gid) || setuid(user->pw_uid))
        return -errno;
    setenv("HOME", user->pw_dir, 1);
    setenv("USER", user->pw_name, 1);
    setenv("LOGNAME", user->pw_name, 1);
    return 0;
}

static _Noreturn void wait_at_gate(int gate, int answer, char **argv, const struct passwd *user)
{
    char go;
    sigset_t none;
    if (read(gate, &go, 1) != 1)
        _exit(0);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    int error = user ? -become(user) : 0;
    if (!error) {
        execvp(argv[0], argv);
        error = errno;
    }
    if (write(answer, &error, sizeof(error)) < 0)
        _exit(126);
    _exit(error == ENOENT ? 127 : 126);
}

int workload_prepare(struct workload *b, char **argv, const char *user, struct error *e)
{
    int gate[2] = {-1, -1}, answer[2] = {-1, -1};
    struct passwd *as = NULL;
    *b = (struct workload){.pid = -1, .process_fd = -1, .gate_fd = -1, .answer_fd = -1};
    if (user && find_user(user, &as, e))
        return -EINVAL;
    if (pipe2(gate, O_CLOEXEC) || pipe2(answer, O_CLOEXEC) || (b->pid = fork()) < 0) {
        int error = errno;
        for (int i = 0; i < 2; i++) {
            close(gate[i]);
            close(answer[i]);
        }
        return error_set(e, error, "cannot start %s: %s", argv[0], strerror(error));
    }
    if (!b->pid) {
        close(gate[1]);
        wait_at_gate(gate[0], answer[1], argv, as);
    }
    close(gate[0]);
    close(answer[1]);
    b->gate_fd = gate[1];
    b->answer_fd = answer[0];
    b->process_fd = (int)syscall(SYS_pidfd_open, b->pid, 0);
    return 0;
}

int workload_go(struct workload *b)
{
    int error = 0;
    if (write(b->gate_fd, "", 1) != 1)
        return -errno;
    close(b->gate_fd);
    b->gate_fd = -1;
    return read(b->answer_fd, &error, sizeof(error)) == sizeof(error) ? -error : 0;
}

int workload_reap(struct workload *b)
{
    int status;
    while (waitpid(b->pid, &status, 0) < 0)
        if (errno != EINTR)
            return 125;
    b->pid = -1;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void workload_release(struct workload *b)
{
    for (int *fd = (int[]){b->gate_fd, b->answer_fd, b->process_fd, -2}; *fd != -2; fd++)
        if (*fd >= 0)
            close(*fd);
    if (b->pid > 0 && b->gate_fd >= 0)
        waitpid(b->pid, NULL, 0);
    *b = (struct workload){.pid = -1, .process_fd = -1, .gate_fd = -1, .answer_fd = -1};
}
