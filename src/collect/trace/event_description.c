/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/trace/event_description.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/vec.h"
#include "wire/event_table.h"

#define NAME_MOST   128u
#define LABELS_MOST 4096u
#define AGENT       "allium:"        /* the events of the agent */
#define SNAPSHOT    AGENT "snapshot" /* is liballium.so's: ALLIUM_SNAPSHOT() */

struct cursor {
    const char *at, *end;
    bool bad;
};

static void skip(struct cursor *c, char what)
{
    c->bad |= c->at == c->end || *c->at != what;
    c->at += !c->bad;
}

static bool is_next(const struct cursor *c, char what)
{
    return !c->bad && c->at < c->end && *c->at == what;
}

static bool is_name(char c, bool first)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (!first && c >= '0' && c <= '9');
}

/* Moves behind an identifier of C. */
static void skip_name(struct cursor *c)
{
    const char *from = c->at;
    while (c->at < c->end && is_name(*c->at, c->at == from))
        c->at++;
    c->bad |= c->at == from || c->at - from > (ptrdiff_t)NAME_MOST;
}

static char *name(struct cursor *c)
{
    const char *from = c->at;
    skip_name(c);
    return c->bad ? NULL : mem_strndup(from, (size_t)(c->at - from));
}

static uint64_t number(struct cursor *c)
{
    uint64_t n = 0;
    const char *from = c->at;
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++)
        c->bad |=
            __builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, (uint64_t)(*c->at - '0'), &n);
    c->bad |= c->at == from;
    return n;
}

static void read_labels(struct cursor *c, struct event_field *f)
{
    struct VEC(struct event_label) labels = {0};
    while (is_next(c, ' ') && labels.len < LABELS_MOST) {
        c->at++;
        struct event_label *l = vec_push(&labels);
        *l = (struct event_label){.name = name(c)};
        skip(c, '=');
        const bool negative = is_next(c, '-');
        c->at += negative;
        const uint64_t value = number(c);
        c->bad |= value > (uint64_t)INT64_MAX + negative;
        l->value = (int64_t)(negative ? -value : value);
        c->bad |= f->bytes < 8 && (l->value >> (8 * f->bytes - 1)) + 1u > 1;
    }
    f->labels = labels.at;
    f->n_labels = (uint32_t)labels.len;
    c->bad |= !labels.len;
}

static bool has_size(const struct event_field *f)
{
    const uint32_t n = f->bytes;
    switch (f->type) {
    case EVENT_TEXT:
        return n && n <= EVENT_BYTES_MAX;
    case EVENT_FLOAT:
        return n == 4 || n == 8;
    default:
        return n == 1 || n == 2 || n == 4 || n == 8;
    }
}

static void read_field(struct cursor *c, struct event_field *f)
{
    const char *type = c->at < c->end && *c->at ? strchr(EVENT_TABLE_TYPES, *c->at) : NULL;
    c->bad |= !type;
    c->at += !c->bad;
    f->type = type ? (enum event_type)(type - EVENT_TABLE_TYPES) : EVENT_UNSIGNED;
    skip(c, ' ');
    const uint64_t bytes = number(c);
    f->bytes = bytes <= UINT32_MAX ? (uint32_t)bytes : 0;
    c->bad |= !has_size(f);
    skip(c, ' ');
    f->name = name(c);
    if (f->type == EVENT_ENUM && !c->bad)
        read_labels(c, f);
    skip(c, '\n');
}

static bool has_twin(const struct event_class *c, uint32_t i)
{
    for (uint32_t k = 0; k < i; k++)
        if (!strcmp(c->fields[k].name, c->fields[i].name))
            return true;
    return false;
}

int event_description_read(struct event_class *out, const char *text, size_t bytes)
{
    struct cursor c = {.at = text, .end = text + bytes};
    struct event_field *fields = mem_array(EVENT_FIELDS_MAX, sizeof(*fields));
    *out = (struct event_class){.fields = fields};
    skip_name(&c);
    skip(&c, ':');
    skip_name(&c);
    out->name = mem_strndup(text, (size_t)(c.at - text));
    skip(&c, '\n');
    while (!c.bad && c.at < c.end) {
        if (out->n_fields == EVENT_FIELDS_MAX) {
            c.bad = true;
            break;
        }
        read_field(&c, &fields[out->n_fields++]);
        c.bad = c.bad || has_twin(out, out->n_fields - 1u);
    }
    c.bad |= !strncmp(out->name, AGENT, sizeof(AGENT) - 1) && strcmp(out->name, SNAPSHOT) != 0;
    if (!c.bad && event_class_bytes(out) <= EVENT_BYTES_MAX)
        return 0;
    event_description_release(out);
    return -EINVAL;
}

void event_description_release(struct event_class *c)
{
    for (uint32_t i = 0; i < c->n_fields; i++) {
        const struct event_field *f = &c->fields[i];
        for (uint32_t k = 0; k < f->n_labels; k++)
            free((char *)f->labels[k].name);
        free((struct event_label *)f->labels);
        free((char *)f->name);
    }
    free((struct event_field *)c->fields);
    free((char *)c->name);
    *c = (struct event_class){.id = 0};
}
