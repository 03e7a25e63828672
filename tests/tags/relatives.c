/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wider family of malloc(), each function from a place whose name tells it, counted here too. C and C++.
 *
 *     relatives FILE      prints, for each place: PID NAME made BYTES-MADE live BYTES-LIVE; FILE has lines to read
 *
 * With SKIP=NAME the program leaves out one count of that place: the comparison must fail.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wchar.h>

#define PAGE    4096ul
#define THREADS 4
#define ROUNDS  200
#define PLACES  24

struct count {
    const char *name;
    unsigned long made, made_bytes, gone, gone_bytes;
};
static struct count counts[PLACES];
static const char *skipped;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void add(const char *name, unsigned long made, unsigned long made_bytes, unsigned long gone,
                unsigned long gone_bytes)
{
    struct count *c = counts;
    pthread_mutex_lock(&lock);
    while (c->name && strcmp(c->name, name))
        c++;
    c->name = name;
    if (skipped && !strcmp(skipped, name))
        skipped = NULL;
    else {
        c->made += made;
        c->made_bytes += made_bytes;
        c->gone += gone;
        c->gone_bytes += gone_bytes;
    }
    pthread_mutex_unlock(&lock);
}

/* Every second object stays. */
static void keep_or_free(void *p, const char *name, size_t bytes, unsigned round)
{
    if (!p)
        abort();
    add(name, 1, bytes, 0, 0);
    if (round % 2)
        return;
    add(name, 0, 0, 1, bytes);
    free(p);
}

#define PLACE static __attribute__((noinline)) void

PLACE by_asprintf(unsigned round)
{
    char *p = NULL;
    int length = asprintf(&p, "%*u", (int)(round % 90 + 1), 7u);
    keep_or_free(p, __func__, (size_t)length + 1, round);
}

__attribute__((format(printf, 2, 3))) PLACE by_vasprintf(unsigned round, const char *format, ...)
{
    char *p = NULL;
    va_list args;
    va_start(args, format);
    int length = vasprintf(&p, format, args);
    va_end(args);
    keep_or_free(p, __func__, (size_t)length + 1, round);
}

/* Of what the C library makes larger, only the last is there. */
PLACE by_getline(unsigned round, FILE *lines)
{
    char *line = NULL;
    size_t room = 0, before = 0;
    rewind(lines);
    while (getline(&line, &room, lines) > 0) {
        if (room != before)
            add(__func__, 1, room, before != 0, before);
        before = room;
    }
    if (round % 2)
        return;
    add(__func__, 0, 0, 1, room);
    free(line);
}

PLACE by_getdelim(unsigned round, FILE *lines)
{
    size_t room = 10;
    char *line = (char *)malloc(room); /* of this place, too */
    add(__func__, 1, room, 0, 0);
    rewind(lines);
    if (getdelim(&line, &room, 'q', lines) <= 20)
        abort();
    add(__func__, 1, room, 1, 10);
    keep_or_free(strdup("x"), __func__, 2, round);
    add(__func__, 0, 0, 1, room);
    free(line);
}

PLACE by_realpath(unsigned round)
{
    char here[8192], *p = realpath("/usr/./bin/..", NULL);
    if (realpath("/", here) != here || realpath("/not/there", NULL))
        abort();
    keep_or_free(p, __func__, strlen(p) + 1, round);
}

PLACE by_wcsdup(unsigned round)
{
    keep_or_free(wcsdup(L"wide"), __func__, 5 * sizeof(wchar_t), round);
}

PLACE by_memalign(unsigned round)
{
    keep_or_free(memalign(256, round + 1), __func__, round + 1, round);
}

PLACE by_posix_memalign(unsigned round)
{
    void *p = NULL;
    if (posix_memalign(&p, 128, round + 1))
        abort();
    keep_or_free(p, __func__, round + 1, round);
}

PLACE by_aligned_alloc(unsigned round)
{
    keep_or_free(aligned_alloc(32, 64 * (round + 1)), __func__, 64 * (round + 1), round);
}

PLACE by_strndup(unsigned round)
{
    keep_or_free(strndup("some text", 4), __func__, 5, round);
}

PLACE by_reallocarray(unsigned round)
{
    volatile size_t too_many = (size_t)-1;
    void *p = malloc(20), *volatile none;
    add(__func__, 1, 20, 0, 0);
    p = reallocarray(p, round + 1, 24);
    add(__func__, 0, 0, 1, 20);
    none = reallocarray(NULL, too_many, 24);
    if (none)
        abort();
    keep_or_free(p, __func__, (round + 1) * 24, round);
}

static char *map(size_t pages, void *at, int flags)
{
    void *p = mmap(at, pages * PAGE - 5, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    if (p == MAP_FAILED)
        abort();
    add(__func__, 1, pages * PAGE, 0, 0);
    return (char *)p;
}

static void unmap(char *p, size_t pages, int last)
{
    if (munmap(p, pages * PAGE - 7))
        abort();
    add("map", 0, 0, (unsigned long)last, pages * PAGE);
}

/* Parts of a mapping, in any order. */
PLACE by_parts(unsigned round)
{
    char *p = map(10, NULL, 0);
    unmap(p + 4 * PAGE, 2, 0);
    unmap(p, 1, 0);
    unmap(p + 9 * PAGE, 1, 0);
    if (munmap(p + 1, PAGE) != -1 || munmap(p, 0) != -1)
        abort();
    unmap(p + 2 * PAGE, 2, 0);
    if (round % 2)
        return; /* pages 1, 6, 7 and 8 stay */
    unmap(p + PAGE, 1, 0);
    unmap(p + 6 * PAGE, 3, 1);
}

/* Something else in its place: pages 2 to 5 of 8, then all of it. */
PLACE over(unsigned round)
{
    char *p = map(8, NULL, 0);
    add("map", 0, 0, 0, 4 * PAGE);
    map(4, p + 2 * PAGE, MAP_FIXED);
    if (round % 2)
        return;
    add("map", 0, 0, 2, 8 * PAGE);
    map(8, p, MAP_FIXED);
    unmap(p, 8, 1);
}

/* Charged to who mapped it: the old is gone, the new is made. */
PLACE remap(unsigned round)
{
    char *p = map(4, NULL, 0);
    char *larger = (char *)mremap(p, 4 * PAGE, 40 * PAGE, MREMAP_MAYMOVE);
    add("map", 1, 40 * PAGE, 1, 4 * PAGE);
    char *smaller = (char *)mremap(larger, 40 * PAGE, 3 * PAGE, 0);
    add("map", 1, 3 * PAGE, 1, 40 * PAGE);
    if (smaller != larger || mremap(smaller, 3 * PAGE, (size_t)-1 & ~0xfffffful, 0) != MAP_FAILED)
        abort();
    char *place = map(5, NULL, 0);
    char *moved = (char *)mremap(smaller, 3 * PAGE, 3 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place + PAGE);
    if (moved != place + PAGE)
        abort();
    add("map", 1, 3 * PAGE, 1, 2 * 3 * PAGE); /* that, and the midst of what was there */
    if (round % 2)
        return;
    unmap(moved, 3, 1);
    unmap(place, 1, 0);
    unmap(place + 4 * PAGE, 1, 1);
}

static const char *path;

static void *work(void *arg)
{
    unsigned rounds = arg ? 1 : ROUNDS;
    FILE *lines = fopen(path, "r");
    if (!lines)
        abort();
    for (unsigned i = 0; i < rounds; i++) {
        by_asprintf(i);
        by_vasprintf(i, "%u %s", i, "and so on");
        by_getline(i, lines);
        by_getdelim(i, lines);
        by_realpath(i);
        by_wcsdup(i);
        by_memalign(i);
        by_posix_memalign(i);
        by_aligned_alloc(i);
        by_strndup(i);
        by_reallocarray(i);
        by_parts(i);
        over(i);
        remap(i);
    }
    fclose(lines);
    return NULL;
}

static void print(void)
{
    for (const struct count *c = counts; c->name; c++)
        printf("%d %s %lu %lu %lu %lu\n", (int)getpid(), c->name, c->made, c->made_bytes, c->made - c->gone,
               c->made_bytes - c->gone_bytes);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static char buffer[4096];
    pthread_t t[THREADS];
    if (argc < 2)
        return 2;
    setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
    path = argv[1];
    skipped = getenv("SKIP");
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&t[i], NULL, work, NULL))
            abort();
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    print();
    pid_t child = fork();
    if (!child) { /* what it inherited is of no account */
        memset(counts, 0, sizeof(counts));
        work(argv);
        print();
        _exit(0);
    }
    int status;
    return waitpid(child, &status, 0) != child || status;
}
