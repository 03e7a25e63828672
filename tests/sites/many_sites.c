/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * many_sites FORKS: a signal handler forks, every millisecond, while objects are made at 256 places and freed. The
 * child frees what it finds, makes and frees some at one place, and leaves. Prints the pid of each child, then how many
 * a signal killed.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define AT_ONCE 4 /* children */

static long wanted;
static volatile sig_atomic_t is_child, forks, ended;
static pid_t pids[100000];

static void strike(int sig)
{
    (void)sig;
    int was = errno;
    if (!is_child && forks < wanted && forks - ended < AT_ONCE) {
        pid_t pid = fork();
        if (pid > 0)
            pids[forks++] = pid;
        is_child = pid == 0;
    }
    errno = was;
}

#define HERE(i)                                                                                              \
    case i:                                                                                                  \
        return malloc(size);
#define HERE4(i)  HERE(i) HERE(i + 1) HERE(i + 2) HERE(i + 3)
#define HERE16(i) HERE4(i) HERE4(i + 4) HERE4(i + 8) HERE4(i + 12)
#define HERE64(i) HERE16(i) HERE16(i + 16) HERE16(i + 32) HERE16(i + 48)

__attribute__((noinline, optimize("no-crossjumping"))) static void *make(unsigned place, size_t size)
{
    switch (place % 256) {
        HERE64(0)
        HERE64(64)
        HERE64(128)
        HERE64(192)
    }
    return NULL;
}

__attribute__((noinline)) static void child(void **slot)
{
    for (int i = 0; i < 64; i++)
        free(slot[i]);
    for (int i = 0; i < 100; i++) {
        void *volatile p = malloc(24);
        free(p);
    }
    _exit(0);
}

int main(int argc, char **argv)
{
    struct sigaction act = {.sa_handler = strike, .sa_flags = SA_RESTART};
    struct itimerval each = {.it_interval = {.tv_usec = 1000}, .it_value = {.tv_usec = 1000}};
    static void *slot[64];
    int killed = 0, status;
    wanted = argc > 1 ? atol(argv[1]) : 100;
    for (unsigned i = 0; i < 256; i++)
        free(make(i, 24));
    if (sigaction(SIGALRM, &act, NULL) || setitimer(ITIMER_REAL, &each, NULL))
        return 1;
    for (unsigned i = 0; ended < wanted; i++) {
        free(slot[i % 64]);
        slot[i % 64] = NULL;
        slot[i % 64] = make(i * 37, 24 + i % 200);
        if (is_child)
            child(slot);
        while (i % 64 == 0 && waitpid(-1, &status, WNOHANG) > 0) {
            ended++;
            killed += WIFSIGNALED(status);
        }
    }
    setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {0}}, NULL);
    for (int i = 0; i < forks; i++)
        printf("%d\n", (int)pids[i]);
    printf("killed %d\n", killed);
    return 0;
}
