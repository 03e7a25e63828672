/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SUM_TABLE_H
#define SUM_TABLE_H

/*
 * Updates the sums of this process image (sum_layout.h). The caller has made the file and mapped it.
 *
 *     const uint64_t key[] = {number of the event, value of the first field of by=, ...};
 *     sum_table_add(&table, key, 2, SUM_UNSIGNED, size);
 *
 * Each event is counted once, in threads, signal handlers and children that share the memory. If memory cannot be
 * added for a key or a CPU, the event is counted in cells that are there: for a CPU, those of threads without one; for
 * a key, those of row 0.
 *
 * Runs in: target. Threads: any, signal handlers included; no malloc, no lock. A system call is made only by `reach`.
 * Owns: nothing; the memory is the caller's.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sigsafe/compiler.h"
#include "sum/sum_layout.h"

struct sum_table {
    struct sum_header *header; /* NULL: there is no table */
    struct sum_part *parts;
    uint32_t *index;
    struct sum_key *keys;
    char *cells;
    uint32_t cpus, cell_bytes;
    ptrdiff_t area; /* offset of libc's struct rseq from the thread pointer; 0: it has none */
    /** Backs memory of the file with pages, and does not change it. Returns whether it may be touched now. */
    bool (*reach)(char *from, uint64_t bytes);
};

/** Returns the bytes of the file, from its beginning on, that are to be backed before sum_table_begin(). */
uint64_t sum_table_first_bytes(uint32_t cpus);
/**
 * Fills in the header of a new file of zeros, and `t`, whose `area` and `reach` are set before. Returns false if there
 * is no memory for row 0. `values`: whether events have values; if not, they are only counted.
 */
bool sum_table_begin(struct sum_table *t, void *file, uint32_t cpus, bool values, uint64_t image_id);
/**
 * Returns how values of that type are counted. A table has values of one type, that of the first call: others are
 * counted as events without a value (SUM_NONE).
 */
enum sum_type sum_table_type(const struct sum_table *t, enum sum_type type);
/** Backs all keys, and the cells of threads without a CPU: rows that are added later need no system call. */
void sum_table_take_room(struct sum_table *t);

/** Returns the row of the key; 0: the table does not have it. */
uint32_t sum_table_find(const struct sum_table *t, const uint64_t *key, uint32_t words);
/** Adds the key if it is new. `frame`: as in struct sum_key. Returns its row; 0: there is no room. */
uint32_t sum_table_insert(struct sum_table *t, const uint64_t *key, uint32_t words, uint64_t frame);
/**
 * As sum_table_insert(), for a key that has in its word number `place` the address of code that may be unloaded: the
 * row must have the same `frame`, too. `aside`: sum_table_find() does not find the row. If false, sum_table_find()
 * finds the row from now on, even if the row was set aside before.
 */
uint32_t sum_table_insert_place(struct sum_table *t, const uint64_t *key, uint32_t words, uint32_t place,
                                uint64_t frame, bool aside);
/**
 * Sets aside each row for which may_leave() returns true; its argument is the address in word number `place`.
 * sum_table_find() does not find such a row until sum_table_insert_place() is called with its frame. A thread that has
 * found the row before still counts its event there. Call this before code is unloaded.
 */
void sum_table_set_aside(struct sum_table *t, uint32_t place, bool (*may_leave)(uint64_t address));
/** Counts an event in a row. `type`: what sum_table_type() has returned. */
void sum_table_count(struct sum_table *t, uint32_t row, enum sum_type type, uint64_t bits);

/** Counts an event of a key, which is added if it is new. */
static inline void sum_table_add(struct sum_table *t, const uint64_t *key, uint32_t words, enum sum_type type,
                                 uint64_t bits)
{
    uint32_t row = sum_table_find(t, key, words);
    if (unlikely(!row))
        row = sum_table_insert(t, key, words, 0);
    sum_table_count(t, row, type, bits);
}

/** Returns the CPU on which the thread runs: the kernel keeps it in a segment limit, where vDSO's getcpu() reads it. */
static inline uint32_t sum_table_cpu(void)
{
#if defined(__x86_64__)
    uint32_t cpu_and_node;
    __asm__ volatile("lsl %1, %0" : "=r"(cpu_and_node) : "r"(0x7bu) : "cc");
    return cpu_and_node & 0xfffu;
#else
    return UINT32_MAX;
#endif
}

#endif
