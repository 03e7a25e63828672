/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/profile/diff_captures.h"

#include <stdlib.h>
#include <string.h>

#include "model/profile/spread.h"

/* ---- the cells of a capture ---- */

/* Where a capture is. */
struct place {
    enum profile_pair_side side;
    const struct profile *p;
    uint32_t first_cell; /* in the profile of its side */
    double divisor;      /* of its figures */
};

static struct place place_of(const struct diff *d, uint32_t capture)
{
    struct place at = {.side = capture >= d->side[PROFILE_PAIR_BEFORE].n};
    const struct diff_side *side = &d->side[at.side];
    uint32_t number = capture - (at.side ? d->side[PROFILE_PAIR_BEFORE].n : 0);
    for (uint32_t i = 0; i < number; i++)
        at.first_cell += (uint32_t)side->captures[i]->cells.len;
    at.p = side->captures[number];
    at.divisor = side->divisors ? side->divisors[number] : 1;
    return at;
}

/* Gives the joint profile all cells, without sums. */
static void take_empty(struct diff *d)
{
    struct profile *p = d->pair->profile;
    p->cells.len = 0;
    vec_each (const struct profile_pair_cell, c, &d->pair->cells) {
        const struct profile_cell *one = &c->of[PROFILE_PAIR_AFTER];
        *vec_push(&p->cells) = (struct profile_cell){.image = one->image,
                                                     .stack = one->stack,
                                                     .thread = one->thread,
                                                     .size_class = one->size_class,
                                                     .period_bytes = one->period_bytes};
    }
}

void diff_captures_take(struct diff *d, enum rollup_metric metric, uint32_t capture)
{
    struct place at = place_of(d, capture);
    const uint32_t *joint = d->pair->cell_of[at.side] + at.first_cell;
    take_empty(d);
    for (size_t i = 0; i < at.p->cells.len; i++) {
        struct profile_sums sums = diff_sums_of(&at.p->cells.at[i], metric);
        struct profile_sums *to = &d->pair->profile->cells.at[joint[i]].allocated;
        if (!d->pair->cells.at[joint[i]].kept)
            continue;
        to->samples += sums.samples;
        to->seen_bytes += sums.seen_bytes;
        to->bytes += sums.bytes;
        to->count += sums.count;
    }
}

double diff_captures_divisor(const struct diff *d, uint32_t capture)
{
    return place_of(d, capture).divisor;
}

/* ---- values ---- */

static void add_part(struct diff_value *v, enum diff_part part, const struct rollup_value *of)
{
    estimate_merge(&v->of[part].bytes, &of->bytes);
    estimate_merge(&v->of[part].count, &of->count);
}

void diff_captures_add(const struct diff *d, struct diff_value *v, uint32_t capture,
                       const struct rollup_value *of)
{
    struct place at = place_of(d, capture);
    double share = 1 / (at.divisor * d->side[at.side].n); /* in the mean of the side */
    struct rollup_value part = *of;
    for (int side = 0; side < PROFILE_PAIR_SIDES; side++)
        v->n[side] = d->side[side].n;
    v->tail = SPREAD_TAIL;
    for (int amount = 0; d->spread && amount < DIFF_AMOUNTS; amount++) {
        if (!v->captures[amount])
            v->captures[amount] = mem_array(diff_captures_number(d), sizeof(*v->captures[amount]));
        v->captures[amount][capture] =
            (amount == DIFF_COUNT ? of->count.value : of->bytes.value) / at.divisor;
    }
    estimate_scale(&part.bytes, share);
    estimate_scale(&part.count, share);
    add_part(v, at.side == PROFILE_PAIR_BEFORE ? DIFF_BEFORE : DIFF_AFTER, &part);
    add_part(v, at.side == PROFILE_PAIR_BEFORE ? DIFF_SHRANK : DIFF_GREW, &part);
}

void diff_captures_add_totals(struct diff *d)
{
    for (int m = 0; m < ROLLUP_METRICS; m++)
        for (uint32_t i = 0; i < diff_captures_number(d); i++) {
            struct rollup_value all = {.bytes = {0}};
            const struct profile_cell silent = {.period_bytes = profile_silent_period(place_of(d, i).p)};
            diff_captures_take(d, m, i);
            vec_each (const struct profile_cell, c, &d->pair->profile->cells)
                profile_estimate(&all.bytes, &all.count, c, &c->allocated);
            if (silent.period_bytes)
                profile_estimate(&all.bytes, &all.count, &silent, &silent.allocated);
            diff_captures_add(d, &d->total[m], i, &all);
        }
    d->pair->profile->cells.len = 0;
}

void diff_captures_release(struct diff_value *v)
{
    for (int amount = 0; amount < DIFF_AMOUNTS; amount++)
        free(v->captures[amount]);
}

bool diff_captures_alike(const struct diff_value *v, bool count)
{
    const double *of = v->captures[count ? DIFF_COUNT : DIFF_BYTES];
    for (uint32_t i = 1; i < v->n[PROFILE_PAIR_BEFORE] + v->n[PROFILE_PAIR_AFTER]; i++)
        if (of[i] != of[0])
            return false;
    return true;
}

/* ---- the interval of rows ---- */

void diff_captures_select(struct diff *d,
                          const struct diff_value *(*shown)(const struct diff *d, const struct diff_row *row))
{
    bool count = diff_counts(d->options.sort);
    double *chances = mem_array(d->rows.len + 1, sizeof(*chances));
    for (size_t i = 0; i < d->rows.len; i++) {
        const struct diff_value *v = shown(d, &d->rows.at[i]);
        const double *of = v->captures[count ? DIFF_COUNT : DIFF_BYTES];
        struct spread_change c = spread_compare(of, v->n[PROFILE_PAIR_BEFORE], of + v->n[PROFILE_PAIR_BEFORE],
                                                v->n[PROFILE_PAIR_AFTER], 1);
        struct diff_change change = diff_change(v, count);
        /* at any tail the interval contains 0 if that of sampling does */
        chances[i] = diff_is_exact(v, count) || !diff_is_noise(&change) ? spread_chance(&c) : 1;
    }
    d->tail = spread_select(chances, d->rows.len);
    vec_each (struct diff_row, row, &d->rows)
        row->self.tail = row->inclusive.tail = d->tail;
    free(chances);
}

bool diff_shared_image(const struct diff_side side[static PROFILE_PAIR_SIDES], uint32_t *one, uint32_t *other)
{
    struct map owners = {0};
    uint32_t number = 0;
    bool shared = false;
    for (int s = 0; s < PROFILE_PAIR_SIDES; s++)
        for (uint32_t i = 0; i < side[s].n && !shared; i++, number++)
            vec_each (const struct profile_image, image, &side[s].captures[i]->images) {
                bool added;
                size_t owner = map_put_u64(&owners, image->id, number, &added);
                if (added || owner == number || shared)
                    continue;
                *one = (uint32_t)owner;
                *other = number;
                shared = true;
            }
    map_release(&owners);
    return shared;
}
