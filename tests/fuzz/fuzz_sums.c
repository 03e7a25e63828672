/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reader of sums on hostile input. The input is a list of words that change in a file that begins as a sound one,
 * of one CPU and the agent's events or a program's. Whatever they are, the reader stays within the file, and a table
 * comes out that can be printed.
 */
#include "require.h"

#include <stdint.h>
#include <string.h>

#include "collect/trace/sum_image.h"
#include "view/table/table_view.h"

#define CPUS  1u
#define STEP  12u /* bytes: which table, where, a value */
#define STEPS 200u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t *file;
static size_t bytes;

/* Of one row that has counted. */
static void begin(void)
{
    struct sum_header *h = (struct sum_header *)file;
    struct sum_part *parts = (struct sum_part *)(h + 1);
    struct sum_key *keys = (struct sum_key *)((char *)file + sum_keys_at(CPUS));
    struct sum_cells *cells = (struct sum_cells *)((char *)file + sum_cells_at(CPUS));
    *h = (struct sum_header){.magic = SUM_MAGIC,
                             .version = SUM_VERSION,
                             .cpus = CPUS,
                             .cell_bytes = sizeof(struct sum_cells),
                             .type = SUM_UNSIGNED,
                             .rows = 3,
                             .keys_ready = SUM_PAGE_BYTES};
    parts[0].ready_bytes = parts[1].ready_bytes = SUM_PAGE_BYTES;
    keys[1] = (struct sum_key){.words = {1, 0x1234, 17, 5}, .frame = 1};
    keys[2] = (struct sum_key){.words = {64, 1, 2}};
    for (int i = 0; i < 3; i++)
        sum_cells_add(&cells[i], SUM_UNSIGNED, 5);
}

/* Returns the word that a step changes: mostly one that matters. */
static uint64_t *word_at(uint8_t table, uint16_t where)
{
    const uint64_t at[] = {0, sizeof(struct sum_header), sum_keys_at(CPUS), sum_cells_at(CPUS),
                           sum_cells_at(CPUS) + sum_part_bytes(sizeof(struct sum_cells))};
    const uint64_t words[] = {8, 24, 64, 512, 512}; /* parts: also of a CPU more than the file has */
    return file + at[table % 5] / 8 + where % words[table % 5];
}

static const char *name_of(void *arg, uint64_t frame)
{
    (void)arg;
    return frame % 3 ? "function file.c:1" : NULL;
}

static void read_all(const char *spec_text)
{
    struct sum_spec spec;
    struct error e = {""};
    struct buf text = BUF_INIT;
    struct sum_image i = {.pid = 1, .id = 1, .dir = "/nonexistent"};
    const struct text_style style = {.columns = 80};
    require(!sum_spec_parse(&spec, spec_text, &e), "%s", e.text);
    if (sum_reader_begin(&i.reader, file, bytes)) {
        struct event_sums *sums = event_sums_new(&spec);
        sum_image_add(&i, &spec, sums, name_of, NULL);
        event_sums_begin_span(sums, NULL, 1);
        struct table *t = event_sums_table(sums, 0);
        struct sink out = sink_to_buf(&text);
        require(table_rows(t) <= SUM_ROWS, "more rows than there can be");
        table_view_text(&out, t, &style);
        table_view_json(&out, t);
        table_free(t);
        event_sums_free(sums);
    }
    sum_spec_release(&spec);
    buf_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t *changed[STEPS];
    size_t n = 0;
    if (!file) {
        bytes = sum_file_bytes(CPUS, sizeof(struct sum_cells));
        file = mem_alloc(bytes);
    }
    begin();
    for (; size >= STEP && n < STEPS; data += STEP, size -= STEP) {
        uint16_t where;
        memcpy(&where, data + 2, sizeof(where));
        changed[n] = word_at(data[0], where);
        memcpy(changed[n], data + 4, sizeof(uint64_t));
        if (changed[n] == &((struct sum_header *)file)->rows && *changed[n] > 2 * SUM_ROWS)
            *changed[n] %= 8; /* most runs have few rows, and are fast */
        n++;
    }
    read_all(size % 3 == 0   ? "malloc.size,by=site,size,thread,event"
             : size % 3 == 1 ? "shop:order.price,by=customer,cpu"
                             : "alloc");
    while (n)
        *changed[--n] = 0;
    memset((char *)file + sum_cells_at(CPUS), 0, 3 * sizeof(struct sum_cells));
    return 0;
}
