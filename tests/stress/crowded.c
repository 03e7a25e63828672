/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Four threads, each with OBJECTS live ones, made, replaced at random and freed, TIMES over: the table of live samples
 * grows under all of them, is full, and empties. Blocks of 8 to 71 bytes: where the allocator packs them closely, so
 * must it.
 *
 *     crowded OBJECTS TIMES      prints how many it made, and their bytes
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS 4

struct part {
    uint64_t seed, objects, times, made, bytes;
    void **object;
};

static uint64_t draw(struct part *p)
{
    p->seed = p->seed * 6364136223846793005u + 1442695040888963407u;
    return p->seed >> 33;
}

static void *make(struct part *p)
{
    size_t size = 8 + draw(p) % 64;
    p->made++;
    p->bytes += size;
    return malloc(size);
}

static void *work(void *arg)
{
    struct part *p = arg;
    for (uint64_t time = 0; time < p->times; time++) {
        for (uint64_t i = 0; i < p->objects; i++)
            p->object[i] = make(p);
        for (uint64_t i = 0; i < p->objects; i++) {
            uint64_t at = draw(p) % p->objects;
            free(p->object[at]);
            p->object[at] = make(p);
        }
        for (uint64_t i = 0; i < p->objects; i++)
            free(p->object[i]);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    static struct part parts[THREADS];
    pthread_t threads[THREADS];
    uint64_t made = 0, bytes = 0;
    if (argc != 3)
        return 2;
    for (uint64_t i = 0; i < THREADS; i++) {
        parts[i] = (struct part){
            .seed = i, .objects = strtoull(argv[1], NULL, 10), .times = strtoull(argv[2], NULL, 10)};
        parts[i].object = calloc(parts[i].objects, sizeof(void *));
        if (!parts[i].object || pthread_create(&threads[i], NULL, work, &parts[i]))
            return 1;
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        made += parts[i].made;
        bytes += parts[i].bytes;
    }
    printf("made %llu\nbytes %llu\n", (unsigned long long)made, (unsigned long long)bytes);
    return 0;
}
