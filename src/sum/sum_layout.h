/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SUM_LAYOUT_H
#define SUM_LAYOUT_H

/*
 * The layout of a file of sums (`allium trace --sum`): the figures of each key, of one process image. The target
 * updates it (sum_table.h), the tool reads it (sum_read.h).
 *
 * A header is followed by one struct sum_part for each CPU, and one for threads that know no CPU. Then come
 *
 *     the index   slots of 32 bits, an open hash table: the number of a row; 0: empty
 *     the keys    one struct sum_key for each row
 *     the cells   for each part and each row one struct sum_cells, of which `cell_bytes` are there
 *
 * The keys are common to all CPUs: they are written once, and then only read. The cells of a row are the sum over all
 * parts. The part of the CPU on which a thread runs is mostly touched by this CPU alone, which makes additions cheap.
 * They are atomic nevertheless, so it does not matter if the thread has moved on meanwhile.
 *
 * Row 0 has no key. It counts the events of all keys for which there is no room.
 *
 * Runs in: target, tool. Pure data.
 */

#include <stdint.h>

#include "base/sigsafe/sum_cells.h"

#define SUM_MAGIC      UINT64_C(0x31534d5553454c41) /* "ALESUMS1" */
#define SUM_VERSION    1u
#define SUM_ROWS       4096u /* in a file, row 0 included */
#define SUM_INDEX      (2 * SUM_ROWS)
#define SUM_CPUS_MAX   4096u
#define SUM_PAGE_BYTES 4096u

/*
 * The first word of a key is the number of the event (wire/event_schema.h), and in the upper half the bits of texts
 * that were cut. Behind it come the values of the fields of `by=`, in this order: a number takes a word, a text up to
 * SUM_TEXT_WORDS, the rest being zeros. A field that the event does not have is 0.
 */
#define SUM_KEY_WORDS  15u
#define SUM_TEXT_WORDS 4u
#define SUM_BY_MAX     4u
#define SUM_CUT(by)    (UINT64_C(1) << (32 + (by)))

/*
 * Set in a word that has the address of a call: the row was set aside, because other code may be loaded at that address
 * (sum_table_set_aside()). Several such rows may have the same address and different frames.
 */
#define SUM_ASIDE (UINT64_C(1) << 63)

struct sum_key {
    uint64_t words[SUM_KEY_WORDS];
    /* the ledger's number of the frame whose address is in the key, plus 1; 0: there is none */
    uint64_t frame;
};
_Static_assert(sizeof(struct sum_key) == 128, "whole lines of the cache");

struct sum_header {
    uint64_t magic; /* stored last */
    uint32_t version, cpus;
    uint32_t cell_bytes; /* sizeof(struct sum_cells), or SUM_COUNT_BYTES: events are only counted */
    uint32_t type;       /* enum sum_type, of the values; SUM_NONE: there was none yet */
    uint64_t image_id;
    uint64_t rows;       /* rows in use, row 0 included */
    uint64_t keys_ready; /* bytes of the keys that are backed with memory */
    uint64_t early;      /* events that came when there was no table yet: they have no row */
    uint64_t unused;
};

struct sum_part {
    uint64_t ready_bytes; /* of its cells, from their beginning on, that are backed with memory */
    uint64_t unused[7];
};
_Static_assert(sizeof(struct sum_header) == 64 && sizeof(struct sum_part) == 64, "whole lines of the cache");

static inline uint64_t sum_page_up(uint64_t bytes)
{
    return (bytes + SUM_PAGE_BYTES - 1) & ~(uint64_t)(SUM_PAGE_BYTES - 1);
}

/* Where the tables begin, in bytes from the beginning of the file. */
static inline uint64_t sum_index_at(uint32_t cpus)
{
    return sum_page_up(sizeof(struct sum_header) + (cpus + 1ull) * sizeof(struct sum_part));
}

static inline uint64_t sum_keys_at(uint32_t cpus)
{
    return sum_index_at(cpus) + SUM_INDEX * sizeof(uint32_t);
}

static inline uint64_t sum_cells_at(uint32_t cpus)
{
    return sum_keys_at(cpus) + SUM_ROWS * sizeof(struct sum_key);
}

static inline uint64_t sum_part_bytes(uint32_t cell_bytes)
{
    return (uint64_t)SUM_ROWS * cell_bytes;
}

/** Returns the size of the file in bytes, all of which is mapped. */
static inline uint64_t sum_file_bytes(uint32_t cpus, uint32_t cell_bytes)
{
    return sum_cells_at(cpus) + (cpus + 1ull) * sum_part_bytes(cell_bytes);
}

#endif
