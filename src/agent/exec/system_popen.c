/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/exec/exec.h"
#include "agent/exec/preload_env.h"
#include "agent/hooks/cold.h"
#include "agent/hooks/resolve.h"

/*
 * libc's system(3) and popen(3) start the shell inside libc, so no hook can add the agent's entries to the environment
 * of the shell. The functions here do what POSIX and glibc specify, but start the shell by our hook of posix_spawn().
 * If children are not to be observed, these functions call those of libc.
 */

#define SHELL        "/bin/sh"
#define STREAMS_MAX  256u
#define STATUS_ERROR (127 << 8) /* the wait status of a shell that has exited with 127 */

static struct {
    int (*system)(const char *);
    FILE *(*popen)(const char *, const char *);
    int (*pclose)(FILE *);
    int (*fclose)(FILE *);
} next_shell;

void system_popen_init(void)
{
    next_shell.system = resolve_next("system", NULL);
    next_shell.popen = resolve_next("popen", NULL);
    next_shell.pclose = resolve_next("pclose", NULL);
    next_shell.fclose = resolve_next("fclose", NULL);
}

static bool children_are_observed(void)
{
    if (unlikely(!next_shell.fclose))
        boot_agent();
    return preload_env_is_handed_on();
}

/* ---- system ---- */

static pthread_mutex_t waiting_lock = PTHREAD_MUTEX_INITIALIZER;
/* Number of calls of system() in progress: the first one ignores SIGINT and SIGQUIT, the last one restores them. */
static unsigned waiting;
static struct sigaction before_int, before_quit;

static void ignore_signals(void)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigemptyset(&ignore.sa_mask);
    pthread_mutex_lock(&waiting_lock);
    if (!waiting++) {
        sigaction(SIGINT, &ignore, &before_int);
        sigaction(SIGQUIT, &ignore, &before_quit);
    }
    pthread_mutex_unlock(&waiting_lock);
}

static void restore_signals(void)
{
    pthread_mutex_lock(&waiting_lock);
    if (!--waiting) {
        sigaction(SIGINT, &before_int, NULL);
        sigaction(SIGQUIT, &before_quit, NULL);
    }
    pthread_mutex_unlock(&waiting_lock);
}

static ONE_COPY int spawn_shell(pid_t *pid, const char *command, const posix_spawn_file_actions_t *actions,
                                const posix_spawnattr_t *attributes)
{
    char *argv[] = {(char *)"sh", (char *)"-c", (char *)(uintptr_t)command, NULL};
    return posix_spawn(pid, SHELL, actions, attributes, argv, environ);
}

/* If the thread is cancelled meanwhile, it ends only after the shell has ended. (glibc's system() kills the shell.) */
static int wait_for_shell(pid_t pid)
{
    int status, state;
    pid_t ended;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    do
        ended = waitpid(pid, &status, 0);
    while (ended < 0 && errno == EINTR);
    pthread_setcancelstate(state, NULL);
    return ended < 0 ? -1 : status;
}

/* The shell gets this signal mask, and ignores SIGINT and SIGQUIT only if the program ignored them before system(). */
static int spawn_for_system(pid_t *pid, const char *command, const sigset_t *mask)
{
    posix_spawnattr_t attributes;
    sigset_t as_default;
    sigemptyset(&as_default);
    if (before_int.sa_handler != SIG_IGN)
        sigaddset(&as_default, SIGINT);
    if (before_quit.sa_handler != SIG_IGN)
        sigaddset(&as_default, SIGQUIT);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, mask);
    posix_spawnattr_setsigdefault(&attributes, &as_default);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    int bad = spawn_shell(pid, command, NULL, &attributes);
    posix_spawnattr_destroy(&attributes);
    return bad;
}

EXPORT int system(const char *command)
{
    sigset_t block, before;
    pid_t pid;
    if (!children_are_observed() || !command)
        return next_shell.system(command);
    sigemptyset(&block);
    sigaddset(&block, SIGCHLD);
    ignore_signals();
    sigprocmask(SIG_BLOCK, &block, &before);
    int bad = spawn_for_system(&pid, command, &before);
    int status = bad ? STATUS_ERROR : wait_for_shell(pid);
    int error = bad ? bad : errno;
    restore_signals();
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (bad || status == -1)
        errno = error;
    return status;
}

/* ---- popen ---- */

struct stream {
    /* NULL: a free entry; the entry's address: popen() is still filling the entry in. Compared, but not dereferenced,
     * because another thread may close the stream at any time. */
    FILE *file;
    int fd;
    pid_t pid;
};
static struct stream streams[STREAMS_MAX];
static unsigned n_streams; /* entries in use; if 0, fclose() does not search them */

static struct stream *take_stream(void)
{
    for (unsigned i = 0; i < STREAMS_MAX; i++) {
        FILE *none = NULL;
        if (__atomic_compare_exchange_n(&streams[i].file, &none, (FILE *)&streams[i], false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED)) {
            __atomic_fetch_add(&n_streams, 1, __ATOMIC_RELAXED);
            return &streams[i];
        }
    }
    return NULL;
}

static void release_stream(struct stream *s)
{
    __atomic_store_n(&s->file, NULL, __ATOMIC_RELEASE);
    __atomic_fetch_sub(&n_streams, 1, __ATOMIC_RELAXED);
}

static struct stream *find_stream(const FILE *file)
{
    for (unsigned i = 0; load_relaxed(&n_streams) && i < STREAMS_MAX; i++)
        if (load_acquire(&streams[i].file) == file)
            return &streams[i];
    return NULL;
}

/* Frees the entry of an earlier stream at the address of `file`. That stream was closed in a way that no hook sees. */
static void forget_closed(const FILE *file)
{
    struct stream *s = find_stream(file);
    if (s)
        release_stream(s);
}

/* Starts the shell with `end` of the pipe as descriptor `target`, and without earlier streams of popen() (POSIX). */
static int spawn_for_popen(pid_t *pid, const char *command, int end, int target)
{
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    for (unsigned i = 0; i < STREAMS_MAX; i++) {
        FILE *other = load_acquire(&streams[i].file);
        int fd = load_relaxed(&streams[i].fd);
        /* If the stream was closed meanwhile, `end` or `target` may have its number now: these are not closed. */
        if (other && other != (FILE *)&streams[i] && fd != target && fd != end)
            posix_spawn_file_actions_addclose(&actions, fd);
    }
    posix_spawn_file_actions_adddup2(&actions, end, target);
    int bad = spawn_shell(pid, command, &actions, NULL);
    posix_spawn_file_actions_destroy(&actions);
    return bad;
}

/* Reads a mode as glibc does: "r" or "w", optionally with "e" (close-on-exec: *stays is false). False: invalid. */
static bool read_mode(const char *mode, bool *reads, bool *stays)
{
    bool writes = false;
    *reads = false;
    *stays = true;
    for (; *mode; mode++)
        if (*mode == 'r')
            *reads = true;
        else if (*mode == 'w')
            writes = true;
        else if (*mode == 'e')
            *stays = false;
        else
            return false;
    return *reads != writes;
}

EXPORT FILE *popen(const char *command, const char *mode)
{
    bool reads, stays;
    int ends[2];
    struct stream *s = children_are_observed() && read_mode(mode, &reads, &stays) ? take_stream() : NULL;
    if (!s)
        return next_shell.popen(command, mode);
    if (pipe2(ends, O_CLOEXEC)) {
        release_stream(s);
        return NULL;
    }
    int kept = ends[!reads], given = ends[reads];
    FILE *file = fdopen(kept, reads ? "r" : "w");
    int bad = file ? spawn_for_popen(&s->pid, command, given, reads ? STDOUT_FILENO : STDIN_FILENO) : errno;
    close(given);
    if (bad) {
        file ? next_shell.fclose(file) : close(kept);
        release_stream(s);
        errno = bad;
        return NULL;
    }
    forget_closed(file);
    store_relaxed(&s->fd, kept);
    __atomic_store_n(&s->file, file, __ATOMIC_RELEASE);
    if (stays) /* only now, when another popen() can find the stream and close it in its shell */
        fcntl(kept, F_SETFD, 0);
    return file;
}

static ONE_COPY int close_stream(struct stream *s, FILE *file)
{
    pid_t pid = s->pid;
    release_stream(s);
    int written = next_shell.fclose(file), status = wait_for_shell(pid);
    return status ? status : written; /* as glibc: a write error is reported if the shell succeeded */
}

EXPORT int pclose(FILE *file)
{
    if (unlikely(!next_shell.fclose))
        boot_agent();
    struct stream *s = find_stream(file);
    return s ? close_stream(s, file) : next_shell.pclose(file);
}

/* Hooked because a program may also close a stream of popen() by fclose(). */
EXPORT int fclose(FILE *file)
{
    if (unlikely(!next_shell.fclose))
        boot_agent();
    struct stream *s = find_stream(file);
    return s ? close_stream(s, file) : next_shell.fclose(file);
}
