/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long does a sample take? Two preloaded libraries, one before the agent and one behind it, read the time stamp
 * counter around every call of the malloc family: what lies between them is the agent's. The one in front keeps the
 * calls during which the agent's books went on; it knows that from the ledger, where each thread finds its own
 * counters. The agent is the one that is shipped, on an allocator that is not glibc itself, for all it knows.
 *
 * Without an agent (SAMPLES_BARE=PERIOD) it keeps the call in which each PERIOD bytes of a thread are full: what kernel
 * and machine do meanwhile.
 *
 * Each process image writes to a file of its own, $SAMPLES_DIR/PID.times (struct times), through a shared mapping.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "stats.h"
#include "wire/ledger.h"

/* dlsym of glibc 2.34 and later does not allocate when it finds what it looks for. */
#define NEXT(name)                                                                                           \
    if (__builtin_expect(!next, 0))                                                                          \
        *(void **)&next = dlsym(RTLD_NEXT, #name);

/* Spent in the allocator itself, by the call that this thread is in. */
extern _Thread_local uint64_t samples_real_ticks __attribute__((tls_model("initial-exec")));

#ifdef BEHIND

static uint64_t before_call(void)
{
    return 0;
}

static void took(uint64_t ticks, uint64_t before, const void *p, size_t bytes)
{
    (void)before, (void)p, (void)bytes;
    samples_real_ticks += ticks;
}

size_t malloc_usable_size(void *p)
{
    static size_t (*next)(void *);
    NEXT(malloc_usable_size)
    return next(p);
}

#else

_Thread_local uint64_t samples_real_ticks;

#define RECORDS_MAX  (4u << 20)
#define OPENED_TICKS 5000 /* making a ledger takes longer */

struct times {
    _Atomic uint64_t used;
    uint64_t samples; /* as the ledger counts them */
    double began_ns, ended_ns;
    uint64_t began_ticks, ended_ticks;
    uint64_t ticks[RECORDS_MAX]; /* times 4, + 1: a free, + 2: preempted, in it or since the last */
};

static struct times *times;
static const struct ledger_header *ledger;
static uint64_t bare_period;
static uint64_t longest_early; /* call, before there was a file to write to */
static _Thread_local bool inside __attribute__((tls_model("initial-exec")));
static _Thread_local int own __attribute__((tls_model("initial-exec"))); /* shard + 1 */
static _Thread_local int64_t left __attribute__((tls_model("initial-exec")));
static _Thread_local uint64_t known __attribute__((tls_model("initial-exec"))); /* samples this thread made */

static uint64_t sum_done(const struct ledger_header *h)
{
    uint64_t sum = 0;
    for (int i = 0; i < LEDGER_SHARDS; i++)
        sum += h->shards[i].done;
    return sum;
}

/* Operations on samples so far: this thread's, or everybody's as long as its shard is not known. */
static uint64_t operations(void)
{
    const struct ledger_header *h = ledger;
    return !h ? 0 : own ? h->shards[own - 1].done : sum_done(h);
}

static uint64_t before_call(void)
{
    samples_real_ticks = 0;
    return operations();
}

static void find_ledger(void)
{
    const char *folder = getenv("ALLIUM_DIR");
    DIR *d = folder ? opendir(folder) : NULL;
    char start[32], path[4096];
    snprintf(start, sizeof(start), "%d-", (int)getpid());
    for (struct dirent *e; d && (e = readdir(d));) {
        if (strncmp(e->d_name, start, strlen(start)) || !strstr(e->d_name, LEDGER_SUFFIX))
            continue;
        snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        off_t bytes = lseek(fd, 0, SEEK_END);
        void *p = mmap(NULL, (size_t)bytes, PROT_READ, MAP_SHARED, fd, 0);
        if (p != MAP_FAILED)
            ledger = p;
        close(fd);
    }
    if (d)
        closedir(d);
}

/* The sample at this address says whose it is. */
static bool learn_shard(const void *p)
{
    const struct ledger_region *r = &ledger->regions[LEDGER_SAMPLES];
    const struct ledger_sample *s = (const void *)((const char *)ledger + r->offset);
    uint64_t n = r->ready_bytes / sizeof(*s);
    for (uint64_t i = 0; i < n && i < r->used; i++)
        if (s[i].address == (uintptr_t)p) {
            own = (int)(s[i].serial >> LEDGER_SERIAL_SHIFT) + 1;
            return true;
        }
    return false;
}

static uint64_t sum_samples(void)
{
    uint64_t sum = 0;
    for (int i = 0; ledger && i < LEDGER_SHARDS; i++)
        sum += ledger->shards[i].serials;
    return sum;
}

static void keep(uint64_t ticks, bool is_free)
{
    static _Thread_local long switches __attribute__((tls_model("initial-exec")));
    struct rusage now;
    getrusage(RUSAGE_THREAD, &now);
    uint64_t at = atomic_fetch_add(&times->used, 1);
    if (at < RECORDS_MAX)
        times->ticks[at] = ticks << 2 | (now.ru_nivcsw != switches) << 1 | is_free;
    switches = now.ru_nivcsw;
    times->samples = sum_samples();
    times->ended_ticks = __builtin_ia32_rdtsc();
    times->ended_ns = stats_now_ns();
}

static void took(uint64_t ticks, uint64_t before, const void *p, size_t bytes)
{
    if (inside)
        return;
    inside = true;
    ticks -= ticks > samples_real_ticks ? samples_real_ticks : ticks;
    if (!times && ticks > longest_early)
        longest_early = ticks;
    if (bare_period && times) {
        if (p && (left -= (int64_t)bytes) < 0) {
            left = (int64_t)bare_period;
            keep(ticks, false);
        }
    } else if (times) {
        if (!ledger && ticks > OPENED_TICKS)
            find_ledger();
        if (operations() != before && (own || !p || learn_shard(p))) {
            uint64_t serials = own ? ledger->shards[own - 1].serials : known;
            keep(ticks, serials == known);
            known = serials;
        }
    }
    inside = false;
}

static void open_times(void)
{
    char path[4096];
    const char *folder = getenv("SAMPLES_DIR"), *bare = getenv("SAMPLES_BARE");
    ledger = NULL;
    times = NULL;
    own = 0;
    known = 0;
    bare_period = bare ? strtoull(bare, NULL, 10) : 0;
    snprintf(path, sizeof(path), "%s/%d.times", folder ? folder : ".", (int)getpid());
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (ftruncate(fd, sizeof(*times)))
        _exit(125);
    struct times *t = mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (t == MAP_FAILED)
        _exit(125);
    t->began_ns = stats_now_ns();
    t->began_ticks = __builtin_ia32_rdtsc();
    times = t;
}

__attribute__((constructor)) static void begin(void)
{
    inside = true;
    open_times();
    pthread_atfork(NULL, NULL, open_times);
    find_ledger();
    for (uint64_t i = sum_samples(); i > 0; i--)
        keep(longest_early, false);
    inside = false;
}

#endif

#define TIMED(type, name, parameters, arguments, made, bytes)                                                \
    type name parameters                                                                                     \
    {                                                                                                        \
        static type(*next) parameters;                                                                       \
        NEXT(name)                                                                                           \
        uint64_t before = before_call(), began = __builtin_ia32_rdtsc();                                     \
        type result = next arguments;                                                                        \
        took(__builtin_ia32_rdtsc() - began, before, made, bytes);                                           \
        return result;                                                                                       \
    }

TIMED(void *, malloc, (size_t size), (size), result, size)
TIMED(void *, calloc, (size_t n, size_t size), (n, size), result, n *size)
TIMED(void *, realloc, (void *p, size_t size), (p, size), result, size)
TIMED(void *, reallocarray, (void *p, size_t n, size_t size), (p, n, size), result, n *size)
TIMED(void *, memalign, (size_t to, size_t size), (to, size), result, size)
TIMED(void *, aligned_alloc, (size_t to, size_t size), (to, size), result, size)
TIMED(void *, valloc, (size_t size), (size), result, size)
TIMED(void *, pvalloc, (size_t size), (size), result, size)
TIMED(int, posix_memalign, (void **p, size_t to, size_t size), (p, to, size), result ? NULL : *p, size)

void free(void *p)
{
    static void (*next)(void *);
    NEXT(free)
    uint64_t before = before_call(), began = __builtin_ia32_rdtsc();
    next(p);
    took(__builtin_ia32_rdtsc() - began, before, NULL, 0);
}
