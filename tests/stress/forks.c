/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fork children in all forms, under churn: what they do stands in their own books, what the parent does in the
 * parent's.
 *
 *     forks HOW COUNT [THREADS]
 *
 * HOW: fork, clone (the bare system call), vfork, spawn, chain (a child forks the next), or odd (the child's first
 * requests fail). A child frees 3 blocks that it inherited, makes 5 of 1234 bytes and frees 2 of those. Meanwhile
 * THREADS other threads of the parent allocate. Says what the parent did: blocks of 999 bytes.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define INHERITED 3

extern char **environ;

static void *volatile block[INHERITED];
static void *volatile keep;
static _Atomic int stop;
static _Atomic long made;

static void *churn(void *arg)
{
    (void)arg;
    void *mine[16] = {NULL};
    long n = 0;
    for (unsigned i = 0; !stop; i++) {
        free(mine[i % 16]);
        mine[i % 16] = malloc(999);
        n++;
        if (i % 64 == 0)
            sched_yield();
    }
    for (int i = 0; i < 16; i++)
        free(mine[i]);
    made += n;
    return NULL;
}

static int be_child(void)
{
    void *own[5];
    for (int i = 0; i < INHERITED; i++)
        free(block[i]);
    for (int i = 0; i < 5; i++)
        own[i] = malloc(1234);
    free(own[1]);
    free(own[3]);
    return 0;
}

/* Requests that fail, before any that succeeds. */
static int be_odd_child(long number)
{
    volatile size_t huge = SIZE_MAX;
    errno = 0;
    switch (number % 4) {
    case 0:
        keep = malloc(huge);
        break;
    case 1:
        keep = reallocarray(NULL, huge, 2);
        break;
    case 2:
        keep = realloc(block[0], huge);
        break;
    default:
        keep = calloc(huge, 2);
    }
    return keep || errno != ENOMEM ? 9 : be_child();
}

static pid_t start(const char *how, long number)
{
    pid_t pid = -1;
    char *argv[] = {"/bin/true", NULL};
    if (!strcmp(how, "spawn"))
        return posix_spawn(&pid, argv[0], NULL, NULL, argv, environ) ? -1 : pid;
    if (!strcmp(how, "vfork")) {
        pid = vfork();
        if (!pid) {
            execv(argv[0], argv);
            _exit(127);
        }
        return pid;
    }
    pid = !strcmp(how, "clone") || (!strcmp(how, "odd") && number % 8 >= 4)
              ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)
              : fork();
    if (pid)
        return pid;
    _exit(!strcmp(how, "odd") ? be_odd_child(number) : be_child());
}

/* Each is the child of the one before and frees what that made. */
static int chain(long count)
{
    for (long i = 0; i < count; i++) {
        pid_t pid = fork();
        if (pid) {
            int status = 0;
            if (pid < 0 || waitpid(pid, &status, 0) != pid)
                _exit(1);
            _exit(WIFSIGNALED(status) ? 100 + WTERMSIG(status) : WEXITSTATUS(status));
        }
        for (int k = 0; k < INHERITED; k++) {
            free(block[k]);
            block[k] = malloc(1234);
        }
    }
    _exit(0);
}

int main(int argc, char **argv)
{
    pthread_t threads[16];
    if (argc < 3)
        return 2;
    long count = atol(argv[2]), bad = 0;
    int n = argc > 3 ? atoi(argv[3]) : 0, status;
    for (int i = 0; i < INHERITED; i++)
        block[i] = malloc(777);
    if (!strcmp(argv[1], "chain"))
        return chain(count);
    for (int i = 0; i < n; i++)
        pthread_create(&threads[i], NULL, churn, NULL);
    for (long i = 0; i < count; i++) {
        keep = malloc(999);
        free(keep);
        made++;
        pid_t pid = start(argv[1], i);
        if (pid < 0 || waitpid(pid, &status, 0) != pid || status) {
            fprintf(stderr, "child %ld: %s %d\n", i, pid < 0 ? "not started" : "status", status);
            bad++;
        }
    }
    stop = 1;
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    printf("made %ld\nbad %ld\n", (long)made, bad);
    return bad != 0;
}
