/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/profile/moments.h"

#include <stdlib.h>

bool moments_image_ended(const struct profile_image *i)
{
    return !i->past && i->state != PROFILE_IMAGE_RUNNING && i->state != PROFILE_IMAGE_CUT;
}

static int by_time(const void *a, const void *b)
{
    const struct profile_moment *x = *(const struct profile_moment *const *)a,
                                *y = *(const struct profile_moment *const *)b;
    if (x->time_ns != y->time_ns)
        return x->time_ns > y->time_ns ? 1 : -1;
    return (x > y) - (x < y);
}

/* What is known of a cell while the moments are walked. */
struct state {
    struct profile_sums live;
    bool known;
    size_t change; /* its last one */
};

static void add_change(struct moments *m, struct state *states, const struct profile *p,
                       const struct profile_moment_cell *to)
{
    const uint32_t time = (uint32_t)m->times.len - 1;
    struct state *s = &states[to->cell];
    struct profile_cell now = p->cells.at[to->cell];
    now.allocated = to->allocated;
    now.freed = to->freed;
    s->live = profile_live(&now);
    if (!s->known || m->changes.at[s->change].time != time) {
        s->change = m->changes.len;
        vec_push(&m->changes);
    }
    s->known = true;
    m->changes.at[s->change] = (struct moments_change){time, *to};
}

static void add_up(struct moments_time *t, const struct state *states, const struct profile *p)
{
    for (size_t i = 0; i < p->cells.len; i++) {
        const struct profile_image *image = &p->images.at[p->cells.at[i].image];
        const bool gone = moments_image_ended(image) && image->taken_ns < t->time_ns;
        if (states[i].known && !gone)
            profile_estimate_bytes(&t->live_bytes, &p->cells.at[i], &states[i].live);
    }
}

void moments_of(struct moments *m, const struct profile *p, uint32_t stride)
{
    const size_t n = p->moments.len;
    const struct profile_moment **order = mem_array(n + 1, sizeof(*order));
    struct state *states = mem_array(p->cells.len + 1, sizeof(*states));
    uint32_t number = 0; /* of the time, with stride 1 */
    *m = (struct moments){.times = {0}};
    for (size_t i = 0; i < n; i++)
        order[i] = &p->moments.at[i];
    qsort(order, n, sizeof(*order), by_time);
    for (size_t i = 0; i < n; i++) {
        const bool again = i && order[i - 1]->time_ns == order[i]->time_ns;
        if (!again && number % stride == 0)
            vec_push(&m->times);
        m->times.at[m->times.len - 1].time_ns = order[i]->time_ns;
        for (uint32_t k = 0; k < order[i]->n; k++)
            add_change(m, states, p, &p->moment_cells.at[order[i]->first + k]);
        if (i + 1 < n && order[i + 1]->time_ns == order[i]->time_ns)
            continue;
        number++;
        if (number % stride == 0 || i + 1 == n)
            add_up(&m->times.at[m->times.len - 1], states, p);
    }
    free(states);
    free(order);
}

void moments_release(struct moments *m)
{
    vec_release(&m->times);
    vec_release(&m->changes);
}
