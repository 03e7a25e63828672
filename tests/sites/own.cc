/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that allocate in every way there is, resize, hand over and free at random, each way in a function of its own,
 * and count for themselves what each function makes, frees, and what malloc_usable_size() says of it.
 *
 *     own THREADS ROUNDS [fork|wait|again|handlers]
 *
 * prints for each function: PID NAME MADE BYTES USABLE LIVE BYTES-LIVE USABLE-LIVE FREED-HERE BYTES-FREED-HERE fork: a
 * child does as much when the parent is done, frees what it inherited, and prints its own. wait: it ends when its
 * standard input does. again: fifty times, with threads of their own. handlers: a timer's handler allocates and frees,
 * too, which takes an allocator that allows it.
 */
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <new>

/* clang-format off */
#define PLACES(X) X(by_malloc) X(by_zero) X(by_large) X(by_calloc) X(by_realloc) \
    X(by_reallocarray) X(by_posix_memalign) X(by_aligned_alloc) X(by_memalign) X(by_valloc) X(by_pvalloc) \
    X(by_new) X(by_new_array) X(by_new_nothrow) X(by_new_aligned) X(by_handler) X(drop) X(drop_too)
/* clang-format on */

enum place {
#define X(name) PLACE_##name,
    PLACES(X)
#undef X
        N_PLACES
};
static const char *const names[] = {
#define X(name) #name,
    PLACES(X)
#undef X
};

static struct {
    std::atomic<unsigned long> made, made_bytes, made_usable, gone, gone_bytes, gone_usable, freed,
        freed_bytes;
} counts[N_PLACES];

struct object {
    void *p;
    size_t bytes;
    enum place place;
};

static void made(struct object *o, void *p, size_t bytes, enum place place)
{
    if (!p)
        abort();
    size_t usable = malloc_usable_size(p);
    memset(p, 1, bytes);
    *o = (struct object){p, bytes, place};
    counts[place].made++;
    counts[place].made_bytes += bytes;
    counts[place].made_usable += usable;
}

static void gone(const struct object *o, enum place by)
{
    counts[o->place].gone++;
    counts[o->place].gone_bytes += o->bytes;
    counts[o->place].gone_usable += malloc_usable_size(o->p);
    counts[by].freed++;
    counts[by].freed_bytes += o->bytes;
}

#define PLACE(name) static __attribute__((noinline)) void name(struct object *o, size_t n)
#define MAKER(name, request, bytes)                                                                          \
    PLACE(name)                                                                                              \
    {                                                                                                        \
        made(o, request, bytes, PLACE_##name);                                                               \
    }

MAKER(by_malloc, malloc(n), n)
MAKER(by_zero, malloc(n - n), n - n)
MAKER(by_large, malloc(n * 4000), n * 4000)
MAKER(by_calloc, calloc(n, 3), n * 3)
MAKER(by_aligned_alloc, aligned_alloc(32, n * 32), n * 32)
MAKER(by_memalign, memalign(128, n), n)
MAKER(by_valloc, valloc(n), n)
MAKER(by_pvalloc, pvalloc(n), n)
MAKER(by_new, operator new(n), n)
MAKER(by_new_array, operator new[](n), n)
MAKER(by_new_nothrow, operator new(n, std::nothrow), n)
MAKER(by_new_aligned, operator new(n, std::align_val_t(64)), n)
MAKER(by_handler, malloc(n), n)

PLACE(by_posix_memalign)
{
    void *p = NULL;
    if (posix_memalign(&p, 64, n))
        abort();
    made(o, p, n, PLACE_by_posix_memalign);
}

/* What realloc() frees is freed where it is called. The old object is counted before: it may be gone afterwards. */
PLACE(by_realloc)
{
    if (o->p)
        gone(o, PLACE_by_realloc);
    made(o, realloc(o->p, n), n, PLACE_by_realloc);
}
PLACE(by_reallocarray)
{
    if (o->p)
        gone(o, PLACE_by_reallocarray);
    made(o, reallocarray(o->p, n, 2), n * 2, PLACE_by_reallocarray);
}

static inline __attribute__((always_inline)) void give_back(struct object *o)
{
    if (o->place == PLACE_by_new_array)
        operator delete[](o->p);
    else if (o->place == PLACE_by_new)
        operator delete(o->p, o->bytes);
    else if (o->place == PLACE_by_new_nothrow)
        operator delete(o->p);
    else if (o->place == PLACE_by_new_aligned)
        operator delete(o->p, std::align_val_t(64));
    else
        free(o->p);
    o->p = NULL;
}

/* Two that free, each with calls of its own. */
template <int number>
static inline __attribute__((always_inline)) void drop_by(struct object *o, enum place by)
{
    if (!o->p)
        return;
    gone(o, by);
    give_back(o);
}
PLACE(drop)
{
    (void)n;
    drop_by<1>(o, PLACE_drop);
}
PLACE(drop_too)
{
    (void)n;
    drop_by<2>(o, PLACE_drop_too);
}

static bool plain; /* not by functions that give aligned memory */

static void make(struct object *o, unsigned draw)
{
    static void (*const makers[])(struct object *, size_t) = {
        by_zero,      by_calloc,      by_posix_memalign, by_aligned_alloc, by_memalign,    by_new,
        by_new_array, by_new_nothrow, by_new_aligned,    by_realloc,       by_reallocarray};
    size_t n = 1 + draw / 16 % 300;
    if (plain) {
        (draw % 4 == 0 ? by_calloc : draw % 4 == 1 ? by_new : draw % 4 == 2 ? by_realloc : by_malloc)(o, n);
        return;
    }
    if (draw % 512 == 0)
        by_valloc(o, n);
    else if (draw % 512 == 1)
        by_pvalloc(o, n);
    else if (draw % 16 < sizeof(makers) / sizeof(*makers))
        makers[draw % 16](o, n);
    else if (draw % 16 == 11)
        by_large(o, n % 20 + 1);
    else
        by_malloc(o, n);
}

#define SLOTS 300
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
        bool of_malloc = o->p && (o->place < PLACE_by_posix_memalign);
        if (of_malloc && draw % 8 == 0) {
            by_realloc(o, 1 + draw / 16 % 9000);
        } else {
            (draw % 3 ? drop : drop_too)(o, 0);
            make(o, draw);
        }
    }
    return NULL;
}

static void handle(int)
{
    struct object o = {NULL, 0, PLACE_by_handler};
    by_handler(&o, 77);
    drop(&o, 0);
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

static void print()
{
    for (int i = 0; i < N_PLACES; i++) {
        auto &c = counts[i];
        printf("%d %s %lu %lu %lu %lu %lu %lu %lu %lu\n", (int)getpid(), names[i], c.made.load(),
               c.made_bytes.load(), c.made_usable.load(), c.made - c.gone, c.made_bytes - c.gone_bytes,
               c.made_usable - c.gone_usable, c.freed.load(), c.freed_bytes.load());
    }
    fflush(stdout);
}

/* What was inherited is freed, and of no account here. */
static void child(unsigned threads)
{
    for (unsigned t = 0; t < threads; t++)
        for (unsigned i = 0; i < SLOTS; i++)
            if (kept[t][i].p)
                give_back(&kept[t][i]);
    for (auto &c : counts)
        c.made = c.made_bytes = c.made_usable = c.gone = c.gone_bytes = c.gone_usable = c.freed =
            c.freed_bytes = 0;
    run(threads);
    print();
}

int main(int argc, char **argv)
{
    static char buffer[16384];
    const char *what = argc > 3 ? argv[3] : "";
    if (argc < 3)
        return 2;
    unsigned threads = (unsigned)atoi(argv[1]);
    rounds = strtoull(argv[2], NULL, 10);
    setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
    if (!strcmp(what, "handlers")) {
        struct itimerval every = {{0, 200}, {0, 200}};
        plain = true;
        signal(SIGPROF, handle);
        setitimer(ITIMER_PROF, &every, NULL);
    }
    for (int i = !strcmp(what, "again") ? 49 : 0; i >= 0; i--)
        run(threads);
    if (!strcmp(what, "handlers"))
        signal(SIGPROF, SIG_IGN);
    print();
    if (!strcmp(what, "fork")) {
        pid_t pid = fork();
        if (!pid) {
            child(threads);
            _exit(0);
        }
        waitpid(pid, NULL, 0);
    }
    if (!strcmp(what, "wait"))
        while (getchar() != EOF)
            ;
    return 0;
}
