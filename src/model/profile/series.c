/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/profile/series.h"

#include <math.h>

#include "model/profile/rollup.h"

struct series *series_new(void)
{
    return mem_alloc(sizeof(struct series));
}

void series_free(struct series *s)
{
    if (!s)
        return;
    vec_each (struct series_stack, stack, &s->stacks)
        free(stack->left);
    vec_release(&s->samples);
    vec_release(&s->coming);
    vec_release(&s->by_stack);
    vec_release(&s->stacks);
    map_release(&s->keys);
    free(s);
}

uint32_t series_stack_of(struct series *s, const void *key, size_t key_bytes)
{
    bool added;
    size_t at = map_put(&s->keys, key, key_bytes, s->stacks.len, &added);
    if (added)
        vec_push(&s->stacks);
    return (uint32_t)at;
}

static double weight_of(const struct series_sample *s)
{
    return rollup_weight(s->size_bytes, s->period_bytes);
}

void series_see(struct series *s, const struct series_sample *sample)
{
    struct series_sample *mine = vec_push(&s->coming);
    *mine = *sample;
    mine->bytes = (double)sample->size_bytes * weight_of(sample);
}

static void add(struct series_sum *sum, const struct series_sample *s)
{
    struct estimate_cell cell = {.samples = 1,
                                 .seen = (double)s->size_bytes,
                                 .bytes = s->bytes,
                                 .count = weight_of(s),
                                 .period = (double)s->period_bytes};
    estimate_add_cell_bytes(&sum->bytes, &cell);
    sum->lumps += s->bytes * s->bytes;
}

static int by_serial(const void *a, const void *b)
{
    const struct series_sample *x = a, *y = b;
    return (x->serial > y->serial) - (x->serial < y->serial);
}

static int by_arrival(const void *a, const void *b, void *arg)
{
    const struct series_sample *all = arg, *x = &all[*(const uint32_t *)a], *y = &all[*(const uint32_t *)b];
    if (x->stack != y->stack)
        return x->stack < y->stack ? -1 : 1;
    return (x->arrived_ns > y->arrived_ns) - (x->arrived_ns < y->arrived_ns);
}

/* Adds a sample that has left to the sums of all snapshots since it arrived: it was live at each of them. */
static void add_leaving(struct series *s, const struct series_sample *gone)
{
    struct series_stack *stack = &s->stacks.at[gone->stack];
    if (!stack->left)
        stack->left = mem_array(SERIES_SNAPSHOTS, sizeof(*stack->left));
    struct series_sum sum = {0};
    add(&sum, gone);
    for (uint32_t j = s->n_snapshots; j-- && s->snapshots_ns[j] >= gone->arrived_ns;) {
        estimate_merge(&stack->left[j].bytes, &sum.bytes);
        stack->left[j].lumps += sum.lumps;
    }
    s->left++;
}

/* Sets the arrival of a sample that no earlier snapshot saw: after the last snapshot and not after `time_ns`, even if
 * the clocks disagree. */
static void set_arrival(const struct series *s, struct series_sample *sample, uint64_t time_ns)
{
    uint64_t last = s->n_snapshots ? s->snapshots_ns[s->n_snapshots - 1] : 0;
    if (sample->arrived_ns <= last)
        sample->arrived_ns = last + 1;
    if (sample->arrived_ns > time_ns)
        sample->arrived_ns = time_ns;
    sample->fresh = true;
}

/* Compares the snapshot in progress with the last one. Samples in both keep their arrival time; samples that are only
 * in the last one have left. */
static void compare(struct series *s, uint64_t time_ns)
{
    const struct series_sample *old = s->samples.at, *end = old + s->samples.len;
    s->fresh = s->left = 0;
    vec_each (struct series_sample, now, &s->coming) {
        while (old < end && old->serial < now->serial)
            add_leaving(s, old++);
        if (old < end && old->serial == now->serial) {
            now->arrived_ns = old->arrived_ns;
            now->fresh = false;
            old++;
            continue;
        }
        set_arrival(s, now, time_ns);
        s->fresh++;
    }
    while (old < end)
        add_leaving(s, old++);
}

static void index_stacks(struct series *s)
{
    s->by_stack.len = 0;
    for (uint32_t i = 0; i < s->samples.len; i++)
        *vec_push(&s->by_stack) = i;
    if (s->by_stack.len)
        qsort_r(s->by_stack.at, s->by_stack.len, sizeof(uint32_t), by_arrival, s->samples.at);
    vec_each (struct series_stack, stack, &s->stacks)
        stack->first = stack->n = 0;
    for (uint32_t i = 0; i < s->by_stack.len; i++) {
        struct series_stack *stack = &s->stacks.at[s->samples.at[s->by_stack.at[i]].stack];
        if (!stack->n++)
            stack->first = i;
    }
}

/* Returns the snapshot to drop: the gap that it leaves is the smallest in proportion to its age. */
static uint32_t least_needed(const struct series *s, uint64_t now)
{
    uint32_t least = 1;
    double least_gap = INFINITY;
    for (uint32_t j = 1; j + 1 < s->n_snapshots; j++) {
        double gap =
            (double)(s->snapshots_ns[j + 1] - s->snapshots_ns[j - 1]) / (double)(now - s->snapshots_ns[j]);
        if (gap < least_gap) {
            least_gap = gap;
            least = j;
        }
    }
    return least;
}

static void forget_snapshot(struct series *s, uint32_t snapshot)
{
    uint32_t behind = s->n_snapshots - snapshot - 1;
    memmove(&s->snapshots_ns[snapshot], &s->snapshots_ns[snapshot + 1], behind * sizeof(*s->snapshots_ns));
    vec_each (struct series_stack, stack, &s->stacks) {
        if (!stack->left)
            continue;
        memmove(&stack->left[snapshot], &stack->left[snapshot + 1], behind * sizeof(*stack->left));
        stack->left[s->n_snapshots - 1] = (struct series_sum){0};
    }
    s->n_snapshots--;
}

void series_end_snapshot(struct series *s, uint64_t time_ns)
{
    if (s->coming.len)
        qsort(s->coming.at, s->coming.len, sizeof(*s->coming.at), by_serial);
    bool later = !s->n_snapshots || time_ns > s->snapshots_ns[s->n_snapshots - 1];
    uint64_t time = later ? time_ns : s->snapshots_ns[s->n_snapshots - 1] + 1;
    compare(s, time);
    struct series_samples before = s->samples;
    s->samples = s->coming;
    s->coming = before; /* the next snapshot reuses its memory */
    s->coming.len = 0;
    if (s->n_snapshots == SERIES_SNAPSHOTS)
        forget_snapshot(s, least_needed(s, time));
    s->snapshots_ns[s->n_snapshots++] = time;
    s->snapshots_in_all++;
    index_stacks(s);
}

struct series_sum series_arrived(const struct series *s, uint32_t stack, uint64_t from_ns, uint64_t to_ns)
{
    const struct series_stack *of = &s->stacks.at[stack];
    struct series_sum sum = {0};
    for (uint32_t i = of->first + of->n; i-- > of->first;) {
        const struct series_sample *sample = &s->samples.at[s->by_stack.at[i]];
        if (sample->arrived_ns <= from_ns)
            break;
        if (sample->arrived_ns <= to_ns)
            add(&sum, sample);
    }
    return sum;
}

struct series_sum series_left(const struct series *s, uint32_t stack, uint32_t snapshot)
{
    const struct series_stack *of = &s->stacks.at[stack];
    return of->left ? of->left[snapshot] : (struct series_sum){0};
}
