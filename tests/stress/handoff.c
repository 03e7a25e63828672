/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every block is freed by another thread than the one that made it. Four threads stand in a circle with a queue between
 * each two; each makes blocks for its neighbour and frees those that it gets.
 *
 *     handoff BLOCKS
 *
 * Says how many blocks all threads made and how many bytes: what a run with 0 blocks does not.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS 4
#define SLOTS   1024

struct queue {
    _Alignas(64) _Atomic uint64_t head;
    _Alignas(64) _Atomic uint64_t tail;
    void *slots[SLOTS];
};

static struct queue queues[THREADS];
static long blocks;
static _Atomic uint64_t made, bytes;

static int put(struct queue *q, void *p)
{
    uint64_t tail = q->tail;
    if (tail - q->head == SLOTS)
        return 0;
    q->slots[tail % SLOTS] = p;
    q->tail = tail + 1;
    return 1;
}

static void *take(struct queue *q)
{
    uint64_t head = q->head;
    if (head == q->tail)
        return NULL;
    void *p = q->slots[head % SLOTS];
    q->head = head + 1;
    return p;
}

static void *work(void *arg)
{
    long me = (long)arg, left = blocks / THREADS, awaited = left;
    struct queue *out = &queues[me], *in = &queues[(me + 1) % THREADS];
    uint64_t sum = 0, random = (uint64_t)me + 1;
    void *waiting = NULL;
    while (left || awaited || waiting) {
        if (!waiting && left) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            size_t size = 1 + (random >> 33) % 300;
            waiting = malloc(size);
            sum += size;
            left--;
        }
        if (waiting && put(out, waiting))
            waiting = NULL;
        void *p = awaited ? take(in) : NULL;
        if (p) {
            free(p);
            awaited--;
        } else if (waiting || !left) {
            sched_yield();
        }
    }
    made += (uint64_t)(blocks / THREADS);
    bytes += sum;
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    blocks = argc > 1 ? atol(argv[1]) : 0;
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("made %lu\nbytes %lu\n", (unsigned long)made, (unsigned long)bytes);
    return 0;
}
