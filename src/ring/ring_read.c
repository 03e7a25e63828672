/* SPDX-License-Identifier: BSD-2-Clause */
#include "ring/ring_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sigsafe/atomic.h"

#define TRIES 100 /* to copy a packet before it is overwritten */

struct cpu {
    uint64_t position;
    uint64_t events; /* up to there, those that were overwritten included */
    bool begun;      /* a packet was seen, so that `position` is known */
};

/* An event in `copy`. */
struct ordered {
    uint64_t ticks;
    uint32_t at, words;
};

/* The state of reading the shared ring. */
struct shared {
    uint64_t position, events; /* slots, and events that were read */
    uint64_t overwritten;      /* reported so far */
    uint64_t pieces, last_ticks;
    uint64_t *sorted; /* as large as `copy` */
    struct ordered *order;
};

struct ring_reader {
    const struct ring_header *file;
    struct ring_header header; /* checked once; the target may change its own later */
    const struct ring_cpu *control;
    uint64_t packet_words, ring_words;
    uint64_t *copy; /* of a packet */
    bool ended;
    struct shared shared;
    struct cpu cpus[];
};

static bool is_power(uint64_t n)
{
    return n && !(n & (n - 1));
}

static bool is_sound(const struct ring_header *h, uint64_t bytes)
{
    return h->magic == RING_MAGIC && h->version == RING_VERSION && h->cpus && h->cpus <= RING_CPUS_MAX &&
           is_power(h->packet_bytes) && is_power(h->ring_bytes) && h->packet_bytes >= RING_PACKET_BYTES_MIN &&
           h->ring_bytes <= RING_RING_BYTES_MAX && h->packet_bytes <= h->ring_bytes / 4 &&
           h->data_at >= sizeof(*h) + (h->cpus + 1ull) * sizeof(struct ring_cpu) +
                             RING_ANCHORS * sizeof(struct ring_anchor) &&
           h->data_at <= bytes && h->data_at % 8 == 0 &&
           (h->cpus + 1ull) * h->ring_bytes <= bytes - h->data_at;
}

struct ring_reader *ring_reader_new(const void *file, uint64_t bytes)
{
    struct ring_header h;
    if (bytes < sizeof(h))
        return NULL;
    memcpy(&h, file, sizeof(h));
    if (!is_sound(&h, bytes))
        return NULL;
    struct ring_reader *r = calloc(1, sizeof(*r) + h.cpus * sizeof(r->cpus[0]));
    if (!r)
        return NULL;
    r->copy = malloc(h.packet_bytes);
    r->shared.sorted = malloc(h.packet_bytes);
    r->shared.order = malloc(h.packet_bytes / 8 / RING_EVENT_WORDS * sizeof(*r->shared.order));
    if (!r->copy || !r->shared.sorted || !r->shared.order) {
        ring_reader_free(r);
        return NULL;
    }
    r->file = file;
    r->header = h;
    r->control = (const struct ring_cpu *)(r->file + 1);
    r->packet_words = h.packet_bytes / 8;
    r->ring_words = h.ring_bytes / 8;
    for (uint32_t k = 0; k < h.cpus; k++)
        r->cpus[k].position = r->ring_words;
    return r;
}

void ring_reader_free(struct ring_reader *r)
{
    if (!r)
        return;
    free(r->copy);
    free(r->shared.sorted);
    free(r->shared.order);
    free(r);
}

uint32_t ring_reader_rings(const struct ring_reader *r)
{
    return r->header.cpus + 1;
}

void ring_reader_stand_by(struct ring_reader *r)
{
    r->header.overwrites = 1;
}

void ring_reader_end(struct ring_reader *r)
{
    r->ended = true;
}

const struct ring_header *ring_reader_header(const struct ring_reader *r)
{
    return &r->header;
}

uint64_t ring_reader_position(const struct ring_reader *r, uint32_t cpu)
{
    return cpu == r->header.cpus ? r->shared.position : r->cpus[cpu].position;
}

uint64_t ring_reader_lost(const struct ring_reader *r, uint32_t cpu, enum ring_loss why)
{
    return load_relaxed(&r->control[cpu].lost[why]);
}

uint32_t ring_reader_anchors(const struct ring_reader *r, struct ring_anchor out[static RING_ANCHORS])
{
    const struct ring_anchor *anchors = (const struct ring_anchor *)(r->control + r->header.cpus + 1);
    const uint64_t written = load_acquire(&r->file->anchored),
                   first = written < RING_ANCHORS ? 0 : written - RING_ANCHORS;
    uint32_t n = 0;
    for (uint64_t k = first; k < written; k++) {
        const struct ring_anchor *from = &anchors[k % RING_ANCHORS];
        const uint64_t number = load_acquire(&from->number);
        const struct ring_anchor a = *from;
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (number == k + 1 && load_relaxed(&from->number) == number &&
            (!n || (a.ticks > out[n - 1].ticks && a.ns > out[n - 1].ns)))
            out[n++] = a;
    }
    return n;
}

static const uint64_t *words_at(const struct ring_reader *r, uint32_t cpu, uint64_t position)
{
    const char *ring = (const char *)r->file + r->header.data_at + cpu * r->header.ring_bytes;
    return (const uint64_t *)ring + (position & (r->ring_words - 1));
}

static uint64_t base_of(const struct ring_reader *r, uint64_t position)
{
    return position & ~(r->packet_words - 1);
}

/*
 * The oldest packet that may be read while the head is in the packet at `newest`. If packets are overwritten, the one
 * behind `newest` may already be so, up to any word.
 */
static uint64_t oldest_of(const struct ring_reader *r, uint64_t newest)
{
    const uint64_t room = r->ring_words - (r->header.overwrites ? 2 : 1) * r->packet_words;
    return (newest - room) & RING_POSITION_MASK;
}

/* Returns whether the position `a` lies before `b`; they are less than half of all positions apart. */
static bool is_before(uint64_t a, uint64_t b)
{
    return a != b && ring_distance(a, b) <= RING_POSITION_MASK / 2;
}

static int skip(struct ring_reader *r, uint32_t cpu, uint64_t head)
{
    r->cpus[cpu].position = ring_position(head);
    r->cpus[cpu].begun = true;
    return -EBADMSG;
}

/* Copies the head of the packet at `base`. Returns false if there is no packet. */
static bool read_packet(const struct ring_reader *r, uint32_t cpu, uint64_t base, struct ring_packet *out)
{
    memcpy(out, words_at(r, cpu, base), sizeof(*out));
    return out->magic == RING_PACKET_MAGIC && out->number;
}

/* The events that the packet at `base` has up to `head`: how many words are used, how many events of the CPU there are
 * up to its end. */
static bool find_end(const struct ring_reader *r, uint32_t cpu, uint64_t base, uint64_t head,
                     const struct ring_packet *packet, uint64_t *words, uint64_t *events)
{
    struct ring_packet next;
    const uint64_t newest = base_of(r, ring_position(head));
    if (base == newest) {
        *words = ring_position(head) - base;
        *events = packet->events_before + ((ring_count(head) - packet->events_before) & RING_COUNT_MASK);
        return true;
    }
    if (!read_packet(r, cpu, (base + r->packet_words) & RING_POSITION_MASK, &next) ||
        next.number != packet->number + 1 || next.previous_words > r->packet_words - 1)
        return false;
    *words = next.previous_words;
    *events = next.events_before;
    return true;
}

/* Copies what the packet at `base` has behind the position, while the head is `head`. False: it is no packet. */
static bool copy_rest(struct ring_reader *r, uint32_t cpu, uint64_t base, uint64_t head,
                      struct ring_piece *out, struct cpu *end)
{
    const struct cpu *c = &r->cpus[cpu];
    struct ring_packet packet;
    uint64_t words, events;
    if (!read_packet(r, cpu, base, &packet) || !find_end(r, cpu, base, head, &packet, &words, &events))
        return false;
    const uint64_t from = c->position == base ? RING_PACKET_WORDS : c->position - base;
    if (words < from || words > r->packet_words - 1)
        return false;
    memcpy(r->copy, words_at(r, cpu, base + from), (words - from) * 8);
    const uint64_t before = c->position == base ? packet.events_before : c->events;
    *out = (struct ring_piece){.words = r->copy,
                               .n_words = (uint32_t)(words - from),
                               .n_events = (uint32_t)(events - before),
                               .number = packet.number,
                               .ticks = packet.ticks,
                               .overwritten = before - c->events};
    memcpy(out->lost, packet.lost, sizeof(out->lost));
    const bool is_newest = base == base_of(r, ring_position(head));
    *end = (struct cpu){is_newest ? ring_position(head) : (base + r->packet_words) & RING_POSITION_MASK,
                        events, true};
    return true;
}

/* Before the first packet is read: goes to the oldest one. The ring may have been written for long: positions wrap. */
static void go_to_oldest(struct ring_reader *r, uint32_t cpu, uint64_t head)
{
    struct cpu *c = &r->cpus[cpu];
    struct ring_packet packet;
    const uint64_t newest = base_of(r, ring_position(head)),
                   room = ring_distance(oldest_of(r, newest), newest) / r->packet_words;
    if (c->begun || !read_packet(r, cpu, newest, &packet))
        return;
    const uint64_t before = packet.number - 1 < room ? packet.number - 1 : room;
    c->position = (newest - before * r->packet_words) & RING_POSITION_MASK;
}

/* ---- the shared ring ---- */

static const struct ring_slot *slot_at(const struct ring_reader *r, uint64_t position)
{
    const struct ring_slot *slots = (const struct ring_slot *)((const char *)r->file + r->header.data_at +
                                                               r->header.cpus * r->header.ring_bytes);
    return &slots[position & (r->header.ring_bytes / sizeof(*slots) - 1)];
}

static bool has_state(const struct ring_reader *r, uint64_t position, enum ring_slot_state state)
{
    return load_acquire(&slot_at(r, position)->first) ==
           ring_slot_mark(position, r->header.ring_bytes / sizeof(struct ring_slot), state);
}

/* Copies the event that begins at the slot, at most `room` words. Returns its words; 0: none is there, or not all. */
static uint32_t copy_slots(const struct ring_reader *r, uint64_t position, uint64_t *to, uint32_t room)
{
    if (!has_state(r, position, RING_SLOT_DONE))
        return 0;
    const uint64_t what = slot_at(r, position)->words[1];
    const uint32_t words = what >> 16 & RING_SIZE_MASK, n = ring_slots_of(words);
    if (words < RING_EVENT_WORDS || words > RING_EVENT_WORDS_MAX || words > room)
        return 0;
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t left = words - k * RING_SLOT_WORDS;
        if (!has_state(r, position + k, k ? RING_SLOT_MORE : RING_SLOT_DONE))
            return 0;
        memcpy(to + k * RING_SLOT_WORDS, slot_at(r, position + k)->words,
               (left < RING_SLOT_WORDS ? left : RING_SLOT_WORDS) * 8);
    }
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    for (uint32_t k = 0; k < n; k++)
        if (!has_state(r, position + k, k ? RING_SLOT_MORE : RING_SLOT_DONE))
            return 0;
    return words;
}

static int by_time(const void *a, const void *b)
{
    const struct ordered *x = a, *y = b;
    return x->ticks != y->ticks ? (x->ticks > y->ticks) - (x->ticks < y->ticks)
                                : (x->at > y->at) - (x->at < y->at);
}

/* Sorts the events by time. An event that is older than the last one of an earlier piece gets the time of that one. */
static void sort_events(struct ring_reader *r, uint32_t n)
{
    struct shared *s = &r->shared;
    uint64_t *to = s->sorted;
    qsort(s->order, n, sizeof(*s->order), by_time);
    for (const struct ordered *o = s->order; o < s->order + n; to += o->words, o++) {
        memcpy(to, r->copy + o->at, o->words * 8ull);
        if (o->ticks < s->last_ticks) {
            to[0] = s->last_ticks;
            to[1] |= (uint64_t)RING_FLAG_LATER << (16 + RING_SIZE_BITS);
        }
        s->last_ticks = to[0];
    }
}

/*
 * A slot that is not done is waited for, unless nobody will finish it: its image has ended, or the ring is overwritten,
 * where its writer may be asleep for long.
 */
static int next_shared(struct ring_reader *r, struct ring_piece *out)
{
    struct shared *s = &r->shared;
    const struct ring_cpu *c = &r->control[r->header.cpus];
    const uint64_t written = load_acquire(&c->written); /* first: these events lie before the head */
    const uint64_t slots = r->header.ring_bytes / sizeof(struct ring_slot), head = load_acquire(&c->head);
    uint32_t n = 0, used = 0;
    if (head - s->position > slots)
        s->position = head - slots;
    while (s->position < head && used + RING_EVENT_WORDS_MAX <= r->packet_words) {
        const uint32_t words = copy_slots(r, s->position, r->copy + used, RING_EVENT_WORDS_MAX);
        if (words) {
            s->order[n++] = (struct ordered){r->copy[used], used, words};
            used += words;
            s->position += ring_slots_of(words);
        } else if (r->ended || r->header.overwrites || has_state(r, s->position, RING_SLOT_VOID)) {
            s->position++;
        } else {
            break;
        }
    }
    sort_events(r, n);
    s->events += n;
    const uint64_t gone =
        r->header.overwrites && s->position == head && written > s->events ? written - s->events : 0;
    *out = (struct ring_piece){.words = s->sorted, .n_words = used, .n_events = n, .number = s->pieces + 1};
    out->overwritten = gone > s->overwritten ? gone - s->overwritten : 0;
    s->overwritten += out->overwritten;
    for (int k = 0; k < RING_LOSSES; k++)
        out->lost[k] = load_relaxed(&c->lost[k]);
    s->pieces += n != 0;
    return n || out->overwritten;
}

uint64_t ring_reader_counter(const struct ring_reader *r)
{
    return load_acquire(&((const struct ring_header *)r->file)->counter);
}

bool ring_reader_waits(const struct ring_reader *r)
{
    return r->shared.position < load_acquire(&r->control[r->header.cpus].head);
}

int ring_reader_next(struct ring_reader *r, uint32_t cpu, struct ring_piece *out)
{
    if (cpu == r->header.cpus)
        return next_shared(r, out);
    struct cpu *c = &r->cpus[cpu], end;
    uint64_t head = load_acquire(&r->control[cpu].head);
    for (int tries = 0; tries < TRIES; tries++) {
        const uint64_t newest = base_of(r, ring_position(head)), oldest = oldest_of(r, newest);
        if (ring_position(head) == ring_first_head(r->header.ring_bytes) ||
            ring_position(head) == c->position)
            return 0;
        go_to_oldest(r, cpu, head);
        if (is_before(ring_position(head), c->position))
            return skip(r, cpu, head);
        if (is_before(base_of(r, c->position), oldest))
            c->position = oldest;
        const uint64_t base = base_of(r, c->position);
        const bool good = copy_rest(r, cpu, base, head, out, &end);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        const uint64_t now = load_acquire(&r->control[cpu].head);
        if (now != head && is_before(base, oldest_of(r, base_of(r, ring_position(now))))) {
            head = now; /* it was overwritten meanwhile */
            continue;
        }
        if (!good)
            return skip(r, cpu, head);
        *c = end;
        return 1;
    }
    return skip(r, cpu, head); /* no program is as fast */
}

const struct ring_event *ring_piece_event(const struct ring_piece *p, uint32_t *at, bool *bad)
{
    *bad = false;
    if (*at >= p->n_words)
        return NULL;
    const struct ring_event *e = (const struct ring_event *)(p->words + *at);
    const uint32_t left = p->n_words - *at;
    const uint32_t words = left >= RING_EVENT_WORDS ? e->size & RING_SIZE_MASK : 0;
    *bad = words < RING_EVENT_WORDS || words > left;
    if (*bad)
        return NULL;
    *at += words;
    return e;
}
