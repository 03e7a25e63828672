/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Children, each with two threads that allocate for the first time at the same moment, in a function of its own:
 * `first_child CHILDREN` prints the pid of each. Their stacks are those of threads that the parent had, so that to
 * start them takes no memory.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_int came;
static void *volatile sink;

/* Spins: what sleeps does not wake at once. */
static void meet(int all)
{
    for (came++; came < all;)
        ;
}

static void *by_malloc(void *arg)
{
    meet(3);
    for (unsigned turns = (unsigned)(size_t)arg; turns; turns--)
        __asm__ volatile("");
    sink = malloc(10);
    return NULL;
}

static void two_threads(unsigned delay)
{
    pthread_t t[2];
    came = 0;
    for (size_t i = 0; i < 2; i++)
        if (pthread_create(&t[i], NULL, by_malloc, (void *)(i * delay)))
            abort();
    meet(3);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
}

int main(int argc, char **argv)
{
    static char buffer[65536];
    int children = argc > 1 ? atoi(argv[1]) : 1;
    setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
    two_threads(0);
    for (int i = 0; i < children; i++) {
        pid_t pid = fork();
        if (!pid) {
            two_threads((unsigned)i % 50 * 20);
            _exit(0);
        }
        printf("%d\n", (int)pid);
        waitpid(pid, NULL, 0);
    }
    return 0;
}
