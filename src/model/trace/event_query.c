/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/trace/event_query.h"

#include <math.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/vec.h"

enum { AT_EVENT, AT_CPU, AT_PROCESS, AT_THREAD, AT_TIME, AT_FUNC, AT_FILE, AT_MODULE, AT_FIELDS };

static const struct query_field common[AT_FIELDS] = {
    [AT_EVENT] = {"event", QUERY_TEXT, ""},       [AT_CPU] = {"cpu", QUERY_NUMBER, ""},
    [AT_PROCESS] = {"process", QUERY_NUMBER, ""}, [AT_THREAD] = {"thread", QUERY_NUMBER, ""},
    [AT_TIME] = {"time", QUERY_DURATION, ""},     [AT_FUNC] = {"func", QUERY_TEXT, ""},
    [AT_FILE] = {"file", QUERY_PATH, ""},         [AT_MODULE] = {"module", QUERY_MODULE, ""},
};

struct event_query {
    struct query *query; /* NULL: everything */
    struct VEC(struct query_field) fields;
    struct VEC(char *) own; /* names */
};

/* A field of an event whose name is one of the common ones has this before its name. */
#define OWN       "own-"
#define OWN_BYTES (sizeof(OWN) - 1)

static enum query_type type_of(const struct event_field *f)
{
    switch (f->type) {
    case EVENT_BYTES:
        return QUERY_SIZE;
    case EVENT_TEXT:
    case EVENT_ENUM:
        return QUERY_TEXT;
    default:
        return QUERY_NUMBER;
    }
}

/* Returns the name under which queries know a field of an event. */
static const char *name_of(struct event_query *q, const char *field)
{
    for (int i = 0; i < AT_FIELDS; i++)
        if (!strcmp(common[i].name, field)) {
            struct buf b = BUF_INIT;
            buf_printf(&b, OWN "%s", field);
            return *vec_push(&q->own) = buf_detach(&b);
        }
    return field;
}

static bool has_field(const struct event_query *q, const char *name)
{
    vec_each (const struct query_field, f, &q->fields)
        if (!strcmp(f->name, name))
            return true;
    return false;
}

int event_query_new(struct event_query **out, const char *text, const struct event_class *const *classes,
                    size_t n_classes, struct error *e)
{
    struct event_query *q = *out = mem_alloc(sizeof(*q));
    for (int i = 0; i < AT_FIELDS; i++)
        *vec_push(&q->fields) = common[i];
    for (size_t i = 0; i < n_classes; i++)
        for (uint32_t k = 0; k < classes[i]->n_fields; k++) {
            const struct event_field *f = &classes[i]->fields[k];
            const char *name = name_of(q, f->name);
            if (!has_field(q, name))
                *vec_push(&q->fields) = (struct query_field){name, type_of(f), ""};
        }
    return text ? query_parse(&q->query, text, q->fields.at, q->fields.len, e, NULL) : 0;
}

void event_query_free(struct event_query *q)
{
    if (!q)
        return;
    query_free(q->query);
    vec_release(&q->fields);
    vec_each (char *, name, &q->own)
        free(*name);
    vec_release(&q->own);
    free(q);
}

bool event_query_uses_place(const struct event_query *q)
{
    return q->query && (query_uses(q->query, AT_FUNC) || query_uses(q->query, AT_FILE) ||
                        query_uses(q->query, AT_MODULE));
}

bool event_query_uses_time(const struct event_query *q)
{
    return q->query && query_uses(q->query, AT_TIME);
}

size_t event_query_ranges(const struct event_query *q, const char *field,
                          struct query_range out[static QUERY_RANGES_MAX])
{
    size_t at = 0;
    while (at < q->fields.len && strcmp(q->fields.at[at].name, field))
        at++;
    if (q->query && at < q->fields.len)
        return query_ranges(q->query, at, out);
    *out = (struct query_range){INT64_MIN, INT64_MAX};
    return 1;
}

struct subject {
    const struct event_query *query;
    const struct trace_event *event;
    uint64_t began_ns;
    event_place_fn *place;
    void *arg;
};

static void offer_whole(struct query_probe *probe, uint64_t value)
{
    query_offer_number(probe, value > INT64_MAX ? INT64_MAX : (int64_t)value);
}

static void offer_text(struct query_probe *probe, const struct event_field *f, const unsigned char *at)
{
    char text[EVENT_BYTES_MAX + 1];
    memcpy(text, at, f->bytes);
    text[f->bytes] = '\0';
    query_offer_text(probe, text);
}

static void offer_field(struct query_probe *probe, const struct event_field *f, const unsigned char *at,
                        enum query_type wanted)
{
    const uint64_t value = trace_event_number(f, at);
    if ((wanted == QUERY_TEXT) != (type_of(f) == QUERY_TEXT))
        return; /* two classes have different fields of that name */
    switch (f->type) {
    case EVENT_TEXT:
        offer_text(probe, f, at);
        break;
    case EVENT_ENUM:
        query_offer_text(probe, trace_event_label(f, (int64_t)value));
        break;
    case EVENT_FLOAT:
        query_offer_number(probe, llrint(trace_event_real(f, at)));
        break;
    case EVENT_SIGNED:
        query_offer_number(probe, (int64_t)value);
        break;
    default:
        offer_whole(probe, value);
    }
}

static void look_up_field(const struct subject *s, size_t field, struct query_probe *probe)
{
    const struct query_field *wanted = &s->query->fields.at[field];
    const char *name = wanted->name + (strncmp(wanted->name, OWN, OWN_BYTES) ? 0 : OWN_BYTES);
    const unsigned char *at;
    const struct event_field *f = trace_event_field(s->event, name, &at);
    if (f)
        offer_field(probe, f, at, wanted->type);
}

static void look_up(void *subject, size_t field, struct query_probe *probe)
{
    const struct subject *s = subject;
    const struct trace_event *e = s->event;
    switch (field) {
    case AT_EVENT:
        if (!query_offer_text(probe, trace_event_name(e->class)))
            query_offer_text(probe, e->class->name);
        break;
    case AT_CPU:
        query_offer_number(probe, e->cpu);
        break;
    case AT_PROCESS:
        query_offer_number(probe, e->pid);
        break;
    case AT_THREAD:
        query_offer_number(probe, e->thread);
        break;
    case AT_TIME:
        query_offer_number(probe, (int64_t)(e->time_ns - s->began_ns));
        break;
    case AT_FUNC:
        query_offer_text(probe, s->place(s->arg, e).function);
        break;
    case AT_FILE:
        query_offer_text(probe, s->place(s->arg, e).file);
        break;
    case AT_MODULE:
        query_offer_text(probe, s->place(s->arg, e).module);
        break;
    default:
        look_up_field(s, field, probe);
    }
}

bool event_query_fits(const struct event_query *q, const struct trace_event *e, uint64_t began_ns,
                      event_place_fn *place, void *arg)
{
    struct subject s = {q, e, began_ns, place, arg};
    return !q->query || query_match(q->query, look_up, &s);
}
