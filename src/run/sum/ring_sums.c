/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/sum/ring_sums.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash_map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "collect/trace/ring_image.h"

#define TEXT_BYTES 256u
#define KEYS_MOST  4095u /* as in a table of a process */

/* The figures of a key, and an event that has it. */
struct ring_sum {
    struct sum_cells cells;
    struct trace_event event; /* its fields are owned */
    enum sum_type type;
    bool bytes, others; /* of all keys for which there was no room */
};

struct ring_sums {
    const struct sum_spec *spec;
    pthread_mutex_t mutex;
    struct VEC(struct event_class *) classes;
    struct map numbers; /* of the sums, by key */
    struct VEC(struct ring_sum) sums;
    struct buf key;
};

struct ring_sums *ring_sums_new(const struct sum_spec *spec)
{
    struct ring_sums *s = mem_alloc(sizeof(*s));
    *s = (struct ring_sums){.spec = spec, .key = BUF_INIT};
    pthread_mutex_init(&s->mutex, NULL);
    return s;
}

void ring_sums_free(struct ring_sums *s)
{
    if (!s)
        return;
    vec_each (const struct ring_sum, sum, &s->sums)
        free((unsigned char *)sum->event.fields);
    vec_each (struct event_class *, c, &s->classes)
        free(*c);
    vec_release(&s->sums);
    vec_release(&s->classes);
    map_release(&s->numbers);
    buf_release(&s->key);
    pthread_mutex_destroy(&s->mutex);
    free(s);
}

void ring_sums_add_class(struct ring_sums *s, const struct event_class *c)
{
    if (!sum_spec_has(s->spec, trace_event_name(c)))
        return;
    struct event_class *own = mem_alloc(sizeof(*own));
    *own = *c;
    pthread_mutex_lock(&s->mutex);
    *vec_push(&s->classes) = own;
    pthread_mutex_unlock(&s->mutex);
}

static const struct event_class *class_of(const struct ring_sums *s, uint16_t id)
{
    vec_each (struct event_class *const, c, &s->classes)
        if ((*c)->id == id)
            return *c;
    return NULL;
}

/* Makes the key: the class, and what event_sums_value_of() reads of the event for each field of by=. */
static void make_key(struct ring_sums *s, const struct trace_event *e)
{
    buf_reset(&s->key);
    buf_add(&s->key, &e->class->id, sizeof(e->class->id));
    for (unsigned i = 0; i < s->spec->n_by; i++) {
        const unsigned char *at;
        const struct event_field *f = trace_event_field(e, s->spec->by[i], &at);
        if (f)
            buf_add(&s->key, at, f->bytes);
        else if (!strcmp(s->spec->by[i], "thread"))
            buf_add(&s->key, &e->thread, sizeof(e->thread));
        else if (!strcmp(s->spec->by[i], "cpu"))
            buf_add(&s->key, &e->cpu, sizeof(e->cpu));
        else if (!strcmp(s->spec->by[i], "pid"))
            buf_add(&s->key, &e->pid, sizeof(e->pid));
    }
}

static void add(struct ring_sums *s, const struct trace_event *e, uint32_t field_bytes)
{
    uint64_t value;
    bool added, bytes;
    make_key(s, e);
    const enum sum_type type = event_sums_number_of(s->spec, e, &value, &bytes);
    const bool others = s->sums.len >= KEYS_MOST && map_get(&s->numbers, s->key.data, s->key.len) == MAP_NONE;
    if (others) { /* their rows differ by the type of the values alone */
        buf_reset(&s->key);
        buf_add(&s->key, &type, 1);
    }
    const size_t number = map_put(&s->numbers, s->key.data, s->key.len, s->sums.len, &added);
    if (added) {
        struct ring_sum *sum = vec_push(&s->sums);
        unsigned char *fields = mem_alloc(field_bytes ? field_bytes : 1);
        memcpy(fields, e->fields, field_bytes);
        *sum = (struct ring_sum){.event = *e, .type = type, .bytes = bytes, .others = others};
        sum->event.fields = fields;
    }
    sum_cells_add(&s->sums.at[number].cells, type, value);
}

void ring_sums_add(struct ring_sums *s, const struct ring_piece *piece, pid_t pid, uint32_t cpu)
{
    const struct ring_event *from;
    uint32_t at = 0;
    bool bad = false;
    pthread_mutex_lock(&s->mutex);
    while ((from = ring_piece_event(piece, &at, &bad))) {
        const struct event_class *c = class_of(s, from->id);
        const uint32_t words = (from->size & RING_SIZE_MASK) - RING_EVENT_WORDS;
        const uint32_t bytes = c ? event_class_bytes(c) : 0;
        if (!c || bytes > 8 * words)
            continue;
        add(s,
            &(struct trace_event){.class = c,
                                  .pid = pid,
                                  .cpu = cpu,
                                  .thread = from->thread,
                                  .fields = (const unsigned char *)(from + 1)},
            bytes);
    }
    pthread_mutex_unlock(&s->mutex);
}

void ring_sums_read(struct ring_sums *s, struct event_sums *to)
{
    char texts[SUM_SPEC_BY_MAX][TEXT_BYTES];
    pthread_mutex_lock(&s->mutex);
    vec_each (const struct ring_sum, sum, &s->sums) {
        struct event_sums_key key = {.others = sum->others};
        for (unsigned i = 0; i < s->spec->n_by && !sum->others; i++)
            key.by[i] = event_sums_value_of(s->spec->by[i], &sum->event, texts[i], TEXT_BYTES);
        event_sums_add(to, &key, &sum->cells, sum->type, sum->bytes);
    }
    pthread_mutex_unlock(&s->mutex);
}
