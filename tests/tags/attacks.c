/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE 1
/*
 * More of what a program may do to the library inside it, while others do things to it from outside. Built with tags.
 *
 *     attacks CASE [WORD]      ends with 0; a case that waits does so until a line comes
 */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
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
#include <unistd.h>

#define PAGE    4096ul
#define THREADS 4
#define READ    PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS

static const char *word = "";

static bool is_told(void)
{
    struct pollfd in = {.fd = 0, .events = POLLIN};
    return poll(&in, 1, 0) != 0;
}

static void say(const char *what)
{
    if (write(1, what, strlen(what)) < 0)
        _exit(9);
}

/* ---- handlers that map, and fork in the midst of it ---- */

__attribute__((noinline)) static void by_main(void)
{
    char *p = mmap(NULL, 9 * PAGE, READ, -1, 0);
    munmap(p + 3 * PAGE, PAGE);
    mmap(p + 5 * PAGE, 2 * PAGE, READ | MAP_FIXED, -1, 0);
    char *moved = mremap(p, PAGE, 20 * PAGE, MREMAP_MAYMOVE);
    munmap(p + PAGE, 8 * PAGE);
    munmap(moved, 20 * PAGE);
}

static void in_handler(int s)
{
    static unsigned turn;
    int error = errno, status = 0;
    (void)s;
    char *p = mmap(NULL, 4 * PAGE, READ, -1, 0);
    munmap(p + PAGE, PAGE);
    pid_t pid = turn++ % 16 ? -1 : fork();
    munmap(p, 4 * PAGE);
    if (!pid && turn % 3) /* else it goes on in what was interrupted */
        _exit(0);
    if (!pid)
        alarm(0), setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL), turn = 1;
    if (pid > 0 && (waitpid(pid, &status, 0) != pid || status))
        printf("a child died: %x\n", status), fflush(stdout), _exit(8);
    errno = error;
}

static int mapping_handlers(void)
{
    struct itimerval often = {{0, 150}, {0, 150}}, none = {0};
    pid_t self = getpid();
    signal(SIGALRM, in_handler);
    setitimer(ITIMER_REAL, &often, NULL);
    for (long i = 0, n = atol(word); i < n && getpid() == self; i++)
        by_main();
    setitimer(ITIMER_REAL, &none, NULL);
    by_main();
    if (getpid() != self)
        _exit(0);
    return 0;
}

/* ---- handlers that jump out of it ---- */

static sigjmp_buf back;

static void jump(int s)
{
    (void)s;
    siglongjmp(back, 1);
}

static void *map_alone(void *arg)
{
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm, NULL);
    say("works\n");
    for (long i = 0, n = atol(word); i < n; i++)
        by_main();
    return arg;
}

/* The kernel's calls stand it; another thread maps meanwhile, and afterwards. */
static int jumping_mappers(void)
{
    struct itimerval often = {{0, 200}, {0, 200}}, none = {0};
    static volatile int jumps;
    pthread_t t;
    signal(SIGALRM, jump);
    setitimer(ITIMER_REAL, &often, NULL);
    if (sigsetjmp(back, 1))
        jumps++;
    while (jumps < 3000)
        by_main();
    setitimer(ITIMER_REAL, &none, NULL);
    if (pthread_create(&t, NULL, map_alone, NULL))
        return 3;
    return pthread_join(t, NULL);
}

/* ---- work while others do something from outside ---- */

__attribute__((noinline)) static void *small(size_t n)
{
    return malloc(n);
}

static atomic_bool over;

static void *churn(void *arg)
{
    void *p[64] = {0};
    for (unsigned i = (unsigned)(uintptr_t)arg; !over; i++) {
        void **at = &p[i * 7 % 64];
        free(*at);
        *at = i % 3 ? small(i % 300) : strdup("text");
        if (i % 5 == 0)
            *at = realloc(*at, 1 + i % 5000);
        if (i % 64 == 0)
            munmap(mmap(NULL, PAGE, READ, -1, 0), PAGE);
    }
    for (unsigned i = 0; i < 64; i++)
        free(p[i]);
    return NULL;
}

static int working(void *(*work)(void *))
{
    pthread_t t[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&t[i], NULL, work, (void *)(i * 1000));
    say("works\n");
    while (!is_told()) {
        int status = 0;
        pid_t pid = fork();
        if (!pid) {
            for (int i = 0; i < 100; i++)
                free(small(10));
            _exit(0);
        }
        if (waitpid(pid, &status, 0) != pid || status)
            return printf("a child ended with status %x\n", status), 8;
        usleep(1000);
    }
    over = true;
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    return 0;
}

static int churning(void)
{
    return working(churn);
}

/* Each thread has the library while it calls it, and no longer. */
static void *load(void *arg)
{
    while (!over) {
        void *l = dlopen(word, RTLD_NOW | RTLD_LOCAL), *(*make)(size_t) = NULL, *p[20];
        if (l)
            *(void **)&make = dlsym(l, "plugin_make");
        if (!make)
            say("no plugin\n"), _exit(7);
        for (int i = 0; i < 20; i++)
            p[i] = make(10);
        if ((uintptr_t)arg)
            dlclose(l);
        for (int i = 0; i < 20; i++)
            free(p[i]);
        if (!(uintptr_t)arg)
            dlclose(l);
    }
    return NULL;
}

static int loading(void)
{
    return working(load);
}

/* ---- a child in which the loader knows of a library that is not mapped: another thread was about to close it ---- */

static int half_closed(void)
{
    struct dl_find_object found;
    void *l = dlopen(word, RTLD_NOW | RTLD_LOCAL), *(*make)(size_t) = NULL;
    int status = 0;
    if (l)
        *(void **)&make = dlsym(l, "plugin_make");
    if (!make)
        return 3;
    free(make(10));
    if (_dl_find_object((void *)make, &found) ||
        syscall(SYS_munmap, found.dlfo_map_start, (char *)found.dlfo_map_end - (char *)found.dlfo_map_start))
        return 4;
    pid_t pid = fork();
    if (!pid) {
        free(small(10));
        _exit(0);
    }
    _exit(waitpid(pid, &status, 0) != pid || status ? 8 : 0); /* nothing of the library can be called */
}

/* ---- the first request of a child in a handler that has little room ---- */

__attribute__((noinline)) static void *little(size_t n)
{
    return malloc(n);
}

static void on_little_stack(int s)
{
    (void)s;
    free(little(100));
    free(small(100));
    char *p = strdup("little");
    free(p);
    munmap(mmap(NULL, PAGE, READ, -1, 0), PAGE);
}

static int little_stack(void)
{
    size_t bytes = strtoul(word, NULL, 10);
    char *room = mmap(NULL, bytes + PAGE, READ, -1, 0);
    struct sigaction action = {.sa_handler = on_little_stack, .sa_flags = SA_ONSTACK};
    stack_t stack = {.ss_sp = room + PAGE, .ss_size = bytes};
    int status = 0;
    mprotect(room, PAGE, PROT_NONE);
    if (sigaltstack(&stack, NULL) || sigaction(SIGUSR1, &action, NULL))
        return 3;
    pid_t pid = fork();
    if (!pid) {
        raise(SIGUSR1);
        _exit(0);
    }
    waitpid(pid, &status, 0);
    raise(SIGUSR1);
    return status;
}

/* ---- a child in which another thread comes to tags before the one that forked ---- */

static void *first(void *arg)
{
    free(small(10));
    return arg;
}

static int first_in_child(void)
{
    void *p[100];
    pthread_t t;
    int status = 0;
    mallopt(M_ARENA_MAX, 1); /* so what they make lies side by side */
    free(small(10));
    pid_t pid = fork();
    if (!pid) {
        if (pthread_create(&t, NULL, first, NULL) || pthread_join(t, NULL))
            _exit(3);
        for (int i = 0; i < 100; i++)
            p[i] = small(20);
        for (int i = 0; i < 50; i++)
            free(p[i]);
        _exit(0);
    }
    printf("%d\n", (int)pid);
    return waitpid(pid, &status, 0) == pid ? status : 3;
}

/* ---- all that a limit leaves ---- */

static int filling(void)
{
    unsigned n = 0;
    while (n < 100000 && small(1 << 20))
        n++;
    printf("%u\n", n);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(void);
    } cases[] = {{"mapping handlers", mapping_handlers},
                 {"jumping mappers", jumping_mappers},
                 {"churn", churning},
                 {"load", loading},
                 {"half closed", half_closed},
                 {"little stack", little_stack},
                 {"first in child", first_in_child},
                 {"fill", filling}};
    word = argc > 2 ? argv[2] : "";
    for (unsigned i = 0; argc > 1 && i < sizeof(cases) / sizeof(*cases); i++)
        if (!strcmp(argv[1], cases[i].name))
            return cases[i].run();
    return 2;
}
