/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a program costs: runs it, and writes its CPU time (user and system, children it waited for included) in seconds,
 * its highest resident memory in KiB, and its exit status. Of so small a process of its own because exec hands the
 * highest resident memory of the process before on to the program.
 *
 *     cost FILE [VARIABLE=VALUE...] PROGRAM [ARG...]      the line goes into FILE, the variables only to PROGRAM
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

int main(int argc, char **argv)
{
    FILE *out = argc > 2 ? fopen(argv[1], "we") : NULL;
    if (!out)
        return 2;
    pid_t child = fork();
    if (!child) {
        for (argv += 2; *argv && strchr(*argv, '='); argv++)
            putenv(*argv);
        if (*argv)
            execvp(*argv, argv);
        _exit(127);
    }
    int status;
    struct rusage used;
    if (child < 0 || wait4(child, &status, 0, &used) != child)
        return 2;
    fprintf(out, "%.6f %ld %d\n", seconds(used.ru_utime) + seconds(used.ru_stime), used.ru_maxrss, status);
    return fclose(out) != 0;
}
