/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/table/table_query.h"

#include <math.h>
#include <string.h>

static enum query_type type_of(const struct table_column *c)
{
    if (c->type == TABLE_TEXT || c->type == TABLE_LINES)
        return QUERY_TEXT;
    if (c->unit == TABLE_BYTES)
        return QUERY_SIZE;
    if (c->unit == TABLE_DURATION)
        return QUERY_DURATION;
    return QUERY_NUMBER;
}

int table_query_init(struct table_query *q, const char *text, const struct table_column *columns,
                     uint32_t n_columns, struct error *e)
{
    *q = (struct table_query){NULL};
    if (!text)
        return 0;
    struct query_field *fields = mem_array(n_columns, sizeof(*fields));
    for (uint32_t i = 0; i < n_columns; i++)
        fields[i] = (struct query_field){columns[i].name, type_of(&columns[i]), ""};
    int bad = query_parse(&q->query, text, fields, n_columns, e, NULL);
    free(fields);
    return bad;
}

void table_query_release(struct table_query *q)
{
    query_free(q->query);
    q->query = NULL;
}

struct subject {
    const struct table *t;
    uint32_t row;
};

static void offer_lines(const char *text, struct query_probe *probe)
{
    while (*text) {
        size_t len = strcspn(text, "\n");
        char *line = strndup(text, len);
        bool holds = line && query_offer_text(probe, line);
        free(line);
        if (holds)
            return;
        text += len + (text[len] == '\n');
    }
}

static void look_up(void *subject, size_t field, struct query_probe *probe)
{
    const struct subject *s = subject;
    const struct table_value *v = table_at(s->t, s->row, (uint32_t)field);
    if (!v->known)
        return;
    switch (s->t->columns[field].type) {
    case TABLE_TEXT:
        query_offer_text(probe, v->text);
        break;
    case TABLE_LINES:
        offer_lines(v->text, probe);
        break;
    case TABLE_HISTOGRAM:
        break;
    case TABLE_WHOLE:
    case TABLE_ADDRESS:
        query_offer_number(probe, v->whole > INT64_MAX ? INT64_MAX : (int64_t)v->whole);
        break;
    default:
        query_offer_number(probe, llrint(table_number(s->t, s->row, (uint32_t)field)));
    }
}

bool table_query_fits(const struct table_query *q, const struct table *t, uint32_t row)
{
    struct subject s = {t, row};
    return !q->query || query_match(q->query, look_up, &s);
}

static bool keeps(const struct table *t, uint32_t row, void *arg)
{
    return table_query_fits(arg, t, row);
}

void table_query_apply(const struct table_query *q, struct table *t)
{
    if (q->query)
        table_keep(t, keeps, (void *)(uintptr_t)q);
}
