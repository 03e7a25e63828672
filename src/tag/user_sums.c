/* SPDX-License-Identifier: BSD-2-Clause */
#include "tag/user_sums.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "base/sigsafe/atomic.h"
#include "base/sigsafe/event_class.h"
#include "base/sigsafe/str.h"
#include "base/sigsafe/syscall.h"
#include "sum/sum_table.h"
#include "target/fork_placeholder.h"
#include "target/process_image.h"
#include "wire/event_list.h"
#include "wire/event_schema.h"
#include "wire/ring_file.h"
#include "wire/headroom_lease.h"

#define KINDS 16u /* for which it is known where the fields lie */

/* libc's registration for restartable sequences (2.35 and later). */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

/* A field that is asked for: the characters from `at` to `end`. */
struct asked {
    const char *at, *end;
};

static char list_copy[LEDGER_EVENT_LIST_BYTES]; /* the program may change its environment */
static struct asked value; /* `at` NULL: events are not added up; at == end: they are only counted */
static struct asked by[SUM_BY_MAX];
static uint32_t n_by;

/* In a fork child it describes the parent's table until the child has made its own. */
static struct sum_table table;

enum source { NOWHERE, FIELD, THREAD, CPU };

struct part {
    enum source from;
    enum event_type type;
    uint32_t at, bytes; /* behind the event's first two words */
};

/* Where a kind of event has what is asked for. */
struct kind {
    uint32_t generation; /* of the process; stored last */
    struct part value, by[SUM_BY_MAX];
};
static struct kind kinds[KINDS];

/* The calls of user_sums_add() that the thread is in. */
static __thread uint32_t at_work __attribute__((tls_model("initial-exec")));

void user_sums_begin_library(const char *list)
{
    text_copy(list_copy, sizeof(list_copy), list);
    for (list = list_copy; *list;) {
        const struct event_item item = event_list_next(&list);
        if (*item.at != '=')
            continue;
        struct asked a = {item.at + 1, item.at + 1};
        n_by = 0;
        for (;; a.at = ++a.end) {
            while (a.end < item.end && *a.end != ';')
                a.end++;
            if (a.at == item.at + 1)
                value = a;
            else if (n_by < SUM_BY_MAX)
                by[n_by++] = a;
            if (a.end == item.end)
                return;
        }
    }
}

bool user_sums_are_on(void)
{
    return value.at != NULL;
}

static struct headroom_lease lease;

static bool reach(char *from, uint64_t bytes)
{
    return ledger_may_call(&process.ledger) && headroom_lease_take(&lease, process.ledger.dir, bytes) &&
           !ledger_back(from, bytes);
}

bool user_sums_make(void)
{
    lease = (struct headroom_lease){0};
    const bool values = value.at < value.end;
    const uint32_t cell_bytes = values ? sizeof(struct sum_cells) : SUM_COUNT_BYTES;
    struct sum_table t = {.area = &__rseq_size && __rseq_size ? __rseq_offset : 0, .reach = reach};
    uint32_t cpus = t.area ? ring_file_cpus() : 0;
    uint64_t bytes = sum_file_bytes(cpus, cell_bytes);
    char *map = ring_file_map_fitting(&process.ledger, &process.config, LEDGER_SUMS_SUFFIX, &bytes,
                                      sum_file_bytes(0, cell_bytes));
    if (bytes != sum_file_bytes(cpus, cell_bytes))
        cpus = 0;
    if (!map || ledger_back(map, sum_table_first_bytes(cpus)) ||
        !sum_table_begin(&t, map, cpus, values, process.config.image_id))
        return false;
    table = t;
    return true;
}

void user_sums_lose(uint64_t events)
{
    if (events)
        __atomic_fetch_add(&table.header->early, events, __ATOMIC_RELAXED);
}

static bool is_named(struct asked a, const char *name)
{
    while (a.at < a.end && *a.at == *name) {
        a.at++;
        name++;
    }
    return a.at == a.end && !*name;
}

static struct part find_part(struct asked a, const struct allium_event *event)
{
    uint32_t end = 0;
    for (uint32_t i = 0; i < event->n_fields; i++) {
        const struct allium_event_field *f = &event->fields[i];
        const struct event_field size = {.type = (enum event_type)f->type, .bytes = f->bytes};
        const uint32_t at = event_field_at(&size, end);
        if (is_named(a, f->name))
            return (struct part){FIELD, size.type, at, f->bytes};
        end = at + f->bytes;
    }
    return (struct part){.from = is_named(a, "thread") ? THREAD : is_named(a, "cpu") ? CPU : NOWHERE};
}

static void find_parts(struct kind *k, const struct allium_event *event)
{
    k->value = find_part(value, event);
    for (uint32_t i = 0; i < SUM_BY_MAX; i++)
        k->by[i] = find_part(by[i], event);
}

/* Returns a number as 64 bits; a float as those of a double. */
static uint64_t number_at(struct part p, const unsigned char *fields)
{
    uint64_t bits = 0;
    if (p.bytes > sizeof(bits) || p.type == EVENT_TEXT)
        return 0;
    __builtin_memcpy(&bits, fields + p.at, p.bytes);
    if (p.type == EVENT_FLOAT && p.bytes == sizeof(float)) {
        float small;
        __builtin_memcpy(&small, fields + p.at, sizeof(small));
        return sum_bits(small);
    }
    const unsigned unused = 64 - 8 * p.bytes;
    return p.type == EVENT_SIGNED || p.type == EVENT_ENUM ? (uint64_t)((int64_t)(bits << unused) >> unused)
                                                          : bits;
}

/* Copies a text, up to `words` words of it, and returns whether it was cut, between characters of UTF-8. */
static bool put_text(uint64_t *to, uint32_t words, struct part p, const unsigned char *fields)
{
    const unsigned char *from = fields + p.at;
    uint32_t length = 0, n;
    while (length < p.bytes && from[length])
        length++;
    n = length < 8 * words ? length : 8 * words;
    while (n && n < length && (from[n] & 0xC0) == 0x80)
        n--;
    __builtin_memset(to, 0, 8 * words);
    __builtin_memcpy(to, from, n);
    return n < length;
}

static uint32_t make_key(uint64_t key[static SUM_KEY_WORDS], const struct kind *k, uint16_t number,
                         const unsigned char *fields, uint32_t thread)
{
    uint32_t n = 1;
    key[0] = number;
    for (uint32_t i = 0; i < n_by; i++) {
        const struct part p = k->by[i];
        const uint32_t left = SUM_KEY_WORDS - n, words = left < SUM_TEXT_WORDS ? left : SUM_TEXT_WORDS;
        if (p.from == FIELD && p.type == EVENT_TEXT) {
            if (put_text(key + n, words, p, fields))
                key[0] |= SUM_CUT(i);
            n += words;
        } else {
            key[n++] = p.from == FIELD    ? number_at(p, fields)
                       : p.from == THREAD ? thread
                       : p.from == CPU    ? sum_table_cpu()
                                          : 0;
        }
    }
    return n;
}

static enum sum_type type_of(struct part p)
{
    if (p.from != FIELD || p.type == EVENT_TEXT)
        return SUM_NONE;
    return p.type == EVENT_FLOAT                            ? SUM_REAL
           : p.type == EVENT_SIGNED || p.type == EVENT_ENUM ? SUM_SIGNED
                                                            : SUM_UNSIGNED;
}

/* Looks the fields up by name, once for each of the first kinds. Threads that come together write the same. */
static const struct kind *find_kind(const struct allium_event *event, uint16_t number, struct kind *scratch)
{
    const uint32_t index = number - EVENT_ID_OWN;
    struct kind *known = index < KINDS ? &kinds[index] : NULL;
    if (known && likely(load_acquire(&known->generation) == process.generation))
        return known;
    find_parts(scratch, event);
    if (known) {
        known->value = scratch->value;
        __builtin_memcpy(known->by, scratch->by, sizeof(known->by));
        store_release(&known->generation, process.generation);
    }
    return scratch;
}

void user_sums_add(const struct allium_event *event, uint16_t number, const uint64_t *words, uint32_t thread)
{
    uint64_t key[SUM_KEY_WORDS];
    struct kind scratch;
    at_work++;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    struct sum_table t = table;
    const struct kind *k = find_kind(event, number, &scratch);
    const unsigned char *fields = (const unsigned char *)(words + 2);
    const enum sum_type type = sum_table_type(&t, type_of(k->value));
    const uint32_t n = make_key(key, k, number, fields, thread);
    sum_table_add(&t, key, n, type, number_at(k->value, fields));
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    at_work--;
}

void user_sums_before_fork(unsigned part)
{
    if (user_sums_are_on())
        fork_placeholder_note(part, table.header,
                              at_work && table.header ? sum_file_bytes(table.cpus, table.cell_bytes) : 0);
}

void user_sums_seal(void)
{
    if (user_sums_are_on() && table.header)
        sum_table_take_room(&table);
}
