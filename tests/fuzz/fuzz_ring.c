/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reader of rings on hostile input. The input is a list of steps on a file that begins as a sound one, of one CPU:
 * words change, before the reader opens the file and while it reads. Whatever they are, what the reader gives lies
 * within its copies, and it comes to an end.
 */
#include "require.h"

#include <stdint.h>
#include <string.h>

#include "base/sigsafe/atomic.h"
#include "ring/ring_read.h"

#define PACKET  RING_PACKET_BYTES_MIN
#define RING    (4u * PACKET)
#define DATA_AT 4096u
#define BYTES   (DATA_AT + 2 * RING)
#define SLOTS   (RING / sizeof(struct ring_slot))
#define CALLS   (100 + SLOTS)
#define STEP    12u /* bytes: what to do, where, a value */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t file[BYTES / 8];

static uint64_t what(uint32_t words)
{
    return (uint64_t)words << 16 | 1;
}

/* Two packets of a CPU, of which the second has room; and some events in the shared ring. */
static void begin(void)
{
    struct ring_header *h = (struct ring_header *)file;
    struct ring_cpu *c = (struct ring_cpu *)(h + 1);
    const uint64_t first = RING / 8, second = first + PACKET / 8;
    memset(file, 0, sizeof(file));
    *h = (struct ring_header){.magic = RING_MAGIC,
                              .version = RING_VERSION,
                              .cpus = 1,
                              .packet_bytes = PACKET,
                              .ring_bytes = RING,
                              .data_at = DATA_AT};
    uint64_t *ring = file + DATA_AT / 8, *at = ring + RING_PACKET_WORDS;
    *(struct ring_packet *)ring = (struct ring_packet){.magic = RING_PACKET_MAGIC, .number = 1};
    for (int k = 0; k < 10; k++, at += 4)
        at[0] = (uint64_t)k, at[1] = what(4);
    *(struct ring_packet *)(ring + PACKET / 8) =
        (struct ring_packet){.magic = RING_PACKET_MAGIC,
                             .number = 2,
                             .events_before = 10,
                             .previous_words = (uint64_t)(at - ring)};
    at = ring + PACKET / 8 + RING_PACKET_WORDS;
    for (int k = 0; k < 3; k++, at += 5)
        at[1] = what(5);
    c[0].head = (second + (uint64_t)(at - ring) - PACKET / 8) | 13 * RING_COUNT_ONE;
    struct ring_slot *slots = (struct ring_slot *)(ring + RING / 8);
    for (uint64_t k = 0; k < 6; k++) {
        const enum ring_slot_state state = k % 3 == 1 ? RING_SLOT_MORE : RING_SLOT_DONE;
        slots[k].first = slots[k].last = ring_slot_mark(k, SLOTS, state);
        slots[k].words[0] = 100 - k;
        slots[k].words[1] = what(k % 3 ? 5 : 8);
    }
    c[1].head = c[1].written = 6;
}

static void poke(uint8_t how, uint16_t where, uint64_t value)
{
    static const uint64_t numbers[] = {
        0, 1, UINT64_MAX, RING_POSITION_MASK, RING_PACKET_MAGIC, RING / 8, PACKET / 8, UINT64_C(1) << 35};
    uint64_t *to = &file[where % (BYTES / 8)];
    if (how & 8)
        to = &file[where % 48]; /* header and heads */
    if (how & 16)               /* the beginning of a packet */
        to = file + DATA_AT / 8 + where % 4 * (PACKET / 8) + where / 4 % RING_PACKET_WORDS;
    if (how & 32)
        value = numbers[value % (sizeof(numbers) / sizeof(*numbers))];
    *to = how & 64 ? *to + (int64_t)(int8_t)value : value;
}

static bool take(struct ring_reader *r, uint32_t ring)
{
    struct ring_piece p = {0};
    uint32_t at = 0, words = 0;
    uint64_t sum = 0;
    bool bad;
    const int found = ring_reader_next(r, ring, &p);
    require(p.n_words <= ring_reader_header(r)->packet_bytes / 8, "more than a packet");
    for (const struct ring_event *e; found > 0 && (e = ring_piece_event(&p, &at, &bad)); words = at)
        for (const uint64_t *w = (const uint64_t *)e; w < p.words + at; w++)
            sum += *w;
    require(words <= p.n_words, "an event behind the end %lu", (unsigned long)sum);
    return found != 0;
}

static void drain(struct ring_reader *r)
{
    for (uint32_t ring = 0; ring < ring_reader_rings(r); ring++) {
        unsigned calls = 0;
        while (take(r, ring))
            require(++calls < CALLS, "no end of ring %u", ring);
        ring_reader_position(r, ring);
        for (int why = 0; why < RING_LOSSES; why++)
            ring_reader_lost(r, ring, (enum ring_loss)why);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ring_reader *r = NULL;
    begin();
    for (; size >= STEP; data += STEP, size -= STEP) {
        uint16_t where;
        uint64_t value;
        memcpy(&where, data + 2, sizeof(where));
        memcpy(&value, data + 4, sizeof(value));
        if (data[0] & 1)
            poke(data[0], where, value);
        else if (!r && data[0] & 2)
            r = ring_reader_new(file, data[0] & 4 ? value % (BYTES + 1) : BYTES);
        else if (r && data[0] & 2)
            take(r, where % ring_reader_rings(r));
        else if (r && data[0] & 4)
            ring_reader_end(r);
    }
    if (!r)
        r = ring_reader_new(file, BYTES);
    if (r) {
        struct ring_anchor anchors[RING_ANCHORS];
        require(ring_reader_anchors(r, anchors) <= RING_ANCHORS, "more anchors than there can be");
        drain(r);
        ring_reader_end(r);
        drain(r);
    }
    ring_reader_free(r);
    return 0;
}
