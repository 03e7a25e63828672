/* SPDX-License-Identifier: BSD-2-Clause */
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/sigsafe/atomic.h"
#include "bench/hooks/bench_sum.h"
#include "sum/sum_read.h"
#include "sum/sum_table.h"

#define PAGE_BYTES 4096u
#define EVENT_ID   1
#define VALUE      64u

/* libc's registration for restartable sequences (2.35 and later). */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

static struct sum_table table;
static uint64_t file_bytes;

/* A page of shared memory exists once it was read. */
static bool reach(char *from, uint64_t bytes)
{
    for (uint64_t at = 0; at < bytes; at += PAGE_BYTES)
        load_relaxed(&from[at]);
    return true;
}

const char *bench_sum_begin(unsigned threads)
{
    const long n = sysconf(_SC_NPROCESSORS_CONF);
    const uint32_t cpus = n > 0 && n <= (long)SUM_CPUS_MAX ? (uint32_t)n : SUM_CPUS_MAX;
    (void)threads;
    file_bytes = sum_file_bytes(cpus, sizeof(struct sum_cells));
    void *file =
        mmap(NULL, file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (file == MAP_FAILED)
        return "there is no memory for the table of sums: raise `ulimit -v`";
    table = (struct sum_table){.area = &__rseq_size && __rseq_size ? __rseq_offset : 0, .reach = reach};
    sum_table_begin(&table, file, cpus, true, 0);
    sum_table_type(&table, SUM_UNSIGNED);
    return NULL;
}

void bench_sum_hit(void *function, void *caller)
{
    const uint64_t key[] = {EVENT_ID, (uintptr_t)caller};
    (void)function;
    sum_table_add(&table, key, sizeof(key) / sizeof(*key), SUM_UNSIGNED, VALUE);
}

uint32_t bench_sum_find(void)
{
    static const uint64_t key[] = {EVENT_ID, EVENT_ID};
    const uint32_t row = sum_table_find(&table, key, sizeof(key) / sizeof(*key));
    return row ? row : sum_table_insert(&table, key, sizeof(key) / sizeof(*key), 0);
}

void bench_sum_count(void)
{
    sum_table_count(&table, 0, SUM_UNSIGNED, VALUE);
}

/* As the tool reads them. What is added up must be the values of as many events as are counted. */
uint64_t bench_sum_hits(void)
{
    struct sum_reader reader;
    struct sum_key key;
    struct sum_cells cells;
    uint64_t hits = 0;
    if (!sum_reader_begin(&reader, table.header, file_bytes))
        return 0;
    for (uint32_t row = 0; row < sum_reader_rows(&reader); row++)
        if (sum_reader_row(&reader, row, &key, &cells) && cells.slots[6] * VALUE == cells.low)
            hits += cells.slots[6];
    return hits;
}
