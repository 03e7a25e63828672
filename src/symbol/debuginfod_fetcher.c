/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbol/debuginfod_fetcher.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIBRARY     "libdebuginfod.so.1"
#define WORKERS_MAX 4
#define ANSWERS_FD  3
/* Where DEBUGINFOD_MAXSIZE says nothing: a server that sends without end must not fill the disk. */
#define MAX_BYTES (2LL << 30)
#define FILES_MAX 256 /* descriptors that the library has open, at most */

/* From <elfutils/debuginfod.h>, which is in a package of its own and says no more. */
struct library {
    void *(*begin)(void);
    int (*find_debuginfo)(void *client, const unsigned char *build_id, int build_id_len, char **path);
};

static void *load(struct library *l)
{
    void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return NULL;
    *(void **)&l->begin = dlsym(handle, "debuginfod_begin");
    *(void **)&l->find_debuginfo = dlsym(handle, "debuginfod_find_debuginfo");
    return l->begin && l->find_debuginfo ? handle : NULL;
}

const char *fetcher_library(void)
{
    struct library l;
    return load(&l) ? LIBRARY : NULL;
}

/* ---- in a worker ---- */

static bool is_wanted(void)
{
    struct pollfd p = {.fd = ANSWERS_FD};
    return poll(&p, 1, 0) == 0;
}

/** Removes a file that has come in part, and its directory unless it holds more. */
static void remove_part(int fd)
{
    char link[32], path[FETCHER_PATH_MAX];
    struct stat st;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t len = fstat(fd, &st) || !S_ISREG(st.st_mode) ? -1 : readlink(link, path, sizeof(path) - 1);
    if (len < 0)
        return;
    path[len] = '\0';
    char *name = strrchr(path, '/');
    if (!name || strncmp(name, "/debuginfo.", strlen("/debuginfo.")) != 0)
        return;
    unlink(path);
    *name = '\0';
    rmdir(path);
}

/**
 * A thread of the worker: ends the worker when the process that asked has closed its end of the socket, and removes
 * the files that have come in part. The library's own progress callback is not enough: 0.192 does not call it while a
 * server accepts a connection and sends nothing; and a download that it refuses is noted (0.188) as a file that no
 * server has, for ten minutes.
 */
static void *end_with_asker(void *unused)
{
    struct pollfd p = {.fd = ANSWERS_FD};
    (void)unused;
    while (poll(&p, 1, -1) < 0 && errno == EINTR)
        ;
    for (int fd = ANSWERS_FD + 1; fd < FILES_MAX; fd++)
        remove_part(fd);
    _exit(0);
}

/** Leaves all behind that another process could miss, such as the end of a pipe that somebody reads. */
static void detach(int answers)
{
    answers = fcntl(answers, F_DUPFD, ANSWERS_FD); /* it may be one of the first three */
    int nothing = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < ANSWERS_FD; fd++)
        if (dup2(nothing, fd) < 0)
            close(fd);
    if (answers != ANSWERS_FD)
        dup2(answers, ANSWERS_FD);
    syscall(SYS_close_range, ANSWERS_FD + 1, ~0u, 0);
    sigset_t none;
    sigemptyset(&none);
    signal(SIGXFSZ, SIG_IGN);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/** The library asks servers to keep to DEBUGINFOD_MAXSIZE; whatever they do, no file gets longer. */
static void limit_size(void)
{
    char text[32];
    snprintf(text, sizeof(text), "%lld", MAX_BYTES);
    setenv("DEBUGINFOD_MAXSIZE", text, 0);
    long long most = atoll(getenv("DEBUGINFOD_MAXSIZE"));
    if (most <= 0 || most > MAX_BYTES)
        most = MAX_BYTES;
    struct rlimit size = {(rlim_t)most, (rlim_t)most}, none = {0, 0};
    setrlimit(RLIMIT_FSIZE, &size);
    setrlimit(RLIMIT_CORE, &none);
}

static void fetch(const struct library *l, void *client, const struct fetcher_request *r,
                  struct fetcher_answer *answer)
{
    char *path = NULL;
    int fd = l->find_debuginfo(client, r->build_id, (int)r->build_id_len, &path);
    if (fd >= 0)
        close(fd);
    answer->error = fd < 0 ? fd : !path || strlen(path) >= sizeof(answer->path) ? -ENAMETOOLONG : 0;
    snprintf(answer->path, sizeof(answer->path), "%s", answer->error ? "" : path);
    free(path);
}

static _Noreturn void work(const struct fetcher_request *requests, size_t n, _Atomic size_t *next)
{
    struct library l;
    limit_size();
    pthread_t thread;
    void *client = load(&l) ? l.begin() : NULL;
    if (pthread_create(&thread, NULL, end_with_asker, NULL))
        client = NULL;
    for (size_t i; (i = atomic_fetch_add(next, 1)) < n && is_wanted();) {
        struct fetcher_answer answer = {.key = requests[i].key, .error = -ENOENT};
        if (client)
            fetch(&l, client, &requests[i], &answer);
        size_t len = offsetof(struct fetcher_answer, path) + strlen(answer.path) + 1;
        if (send(ANSWERS_FD, &answer, len, MSG_NOSIGNAL) < 0)
            break;
    }
    _exit(0); /* the library's own end would wait for what hangs */
}

/** Leaves workers behind that nobody has to wait for. */
static _Noreturn void start_workers(const struct fetcher_request *requests, size_t n, _Atomic size_t *next,
                                    int answers)
{
    setsid();
    detach(answers);
    for (size_t i = 0; i < n && i < WORKERS_MAX; i++)
        if (fork() == 0)
            work(requests, n, next);
    _exit(0);
}

int fetcher_start(const struct fetcher_request *requests, size_t n)
{
    int ends[2];
    _Atomic size_t *next =
        mmap(NULL, sizeof(*next), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (next == MAP_FAILED)
        return -errno;
    int err = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) ? -errno : 0;
    pid_t pid = err ? -1 : fork();
    if (pid == 0)
        start_workers(requests, n, next, ends[1]);
    if (!err && pid < 0) {
        err = -errno;
        close(ends[0]);
    }
    if (pid > 0)
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
    if (!err || pid < 0)
        close(ends[1]);
    munmap(next, sizeof(*next));
    return err ? err : ends[0];
}
