/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/profile/profile_pair.h"

#include <math.h>

#include "model/profile/rollup.h"

struct search {
    struct profile_pair *j;
    const struct profile *const *of;
    uint32_t *const *cells;
    struct map serials; /* of live samples: {joint image, serial, side} */
};

struct serial_key {
    uint64_t image, serial, side;
};

struct profile_sums profile_pair_less(const struct profile_sums *whole, const struct profile_sums *part)
{
    if (part->samples >= whole->samples)
        return (struct profile_sums){.samples = 0};
    return (struct profile_sums){
        .samples = whole->samples - part->samples,
        .seen_bytes = fmax(whole->seen_bytes - part->seen_bytes, 0),
        .bytes = fmax(whole->bytes - part->bytes, 0),
        .count = fmax(whole->count - part->count, 0),
    };
}

/* Returns the sums of `samples` average samples of `all`. */
static struct profile_sums some_of(const struct profile_sums *all, uint64_t samples)
{
    double share = all->samples ? (double)samples / (double)all->samples : 0;
    return (struct profile_sums){.samples = samples,
                                 .seen_bytes = all->seen_bytes * share,
                                 .bytes = all->bytes * share,
                                 .count = all->count * share};
}

static struct serial_key key_of(const struct search *s, enum profile_pair_side side,
                                const struct profile_sample *row)
{
    uint32_t cell = s->cells[side][row->cell];
    return (struct serial_key){s->j->cells.at[cell].of[side].image, row->serial, side};
}

static void note_serials(struct search *s, enum profile_pair_side side)
{
    vec_each (const struct profile_sample, row, &s->of[side]->samples) {
        struct serial_key key = key_of(s, side, row);
        map_put(&s->serials, &key, sizeof(key), 0, NULL);
    }
}

/* Returns whether a live sample of the later side was live at the earlier moment. */
static bool was_live(const struct search *s, enum profile_pair_side later, const struct profile_sample *row,
                     const struct profile_image *earlier)
{
    struct serial_key key = key_of(s, later, row);
    if (earlier->past)
        return row->born_ns <= earlier->taken_ns;
    key.side = !later;
    return map_get(&s->serials, &key, sizeof(key)) != MAP_NONE;
}

static void add_samples(struct search *s, enum profile_pair_side side)
{
    vec_each (const struct profile_sample, row, &s->of[side]->samples) {
        struct profile_pair_cell *c = &s->j->cells.at[s->cells[side][row->cell]];
        const struct profile_pair_image *i = &s->j->images.at[c->of[side].image];
        if (!c->kept || !i->same || i->later != side || !was_live(s, side, row, i->of[!side]))
            continue;
        double weight = rollup_weight(row->size_bytes, c->of[side].period_bytes);
        double size = (double)row->size_bytes;
        c->stayed.samples++;
        c->stayed.seen_bytes += size;
        c->stayed.bytes += weight * size;
        c->stayed.count += weight;
    }
}

/* Limits `stayed` to the number of samples that both sides have. If all samples of one side stayed, returns the sums
 * of that side, so that rounding leaves no difference. */
static struct profile_sums bounded_stay(struct profile_sums stayed, const struct profile_sums *early,
                                        const struct profile_sums *late)
{
    uint64_t most = early->samples < late->samples ? early->samples : late->samples;
    if (stayed.samples > most)
        stayed = some_of(&stayed, most);
    if (stayed.samples == early->samples)
        return *early;
    return stayed.samples == late->samples ? *late : stayed;
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static void bound_cell(struct profile_pair_cell *c, enum profile_pair_side later)
{
    const struct profile_cell *early = &c->of[!later], *late = &c->of[later];
    struct profile_sums before = profile_live(early), after = profile_live(late);
    uint64_t least = less(before.samples, less(late->freed.samples, early->freed.samples));
    if (c->stayed.samples < least)
        c->stayed = some_of(&before, least);
    c->stayed = bounded_stay(c->stayed, &before, &after);
    least = less(early->at_peak.samples, late->freed.samples);
    c->stayed_peak = bounded_stay(some_of(&early->at_peak, least), &early->at_peak, &late->at_peak);
}

void profile_pair_match(struct profile_pair *j, const struct profile *const of[PROFILE_PAIR_SIDES],
                        uint32_t *const cells[PROFILE_PAIR_SIDES])
{
    struct search s = {.j = j, .of = of, .cells = cells};
    for (int side = 0; side < PROFILE_PAIR_SIDES; side++)
        note_serials(&s, (enum profile_pair_side)side);
    for (int side = 0; side < PROFILE_PAIR_SIDES; side++)
        add_samples(&s, (enum profile_pair_side)side);
    vec_each (struct profile_pair_cell, c, &j->cells) {
        const struct profile_pair_image *i = &j->images.at[c->of[PROFILE_PAIR_AFTER].image];
        if (i->same && c->kept)
            bound_cell(c, i->later);
        if (i->still)
            c->stayed = profile_live(&c->of[PROFILE_PAIR_AFTER]);
        if (i->same_peak)
            c->stayed_peak = c->of[PROFILE_PAIR_AFTER].at_peak;
    }
    map_release(&s.serials);
}
