/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Eight workers, one after the other, each of which makes the same blocks and keeps them: the i-th has 1,000 + i bytes,
 * so that a live sample tells which block it is.
 *
 *     draws threads|forks|clones BLOCKS
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORKERS 8

static long blocks;
static void *volatile kept;

__attribute__((noinline)) static void *work(void *arg)
{
    for (long i = 0; i < blocks; i++)
        kept = malloc((size_t)(1000 + i));
    return arg;
}

static int as_process(int bare)
{
    int status = 1;
    pid_t pid = bare ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
    if (pid == 0) {
        work(NULL);
        _exit(0);
    }
    return pid < 0 || waitpid(pid, &status, 0) != pid ? 1 : status;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    blocks = atol(argv[2]);
    for (int i = 0; i < WORKERS; i++) {
        pthread_t id;
        if (strcmp(argv[1], "threads")) {
            if (as_process(!strcmp(argv[1], "clones")))
                return 1;
        } else if (pthread_create(&id, NULL, work, NULL) || pthread_join(id, NULL)) {
            return 1;
        }
    }
    return 0;
}
