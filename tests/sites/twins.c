/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * twins ROUNDS A.so B.so C.so: two builds of twin.c are loaded in turn, at the same addresses as often as not; a third
 * one is used by another thread all the while. Prints what each made and freed, and at last how often one lay where the
 * other had been.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BYTES 40u /* and those are usable; 56, too */

struct twin {
    void *(*make)(size_t);
    void (*drop)(void *);
};

static bool stop;
static unsigned long made_by_third;

static struct twin *load(const char *path, void **library)
{
    *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    struct twin *twin = *library ? dlsym(*library, "twin") : NULL;
    if (!twin)
        exit(2);
    return twin;
}

static void *use_third(void *third)
{
    const struct twin *twin = third;
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
        twin->drop(twin->make(BYTES));
        made_by_third++;
    }
    return NULL;
}

static void print(const char *name, unsigned long made, unsigned long live, unsigned long ends)
{
    unsigned long calls = made + ends, bytes = made * BYTES + ends * 56, gone = calls - live;
    printf("%d %s_make %lu %lu %lu %lu %lu %lu 0 0\n", (int)getpid(), name, calls, bytes, bytes, live,
           live * BYTES, live * BYTES);
    printf("%d %s_drop 0 0 0 0 0 0 %lu %lu\n", (int)getpid(), name, gone, bytes - live * BYTES);
}

int main(int argc, char **argv)
{
    unsigned rounds = (unsigned)atoi(argv[1]), same = 0, used[2] = {0, 0};
    void *third, *where[2] = {NULL, NULL};
    pthread_t other;
    if (argc < 5 || pthread_create(&other, NULL, use_third, load(argv[4], &third)))
        return 2;
    for (unsigned i = 0; i < rounds; i++) {
        void *library;
        struct twin *twin = load(argv[2 + i % 2], &library);
        same += (void *)twin == where[!(i % 2)];
        where[i % 2] = twin;
        twin->drop(twin->make(BYTES));
        twin->drop(twin->make(BYTES));
        twin->make(BYTES); /* stays */
        used[i % 2]++;
        dlclose(library);
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELEASE);
    pthread_join(other, NULL);
    print("a", used[0] * 3, used[0], used[0]);
    print("b", used[1] * 3, used[1], used[1]);
    print("c", made_by_third, 0, 0);
    fprintf(stderr, "%u\n", same);
    fflush(stdout);
    _exit(0); /* what the third one does at its end is not in its line */
}
