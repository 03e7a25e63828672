/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For strace: after a warm-up, `ROUNDS` pairs of malloc and free between two calls of getpgid(), of sizes that the heap
 * has had already. The warm-up allocates so much that the ledger's ring of recent frees has got its full size.
 *
 *     steady ROUNDS
 */
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *slots[256];

static void churn(long rounds, uint64_t random)
{
    for (long i = 0; i < rounds; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        void **slot = &slots[random >> 56];
        free(*slot);
        *slot = malloc(16 + (random >> 40) % 2000);
    }
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 100000;
    void *volatile p = malloc(2 << 20);
    free(p);
    for (int i = 0; i < 150000; i++) {
        p = malloc(90000);
        free(p);
    }
    churn(rounds, 1);
    syscall(SYS_getpgid, 0);
    churn(rounds, 1);
    syscall(SYS_getpgid, 0);
    return 0;
}
