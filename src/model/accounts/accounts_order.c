/* SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/accounts/accounts_table.h"

struct entry {
    struct account_order_key key;
    uint32_t row;
};

static int compare_numbers(double a, double b)
{
    return a < b ? -1 : a > b;
}

/* Unknown values come last. Rows with equal values are sorted by `then`, larger first, and then by their old order. */
static int compare(const void *a, const void *b, void *arg)
{
    const struct entry *x = a, *y = b;
    const struct account_order *o = arg;
    bool x_known = o->texts ? x->key.text != NULL : !isnan(x->key.number),
         y_known = o->texts ? y->key.text != NULL : !isnan(y->key.number);
    int c = 0;
    if (!x_known || !y_known)
        c = y_known - x_known;
    else if (o->texts)
        c = strcmp(x->key.text, y->key.text);
    else
        c = compare_numbers(x->key.number, y->key.number);
    if (!o->least_first && x_known && y_known)
        c = -c;
    if (!c)
        c = compare_numbers(y->key.then, x->key.then);
    return c ? c : x->row < y->row ? -1 : x->row > y->row;
}

/*
 * With a limit, entries are sorted and cut to `top` whenever twice as many have been collected; after the first
 * cut most rows cost one comparison.
 */
void account_rows_order(struct account_ordered *to, const struct account_rows *r,
                        const struct account_order *o)
{
    bool cut = false;
    size_t top = o->top && o->top < r->len ? o->top : r->len, n = 0;
    size_t room = top < r->len / 2 ? top * 2 : r->len;
    struct entry *entries = mem_array(room ? room : 1, sizeof(*entries));
    for (uint32_t i = 0; i < r->len; i++) {
        struct entry entry = {o->key(&r->at[i], o->arg), i};
        if (cut && compare(&entry, &entries[top - 1], (void *)o) > 0)
            continue;
        if (n == room) {
            qsort_r(entries, n, sizeof(*entries), compare, (void *)o);
            n = top;
            cut = true;
        }
        entries[n++] = entry;
    }
    qsort_r(entries, n, sizeof(*entries), compare, (void *)o);
    for (size_t i = 0; i < n && i < top; i++)
        *vec_push(to) = entries[i].row;
    free(entries);
}
