/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbol/spans.h"

#include <stdlib.h>

#define MAX_STEPS 65536

void symbol_spans_release(struct symbol_spans *s)
{
    vec_release(s);
}

void symbol_spans_add(struct symbol_spans *s, uint64_t low, uint64_t high, size_t id)
{
    if (low >= high)
        return;
    *vec_push(s) = (struct symbol_span){.low = low, .high = high, .id = id};
}

static int compare_spans(const void *a, const void *b)
{
    const struct symbol_span *x = a, *y = b;
    if (x->low != y->low)
        return x->low < y->low ? -1 : 1;
    if (x->high != y->high)
        return x->high > y->high ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

void symbol_spans_sort(struct symbol_spans *s)
{
    if (!s->len)
        return;
    qsort(s->at, s->len, sizeof(*s->at), compare_spans);
    uint64_t reach = 0;
    for (size_t i = 0; i < s->len; i++) {
        if (s->at[i].high > reach)
            reach = s->at[i].high;
        s->at[i].reach = reach;
    }
}

/** The number of spans that begin at or before the address: one past the first candidate. */
size_t symbol_spans_seek(const struct symbol_spans *s, uint64_t address)
{
    size_t from = 0, to = s->len;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (s->at[middle].low <= address)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

bool symbol_spans_next(const struct symbol_spans *s, uint64_t address, size_t *i)
{
    for (int steps = 0; *i > 0 && steps < MAX_STEPS; steps++) {
        const struct symbol_span *span = &s->at[*i - 1];
        if (span->reach <= address)
            break;
        --*i;
        if (span->high > address)
            return true;
    }
    *i = 0;
    return false;
}
