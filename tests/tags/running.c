/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that runs already when its events are switched. For each line of its input, a number N, it writes N events
 * `tick`, N events `noisy` and N calls of malloc and free, and tells so; "busy" does the same all the time, by threads,
 * until the end of its input. The line "load LIBRARY" loads running_late.c, whose events follow those of the program
 * from then on, and "unload" unloads it.
 */
#include <allium/event.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS 3
#define SIZE    1111

ALLIUM_EVENT(shop, tick, ALLIUM_U64(count));
ALLIUM_EVENT(shop, noisy, ALLIUM_U64(count));

static unsigned long ticks;
static bool ends;
static void *library;
static void (*work_late)(unsigned long count);

static void work(unsigned long n)
{
    while (n--) {
        void *volatile block = malloc(SIZE);
        const unsigned long count = __atomic_add_fetch(&ticks, 1, __ATOMIC_RELAXED);
        allium_emit(shop, tick, .count = count);
        allium_emit(shop, noisy, .count = count);
        if (work_late)
            work_late(count);
        free(block);
    }
}

static void *go_on(void *arg)
{
    (void)arg;
    while (!__atomic_load_n(&ends, __ATOMIC_RELAXED)) {
        work(1);
        usleep(20);
    }
    return NULL;
}

static void load(char *path)
{
    path[strcspn(path, "\n")] = '\0';
    library = dlopen(path, RTLD_NOW);
    void *found = library ? dlsym(library, "work_late") : NULL;
    if (!found)
        exit(1);
    memcpy(&work_late, &found, sizeof(work_late));
}

static void unload(void)
{
    work_late = NULL;
    dlclose(library);
}

int main(int argc, char **argv)
{
    char line[4096], said[64];
    pthread_t threads[THREADS];
    const bool busy = argc > 1 && !strcmp(argv[1], "busy");
    for (int i = 0; i < THREADS && busy; i++)
        pthread_create(&threads[i], NULL, go_on, NULL);
    for (ssize_t got; (got = read(0, line, sizeof(line) - 1)) > 0;) {
        line[got] = '\0';
        if (!strncmp(line, "load ", 5))
            load(line + 5);
        else if (!strcmp(line, "unload\n"))
            unload();
        else
            work(strtoul(line, NULL, 10));
        const int n = snprintf(said, sizeof(said), "%lu\n", __atomic_load_n(&ticks, __ATOMIC_RELAXED));
        if (write(1, said, (size_t)n) != n)
            return 1;
    }
    __atomic_store_n(&ends, true, __ATOMIC_RELAXED);
    for (int i = 0; i < THREADS && busy; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
