/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/bench_child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_MS 20000 /* a helper that is silent this long hangs */

extern char **environ;

/* Returns whether all of it came in time. */
static bool read_all(int fd, void *bytes, size_t len)
{
    char *at = bytes;
    while (len) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, WAIT_MS) <= 0)
            return false;
        const ssize_t n = read(fd, at, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

static int spawn(struct bench_child *c, const char *helper, const char *const *argv)
{
    int to[2], from[2];
    posix_spawn_file_actions_t actions;
    if (pipe2(to, O_CLOEXEC))
        return errno;
    if (pipe2(from, O_CLOEXEC)) {
        const int error = errno;
        close(to[0]);
        close(to[1]);
        return error;
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, to[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, from[1], STDOUT_FILENO);
    const int error = posix_spawn(&c->pid, helper, &actions, NULL, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(to[0]);
    close(from[1]);
    c->to = to[1];
    c->from = from[0];
    if (error) {
        close(c->to);
        close(c->from);
    }
    return error;
}

int bench_child_start(struct bench_child *c, const char *helper, const char *mechanism, const char *sink,
                      unsigned threads, unsigned payload, struct error *e)
{
    char number[16], bytes[16];
    snprintf(number, sizeof(number), "%u", threads);
    snprintf(bytes, sizeof(bytes), "%u", payload);
    const char *const argv[] = {helper, mechanism, sink, number, bytes, NULL};
    const int error = spawn(c, helper, argv);
    if (error)
        return error_set(e, error, "%s: %s", helper, strerror(error));
    if (!read_all(c->from, &c->hello, sizeof(c->hello)) || c->hello.version != BENCH_VERSION) {
        bench_child_end(c);
        return error_set(e, EPROTO, "%s: it did not begin: reinstall allium, as its version may be another",
                         helper);
    }
    c->hello.text[sizeof(c->hello.text) - 1] = '\0';
    if (c->hello.is_ready)
        return 0;
    bench_child_end(c);
    return error_set(e, ENOTSUP, "%s", c->hello.text);
}

int bench_child_ask(struct bench_child *c, const struct bench_request *q, struct bench_reply *r,
                    struct error *e)
{
    /* If the helper has ended, write() must not end the tool. */
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    sigaction(SIGPIPE, &ignore, &before);
    const bool written = write(c->to, q, sizeof(*q)) == (ssize_t)sizeof(*q);
    sigaction(SIGPIPE, &before, NULL);
    if (written && read_all(c->from, r, sizeof(*r)) && r->n_shots <= BENCH_SHOTS)
        return 0;
    siginfo_t end = {.si_pid = 0};
    if (waitid(P_PID, (id_t)c->pid, &end, WEXITED | WNOWAIT | (written ? WNOHANG : 0)) || !end.si_pid)
        return error_set(e, EPROTO, "the helper did not answer for %d s", WAIT_MS / 1000);
    return error_set(e, EPROTO,
                     end.si_code == CLD_EXITED ? "the helper exited with code %d"
                                               : "the helper was killed by signal %d",
                     end.si_status);
}

void bench_child_end(struct bench_child *c)
{
    close(c->to);
    close(c->from);
    kill(c->pid, SIGKILL);
    while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
        ;
}
