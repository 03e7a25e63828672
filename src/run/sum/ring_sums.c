/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/sum/ring_sums.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash_map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "collect/trace/agent_events.h"
#include "collect/trace/ring_image.h"
#include "collect/trace/user_classes.h"
#include "run/sum/call_names.h"
#include "run/sum/module_events.h"

#define TEXT_BYTES 256u
#define KEYS_MOST  4095u /* as in a table of a process */

/* The figures of a key, and an event that has it. */
struct ring_sum {
    struct sum_cells cells;
    struct trace_event event; /* its fields are owned */
    enum sum_type type;
    uint32_t module;    /* of its call: module_events_before() */
    bool bytes, others; /* of all keys for which there was no room */
};

/* An event that is held. Its words follow. */
struct held_event {
    struct ring_sums_source from;
    const struct event_class *class;
};

struct ring_sums {
    const struct sum_spec *spec;
    pthread_mutex_t mutex;
    struct VEC(struct event_class *) classes;
    struct user_classes *user;
    struct map numbers; /* of the sums, by key */
    struct VEC(struct ring_sum) sums;
    struct buf key;
    uint64_t lost;
    struct module_events *modules; /* NULL: no key has a call */
    struct buf held, held_before;  /* events of this round, and of the one before */
    /* of the thread that reads */
    const struct wrappers *wrappers;
    char *dir;
    struct call_names *names;
};

static bool has_calls(const struct sum_spec *spec)
{
    for (unsigned i = 0; i < spec->n_by; i++)
        if (!strcmp(spec->by[i], "site"))
            return !sum_spec_is_user(spec) && !sum_spec_is_kernel(spec);
    return false;
}

struct ring_sums *ring_sums_new(const struct sum_spec *spec, const struct wrappers *wrappers)
{
    struct ring_sums *s = mem_alloc(sizeof(*s));
    *s = (struct ring_sums){
        .spec = spec, .key = BUF_INIT, .held = BUF_INIT, .held_before = BUF_INIT, .wrappers = wrappers};
    s->modules = has_calls(spec) ? module_events_new() : NULL;
    s->user = sum_spec_is_user(spec) ? user_classes_new() : NULL;
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
    buf_release(&s->held);
    buf_release(&s->held_before);
    module_events_free(s->modules);
    user_classes_free(s->user);
    call_names_free(s->names);
    free(s->dir);
    pthread_mutex_destroy(&s->mutex);
    free(s);
}

void ring_sums_set_ledgers(struct ring_sums *s, const char *dir)
{
    if (!s->modules || !s->wrappers)
        return;
    s->dir = mem_strdup(dir);
    s->names = call_names_new(s->dir, s->wrappers);
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

/* Appends what event_sums_value_of() shows of a text: a longer one is cut. */
static void add_text(struct buf *key, const struct event_field *f, const unsigned char *at)
{
    const size_t n = strnlen((const char *)at, f->bytes), most = EVENT_SUMS_TEXT_BYTES + 1;
    buf_add(key, at, n < most ? n : most);
    buf_addch(key, '\0');
}

/* Makes the key: the class, and what event_sums_value_of() reads of the event for each field of by=. */
static void make_key(struct ring_sums *s, const struct trace_event *e, uint32_t module)
{
    buf_reset(&s->key);
    buf_add(&s->key, &e->class->id, sizeof(e->class->id));
    if (s->modules) {
        buf_add(&s->key, &e->image_id, sizeof(e->image_id));
        buf_add(&s->key, &module, sizeof(module));
    }
    for (unsigned i = 0; i < s->spec->n_by; i++) {
        const unsigned char *at;
        const struct event_field *f = trace_event_field(e, s->spec->by[i], &at);
        if (f && f->type == EVENT_TEXT)
            add_text(&s->key, f, at);
        else if (f)
            buf_add(&s->key, at, f->bytes);
        else if (!strcmp(s->spec->by[i], "thread"))
            buf_add(&s->key, &e->thread, sizeof(e->thread));
        else if (!strcmp(s->spec->by[i], "cpu"))
            buf_add(&s->key, &e->cpu, sizeof(e->cpu));
        else if (!strcmp(s->spec->by[i], "pid"))
            buf_add(&s->key, &e->pid, sizeof(e->pid));
    }
}

static void add(struct ring_sums *s, const struct trace_event *e)
{
    uint64_t value;
    bool added, bytes;
    const uint32_t module =
        s->modules ? module_events_before(s->modules, e, trace_event_value(e, "site")) : 0;
    make_key(s, e, module);
    const enum sum_type type = event_sums_number_of(s->spec, e, &value, &bytes);
    const bool others = s->sums.len >= KEYS_MOST && map_get(&s->numbers, s->key.data, s->key.len) == MAP_NONE;
    if (others) { /* their rows differ by the type of the values alone */
        buf_reset(&s->key);
        buf_add(&s->key, &type, 1);
    }
    const size_t number = map_put(&s->numbers, s->key.data, s->key.len, s->sums.len, &added);
    if (added) {
        struct ring_sum *sum = vec_push(&s->sums);
        const uint32_t field_bytes = event_class_bytes(e->class);
        unsigned char *fields = mem_alloc(field_bytes);
        memcpy(fields, e->fields, field_bytes);
        *sum =
            (struct ring_sum){.event = *e, .type = type, .module = module, .bytes = bytes, .others = others};
        sum->event.fields = fields;
    }
    sum_cells_add(&s->sums.at[number].cells, type, value);
}

static struct trace_event event_of(const struct ring_sums_source *from, const struct event_class *c,
                                   const struct ring_event *e)
{
    return (struct trace_event){.class = c,
                                .domain = "ust",
                                .time_ns = e->ticks, /* only compared with others of the image */
                                .image_id = from->image_id,
                                .pid = from->pid,
                                .cpu = from->cpu,
                                .thread = e->thread,
                                .fields = (const unsigned char *)(e + 1)};
}

static void hold(struct ring_sums *s, const struct ring_sums_source *from, const struct event_class *c,
                 const struct ring_event *e)
{
    struct held_event held = {*from, c};
    held.from.user = NULL;
    buf_add(&s->held, &held, sizeof(held));
    buf_add(&s->held, e, 8 * (e->size & RING_SIZE_MASK));
}

static void note_module(struct ring_sums *s, const struct ring_sums_source *from, const struct ring_event *e)
{
    uint32_t n;
    const struct event_class *all = agent_events(&n);
    for (uint32_t i = 0; i < n; i++)
        if (all[i].id == e->id &&
            event_class_bytes(&all[i]) <= 8 * ((e->size & RING_SIZE_MASK) - RING_EVENT_WORDS))
            module_events_add(s->modules, event_of(from, &all[i], e));
}

uint32_t ring_sums_add(struct ring_sums *s, const struct ring_sums_source *from,
                       const struct ring_piece *piece)
{
    const struct ring_event *e;
    uint32_t at = 0, unknown = 0;
    bool bad = false;
    pthread_mutex_lock(&s->mutex);
    while ((e = ring_piece_event(piece, &at, &bad))) {
        const uint32_t words = e->size & RING_SIZE_MASK;
        const bool own = from->user && e->id >= EVENT_ID_OWN;
        const struct event_class *c = !own      ? class_of(s, e->id)
                                      : s->user ? user_classes_find(s->user, from->user, e->id, words)
                                                : NULL;
        unknown += own && s->user && !c;
        if (s->modules && module_events_has(e->id))
            note_module(s, from, e);
        if (!c || event_class_bytes(c) > 8 * (words - RING_EVENT_WORDS) ||
            (own && !sum_spec_has(s->spec, trace_event_name(c))))
            continue;
        const struct trace_event event = event_of(from, c, e);
        if (s->modules)
            hold(s, from, c, e);
        else
            add(s, &event);
    }
    pthread_mutex_unlock(&s->mutex);
    return unknown + bad; /* of a damaged piece, one event at least */
}

void ring_sums_end_round(struct ring_sums *s, uint64_t lost)
{
    struct held_event held;
    pthread_mutex_lock(&s->mutex);
    s->lost = lost;
    for (size_t at = 0; at < s->held_before.len;) {
        memcpy(&held, s->held_before.data + at, sizeof(held));
        const struct ring_event *e = (const struct ring_event *)(s->held_before.data + at + sizeof(held));
        const struct trace_event event = event_of(&held.from, held.class, e);
        add(s, &event);
        at += sizeof(held) + 8 * (e->size & RING_SIZE_MASK);
    }
    buf_reset(&s->held_before);
    const struct buf empty = s->held_before;
    s->held_before = s->held;
    s->held = empty;
    pthread_mutex_unlock(&s->mutex);
}

/* ---- reading ---- */

/* A copy of the sums, which are named while others are added. */
struct reading {
    struct VEC(struct ring_sum) sums;
    const struct trace_event **told; /* of each: what tells its module */
    struct call_name_place *places;  /* of each: its call */
    uint64_t lost;
};

static void copy(struct ring_sums *s, struct reading *r)
{
    pthread_mutex_lock(&s->mutex);
    r->lost = s->lost;
    r->told = mem_array(s->sums.len, sizeof(*r->told));
    r->places = mem_array(s->sums.len, sizeof(*r->places));
    vec_each (const struct ring_sum, sum, &s->sums) {
        const struct trace_event *e = &sum->event;
        if (s->names)
            r->told[r->sums.len] =
                module_events_told(s->modules, e->image_id, trace_event_value(e, "site"), sum->module);
        *vec_push(&r->sums) = *sum;
    }
    pthread_mutex_unlock(&s->mutex);
}

static void read_names(struct ring_sums *s, struct reading *r)
{
    call_names_begin(s->names);
    for (size_t i = 0; i < r->sums.len; i++) {
        const struct trace_event *e = &r->sums.at[i].event;
        r->places[i] =
            call_names_find(s->names, e->pid, e->image_id, trace_event_value(e, "site"), r->told[i]);
    }
    call_names_read(s->names);
}

static struct event_sums_value site_of(const struct ring_sums *s, const struct reading *r, size_t number,
                                       char text[TEXT_BYTES])
{
    struct buf name = BUF_INIT;
    if (s->names)
        call_names_add(s->names, &r->places[number], &name);
    if (!name.len)
        buf_printf(&name, "0x%" PRIx64, trace_event_value(&r->sums.at[number].event, "site"));
    snprintf(text, TEXT_BYTES, "%s", buf_str(&name));
    buf_release(&name);
    return (struct event_sums_value){.kind = EVENT_SUMS_TEXT, .text = text};
}

void ring_sums_read(struct ring_sums *s, struct event_sums *to)
{
    char texts[SUM_SPEC_BY_MAX][TEXT_BYTES];
    struct reading r = {.told = NULL};
    uint32_t unused;
    copy(s, &r);
    if (s->names)
        read_names(s, &r);
    for (size_t k = 0; k < r.sums.len; k++) {
        const struct ring_sum *sum = &r.sums.at[k];
        struct event_sums_key key = {.others = sum->others};
        for (unsigned i = 0; i < s->spec->n_by && !sum->others; i++) {
            const char *by = s->spec->by[i];
            const bool is_site =
                s->modules && !strcmp(by, "site") && trace_event_class_field(sum->event.class, by, &unused);
            key.by[i] = is_site ? site_of(s, &r, k, texts[i])
                                : event_sums_value_of(by, &sum->event, texts[i], TEXT_BYTES);
        }
        event_sums_add(to, &key, &sum->cells, sum->type, sum->bytes);
    }
    event_sums_note_lost(to, r.lost);
    vec_release(&r.sums);
    free(r.told);
    free(r.places);
}
