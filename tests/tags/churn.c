/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that allocate, resize, hand over and free at random, each at a few places whose functions tell them apart,
 * and count for themselves. Built with -include allium/malloc_hooks.h.
 *
 *     churn THREADS ROUNDS [fork|asked|wait|again]      prints, for each place: NAME made BYTES-MADE live BYTES-LIVE
 *
 * fork: a child does as much again when the parent is done, frees what it inherited, and prints its own. asked: the
 * same, after a line has come; what fails is counted and printed, too. wait: it ends when its standard input does.
 * again: fifty times, with threads of their own.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "foreign.h"

#define SLOTS  300
#define PLACES 8

enum place { BY_MALLOC, BY_CALLOC, BY_REALLOC, BY_STRDUP, BY_STRNDUP, BY_POSIX, BY_ALIGNED, BY_LARGE };
static const char *const names[PLACES] = {"by_malloc",  "by_calloc", "by_realloc", "by_strdup",
                                          "by_strndup", "by_posix",  "by_aligned", "by_large"};
struct count {
    atomic_ulong made, made_bytes, gone, gone_bytes, failed;
};
static struct count counts[PLACES];
static bool may_fail;

struct object {
    void *p;
    size_t bytes;
    enum place place;
};

static void made(struct object *o, void *p, size_t bytes, enum place place)
{
    if (!p && may_fail) {
        counts[place].failed++;
        return;
    }
    if (!p)
        abort();
    memset(p, 1, place == BY_STRDUP || place == BY_STRNDUP ? bytes - 1 : bytes);
    *o = (struct object){p, bytes, place};
    counts[place].made++;
    counts[place].made_bytes += bytes;
}

static void gone(struct object *o)
{
    counts[o->place].gone++;
    counts[o->place].gone_bytes += o->bytes;
    o->p = NULL;
}

#define PLACE static __attribute__((noinline)) void

PLACE by_malloc(struct object *o, size_t n)
{
    made(o, malloc(n), n, BY_MALLOC);
}
PLACE by_calloc(struct object *o, size_t n)
{
    made(o, calloc(n, 3), n * 3, BY_CALLOC);
}
PLACE by_posix(struct object *o, size_t n)
{
    void *p = NULL;
    if (posix_memalign(&p, 64, n))
        p = NULL;
    made(o, p, n, BY_POSIX);
}
PLACE by_aligned(struct object *o, size_t n)
{
    made(o, aligned_alloc(32, n * 32), n * 32, BY_ALIGNED);
}
PLACE by_large(struct object *o, size_t n)
{
    made(o, malloc(n * 4000), n * 4000, BY_LARGE);
}
PLACE by_strdup(struct object *o, const char *s)
{
    made(o, strdup(s), strlen(s) + 1, BY_STRDUP);
}
PLACE by_strndup(struct object *o, const char *s, size_t n)
{
    made(o, strndup(s, n), strnlen(s, n) + 1, BY_STRNDUP);
}
PLACE by_realloc(struct object *o, size_t n)
{
    void *p = realloc(o->p, n);
    if (o->p && p)
        gone(o);
    made(o, p, n, BY_REALLOC);
}

static void drop(struct object *o, unsigned draw)
{
    void *p = o->p;
    if (!p)
        return;
    gone(o);
    if (draw % 64)
        free(p);
    else
        foreign_free(p); /* by code without tags: seen when the address comes again */
}

static void make(struct object *o, unsigned draw)
{
    static const char text[] = "a text of some length, of which more or less is duplicated here and there";
    size_t n = 1 + draw / 16 % 300;
    switch (draw % 16) {
    case 0:
        by_calloc(o, n);
        break;
    case 1:
        by_strdup(o, text + n % 60);
        break;
    case 2:
        by_strndup(o, text, n % 60);
        break;
    case 3:
        by_posix(o, n);
        break;
    case 4:
        by_aligned(o, n);
        break;
    case 5:
        by_large(o, n % 20 + 1);
        break;
    case 6:
    case 7:
        by_realloc(o, n);
        break;
    default:
        by_malloc(o, n);
    }
}

static uint64_t rounds;
static struct object kept[64][SLOTS]; /* what a thread leaves behind */

static void *work(void *arg)
{
    struct object *mine = kept[(uintptr_t)arg];
    uint64_t seed = (uintptr_t)arg * 7919 + 1;
    for (uint64_t i = 0; i < rounds; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        unsigned draw = (unsigned)(seed >> 33);
        struct object *o = &mine[draw / 65536 % SLOTS];
        if (o->p && draw % 16 - 6u < 2u)
            by_realloc(o, 1 + draw / 16 % 9000);
        else {
            drop(o, foreign_frees ? draw >> 4 : 1);
            make(o, draw);
        }
    }
    return NULL;
}

static void run(unsigned threads)
{
    pthread_t t[64];
    for (uintptr_t i = 1; i < threads; i++)
        if (pthread_create(&t[i], NULL, work, (void *)i))
            abort();
    work(NULL);
    for (unsigned i = 1; i < threads; i++)
        pthread_join(t[i], NULL);
}

static void print(void)
{
    for (int i = 0; i < PLACES; i++) {
        printf("%d %s %lu %lu %lu %lu", (int)getpid(), names[i], counts[i].made, counts[i].made_bytes,
               counts[i].made - counts[i].gone, counts[i].made_bytes - counts[i].gone_bytes);
        if (may_fail)
            printf(" %lu", counts[i].failed);
        putchar('\n');
    }
    fflush(stdout);
}

/* What was inherited is freed, and of no account here. */
static void child(unsigned threads)
{
    for (unsigned t = 0; t < threads; t++)
        for (unsigned i = 0; i < SLOTS; i++) {
            free(kept[t][i].p);
            kept[t][i].p = NULL;
        }
    memset(counts, 0, sizeof(counts));
    run(threads);
    print();
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    unsigned threads = (unsigned)atoi(argv[1]);
    rounds = strtoull(argv[2], NULL, 10);
    foreign_frees = getenv("FOREIGN") != NULL;
    setvbuf(stdout, foreign_buffer, _IOFBF, sizeof(foreign_buffer));
    may_fail = argc > 3 && !strcmp(argv[3], "asked");
    char c;
    if (may_fail && read(0, &c, 1) != 1)
        return 3;
    for (int i = argc > 3 && !strcmp(argv[3], "again") ? 49 : 0; i >= 0; i--)
        run(threads);
    print();
    if (argc > 3 && (may_fail || !strcmp(argv[3], "fork"))) {
        pid_t pid = fork();
        if (!pid) {
            child(threads);
            _exit(0);
        }
        waitpid(pid, NULL, 0);
    }
    if (argc > 3 && !strcmp(argv[3], "wait"))
        while (getchar() != EOF)
            ;
    return 0;
}
