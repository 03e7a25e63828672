/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Allocates and says through a pipe, after each few steps, how many allocations and frees it has completed: until
 * somebody kills it. Blocks have 512 bytes and fill a ring; a second thread churns with blocks of 100 bytes.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define SLOTS 1000

static void *churn(void *arg)
{
    void *volatile p;
    for (;;) {
        p = malloc(100);
        free(p);
    }
    return arg;
}

int main(void)
{
    static void *slots[SLOTS];
    uint64_t done[2] = {0, 0};
    pthread_t id;
    pthread_create(&id, NULL, churn, NULL);
    for (;;) {
        void **slot = &slots[done[0] % SLOTS];
        if (*slot) {
            free(*slot);
            done[1]++;
        }
        *slot = malloc(512);
        done[0]++;
        if (done[0] % 16 == 0 && write(1, done, sizeof(done)) != sizeof(done))
            return 1;
    }
}
