/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/profile/growth.h"

#include <math.h>

#define MUCH_Z     3.3
#define HIGHER_Z   2.0
#define SLOWER_Z   2.0
#define SHORTER    0.8 /* length of each tested period, relative to the one before */
#define PARTS      4
#define PART_LEAST 0.25 /* least bytes of a part, relative to the average part */
#define HOUR_NS    3600e9

/* D(j) and its deviation s(j) (see growth.h), for every snapshot j. */
struct changes {
    double arrived[SERIES_SNAPSHOTS]; /* bytes, estimated */
    double bytes[SERIES_SNAPSHOTS], deviation[SERIES_SNAPSHOTS];
};

/* Goes back in time, so that one pass over the samples of the stack serves all snapshots. */
static void find_changes(struct changes *c, const struct series *s, uint32_t stack)
{
    const struct series_stack *of = &s->stacks.at[stack];
    uint32_t i = of->first + of->n;
    double bytes = 0, lumps = 0;
    for (uint32_t j = s->n_snapshots; j-- > 0;) {
        for (; i > of->first && s->samples.at[s->by_stack.at[i - 1]].arrived_ns > s->snapshots_ns[j]; i--) {
            double each = s->samples.at[s->by_stack.at[i - 1]].bytes;
            bytes += each;
            lumps += each * each;
        }
        struct series_sum left = series_left(s, stack, j);
        c->arrived[j] = bytes;
        c->bytes[j] = bytes - left.bytes.value;
        c->deviation[j] = sqrt(lumps + left.lumps);
    }
}

static uint64_t part_end(const struct series *s, uint32_t begin, unsigned part)
{
    uint64_t from = s->snapshots_ns[begin], length = s->snapshots_ns[s->n_snapshots - 1] - from;
    return from + (uint64_t)((double)length * part / PARTS);
}

/* Returns the first snapshot that is at most `back_ns` older than the last one. */
static uint32_t snapshot_since(const struct series *s, uint64_t back_ns)
{
    uint32_t j = 0;
    while (s->snapshots_ns[s->n_snapshots - 1] - s->snapshots_ns[j] > back_ns)
        j++;
    return j;
}

/* Laplace's test for a trend: returns how much later than the middle of the period the mean arrival is, in standard
 * deviations. It is negative if arrivals get fewer. */
static double trend_of(const struct series *s, uint32_t stack, uint32_t begin)
{
    const struct series_stack *of = &s->stacks.at[stack];
    double from = (double)s->snapshots_ns[begin], length = (double)s->snapshots_ns[s->n_snapshots - 1] - from;
    double moment = 0, lumps = 0;
    for (uint32_t i = of->first + of->n; i-- > of->first;) {
        const struct series_sample *sample = &s->samples.at[s->by_stack.at[i]];
        if (sample->arrived_ns <= s->snapshots_ns[begin])
            break;
        moment += sample->bytes * (((double)sample->arrived_ns - from) / length - 0.5);
        lumps += sample->bytes * sample->bytes;
    }
    return lumps > 0 ? moment / sqrt(lumps / 12) : 0;
}

static bool all_along(const struct series *s, uint32_t stack, uint32_t begin, double arrived)
{
    for (unsigned i = 0; i < PARTS; i++) {
        struct series_sum part = series_arrived(s, stack, part_end(s, begin, i), part_end(s, begin, i + 1));
        if (part.bytes.value < arrived / PARTS * PART_LEAST)
            return false;
    }
    uint64_t now = s->snapshots_ns[s->n_snapshots - 1], length = now - s->snapshots_ns[begin];
    return trend_of(s, stack, begin) >= -SLOWER_Z &&
           trend_of(s, stack, snapshot_since(s, 2 * length)) >= -SLOWER_Z;
}

static bool higher_than_before(const struct changes *c, const struct series *s, uint32_t begin)
{
    uint64_t first = part_end(s, begin, 1), last = part_end(s, begin, PARTS / 2);
    for (uint32_t j = 0; j < s->n_snapshots && s->snapshots_ns[j] <= last; j++)
        if (c->bytes[j] <= 0 || (s->snapshots_ns[j] <= first && c->bytes[j] < HIGHER_Z * c->deviation[j]))
            return false;
    return true;
}

static void set_slope(struct growth *g, const struct series *s, uint32_t stack, uint32_t begin)
{
    double hours = (double)(s->snapshots_ns[s->n_snapshots - 1] - s->snapshots_ns[begin]) / HOUR_NS;
    struct estimate arrived = series_arrived(s, stack, s->snapshots_ns[begin], UINT64_MAX).bytes;
    struct estimate left = series_left(s, stack, begin).bytes;
    if (!left.samples)
        left.first = arrived.first; /* objects that were not sampled may have left, at the same period */
    struct interval in = estimate_interval(&arrived), out = estimate_interval(&left);
    double bytes = arrived.value - left.value;
    g->since_ns = s->snapshots_ns[begin];
    g->bytes_per_hour = bytes / hours;
    g->interval.low = (bytes - hypot(arrived.value - in.low, out.high - left.value)) / hours;
    g->interval.high = (bytes + hypot(in.high - arrived.value, left.value - out.low)) / hours;
}

static bool passes(const struct changes *c, const struct series *s, uint32_t stack, uint32_t begin)
{
    return begin + GROWTH_SNAPSHOTS <= s->n_snapshots && c->bytes[begin] > 0 &&
           c->bytes[begin] >= MUCH_Z * c->deviation[begin] && higher_than_before(c, s, begin) &&
           all_along(s, stack, begin, c->arrived[begin]);
}

struct growth growth_of(const struct series *s, uint32_t stack)
{
    struct growth g = {.snapshots = s->n_snapshots};
    struct changes c;
    if (s->n_snapshots < 2)
        return g;
    find_changes(&c, s, stack);
    uint64_t now = s->snapshots_ns[s->n_snapshots - 1];
    double length = (double)(now - s->snapshots_ns[0]);
    for (uint32_t begin = 0; !g.growing && begin + GROWTH_SNAPSHOTS <= s->n_snapshots;) {
        g.growing = passes(&c, s, stack, begin);
        if (g.growing) {
            uint64_t grown_ns = now - s->snapshots_ns[begin];
            set_slope(&g, s, stack, begin);
            if (passes(&c, s, stack, snapshot_since(s, grown_ns / 2)))
                g.lasting_ns = grown_ns;
        }
        length *= SHORTER;
        begin = snapshot_since(s, (uint64_t)length);
    }
    if (!g.growing)
        set_slope(&g, s, stack, 0);
    g.so_far = s->n_snapshots < GROWTH_SNAPSHOTS && c.bytes[0] > 0 && c.bytes[0] >= MUCH_Z * c.deviation[0];
    return g;
}
