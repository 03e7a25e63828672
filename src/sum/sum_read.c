/* SPDX-License-Identifier: BSD-2-Clause */
#include "sum/sum_read.h"

#include "base/sigsafe/atomic.h"

#define COUNT_WORDS 5u /* of struct sum_cells: what is there without slots */

static const struct sum_header *header(const struct sum_reader *r)
{
    return (const struct sum_header *)r->file;
}

bool sum_reader_begin(struct sum_reader *r, const void *file, size_t bytes)
{
    const struct sum_header *h = file;
    if (bytes < sizeof(*h) || load_acquire(&h->magic) != SUM_MAGIC)
        return false;
    *r = (struct sum_reader){.file = file,
                             .bytes = bytes,
                             .image_id = load_relaxed(&h->image_id),
                             .cpus = load_relaxed(&h->cpus),
                             .cell_bytes = load_relaxed(&h->cell_bytes)};
    const uint32_t type = load_relaxed(&h->type);
    r->type = type < SUM_TYPES ? (enum sum_type)type : SUM_NONE;
    if (load_relaxed(&h->version) != SUM_VERSION || r->cpus > SUM_CPUS_MAX || type >= SUM_TYPES ||
        (r->cell_bytes != sizeof(struct sum_cells) && (r->cell_bytes != SUM_COUNT_BYTES || type != SUM_NONE)))
        return false;
    return sum_file_bytes(r->cpus, r->cell_bytes) <= bytes;
}

uint32_t sum_reader_rows(const struct sum_reader *r)
{
    const uint64_t rows = load_acquire(&header(r)->rows);
    return rows < SUM_ROWS ? (uint32_t)rows : SUM_ROWS;
}

uint64_t sum_reader_early(const struct sum_reader *r)
{
    return load_relaxed(&header(r)->early);
}

/* Adds the cells of one part, which the target changes meanwhile. */
static void add_part(const struct sum_reader *r, uint32_t part, uint32_t row, struct sum_cells *to)
{
    const struct sum_part *parts = (const struct sum_part *)(header(r) + 1);
    const uint64_t at = (uint64_t)row * r->cell_bytes;
    const uint64_t *words =
        (const uint64_t *)(r->file + sum_cells_at(r->cpus) + part * sum_part_bytes(r->cell_bytes) + at);
    struct sum_cells copy = {0};
    if (at + r->cell_bytes > load_acquire(&parts[part].ready_bytes))
        return;
    copy.count = load_relaxed(&words[0]);
    for (uint32_t i = 1; i < COUNT_WORDS; i++)
        (&copy.count)[i] = load_relaxed(&words[i]);
    for (uint32_t i = 0; i < SUM_SLOTS && r->cell_bytes > SUM_COUNT_BYTES; i++)
        copy.slots[i] = load_relaxed(&words[COUNT_WORDS + i]);
    sum_cells_merge(to, &copy, r->type);
}

bool sum_reader_row(const struct sum_reader *r, uint32_t row, struct sum_key *key, struct sum_cells *cells)
{
    const struct sum_key *keys = (const struct sum_key *)(r->file + sum_keys_at(r->cpus));
    *key = (struct sum_key){.frame = 0};
    *cells = (struct sum_cells){0};
    for (uint32_t part = 0; part <= r->cpus; part++)
        add_part(r, part, row, cells);
    if (!cells->count && !sum_cells_values(cells))
        return false;
    for (uint32_t i = 0; row && i < SUM_KEY_WORDS; i++)
        key->words[i] = load_relaxed(&keys[row].words[i]);
    key->frame = row ? load_relaxed(&keys[row].frame) : 0;
    return true;
}
