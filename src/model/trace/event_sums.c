/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/trace/event_sums.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash_map.h"
#include "base/mem.h"

enum { OTHERS, LOST, COUNT, RATE, SUM, MIN, MEAN, MAX, NEGATIVE, HISTOGRAM, FIGURES };

/* The types of sum, min and max, and the units of all, are those of the values. */
static const struct table_column figures[FIGURES] = {
    [OTHERS] = {.name = "other_keys", .type = TABLE_FLAG, .hide_if_empty = true},
    [LOST] = {.name = "lost_events", .type = TABLE_WHOLE, .hide_if_empty = true},
    [COUNT] = {.name = "count", .unit = TABLE_COUNT, .type = TABLE_WHOLE},
    [RATE] =
        {.name = "count_per_s", .unit = TABLE_COUNT, .type = TABLE_REAL, .header = "per s", .drop_rank = 2},
    [SUM] = {.name = "sum"},
    [MIN] = {.name = "min"},
    [MEAN] = {.name = "mean", .type = TABLE_REAL},
    [MAX] = {.name = "max"},
    [NEGATIVE] = {.name = "below_0", .unit = TABLE_COUNT, .type = TABLE_WHOLE, .hide_if_empty = true},
    [HISTOGRAM] = {.name = "value_histogram", .type = TABLE_HISTOGRAM},
};

struct row {
    struct event_sums_key key; /* its texts are owned */
    struct sum_cells cells;
    enum sum_type type;
    bool bytes;
    uint64_t before; /* events at the beginning of the span */
};

struct event_sums {
    const struct sum_spec *spec;
    struct map numbers;
    struct VEC(struct row) rows;
    uint64_t early, lost;
    double span_s; /* 0: rates are not known */
    struct table_column columns[SUM_SPEC_BY_MAX + FIGURES];
    char *names[SUM_SPEC_BY_MAX];
};

struct event_sums *event_sums_new(const struct sum_spec *spec)
{
    struct event_sums *s = mem_alloc(sizeof(*s));
    s->spec = spec;
    for (unsigned i = 0; i < spec->n_by; i++) {
        struct buf name = BUF_INIT;
        bool taken = false;
        for (unsigned k = 0; k < FIGURES; k++)
            taken |= !strcmp(figures[k].name, spec->by[i]);
        buf_printf(&name, "%s%s", taken ? "by_" : "", spec->by[i]);
        s->names[i] = buf_detach(&name);
    }
    return s;
}

void event_sums_free(struct event_sums *s)
{
    if (!s)
        return;
    vec_each (const struct row, r, &s->rows)
        for (unsigned i = 0; i < s->spec->n_by; i++)
            free((char *)r->key.by[i].text);
    for (unsigned i = 0; i < s->spec->n_by; i++)
        free(s->names[i]);
    vec_release(&s->rows);
    map_release(&s->numbers);
    free(s);
}

/* Figures of values of different types have rows of their own. */
static void add_identity(const struct event_sums *s, struct buf *b, const struct event_sums_key *key,
                         enum sum_type type)
{
    buf_printf(b, "%d %d", (int)key->others, (int)type);
    for (unsigned i = 0; i < s->spec->n_by && !key->others; i++) {
        const struct event_sums_value *v = &key->by[i];
        buf_printf(b, "\n%d %" PRIx64 " %s", (int)v->kind, v->bits, v->text ? v->text : "");
    }
}

static uint64_t count_of(const struct row *r)
{
    return r->cells.count + sum_cells_values(&r->cells);
}

void event_sums_add(struct event_sums *s, const struct event_sums_key *key, const struct sum_cells *cells,
                    enum sum_type type, bool bytes)
{
    struct buf identity = BUF_INIT;
    bool added;
    add_identity(s, &identity, key, type);
    const size_t number = map_put(&s->numbers, identity.data, identity.len, s->rows.len, &added);
    buf_release(&identity);
    if (added) {
        struct row *r = vec_push(&s->rows);
        *r = (struct row){.key = *key, .type = type, .bytes = bytes};
        for (unsigned i = 0; i < s->spec->n_by; i++)
            r->key.by[i].text = key->by[i].text ? mem_strdup(key->by[i].text) : NULL;
    }
    sum_cells_merge(&s->rows.at[number].cells, cells, type);
}

void event_sums_add_all(struct event_sums *s, const struct event_sums *other)
{
    vec_each (const struct row, r, &other->rows)
        event_sums_add(s, &r->key, &r->cells, r->type, r->bytes);
    s->early += other->early;
    s->lost += other->lost;
}

void event_sums_begin_span(struct event_sums *s, const struct event_sums *before, double seconds)
{
    s->span_s = seconds;
    vec_each (struct row, r, &s->rows) {
        struct buf identity = BUF_INIT;
        add_identity(s, &identity, &r->key, r->type);
        const size_t number = before ? map_get(&before->numbers, identity.data, identity.len) : MAP_NONE;
        r->before = number == MAP_NONE ? 0 : count_of(&before->rows.at[number]);
        buf_release(&identity);
    }
}

void event_sums_note_early(struct event_sums *s, uint64_t events)
{
    s->early += events;
}

uint64_t event_sums_early(const struct event_sums *s)
{
    return s->early;
}

void event_sums_note_lost(struct event_sums *s, uint64_t events)
{
    s->lost += events;
}

uint64_t event_sums_lost(const struct event_sums *s)
{
    return s->lost;
}

struct event_sums_value event_sums_value_of_number(const struct event_field *f, uint64_t bits, char *text,
                                                   size_t room)
{
    if (f->type == EVENT_FLOAT)
        return (struct event_sums_value){.kind = EVENT_SUMS_REAL, .bits = bits};
    const char *label = f->type == EVENT_ENUM ? trace_event_label(f, (int64_t)bits) : NULL;
    if (f->type == EVENT_ENUM) {
        if (label)
            snprintf(text, room, "%s", label);
        else
            snprintf(text, room, "%" PRId64, (int64_t)bits);
        return (struct event_sums_value){.kind = EVENT_SUMS_TEXT, .text = text};
    }
    return (struct event_sums_value){.kind = f->type == EVENT_SIGNED ? EVENT_SUMS_SIGNED : EVENT_SUMS_WHOLE,
                                     .bytes = f->type == EVENT_BYTES,
                                     .bits = bits};
}

static struct event_sums_value value_of_field(const struct event_field *f, const unsigned char *at,
                                              char *text, size_t room)
{
    if (f->type == EVENT_FLOAT)
        return event_sums_value_of_number(f, sum_bits(trace_event_real(f, at)), text, room);
    if (f->type != EVENT_TEXT)
        return event_sums_value_of_number(f, trace_event_number(f, at), text, room);
    const size_t length = strnlen((const char *)at, f->bytes);
    size_t n = length < EVENT_SUMS_TEXT_BYTES ? length : EVENT_SUMS_TEXT_BYTES;
    while (n && n < length && (at[n] & 0xC0) == 0x80)
        n--;
    snprintf(text, room, "%.*s%s", (int)n, (const char *)at, n < length ? "…" : "");
    return (struct event_sums_value){.kind = EVENT_SUMS_TEXT, .text = text};
}

struct event_sums_value event_sums_value_of(const char *name, const struct trace_event *e, char *text,
                                            size_t room)
{
    uint32_t at;
    const struct event_field *f = trace_event_class_field(e->class, name, &at);
    if (f)
        return value_of_field(f, e->fields + at, text, room);
    if (!strcmp(name, "event"))
        return (struct event_sums_value){.kind = EVENT_SUMS_TEXT, .text = trace_event_name(e->class)};
    if (!strcmp(name, "pid"))
        return (struct event_sums_value){.kind = EVENT_SUMS_WHOLE, .bits = (uint32_t)e->pid};
    if (!strcmp(name, "thread"))
        return (struct event_sums_value){.kind = EVENT_SUMS_WHOLE, .bits = e->thread};
    if (!strcmp(name, "cpu") && e->cpu != TRACE_EVENT_NO_CPU)
        return (struct event_sums_value){.kind = EVENT_SUMS_WHOLE, .bits = e->cpu};
    return (struct event_sums_value){.kind = EVENT_SUMS_ABSENT};
}

enum sum_type event_sums_number_of(const struct sum_spec *spec, const struct trace_event *e, uint64_t *bits,
                                   bool *bytes)
{
    uint32_t at;
    const struct event_field *f = spec->field ? trace_event_class_field(e->class, spec->field, &at) : NULL;
    *bits = 0;
    *bytes = f && f->type == EVENT_BYTES;
    if (!f || f->type == EVENT_TEXT)
        return SUM_NONE;
    if (e->fields && f->type == EVENT_FLOAT)
        *bits = sum_bits(trace_event_real(f, e->fields + at));
    else if (e->fields)
        *bits = trace_event_number(f, e->fields + at);
    if (f->type == EVENT_FLOAT)
        return SUM_REAL;
    return f->type == EVENT_SIGNED || f->type == EVENT_ENUM ? SUM_SIGNED : SUM_UNSIGNED;
}

static const char *end_of_path(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

void event_sums_add_site(struct buf *b, const char *function, const char *file, uint32_t line,
                         const char *module, uint64_t address)
{
    const bool has_function = function && *function, has_module = module && *module;
    if (has_function)
        buf_addstr(b, function);
    else if (has_module)
        buf_printf(b, "%s+0x%" PRIx64, end_of_path(module), address);
    if (has_function && file && *file)
        buf_printf(b, " %s:%" PRIu32, end_of_path(file), line);
    else if (has_function && has_module)
        buf_printf(b, " (%s)", end_of_path(module));
}

/* ---- the table ---- */

static bool any_has(const struct event_sums *s, unsigned by)
{
    vec_each (const struct row, r, &s->rows)
        if (!r->key.others && r->key.by[by].kind != EVENT_SUMS_ABSENT)
            return true;
    return false;
}

uint64_t event_sums_others(const struct event_sums *s)
{
    uint64_t events = 0;
    vec_each (const struct row, r, &s->rows)
        events += r->key.others ? count_of(r) : 0;
    return events;
}

void event_sums_add_lacks(struct buf *b, const struct event_sums *s)
{
    bool any_value = !s->spec->field;
    if (!s->rows.len) {
        buf_printf(b, "no event %s came", s->spec->event);
        return;
    }
    vec_each (const struct row, r, &s->rows)
        any_value |= r->type != SUM_NONE;
    if (!any_value)
        buf_printf(b, "%s has no field %s that can be added up", s->spec->event, s->spec->field);
    for (unsigned i = 0; i < s->spec->n_by; i++)
        if (!any_has(s, i))
            buf_printf(b, "%s%s has no field %s", b->len ? ", and " : "", s->spec->event, s->spec->by[i]);
}

static struct table_column column_of_key(const struct event_sums *s, unsigned by)
{
    struct table_column c = {.name = s->names[by], .type = TABLE_TEXT, .shrinkable = true};
    enum event_sums_kind kind = EVENT_SUMS_ABSENT;
    bool one_kind = true, bytes = false;
    vec_each (const struct row, r, &s->rows) {
        const struct event_sums_value *v = &r->key.by[by];
        if (r->key.others || v->kind == EVENT_SUMS_ABSENT)
            continue;
        one_kind &= kind == EVENT_SUMS_ABSENT || v->kind == kind;
        kind = v->kind;
        bytes = v->bytes;
    }
    if (one_kind && kind == EVENT_SUMS_WHOLE)
        c = (struct table_column){
            .name = s->names[by], .type = TABLE_WHOLE, .unit = bytes ? TABLE_BYTES : TABLE_PLAIN};
    else if (one_kind && kind == EVENT_SUMS_SIGNED)
        c = (struct table_column){.name = s->names[by], .type = TABLE_SIGNED};
    return c;
}

static void set_key(struct table *t, const struct row *r, unsigned by)
{
    const struct event_sums_value *v = &r->key.by[by];
    const enum table_type type = t->columns[by].type;
    struct buf text = BUF_INIT;
    if (r->key.others || v->kind == EVENT_SUMS_ABSENT)
        return;
    if (type == TABLE_WHOLE)
        table_whole(t, by, v->bits);
    else if (type == TABLE_SIGNED)
        table_signed(t, by, (int64_t)v->bits);
    else if (v->kind == EVENT_SUMS_TEXT)
        table_text(t, by, v->text);
    else {
        if (v->kind == EVENT_SUMS_REAL)
            buf_printf(&text, "%.17g", sum_real(v->bits));
        else if (v->kind == EVENT_SUMS_SIGNED)
            buf_printf(&text, "%" PRId64, (int64_t)v->bits);
        else
            buf_printf(&text, "%" PRIu64, v->bits);
        table_text(t, by, buf_str(&text));
    }
    buf_release(&text);
}

static double sum_of(const struct row *r)
{
    const struct sum_cells *c = &r->cells;
    if (r->type == SUM_REAL)
        return sum_real(c->low);
    if ((int64_t)c->high >= 0)
        return (double)c->high * 0x1p64 + (double)c->low;
    return -((double)~c->high * 0x1p64 + (double)~c->low +
             1); /* adding numbers of one sign keeps small ones */
}

/* A sum that has no room in 64 bits is a bound, or, if it may be negative, a double (see columns_of_values()). */
static void set_sum(struct table *t, uint32_t column, const struct row *r)
{
    if (t->columns[column].type == TABLE_REAL)
        table_real(t, column, sum_of(r));
    else if (t->columns[column].type == TABLE_SIGNED)
        table_signed(t, column, (int64_t)r->cells.low);
    else if (r->cells.high)
        table_at_least(t, column, UINT64_MAX);
    else
        table_whole(t, column, r->cells.low);
}

static void set_value(struct table *t, uint32_t column, enum sum_type type, uint64_t bits)
{
    if (t->columns[column].type == TABLE_REAL)
        table_real(t, column,
                   type == SUM_REAL     ? sum_real(bits)
                   : type == SUM_SIGNED ? (double)(int64_t)bits
                                        : (double)bits);
    else if (t->columns[column].type == TABLE_SIGNED)
        table_signed(t, column, (int64_t)bits);
    else
        table_whole(t, column, bits);
}

/* Events that were lost can only add to a count, to a sum of numbers without a sign, and to the largest value. */
static void mark(struct table *t, uint32_t at, bool values)
{
    table_mark_least(t, at + COUNT);
    table_mark_least(t, at + RATE);
    if (!values)
        return;
    (t->columns[at + SUM].type == TABLE_WHOLE ? table_mark_least : table_mark_unsure)(t, at + SUM);
    table_mark_unsure(t, at + MIN);
    table_mark_unsure(t, at + MEAN);
    table_mark_least(t, at + MAX);
    table_mark_least(t, at + NEGATIVE);
}

static void set_figures(const struct event_sums *s, struct table *t, const struct row *r)
{
    const uint32_t at = s->spec->n_by;
    const uint64_t values = sum_cells_values(&r->cells);
    if (r->key.others)
        table_flag(t, at + OTHERS, true);
    table_whole(t, at + COUNT, r->cells.count + values);
    if (s->span_s > 0)
        table_real(t, at + RATE, (double)(count_of(r) - r->before) / s->span_s);
    if (!values || !s->spec->field)
        return;
    set_sum(t, at + SUM, r);
    set_value(t, at + MIN, r->type, sum_value(r->type, ~r->cells.least));
    set_value(t, at + MAX, r->type, sum_value(r->type, r->cells.most));
    table_real(t, at + MEAN, sum_of(r) / (double)values);
    if (r->cells.slots[SUM_SLOT_NEGATIVE])
        table_whole(t, at + NEGATIVE, r->cells.slots[SUM_SLOT_NEGATIVE]);
    table_histogram(t, at + HISTOGRAM, r->cells.slots, TABLE_SLOTS);
}

/* Chooses types that fit all values. */
static void columns_of_values(struct event_sums *s, struct table_column *columns)
{
    enum sum_type type = SUM_NONE;
    bool one_type = true, bytes = false, fits = true;
    vec_each (const struct row, r, &s->rows) {
        one_type &= type == SUM_NONE || r->type == SUM_NONE || r->type == type;
        type = r->type == SUM_NONE ? type : r->type;
        bytes |= r->bytes;
        fits &= r->type != SUM_SIGNED || r->cells.high == ((int64_t)r->cells.low < 0 ? UINT64_MAX : 0);
    }
    const enum table_type shown = !one_type || type == SUM_REAL ? TABLE_REAL
                                  : type == SUM_SIGNED          ? TABLE_SIGNED
                                                                : TABLE_WHOLE;
    const enum table_unit unit = bytes ? TABLE_BYTES : TABLE_PLAIN;
    columns[SUM].type = fits ? shown : TABLE_REAL;
    columns[MIN].type = columns[MAX].type = shown;
    columns[SUM].unit = columns[MIN].unit = columns[MEAN].unit = columns[MAX].unit = columns[HISTOGRAM].unit =
        unit;
}

struct table *event_sums_table(struct event_sums *s, uint32_t top)
{
    const unsigned n_by = s->spec->n_by, n_figures = s->spec->field ? FIGURES : RATE + 1;
    for (unsigned i = 0; i < n_by; i++)
        s->columns[i] = column_of_key(s, i);
    memcpy(s->columns + n_by, figures, sizeof(figures));
    columns_of_values(s, s->columns + n_by);
    struct table *t = table_new("sums", 1, s->columns, n_by + n_figures);
    vec_each (const struct row, r, &s->rows) {
        table_row(t);
        for (unsigned i = 0; i < n_by; i++)
            set_key(t, r, i);
        set_figures(s, t, r);
        if (s->lost) {
            table_whole(t, n_by + LOST, s->lost);
            mark(t, n_by, s->spec->field != NULL);
        }
    }
    t->keys = (1u << n_by) - 1;
    table_sort(t, n_by + COUNT, TABLE_MOST_FIRST);
    if (s->spec->field)
        table_sort(t, n_by + SUM, TABLE_MOST_FIRST);
    if (top)
        table_cut(t, top);
    return t;
}
