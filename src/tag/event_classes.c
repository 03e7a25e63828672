/* SPDX-License-Identifier: BSD-2-Clause */
#include "tag/event_classes.h"

#include "base/sigsafe/atomic.h"
#include "base/sigsafe/str.h"
#include "tag/event_rings.h"
#include "target/process_image.h"
#include "base/sigsafe/event_class.h"
#include "wire/event_schema.h"
#include "wire/event_table.h"
#include "wire/ring_file.h"

#define FIELDS_MOST 32u
#define TEXT_MOST   (64u << 10)
#define NO_ROOM     (1u << 31) /* with a generation in `known`: in that process the event gets no number */
/* The part of the table that is backed at first: later, seccomp may forbid that. */
#define FIRST_BYTES (EVENT_TABLE_TEXTS + LEDGER_PAGE_BYTES)

_Static_assert(ALLIUM_TYPE_UNSIGNED == EVENT_UNSIGNED && ALLIUM_TYPE_SIGNED == EVENT_SIGNED &&
                   ALLIUM_TYPE_HEX == EVENT_HEX && ALLIUM_TYPE_BYTES == EVENT_BYTES &&
                   ALLIUM_TYPE_FLOAT == EVENT_FLOAT && ALLIUM_TYPE_ENUM == EVENT_ENUM &&
                   ALLIUM_TYPE_TEXT == EVENT_TEXT,
               "the header has the same numbers");

static struct event_table *table; /* of this image, or in a fork child of its parent */
static uint64_t ready_bytes;      /* of the table: this many are backed with memory */

/* Receives the characters of a description. */
struct sink {
    char *to;         /* NULL: they are not stored */
    const char *same; /* NULL: they are not compared */
    uint64_t n;
    bool differs;
};

static void put(struct sink *s, char c)
{
    if (s->to)
        s->to[s->n] = c;
    if (s->same && s->same[s->n] != c)
        s->differs = true;
    s->n++;
}

static void put_text(struct sink *s, const char *text)
{
    while (*text && s->n < TEXT_MOST && !s->differs)
        put(s, *text++);
}

static void put_number(struct sink *s, uint64_t n)
{
    char digits[24];
    text_from_number(digits, n, 10, 1);
    put_text(s, digits);
}

static void put_labels(struct sink *s, const struct allium_event_field *f)
{
    for (uint64_t i = 0; i < f->n_labels && s->n < TEXT_MOST && !s->differs; i++) {
        const int64_t value = f->labels[i].value;
        put(s, ' ');
        put_text(s, f->labels[i].name);
        put_text(s, value < 0 ? "=-" : "=");
        put_number(s, value < 0 ? -(uint64_t)value : (uint64_t)value);
    }
}

/* Writes the description of an event. */
static void describe(struct sink *s, const struct allium_event *event)
{
    put_text(s, event->name);
    put(s, '\n');
    for (uint32_t i = 0; i < event->n_fields && s->n < TEXT_MOST && !s->differs; i++) {
        const struct allium_event_field *f = &event->fields[i];
        put(s, EVENT_TABLE_TYPES[f->type]);
        put(s, ' ');
        put_number(s, f->bytes);
        put(s, ' ');
        put_text(s, f->name);
        if (f->type == EVENT_ENUM)
            put_labels(s, f);
        put(s, '\n');
    }
}

static bool is_sound(const struct allium_event *event)
{
    if (event->version != ALLIUM_EVENT_VERSION || event->n_fields > FIELDS_MOST)
        return false;
    for (uint32_t i = 0; i < event->n_fields; i++)
        if (event->fields[i].type >= EVENT_TYPES)
            return false;
    return true;
}

bool event_classes_begin(void)
{
    char *map = ring_file_map(&process.ledger, &process.config, LEDGER_EVENTS_SUFFIX, EVENT_TABLE_BYTES);
    if (!map || ledger_back(map, FIRST_BYTES))
        return false;
    table = (struct event_table *)map;
    store_relaxed(&ready_bytes, FIRST_BYTES);
    store_relaxed(&table->taken, EVENT_TABLE_TEXTS);
    store_release(&table->magic, EVENT_TABLE_MAGIC);
    return true;
}

/* Returns the number of the event if the table has its description; else 0. */
static uint16_t find(const struct allium_event *event, uint64_t bytes)
{
    const uint32_t n = (uint32_t)(load_acquire(&table->taken) >> 32);
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t place = load_acquire(&table->places[i]);
        struct sink s = {.same = (const char *)table + (place >> 32)};
        if ((uint32_t)place != bytes)
            continue;
        describe(&s, event);
        if (!s.differs && s.n == bytes)
            return (uint16_t)(EVENT_ID_OWN + i);
    }
    return 0;
}

static bool reach(uint64_t end)
{
    uint64_t ready = load_acquire(&ready_bytes);
    if (end <= ready)
        return true;
    if (!ledger_may_call(&process.ledger) || ledger_back((char *)table + ready, ledger_page_up(end) - ready))
        return false;
    while (ready < ledger_page_up(end) && !atomic_swap_if64(&ready_bytes, ready, ledger_page_up(end)))
        ready = load_relaxed(&ready_bytes);
    return true;
}

/* Sets *full if there will never be room. If only memory is missing, a later call may succeed.
 * Two threads that come here with the same event give it two numbers; the reader knows them as one event. */
static uint16_t add(const struct allium_event *event, uint64_t bytes, bool *full)
{
    uint64_t taken, end;
    do {
        taken = load_acquire(&table->taken);
        end = (uint32_t)taken + bytes;
        *full = taken >> 32 >= EVENT_TABLE_MOST || end > EVENT_TABLE_BYTES;
        if (*full || !reach(end))
            return 0;
    } while (!atomic_swap_if64(&table->taken, taken, ((taken >> 32) + 1) << 32 | end));
    struct sink s = {.to = (char *)table + (uint32_t)taken};
    describe(&s, event);
    store_release(&table->places[taken >> 32], (uint64_t)(uint32_t)taken << 32 | bytes);
    return (uint16_t)(EVENT_ID_OWN + (taken >> 32));
}

uint16_t event_classes_number(struct allium_event *event)
{
    const uint64_t known = load_relaxed(&event->known);
    if (likely(known >> 32 == process.generation))
        return (uint16_t)known;
    if (known >> 32 == (process.generation | NO_ROOM))
        return 0;
    struct sink length = {0};
    if (!is_sound(event))
        return 0;
    describe(&length, event);
    if (length.n >= TEXT_MOST)
        return 0;
    uint64_t mask;
    bool full = false;
    const bool blocked = process_block_signals(&mask); /* a handler that forks would leave the child here */
    uint16_t number = find(event, length.n);
    if (!number)
        number = add(event, length.n, &full);
    if (blocked)
        process_unblock_signals(mask);
    if (number || full)
        store_relaxed(&event->known, (uint64_t)(process.generation | (full ? NO_ROOM : 0)) << 32 |
                                         (uint64_t)(uint16_t)event_rings_area() << 16 | number);
    return number;
}

void event_classes_ask(const char reason[static EVENT_TABLE_REASON_BYTES])
{
    const uint64_t n = __atomic_add_fetch(&table->asked, 1, __ATOMIC_RELAXED);
    struct event_table_request *r = &table->requests[(n - 1) % EVENT_TABLE_REQUESTS];
    store_relaxed(&r->number, 0);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    __builtin_memcpy(r->reason, reason, sizeof(r->reason));
    store_release(&r->number, n);
}
