/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SUM_READ_H
#define SUM_READ_H

/*
 * Reads the sums of a process image (sum_layout.h), which may go on changing them. Nothing in the file is trusted: a
 * wrong value there gives wrong figures, and nothing else.
 *
 * Runs in: tool. Threads: any. Owns: nothing; the file is the caller's.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sum/sum_layout.h"

struct sum_reader {
    const char *file;
    size_t bytes;
    uint64_t image_id;
    uint32_t cpus, cell_bytes;
    enum sum_type type;
};

/** Begins with a file of `bytes` bytes in memory, which must be aligned to 8. False: invalid, or not made yet. */
bool sum_reader_begin(struct sum_reader *r, const void *file, size_t bytes);
/** Returns the number of rows now, row 0 included. */
uint32_t sum_reader_rows(const struct sum_reader *r);
/** Copies the key of a row, and its figures, the sum over all parts. Returns false if it has counted nothing. */
bool sum_reader_row(const struct sum_reader *r, uint32_t row, struct sum_key *key, struct sum_cells *cells);
/** Returns the number of events that came before there was a table. */
uint64_t sum_reader_early(const struct sum_reader *r);

#endif
