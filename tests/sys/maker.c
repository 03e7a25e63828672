/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes known numbers of kernel events. It reads commands from stdin, a line each, and answers each with a line "done"
 * (or "failed: why") when it is through; nothing else happens in it meanwhile. It stays on one CPU: no page waits in a
 * list of another one.
 *
 *   touch N      maps N pages and writes to each     huge N        the same, in transparent huge pages
 *   drop         unmaps all of them                  read PATH     reads a file
 *   files N      opens /dev/null N times             close         closes all of them
 *   timers N     makes N POSIX timers                untimers      deletes all of them
 *   pipes N      makes N pipes, which close closes   fill          writes a page into each of them
 *   mappings N   maps a page and unmaps it N times
 *   forks N      N children that end at once, one after the other
 *   churn        a bit of everything, until stdin ends: a load beside the test
 */
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST       65536
#define PAGE       4096ul
#define HUGE       (2ul << 20)
#define MAPS       64
#define LINE_BYTES 4096

static int files[MOST], n_files; /* pipes too, as pairs */
static timer_t timers[MOST];
static int n_timers;
static struct {
    char *at;
    size_t bytes;
} maps[MAPS];
static int n_maps;

/*
 * The last pages that were touched wait in this processor's batch for the LRU, which holds them: unmapped meanwhile,
 * they are freed by whoever empties it. The kernel does so before it looks at pages that have turned cold; here there
 * are none.
 */
static void settle(void)
{
    void *nothing = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (nothing == MAP_FAILED)
        return;
    madvise(nothing, PAGE, MADV_COLD);
    munmap(nothing, PAGE);
}

static const char *touch(size_t n, size_t page, int advice)
{
    size_t bytes = n * page, room = bytes + (page > PAGE ? page : 0);
    if (n_maps == MAPS)
        return "too many maps";
    char *at = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return "mmap";
    maps[n_maps].at = at;
    maps[n_maps++].bytes = room;
    if (page > PAGE)
        at = (char *)(((unsigned long)at + page - 1) & ~(page - 1));
    if (madvise(at, bytes, advice))
        return "madvise";
    for (size_t i = 0; i < n; i++)
        ((volatile char *)at)[i * page] = 1;
    settle();
    return NULL;
}

static const char *drop(void)
{
    while (n_maps)
        munmap(maps[n_maps - 1].at, maps[n_maps - 1].bytes), n_maps--;
    return NULL;
}

static const char *read_file(const char *path)
{
    static char part[65536];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : 1;
    while (n > 0)
        n = read(fd, part, sizeof(part));
    if (fd >= 0)
        close(fd);
    return n ? "read" : NULL;
}

static const char *open_files(int n)
{
    for (; n > 0 && n_files < MOST; n--)
        if ((files[n_files++] = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0)
            return "open";
    return NULL;
}

static const char *close_files(void)
{
    while (n_files)
        close(files[--n_files]);
    return NULL;
}

static const char *make_timers(int n)
{
    struct sigevent none = {.sigev_notify = SIGEV_NONE};
    for (; n > 0 && n_timers < MOST; n--)
        if (timer_create(CLOCK_MONOTONIC, &none, &timers[n_timers++]))
            return "timer_create";
    return NULL;
}

static const char *delete_timers(void)
{
    while (n_timers)
        timer_delete(timers[--n_timers]);
    return NULL;
}

static const char *open_pipes(int n)
{
    for (; n > 0 && n_files < MOST - 1; n--, n_files += 2)
        if (pipe2(&files[n_files], O_CLOEXEC))
            return "pipe";
    return NULL;
}

/* Where other files are open it fails, as they are not for writing. */
static const char *fill_pipes(void)
{
    static const char page[PAGE];
    for (int i = 0; i + 1 < n_files; i += 2)
        if (write(files[i + 1], page, PAGE) != (ssize_t)PAGE)
            return "write";
    return NULL;
}

static const char *make_mappings(int n)
{
    for (; n > 0; n--) {
        void *at = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED || munmap(at, PAGE))
            return "mmap";
    }
    return NULL;
}

static const char *forks(int n)
{
    for (; n > 0; n--) {
        pid_t child = fork();
        if (!child)
            _exit(0);
        if (child < 0 || waitpid(child, NULL, 0) != child)
            return "fork";
    }
    return NULL;
}

static const char *churn(void)
{
    struct pollfd end = {.fd = 0, .events = POLLIN};
    while (!poll(&end, 1, 0)) {
        touch(100, PAGE, MADV_NOHUGEPAGE);
        open_files(20);
        make_timers(5);
        forks(1);
        drop();
        close_files();
        delete_timers();
    }
    return NULL;
}

static const char *obey(const char *word, const char *argument)
{
    int n = atoi(argument);
    if (!strcmp(word, "touch"))
        return touch((size_t)n, PAGE, MADV_NOHUGEPAGE);
    if (!strcmp(word, "huge"))
        return touch((size_t)n, HUGE, MADV_HUGEPAGE);
    if (!strcmp(word, "drop"))
        return drop();
    if (!strcmp(word, "read"))
        return read_file(argument);
    if (!strcmp(word, "files"))
        return open_files(n);
    if (!strcmp(word, "close"))
        return close_files();
    if (!strcmp(word, "timers"))
        return make_timers(n);
    if (!strcmp(word, "untimers"))
        return delete_timers();
    if (!strcmp(word, "pipes"))
        return open_pipes(n);
    if (!strcmp(word, "fill"))
        return fill_pipes();
    if (!strcmp(word, "mappings"))
        return make_mappings(n);
    if (!strcmp(word, "forks"))
        return forks(n);
    return strcmp(word, "churn") ? "no such command" : churn();
}

/* A line from stdin without its end, read byte by byte: no buffer grows. */
static int next_line(char line[static LINE_BYTES])
{
    size_t n = 0;
    while (n < LINE_BYTES - 1 && read(0, line + n, 1) == 1 && line[n] != '\n')
        n++;
    line[n] = '\0';
    return n > 0;
}

int main(void)
{
    static char line[LINE_BYTES], answer[LINE_BYTES];
    struct rlimit many = {MOST * 2, MOST * 2};
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET((unsigned)sched_getcpu(), &here);
    sched_setaffinity(0, sizeof(here), &here);
    setrlimit(RLIMIT_NOFILE, &many);
    while (next_line(line)) {
        char *argument = strchr(line, ' ');
        if (argument)
            *argument++ = '\0';
        const char *failed = obey(line, argument ? argument : "");
        int n =
            snprintf(answer, sizeof(answer), "%s%s\n", failed ? "failed: " : "done", failed ? failed : "");
        if (write(1, answer, (size_t)n) != n)
            return 1;
    }
    return 0;
}
