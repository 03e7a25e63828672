/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/sampled_rows.h"

#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash_map.h"
#include "bpf/sys.h"
#include "sys/stack_samples.h"

enum extra { SAMPLES, LOW, HIGH, EXTRAS };

struct sampled_rows {
    struct map index; /* key -> number of the row */
    struct VEC(struct row) rows;
};

struct row {
    void *sum; /* of the samples, as they are */
    struct estimate weight;
    char *key;
};

struct sys_tool *sampled_tool_new(const struct sys_tool *tool)
{
    uint32_t n = tool->n_columns;
    const struct table_column *weight = &tool->columns[tool->weight];
    struct sys_tool *copy = mem_alloc(sizeof(*copy));
    struct table_column *columns = mem_array(n + EXTRAS, sizeof(*columns));
    struct buf low = BUF_INIT, high = BUF_INIT;
    *copy = *tool;
    memcpy(columns, tool->columns, n * sizeof(*columns));
    buf_printf(&low, "%s_low", weight->name);
    buf_printf(&high, "%s_high", weight->name);
    columns[n + SAMPLES] = (struct table_column){"samples", TABLE_COUNT, TABLE_WHOLE, .drop_rank = 1};
    columns[n + LOW] = (struct table_column){buf_detach(&low), weight->unit, TABLE_WHOLE};
    columns[n + HIGH] = (struct table_column){buf_detach(&high), weight->unit, TABLE_WHOLE};
    copy->columns = columns;
    copy->n_columns = n + EXTRAS;
    return copy;
}

void sampled_tool_free(struct sys_tool *tool)
{
    if (!tool)
        return;
    for (enum extra i = LOW; i <= HIGH; i++)
        free((char *)(uintptr_t)tool->columns[tool->n_columns - EXTRAS + i].name);
    free((struct table_column *)(uintptr_t)tool->columns);
    free(tool);
}

static void forget(struct sampled_rows *r)
{
    vec_each (struct row, row, &r->rows) {
        free(row->sum);
        free(row->key);
    }
    vec_release(&r->rows);
    map_release(&r->index);
}

void sampled_rows_free(struct sampled_rows *r)
{
    if (!r)
        return;
    forget(r);
    free(r);
}

bool sampled_rows_are(const struct sys_session *s)
{
    return s->samples && s->settings.part && s->settings.part->stacks;
}

void sampled_rows_add(struct sys_session *s, const void *key, const void *value)
{
    const struct sys_tool *tool = s->tool;
    size_t key_bytes = s->settings.part->key_bytes;
    char unified[SYS_KEY_BYTES_MAX];
    int32_t stack;
    bool added;
    memcpy(unified, key, key_bytes);
    memcpy(&stack, unified + tool->user_stack_at, sizeof(stack));
    if (stack == SYS_STACK_NOT_SAMPLED)
        return;
    stack = stack_samples_unify(s, stack);
    memcpy(unified + tool->user_stack_at, &stack, sizeof(stack));
    if (!s->sampled)
        s->sampled = mem_alloc(sizeof(*s->sampled));
    struct sampled_rows *r = s->sampled;
    size_t at = map_put(&r->index, unified, key_bytes, r->rows.len, &added);
    if (added) {
        struct row fresh = {.sum = mem_alloc(rows_sum_bytes(s)), .key = mem_alloc(SYS_KEY_BYTES_MAX)};
        memcpy(fresh.key, unified, key_bytes);
        *vec_push(&r->rows) = fresh;
    }
    rows_add(s, r->rows.at[at].sum, value);
    double weight = tool->weigh ? (double)tool->weigh(value) : 1;
    estimate_add_one_of(&r->rows.at[at].weight, weight, s->settings.config.sample);
}

/* So many times the same values, added up; what is not a sum (flags, a latest time) stays what it is. */
static void multiply(const struct sys_session *s, void *sum, uint32_t times)
{
    const size_t bytes = rows_sum_bytes(s);
    char *twice = mem_alloc(bytes), *copy = mem_alloc(bytes);
    memcpy(twice, sum, bytes);
    memset(sum, 0, bytes);
    for (; times; times >>= 1) {
        if (times & 1)
            rows_add(s, sum, twice);
        memcpy(copy, twice, bytes);
        rows_add(s, twice, copy);
    }
    free(twice);
    free(copy);
}

void sampled_rows_take(struct sys_session *s, struct table *t)
{
    struct sampled_rows *r = s->sampled;
    uint32_t extra = s->tool->n_columns - EXTRAS;
    if (!r)
        return;
    vec_each (struct row, row, &r->rows) {
        multiply(s, row->sum, s->settings.config.sample);
        if (!rows_show(s, t, row->key, row->sum))
            continue;
        struct interval range = estimate_interval(&row->weight);
        table_whole(t, extra + SAMPLES, row->weight.samples);
        table_whole(t, extra + LOW, (uint64_t)floor(range.low));
        table_whole(t, extra + HIGH, (uint64_t)ceil(range.high));
    }
    forget(r);
}
