/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes events for bench/trace_read: each of THREADS threads replaces one of its LIVE blocks after another, in an order
 * that is not that of their addresses, until all have made EVENTS calls. It rests often, so that no event is lost.
 *
 *     blocks EVENTS LIVE THREADS
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define BURST   10000
#define REST_US 3000

struct work {
    long events, live;
    uint64_t draw;
};

static void *replace(void *arg)
{
    struct work *w = arg;
    void **blocks = calloc((size_t)w->live, sizeof(*blocks));
    for (long n = 0; n < w->events; n += 2) {
        w->draw = w->draw * UINT64_C(6364136223846793005) + 1442695040888963407;
        const size_t at = (w->draw >> 33) % (size_t)w->live;
        free(blocks[at]);
        blocks[at] = malloc(16 + (w->draw >> 20) % 500);
        if (n % BURST == 0)
            usleep(REST_US);
    }
    return blocks;
}

int main(int argc, char **argv)
{
    static struct work work[64];
    static pthread_t threads[64];
    const int n = argc == 4 ? atoi(argv[3]) : 0;
    if (n < 1 || n > 64)
        return 2;
    for (int i = 0; i < n; i++) {
        work[i] = (struct work){atol(argv[1]) / n, (atol(argv[2]) + n - 1) / n, (uint64_t)i + 1};
        if (pthread_create(&threads[i], NULL, replace, &work[i]))
            return 1;
    }
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
