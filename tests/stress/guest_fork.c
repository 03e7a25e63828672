/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Children made at moments that do not suit the agent.
 *
 *     guest_fork handler BYTES FORKS
 *     guest_fork handler-allocates BYTES FORKS
 *     guest_fork reopen BYTES LIBRARY
 *     guest_fork vfork BYTES BLOCKS
 *
 * handler: a signal handler forks, every 2 ms, while blocks of BYTES are made and freed; the child returns from the
 * handler and goes on like that for a moment. In the second form it also makes some in the handler: that needs an
 * allocator which allows it. Says how the children ended.
 *
 * reopen: LIBRARY (a twin) makes a block, is closed, whatever it had on the heap is overwritten with X, it is opened
 * again, makes a block, and so does a forked child. Says whether it came to the same place.
 *
 * vfork: the first block is made by a vfork child, which then executes /bin/true; then BLOCKS are made here. Says who
 * that was.
 */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define EVERY_US      2000
#define AT_ONCE       8    /* children */
#define CHILD_GOES_ON 1000 /* blocks */
#define PATIENCE      20   /* s that a child may take */
#define FIRST_BYTES   (4u << 20)

static size_t size;
static int allocates_at_once;
static long wanted;
static volatile sig_atomic_t is_child, forks, ended, killed, unwell, last_signal;
static void *volatile keep;

static void be_born(void)
{
    is_child = 1;
    signal(SIGALRM, SIG_DFL);
    alarm(PATIENCE); /* a child that hangs is one that a signal killed */
    for (int i = 0; allocates_at_once && i < 100; i++) {
        void *volatile p = malloc(size);
        free(p);
    }
}

static void strike(int sig)
{
    (void)sig;
    int was = errno;
    if (!is_child && forks < wanted && forks - ended < AT_ONCE) {
        pid_t pid = fork();
        if (pid == 0)
            be_born();
        else if (pid > 0)
            forks++;
    }
    errno = was;
}

static void reap(void)
{
    int status;
    while (waitpid(-1, &status, WNOHANG) > 0) {
        ended++;
        if (WIFSIGNALED(status)) {
            killed++;
            last_signal = WTERMSIG(status);
        } else if (WEXITSTATUS(status)) {
            unwell++;
        }
    }
}

static void fork_in_handler(void)
{
    struct sigaction act = {.sa_handler = strike, .sa_flags = SA_RESTART};
    struct itimerval each = {.it_interval = {.tv_usec = EVERY_US}, .it_value = {.tv_usec = EVERY_US}};
    void *slot[64] = {NULL};
    if (sigaction(SIGALRM, &act, NULL) || setitimer(ITIMER_REAL, &each, NULL))
        exit(1);
    for (unsigned long i = 0, after = 0; ended < wanted; i++) {
        free(slot[i % 64]);
        slot[i % 64] = malloc(size);
        if (!slot[i % 64])
            _exit(9);
        memset(slot[i % 64], 1, 16);
        if (is_child && ++after > CHILD_GOES_ON)
            _exit(0);
        if (!is_child && i % 64 == 0)
            reap();
    }
    setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {0}}, NULL);
    printf("forks %d\nkilled %d\nsignal %d\nunwell %d\n", forks, killed, last_signal, unwell);
}

/* Blocks of all sizes that a name may have had, and none is freed. */
static void overwrite_what_is_free(void)
{
    for (size_t bytes = 16; bytes <= 1024; bytes += 16)
        for (int i = 0; i < 40; i++) {
            char *p = malloc(bytes);
            if (!p)
                exit(1);
            memset(p, 'X', bytes - 1);
            p[bytes - 1] = 0;
        }
}

typedef void *(*make)(size_t);

static make open_library(const char *path, void **library)
{
    *library = dlopen(path, RTLD_NOW);
    void *symbol = *library ? dlsym(*library, "twin_make") : NULL;
    if (!symbol) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return (make)symbol;
}

static int reopen(const char *path)
{
    void *library;
    make before = open_library(path, &library);
    keep = before(size);
    dlclose(library);
    overwrite_what_is_free();
    make again = open_library(path, &library);
    keep = again(size);
    pid_t pid = fork();
    if (pid == 0) {
        keep = again(size);
        _exit(0);
    }
    int status;
    if (waitpid(pid, &status, 0) != pid)
        return 1;
    printf("same_place %d\nstatus %d\n", before == again, status);
    return 0;
}

static int first_in_vfork(long blocks)
{
    pid_t pid = vfork();
    if (pid == 0) {
        keep = malloc(FIRST_BYTES);
        free(keep);
        execl("/bin/true", "true", (char *)NULL);
        _exit(1);
    }
    int status;
    if (waitpid(pid, &status, 0) != pid || status)
        return 1;
    for (long i = 0; i < blocks; i++)
        keep = malloc(size);
    printf("pid %d\nchild %d\n", getpid(), pid);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    const char *how = argv[1];
    size = (size_t)atol(argv[2]);
    if (!strcmp(how, "reopen"))
        return reopen(argv[3]);
    wanted = atol(argv[3]);
    if (!strcmp(how, "vfork"))
        return first_in_vfork(wanted);
    allocates_at_once = !strcmp(how, "handler-allocates");
    fork_in_handler();
    return 0;
}
