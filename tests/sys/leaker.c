/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Allocates and frees known numbers of objects, and answers "done" to each line:
 *   leak: by all functions of the family, each in a function of its own; keeps the objects
 *   churn N: allocates and frees N objects in each way
 *   many N: keeps N objects of sizes that differ
 *   reallocs N: keeps N objects of realloc(NULL, 64)
 *   frees: frees all objects that are kept
 *   fork: a child waits for a line, frees its copies of them, leaks by malloc and waits for another line; the
 *   answer comes when it has ended
 *   threads: eight threads leak by malloc, and end
 *   load FILE: opens a library
 *   pool: keeps ten objects of its pool_get(), of twenty
 *   exec: runs itself anew
 *   crash: writes where there is nothing
 *   spin: allocates and frees until the next line
 *   strict: asks the kernel to end it at the first system call but read(), write() and exit()
 *   deep N: keeps ten objects, from N calls deep
 *   children N: N children, one after the other, each allocate and free an object; the answer comes when all have ended
 *   reopen FILE N: opens and closes a library N times
 *   called NAME: calls itself so
 */
#include <dlfcn.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEPT 200000

static void *volatile kept[KEPT];
static int n;
static volatile char *volatile nothing = NULL;
static void *volatile last; /* what is stored there is not optimized away */

__attribute__((noinline)) static void keep(void *p)
{
    if (!p || n == KEPT)
        abort();
    kept[n++] = p;
}

#define LEAK __attribute__((noinline)) static void

LEAK leak_malloc(void)
{
    for (int i = 0; i < 100; i++)
        keep(malloc(100));
}

LEAK leak_calloc(void)
{
    for (int i = 0; i < 50; i++)
        keep(calloc(3, 70));
}

LEAK leak_moved(void)
{
    for (int i = 0; i < 50; i++) {
        void *p = malloc(10);
        last = malloc(20);
        p = realloc(p, 5000);
        free(last);
        keep(p);
    }
}

LEAK leak_failed(void)
{
    volatile size_t large = SIZE_MAX / 2;
    for (int i = 0; i < 50; i++) {
        void *p = malloc(30);
        last = realloc(p, large);
        if (last)
            abort();
        keep(p);
    }
}

LEAK leak_memalign(void)
{
    for (int i = 0; i < 10; i++)
        keep(memalign(64, 1000));
}

LEAK leak_aligned_alloc(void)
{
    for (int i = 0; i < 10; i++)
        keep(aligned_alloc(64, 640));
}

LEAK leak_posix_memalign(void)
{
    for (int i = 0; i < 10; i++) {
        void *p = NULL;
        if (posix_memalign(&p, 4096, 500))
            abort();
        keep(p);
    }
}

LEAK leak_valloc(void)
{
    for (int i = 0; i < 10; i++)
        keep(valloc(77));
}

LEAK leak_pvalloc(void)
{
    for (int i = 0; i < 10; i++)
        keep(pvalloc(78));
}

LEAK leak_reallocarray(void)
{
    for (int i = 0; i < 10; i++)
        keep(reallocarray(NULL, 10, 33));
}

LEAK leak_large(void)
{
    keep(malloc(10 << 20));
}

static void leak(void)
{
    void *volatile none = NULL;
    leak_malloc();
    leak_calloc();
    leak_moved();
    leak_failed();
    leak_memalign();
    leak_aligned_alloc();
    leak_posix_memalign();
    leak_valloc();
    leak_pvalloc();
    leak_reallocarray();
    leak_large();
    free(none);
}

static void churn(int times)
{
    for (int i = 0; i < times; i++) {
        last = malloc(200);
        free(last);
        last = calloc(1, 20);
        free(last);
        last = realloc(malloc(3), 4000);
        free(last);
        last = malloc(5);
        last = realloc(last, 0); /* frees */
        last = memalign(128, 100);
        free(last);
    }
}

LEAK leak_many(int times)
{
    for (int i = 0; i < times; i++)
        keep(malloc(100 + 100 * (size_t)(i % 10)));
}

LEAK leak_reallocs(int times)
{
    for (int i = 0; i < times; i++)
        keep(realloc(NULL, 64));
}

static void *run_thread(void *unused)
{
    void *volatile p;
    for (int i = 0; i < 100; i++)
        if (!(p = malloc(48)))
            abort();
    return unused;
}

static void threads(void)
{
    pthread_t of[8];
    for (int i = 0; i < 8; i++)
        pthread_create(&of[i], NULL, run_thread, NULL);
    for (int i = 0; i < 8; i++)
        pthread_join(of[i], NULL);
}

static void free_all(void)
{
    while (n)
        free(kept[--n]);
}

static void fork_child(void)
{
    const pid_t child = fork();
    if (!child) {
        char line[16];
        if (!fgets(line, sizeof(line), stdin))
            _exit(1);
        free_all();
        leak_malloc();
        puts("leaked");
        if (!fgets(line, sizeof(line), stdin))
            _exit(1);
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

static void *(*get)(size_t, size_t);
static void (*put)(void *);

static void load(const char *file)
{
    void *library = dlopen(file, RTLD_NOW);
    get = library ? (void *(*)(size_t, size_t))dlsym(library, "pool_get") : NULL;
    put = library ? (void (*)(void *))dlsym(library, "pool_put") : NULL;
    if (!get || !put)
        abort();
}

LEAK leak_pool(void)
{
    for (int i = 0; i < 20; i++) {
        last = get(7, 6);
        if (i % 2)
            put(last);
    }
}

LEAK leak_deep(int calls)
{
    if (calls)
        leak_deep(calls - 1);
    else
        for (int i = 0; i < 10; i++)
            keep(malloc(33));
    __asm__ volatile("" : : : "memory"); /* no tail call */
}

static void children(int count)
{
    for (int i = 0; i < count; i++) {
        const pid_t child = fork();
        if (!child) {
            last = malloc(100);
            free(last);
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
}

static void reopen(char *words)
{
    char *space = strrchr(words, ' ');
    *space = '\0';
    for (int i = atoi(space + 1); i; i--) {
        void *library = dlopen(words, RTLD_NOW);
        if (!library || dlclose(library))
            abort();
    }
}

static void spin(void)
{
    struct pollfd in = {.fd = 0, .events = POLLIN};
    while (!poll(&in, 1, 0))
        for (int i = 0; i < 1000; i++) {
            last = malloc(100);
            free(last);
        }
}

int main(int argc, char **argv)
{
    static char line[4096];
    setvbuf(stdin, NULL, _IONBF, 0);
    setvbuf(stdout, NULL, _IONBF, 0);
    if (argc > 1) /* it runs anew */
        puts("done");
    while (fgets(line, sizeof(line), stdin)) {
        line[strcspn(line, "\n")] = '\0';
        if (!strcmp(line, "leak"))
            leak();
        else if (!strncmp(line, "churn ", 6))
            churn(atoi(line + 6));
        else if (!strncmp(line, "many ", 5))
            leak_many(atoi(line + 5));
        else if (!strncmp(line, "reallocs ", 9))
            leak_reallocs(atoi(line + 9));
        else if (!strcmp(line, "frees"))
            free_all();
        else if (!strcmp(line, "fork"))
            fork_child();
        else if (!strcmp(line, "threads"))
            threads();
        else if (!strncmp(line, "load ", 5))
            load(line + 5);
        else if (!strcmp(line, "pool"))
            leak_pool();
        else if (!strcmp(line, "exec"))
            execl("/proc/self/exe", argv[0], "again", (char *)NULL);
        else if (!strcmp(line, "crash"))
            *nothing = 0;
        else if (!strcmp(line, "spin"))
            spin();
        else if (!strncmp(line, "deep ", 5))
            leak_deep(atoi(line + 5));
        else if (!strncmp(line, "children ", 9))
            children(atoi(line + 9));
        else if (!strncmp(line, "reopen ", 7))
            reopen(line + 7);
        else if (!strncmp(line, "called ", 7))
            prctl(PR_SET_NAME, line + 7);
        else if (!strcmp(line, "strict") && prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
            abort();
        puts("done");
    }
    return 0;
}
