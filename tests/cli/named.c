/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads with names: "early" has its own when it allocates its first of 10 blocks of 10,000 bytes, "late" gets its own
 * after that, and a third one never. Says "ready", waits for its input to end, and lets them end before it does.
 */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define THREADS 3
#define BLOCKS  10

static void *volatile held[THREADS][BLOCKS];
static pthread_barrier_t begun, over;

static void *work(void *arg)
{
    size_t number = (size_t)arg;
    if (number == 0)
        pthread_setname_np(pthread_self(), "early");
    for (int i = 0; i < BLOCKS; i++)
        held[number][i] = malloc(10000);
    if (number == 1)
        pthread_setname_np(pthread_self(), "late");
    pthread_barrier_wait(&begun);
    pthread_barrier_wait(&over);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    char c;
    pthread_barrier_init(&begun, NULL, THREADS + 1);
    pthread_barrier_init(&over, NULL, THREADS + 1);
    for (size_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i))
            return 1;
    pthread_barrier_wait(&begun);
    if (write(1, "ready\n", 6) != 6)
        return 1;
    while (read(0, &c, 1) > 0)
        ;
    pthread_barrier_wait(&over);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
