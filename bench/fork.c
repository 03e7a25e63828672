/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Forks with many objects live. Prints the CPU time of one fork(), _exit() in the child and waitpid(), of both
 * processes together, in ns.
 *
 *     fork OBJECTS SIZE FORKS      each object has its first line written
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static double used_ns(int who)
{
    struct rusage u;
    getrusage(who, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e9 +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e3;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    int objects = atoi(argv[1]), forks = atoi(argv[3]);
    for (int i = 0; i < objects; i++) {
        volatile char *p = malloc((size_t)atol(argv[2]));
        if (!p)
            return 1;
        *p = 1;
    }
    double before = used_ns(RUSAGE_SELF) + used_ns(RUSAGE_CHILDREN);
    for (int i = 0; i < forks; i++) {
        pid_t child = fork();
        if (!child)
            _exit(0);
        if (child < 0 || waitpid(child, NULL, 0) != child)
            return 1;
    }
    printf("%.0f\n", (used_ns(RUSAGE_SELF) + used_ns(RUSAGE_CHILDREN) - before) / forks);
    return 0;
}
