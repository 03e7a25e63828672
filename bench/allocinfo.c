/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * allocinfo ALLIUM FILE [LINES]: how many lines a second `allium sys allocinfo` takes of a file of so many,
 * which is made, in turns with what reads its lines and does nothing (read(2) and memchr for their ends) as a
 * floor, and with awk adding up two columns as a peer. At least a million a second, of the parser and of the
 * whole command; all of CPU time too, which other work on the machine changes less.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collect/accounts/allocinfo.h"
#include "stats.h"

#define TURNS    9
#define AT_LEAST 1e6

enum way { FLOOR, PARSER, COMMAND, GROUPS, AWK, WAYS };
static const char *const names[WAYS] = {[FLOOR] = "read and memchr",
                                        [PARSER] = "allocinfo_read",
                                        [COMMAND] = "allium sys allocinfo",
                                        [GROUPS] = "... --by directory",
                                        [AWK] = "awk, two sums"};

static void fail(const char *what)
{
    perror(what);
    exit(2);
}

/* As many different names as a large kernel has: 40,000 functions in 8,000 files, and 400 modules. */
static void make_file(const char *path, uint64_t lines)
{
    FILE *f = fopen(path, "w");
    if (!f)
        fail(path);
    fprintf(f, "allocinfo - version: 2.0\n#     <size>  <calls> <tag info>\n");
    for (uint64_t i = 0; i < lines; i++) {
        uint64_t file = i / 125 % 8000, calls = i * 2654435761u % 10007;
        char module[32] = "";
        if (file % 2)
            snprintf(module, sizeof(module), "[module_%" PRIu64 "] ", file % 400);
        fprintf(f,
                "%12" PRIi64 " %8" PRIu64 " drivers/part_%" PRIu64 "/chip_%" PRIu64 ".c:%" PRIu64
                " %sfunc:chip_%" PRIu64 "_setup%s \n",
                (int64_t)(calls * (i % 4096)) - (int64_t)(i % 17), calls, file % 97, file,
                i % 125 * 7 + i / 1000000 * 900, module, i / 25 % 40000, i % 1000 ? "" : " accurate:no");
    }
    if (fclose(f))
        fail(path);
}

static uint64_t floor_of(const char *path)
{
    static char piece[64 << 10];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    uint64_t lines = 0;
    ssize_t n;
    if (fd < 0)
        fail(path);
    while ((n = read(fd, piece, sizeof(piece))) > 0)
        for (const char *at = piece; (at = memchr(at, '\n', (size_t)(piece + n - at))); at++)
            lines++;
    close(fd);
    return lines;
}

static uint64_t parser(const char *path)
{
    struct alloc_texts texts = {.bytes = BUF_INIT};
    struct accounts a;
    struct error e = {""};
    if (allocinfo_read(&a, &texts, path, &e) || a.text.bad_lines) {
        fprintf(stderr, "%s\n", e.text);
        exit(2);
    }
    uint64_t lines = a.text.lines;
    accounts_release(&a);
    alloc_texts_release(&texts);
    return lines;
}

static uint64_t program(char **words, uint64_t lines)
{
    int status;
    pid_t pid = fork();
    if (!pid) {
        int null = open("/dev/null", O_WRONLY);
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
        execvp(words[0], words);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) < 0 || status)
        fail(words[0]);
    return lines;
}

static double cpu_s(void)
{
    struct rusage own, children;
    getrusage(RUSAGE_SELF, &own);
    getrusage(RUSAGE_CHILDREN, &children);
    return (double)(own.ru_utime.tv_sec + own.ru_stime.tv_sec + children.ru_utime.tv_sec +
                    children.ru_stime.tv_sec) +
           (double)(own.ru_utime.tv_usec + own.ru_stime.tv_usec + children.ru_utime.tv_usec +
                    children.ru_stime.tv_usec) /
               1e6;
}

static void take_turn(enum way way, char **argv, uint64_t lines, double *rate, double *cpu_rate)
{
    char sys[] = "sys", name[] = "allocinfo", by[] = "--by", directory[] = "directory", awk[] = "awk",
         sums[] = "NR > 2 { size += $1; calls += $2 } END { print size, calls }";
    char *command[] = {argv[1], sys, name, argv[2], way == GROUPS ? by : NULL, directory, NULL};
    char *peer[] = {awk, sums, argv[2], NULL};
    double began = stats_now_ns(), cpu = cpu_s();
    uint64_t read_lines = way == FLOOR    ? floor_of(argv[2])
                          : way == PARSER ? parser(argv[2])
                                          : program(way == AWK ? peer : command, lines + 2);
    if (read_lines != lines + 2)
        fail("other lines than there are");
    *rate = (double)lines / ((stats_now_ns() - began) / 1e9);
    *cpu_rate = (double)lines / (cpu_s() - cpu);
}

int main(int argc, char **argv)
{
    static double rate[WAYS][TURNS], cpu[WAYS][TURNS];
    uint64_t lines = argc > 3 ? strtoull(argv[3], NULL, 10) : 1000000;
    bool reached = true;
    if (argc < 3 || !lines)
        return 2;
    make_file(argv[2], lines);
    for (int turn = 0; turn < TURNS; turn++)
        for (enum way way = 0; way < WAYS; way++)
            take_turn(way, argv, lines, &rate[way][turn], &cpu[way][turn]);
    unlink(argv[2]);
    printf("%" PRIu64 " lines of allocinfo, %d turns; million lines a second, median (lowest to highest)\n",
           lines, TURNS);
    for (enum way way = 0; way < WAYS; way++) {
        struct stats_ratio ratio = stats_ratio(cpu[way], cpu[AWK], TURNS);
        bool bound = way != FLOOR && way != AWK;
        qsort(rate[way], TURNS, sizeof(**rate), stats_compare);
        double median = stats_median(rate[way], TURNS), of_cpu = stats_median(cpu[way], TURNS);
        reached = reached && (!bound || of_cpu >= AT_LEAST);
        printf("  %-20s %6.2f (%.2f to %.2f); of CPU time %6.2f, %.2f x awk's (%.2f-%.2f)%s\n", names[way],
               median / 1e6, rate[way][0] / 1e6, rate[way][TURNS - 1] / 1e6, of_cpu / 1e6, ratio.ratio,
               ratio.low, ratio.high,
               !bound               ? ""
               : of_cpu >= AT_LEAST ? "   at least 1: reached"
                                    : "   at least 1: MISSED");
    }
    return !reached;
}
