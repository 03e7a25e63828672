/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Does at random what programs do with memory, at the places that random_places.py wrote. All calls of the family here
 * are those of code without tags; what tagged places do is counted by below.c.
 *
 *     random SEED STEPS WORD... threads=N fails=N (one request in N) forks plugin=FILE foreign timers ends rounds maps
 */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "random_own.h"

#define POOL         512
#define HANDLERS_OWN 64
#define TEXT         9000
#define TEN          L"xxxxxxxxxx"
#define HUNDRED      TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN
#define PLUGINS      4

extern const struct places first_places, second_places;

const wchar_t wide[301] = HUNDRED HUNDRED HUNDRED;
static char text[TEXT];
static _Atomic(void *) pool[POOL]; /* objects that wait for whoever comes */
static _Atomic(void *) handlers_own[HANDLERS_OWN];
static char **arguments;
static unsigned steps, threads_most, n_plugins;
static char *plugins[PLUGINS];
static bool forks, timers, ends, rounds, maps;
bool random_foreign;
static pthread_key_t key;
static atomic_uint handled;

uint32_t random_draw(struct self *s, uint32_t below)
{
    s->seed = s->seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(s->seed >> 33) % below;
}

FILE *text_open(const char *of)
{
    int was = below_at(BELOW_FOREIGN);
    FILE *f = fmemopen((void *)(uintptr_t)of, strlen(of), "r");
    if (!f && !*of)
        f = fopen("/dev/null", "r");
    if (f)
        setvbuf(f, NULL, _IONBF, 0); /* or it would have its buffer from whoever reads first */
    below_at(was);
    return f;
}

void text_close(FILE *f)
{
    int was = below_at(BELOW_FOREIGN);
    fclose(f);
    below_at(was);
}

static void fatal(const char *why)
{
    if (write(2, why, strlen(why)) >= 0)
        abort();
    _exit(98);
}

static bool prints(enum kind k)
{
    return k == KIND_ASPRINTF || k == KIND_VASPRINTF;
}

static bool reads(enum kind k)
{
    return k == KIND_GETLINE || k == KIND_GETDELIM;
}

static void *at_place(const struct place *p, void *old, size_t bytes, size_t alignment)
{
    if (p->kind == KIND_ALIGNED_ALLOC)
        bytes = (bytes + alignment - 1) / alignment * alignment;
    bool whole = prints(p->kind) || p->kind == KIND_REALPATH || reads(p->kind);
    errno = 77;
    void *result = p->function(old, bytes, alignment, text + TEXT - (bytes < TEXT ? bytes : TEXT - 1) - 1);
    bool fails = !result && p->kind < KIND_FREE && (bytes || !old);
    whole |= fails && p->kind == KIND_POSIX_MEMALIGN; /* which may leave any */
    if (!whole && errno != (fails ? ENOMEM : 77))
        fatal("errno is not as it was\n");
    return result;
}

static const struct place *place_of(struct self *s, const struct places *own, bool (*fits)(enum kind))
{
    const struct places *from = own ? own : random_draw(s, 2) ? &first_places : &second_places;
    for (;;) {
        const struct place *p = &from->at[random_draw(s, from->n)];
        if (fits(p->kind) && !(s->handler && (reads(p->kind) || prints(p->kind))))
            return p;
    }
}

const struct place *random_place(struct self *s, bool (*fits)(enum kind))
{
    return place_of(s, NULL, fits);
}

static bool makes(enum kind k)
{
    return k <= KIND_GETDELIM;
}

static bool resizes(enum kind k)
{
    return k == KIND_REALLOC || k == KIND_REALLOCARRAY || reads(k);
}

static bool frees(enum kind k)
{
    return k == KIND_FREE;
}

static bool accounts(enum kind k)
{
    return k == KIND_ACCOUNT;
}

static size_t draw_bytes(struct self *s)
{
    switch (random_draw(s, 10)) {
    case 0:
        return random_draw(s, 3);
    case 1:
        return 4088 + random_draw(s, 20);
    case 2:
        return 4100 + random_draw(s, 60000);
    case 3:
        return random_draw(s, 4) ? 1000 : 1u << 20;
    default:
        return random_draw(s, 300);
    }
}

static void *make(struct self *s, const struct places *from)
{
    size_t bytes = draw_bytes(s);
    if (random_foreign && !random_draw(s, 6))
        return malloc(bytes);
    return at_place(place_of(s, from, makes), NULL, bytes, 8u << random_draw(s, 5));
}

static void drop(struct self *s, void *p, const struct places *from)
{
    if (random_foreign && !random_draw(s, 6))
        free(p);
    else
        at_place(place_of(s, from, frees), p, 0, 0);
}

static void *resize(struct self *s, void *p, const struct places *from)
{
    size_t bytes = random_draw(s, 12) ? draw_bytes(s) : 0;
    void *q;
    if (random_foreign && !random_draw(s, 6)) {
        q = realloc(p, bytes);
    } else {
        const struct place *at = place_of(s, from, resizes);
        while (rounds && reads(at->kind) && !below_bytes(p)) /* it forgets what has no room */
            at = place_of(s, from, resizes);
        if (at->kind == KIND_REALLOCARRAY)
            bytes &= ~(size_t)1;
        q = at_place(at, p, bytes, 16);
    }
    return q || (!bytes && p) ? q : p; /* one that failed leaves the old object */
}

static void account(struct self *s)
{
    const struct place *p = place_of(s, NULL, accounts);
    size_t bytes = random_draw(s, 100000);
    at_place(p, NULL, bytes, 0);
    if (random_draw(s, 3))
        at_place(p, text, bytes, 0);
}

static void exchange(struct self *s, void **slot)
{
    *slot = atomic_exchange(&pool[random_draw(s, POOL)], *slot);
}

/* Whatever it interrupts. */
static void on_timer(int signal)
{
    static atomic_uint turn;
    struct self s = {.seed = 77 + atomic_fetch_add(&turn, 1), .handler = true};
    int was = below_at(BELOW_FOREIGN), error = errno;
    (void)signal;
    for (int i = 0; i < 6; i++) {
        _Atomic(void *) *slot = &handlers_own[random_draw(&s, HANDLERS_OWN)];
        void *p = atomic_exchange(slot, NULL);
        if (p && random_draw(&s, 2))
            p = resize(&s, p, NULL);
        else if (p)
            drop(&s, p, NULL), p = NULL;
        else
            p = make(&s, NULL);
        p = atomic_exchange(slot, p);
        if (p)
            drop(&s, p, NULL);
    }
    atomic_fetch_add(&handled, 1);
    errno = error;
    below_at(was);
}

static void start_timer(void)
{
    struct itimerval often = {{0, 300}, {0, 300}};
    if (timers)
        setitimer(ITIMER_REAL, &often, NULL);
}

static void stop_timer(void)
{
    struct itimerval none = {0};
    setitimer(ITIMER_REAL, &none, NULL);
}

static void load(struct self *s)
{
    void *l = dlopen(plugins[random_draw(s, n_plugins)], RTLD_NOW | RTLD_LOCAL), *mine[8] = {0};
    if (!l)
        fatal(dlerror());
    const struct places *(*of)(void) =
        (const struct places *(*)(void))(uintptr_t)dlsym(l, "places_of_plugin");
    for (int i = 0; i < 60; i++) {
        void **slot = &mine[random_draw(s, 8)];
        if (*slot && random_draw(s, 2))
            drop(s, *slot, random_draw(s, 2) ? of() : NULL), *slot = NULL;
        else if (*slot)
            *slot = resize(s, *slot, of());
        else
            *slot = make(s, of());
    }
    for (int i = 0; i < 8; i++)
        exchange(s, &mine[i]);
    for (int i = 0; i < 8; i++)
        s->slots[i] = s->slots[i] ? (drop(s, s->slots[i], NULL), mine[i]) : mine[i];
    dlclose(l);
}

static void wander(struct self *s, unsigned n);

/* Objects stay in the pool where they are; what the thread has is left to others, or for ever. */
static void leave(struct self *s, bool leaks)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        exchange(s, &s->slots[i]);
        if (s->slots[i] && (random_draw(s, 3) || !leaks))
            drop(s, s->slots[i], NULL), s->slots[i] = NULL;
    }
    random_maps_leave(s, leaks);
}

static void *run_thread(void *seed)
{
    struct self s = {.seed = (uintptr_t)seed};
    pthread_setspecific(key, seed);
    wander(&s, steps / 8 + random_draw(&s, steps / 4 + 1));
    leave(&s, !rounds);
    return NULL;
}

/* At the end of a thread, where its other thread-local values may be gone. */
static void at_thread_end(void *seed)
{
    struct self s = {.seed = (uintptr_t)seed + 5};
    for (int i = 0; i < 10; i++)
        s.slots[i] = make(&s, NULL);
    leave(&s, !rounds);
}

static void fork_child(struct self *s)
{
    bool first = s->first;
    uint64_t seed = s->seed + 1;
    unsigned n = steps / 10;
    pid_t pid = below_fork();
    if (pid < 0)
        return;
    if (pid) {
        waitpid(pid, NULL, 0);
        return;
    }
    s->seed = seed ^ (uint64_t)getpid() << 32;
    s->depth++;
    start_timer();
    if (random_draw(s, 4))
        wander(s, n);
    stop_timer();
    if (first && random_draw(s, 2))
        exit(0);
    _exit(0);
}

static void spawn(struct self *s)
{
    char seed[30];
    snprintf(seed, sizeof(seed), "%u", random_draw(s, 1u << 30));
    char *words[] = {arguments[0], seed, "200", NULL};
    pid_t pid = vfork();
    if (!pid) {
        execv("/proc/self/exe", words);
        _exit(97);
    }
    if (pid > 0)
        waitpid(pid, NULL, 0);
}

static void rarely(struct self *s)
{
    switch (random_draw(s, 4)) {
    case 0:
        if (forks && s->depth < 2)
            fork_child(s);
        break;
    case 1:
        if (forks && s->depth < 1)
            spawn(s);
        break;
    default:
        if (n_plugins && !s->depth && !(ends && random_draw(s, 10))) /* each has new accounts */
            load(s);
    }
}

static void wander(struct self *s, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        void **slot = &s->slots[random_draw(s, SLOTS)];
        uint32_t what = random_draw(s, 100);
        if (what < 5)
            account(s);
        else if (maps && !s->handler && what < 12)
            random_maps_step(s);
        else if (what < 20)
            exchange(s, slot);
        else if (!*slot)
            *slot = make(s, NULL);
        else if (what < 50)
            *slot = resize(s, *slot, NULL);
        else
            drop(s, *slot, NULL), *slot = NULL;
        if (!random_draw(s, steps / 6 + 10))
            rarely(s);
    }
}

static void run_threads(struct self *s)
{
    pthread_t t[64];
    unsigned running = 0, begun = threads_most * 3;
    for (unsigned i = 0; i < begun; i++) {
        if (running == threads_most)
            for (; running > threads_most / 2; running--)
                pthread_join(t[running - 1], NULL);
        if (pthread_create(&t[running], NULL, run_thread, (void *)(uintptr_t)(random_draw(s, 1u << 30) | 1)))
            fatal("pthread_create failed\n");
        running++;
    }
    wander(s, steps);
    while (running)
        pthread_join(t[--running], NULL);
}

static void at_end(void)
{
    struct self s = {.seed = 3};
    stop_timer();
    for (int i = 0; i < 20; i++)
        s.slots[i] = make(&s, NULL);
    leave(&s, !rounds);
    below_check_maps();
}

/* Before our constructors, as likely as not before the library's. */
__attribute__((constructor(101))) static void before_main(void)
{
    struct self s = {.seed = 9};
    for (int i = 0; i < 20; i++)
        s.slots[i] = make(&s, NULL);
    leave(&s, false);
}

/* All there is is given back, by tagged code. */
static void drain(struct self *s)
{
    unsigned fails = below_fails;
    below_fails = 0;
    for (unsigned i = 0; i < SLOTS; i++)
        drop(s, s->slots[i], NULL), s->slots[i] = NULL;
    for (unsigned i = 0; i < POOL; i++)
        drop(s, atomic_exchange(&pool[i], NULL), NULL);
    for (unsigned i = 0; i < HANDLERS_OWN; i++)
        drop(s, atomic_exchange(&handlers_own[i], NULL), NULL);
    random_maps_drain(s);
    below_fails = fails;
}

static void run_round(struct self *s)
{
    start_timer();
    run_threads(s);
    stop_timer();
}

/*
 * Does what is said: "drain", "go" on until more is said, or one round with the tags of these places off: their
 * numbers. False: no more is said.
 */
static bool obey(struct self *s)
{
    static char line[4000];
    struct pollfd said = {.fd = 0, .events = POLLIN};
    size_t have = 0;
    do
        if (read(0, line + have, 1) != 1)
            return false;
    while (line[have] != '\n' && ++have < sizeof(line) - 1);
    line[have] = '\0';
    memset((void *)(uintptr_t)below_off, 0, sizeof(below_off));
    if (!strcmp(line, "drain")) {
        drain(s);
        return true;
    }
    if (strcmp(line, "go"))
        for (char *at = line; *at;)
            below_off[strtoul(at, &at, 10) % BELOW_PLACES] = 1;
    do
        run_round(s);
    while (line[0] == 'g' && !poll(&said, 1, 0));
    return true;
}

static void understand(const char *word)
{
    if (!strncmp(word, "threads=", 8))
        threads_most = (unsigned)atoi(word + 8);
    if (!strncmp(word, "fails=", 6))
        below_fails = (unsigned)atoi(word + 6);
    if (!strncmp(word, "plugin=", 7) && n_plugins < PLUGINS)
        plugins[n_plugins++] = (char *)word + 7;
    forks |= !strcmp(word, "forks");
    random_foreign |= !strcmp(word, "foreign");
    timers |= !strcmp(word, "timers");
    ends |= !strcmp(word, "ends");
    rounds |= !strcmp(word, "rounds");
    maps |= !strcmp(word, "maps");
}

int main(int argc, char **argv)
{
    struct self s = {.first = true};
    struct sigaction on = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
    if (argc < 3)
        return 2;
    arguments = argv;
    memset(text, 'x', TEXT - 1);
    s.seed = strtoull(argv[1], NULL, 10) * 2 + 1;
    steps = (unsigned)atoi(argv[2]);
    for (int i = 3; i < argc; i++)
        understand(argv[i]);
    atexit(at_end);
    pthread_key_create(&key, at_thread_end);
    sigaction(SIGALRM, &on, NULL);
    start_timer();
    run_threads(&s);
    while (ends) /* until it is killed */
        run_threads(&s);
    if (rounds)
        stop_timer();
    do /* at rest, until something is said */
        if (rounds && write(1, "rest\n", 5) != 5)
            break;
    while (rounds && obey(&s));
    leave(&s, !rounds);
    return 0;
}
