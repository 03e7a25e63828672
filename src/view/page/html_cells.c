/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/page/html_cells.h"

#include <stdlib.h>

#include "model/profile/moments.h"

/* The sums of one kind as columns: "allocated_samples" and so on. */
enum { SAMPLES, SEEN, BYTES, COUNT, SUMS };

static void put_sums(double *all, size_t n, size_t i, const struct profile_sums *s)
{
    all[SAMPLES * n + i] = (double)s->samples;
    all[SEEN * n + i] = s->seen_bytes;
    all[BYTES * n + i] = s->bytes;
    all[COUNT * n + i] = s->count;
}

/* `seen` is often the same as `bytes`, and `count` as `samples`: where every object was sampled. */
static void add_sums(struct page_blob *b, const char *key, const double *all, size_t n)
{
    json_open(&b->json, key, '{');
    const size_t samples = page_blob_add_f64(b, "samples", all + SAMPLES * n, n, NULL, 0);
    const size_t bytes = page_blob_add_f64(b, "bytes", all + BYTES * n, n, NULL, 0);
    page_blob_add_f64(b, "seen", all + SEEN * n, n, all + BYTES * n, bytes);
    page_blob_add_f64(b, "count", all + COUNT * n, n, all + SAMPLES * n, samples);
    json_close(&b->json, '}');
}

struct order {
    uint32_t row, cell;
};
struct orders VEC(struct order);

static int by_row(const void *a, const void *b)
{
    const struct order *x = a, *y = b;
    if (x->row != y->row)
        return x->row > y->row ? 1 : -1;
    return (x->cell > y->cell) - (x->cell < y->cell);
}

/* The cells of the page in their order. */
static void order_cells(struct orders *out, const struct call_tree *t, const struct profile *p)
{
    for (uint32_t i = 0; i < p->cells.len; i++) {
        const uint32_t row = call_tree_row(t, p, i);
        if (row != PROFILE_NONE && !call_tree_is_rest(t, t->rows.at[row].at.node))
            *vec_push(out) = (struct order){row, i};
    }
    if (out->len)
        qsort(out->at, out->len, sizeof(*out->at), by_row);
}

static void add_places(struct page_blob *b, const struct orders *order, const struct profile *p)
{
    const size_t n = order->len;
    uint32_t *row = mem_array(n + 1, sizeof(*row)), *image = mem_array(n + 1, sizeof(*image));
    double *period = mem_array(n + 1, sizeof(*period));
    for (size_t i = 0; i < n; i++) {
        const struct profile_cell *c = &p->cells.at[order->at[i].cell];
        row[i] = order->at[i].row;
        image[i] = c->image;
        period[i] = (double)c->period_bytes;
    }
    page_blob_add_u32(b, "row", row, n);
    page_blob_add_f64(b, "period_bytes", period, n, NULL, 0);
    uint32_t most = 0;
    for (size_t i = 0; i < n; i++)
        most = image[i] > most ? image[i] : most;
    if (most) /* else the first one has all */
        page_blob_add_u32(b, "image", image, n);
    free(row);
    free(image);
    free(period);
}

void html_cells_add(struct page_blob *b, const struct call_tree *t, const struct profile *p)
{
    struct orders order = {0};
    order_cells(&order, t, p);
    const size_t n = order.len;
    enum { ALLOCATED, FREED, PEAK, TEMPORARY, KINDS };
    static const char *const keys[KINDS] = {"allocated", "freed", "peak", "temporary"};
    double *all = mem_array(n * SUMS * KINDS + 1, sizeof(*all));
    for (size_t i = 0; i < n; i++) {
        const struct profile_cell *c = &p->cells.at[order.at[i].cell];
        const struct profile_sums temporary = profile_temporary(c);
        put_sums(all + ALLOCATED * SUMS * n, n, i, &c->allocated);
        put_sums(all + FREED * SUMS * n, n, i, &c->freed);
        put_sums(all + PEAK * SUMS * n, n, i, &c->at_peak);
        put_sums(all + TEMPORARY * SUMS * n, n, i, &temporary);
    }
    json_open(&b->json, "cells", '{');
    add_places(b, &order, p);
    for (size_t k = 0; k < KINDS; k++)
        add_sums(b, keys[k], all + k * SUMS * n, n);
    json_close(&b->json, '}');
    vec_release(&order);
    free(all);
}

/* ---- moments ---- */

static void add_changes(struct page_blob *b, const struct moments *m, const uint32_t *number)
{
    size_t n = 0, i = 0;
    vec_each (const struct moments_change, c, &m->changes)
        n += number[c->to.cell] != PROFILE_NONE;
    uint32_t *time = mem_array(n + 1, sizeof(*time)), *cell = mem_array(n + 1, sizeof(*cell));
    double *allocated = mem_array(n * SUMS + 1, sizeof(*allocated)),
           *freed = mem_array(n * SUMS + 1, sizeof(*freed));
    vec_each (const struct moments_change, c, &m->changes) {
        if (number[c->to.cell] == PROFILE_NONE)
            continue;
        time[i] = c->time;
        cell[i] = number[c->to.cell];
        put_sums(allocated, n, i, &c->to.allocated);
        put_sums(freed, n, i++, &c->to.freed);
    }
    json_open(&b->json, "changes", '{');
    page_blob_add_u32(b, "time", time, n);
    page_blob_add_u32(b, "cell", cell, n);
    add_sums(b, "allocated", allocated, n);
    add_sums(b, "freed", freed, n);
    json_close(&b->json, '}');
    free(time);
    free(cell);
    free(allocated);
    free(freed);
}

static void add_times(struct page_blob *b, const struct moments *m)
{
    const size_t n = m->times.len;
    enum { TIME, LIVE, LOW, HIGH, COLUMNS };
    static const char *const keys[COLUMNS] = {"time_ms", "live_bytes", "live_bytes_low", "live_bytes_high"};
    double *all = mem_array(n * COLUMNS + 1, sizeof(*all));
    for (size_t i = 0; i < n; i++) {
        const struct moments_time *at = &m->times.at[i];
        const struct interval live = estimate_interval(&at->live_bytes);
        all[TIME * n + i] = (double)at->time_ns / 1e6;
        all[LIVE * n + i] = at->live_bytes.value;
        all[LOW * n + i] = live.low;
        all[HIGH * n + i] = live.high;
    }
    json_open(&b->json, "times", '{');
    for (size_t k = 0; k < COLUMNS; k++)
        page_blob_add_f64(b, keys[k], all + k * n, n, NULL, 0);
    json_close(&b->json, '}');
    free(all);
}

void html_moments_add(struct page_blob *b, const struct call_tree *t, const struct profile *p,
                      uint32_t stride)
{
    struct moments m;
    struct orders order = {0};
    uint32_t *number = mem_array(p->cells.len + 1, sizeof(*number)); /* by cell of the profile */
    order_cells(&order, t, p);
    for (uint32_t i = 0; i < p->cells.len; i++)
        number[i] = PROFILE_NONE;
    for (uint32_t i = 0; i < order.len; i++)
        number[order.at[i].cell] = i;
    moments_of(&m, p, stride);
    json_open(&b->json, "moments", '{');
    add_times(b, &m);
    add_changes(b, &m, number);
    json_close(&b->json, '}');
    moments_release(&m);
    vec_release(&order);
    free(number);
}
