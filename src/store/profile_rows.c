/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/profile_rows.h"

_Static_assert(PROFILE_LOSSES == 10, "the table image has a column for each loss");
_Static_assert(PROFILE_LIFETIMES == 16, "the table cell has a column for each class of lifetimes");

static void put_sums(struct sql *s, const struct profile_sums *sums)
{
    sql_put_count(s, sums->samples);
    sql_put_real(s, sums->seen_bytes);
    sql_put_real(s, sums->bytes);
    sql_put_real(s, sums->count);
}

static struct profile_sums get_sums(struct sql *s)
{
    struct profile_sums sums;
    sums.samples = sql_get_count(s);
    sums.seen_bytes = sql_get_real(s);
    sums.bytes = sql_get_real(s);
    sums.count = sql_get_real(s);
    return sums;
}

void row_put_image(struct sql *s, uint32_t id, const struct profile_image *i)
{
    sql_put_int(s, id);
    sql_put_bits(s, i->id);
    sql_put_bits(s, i->parent_id);
    sql_put_int(s, i->pid);
    sql_put_int(s, i->parent_pid);
    sql_put_int(s, i->comm);
    sql_put_int(s, i->exe);
    sql_put_int(s, i->args);
    sql_put_int(s, i->state);
    sql_put_count(s, i->began_ns);
    sql_put_count(s, i->taken_ns);
    sql_put_count(s, i->off_ns);
    sql_put_count(s, i->peak_ns);
    sql_put_real(s, i->peak_bytes);
    sql_put_count(s, i->operations_begun);
    sql_put_count(s, i->operations_done);
    sql_put_count(s, i->cold_ns);
    sql_put_count(s, i->ledger_bytes);
    sql_put_count(s, i->ledger_limit_bytes);
    sql_put_int(s, i->ledger_full);
    sql_put_count(s, i->rss_anon_bytes);
    sql_put_count(s, i->torn_samples);
    sql_put_int(s, i->inconsistent);
    for (size_t k = 0; k < PROFILE_LOSSES; k++)
        sql_put_count(s, i->losses[k]);
}

void row_get_image(struct sql *s, const struct row_limits *l, struct profile_image *i)
{
    sql_get_int(s, (int64_t)l->images, (int64_t)l->images);
    i->id = sql_get_bits(s);
    i->parent_id = sql_get_bits(s);
    i->pid = (int32_t)sql_get_int(s, INT32_MIN, INT32_MAX);
    i->parent_pid = (int32_t)sql_get_int(s, INT32_MIN, INT32_MAX);
    i->comm = sql_get_index(s, l->strings);
    i->exe = sql_get_index(s, l->strings);
    i->args = sql_get_index(s, l->strings);
    i->state = (enum profile_image_state)sql_get_int(s, 0, PROFILE_IMAGE_ENDED);
    i->began_ns = sql_get_count(s);
    i->taken_ns = sql_get_count(s);
    i->off_ns = sql_get_count(s);
    i->peak_ns = sql_get_count(s);
    i->peak_bytes = sql_get_real(s);
    i->operations_begun = sql_get_count(s);
    i->operations_done = sql_get_count(s);
    i->cold_ns = sql_get_count(s);
    i->ledger_bytes = sql_get_count(s);
    i->ledger_limit_bytes = sql_get_count(s);
    i->ledger_full = sql_get_index(s, l->strings);
    i->rss_anon_bytes = sql_get_count(s);
    i->torn_samples = sql_get_count(s);
    i->inconsistent = sql_get_int(s, 0, 1);
    for (size_t k = 0; k < PROFILE_LOSSES; k++)
        i->losses[k] = sql_get_count(s);
}

void row_put_thread(struct sql *s, uint32_t id, const struct profile_thread *t)
{
    sql_put_int(s, id);
    sql_put_int(s, t->image);
    sql_put_int(s, t->tid);
    sql_put_int(s, t->name);
    sql_put_int(s, t->ordinal);
}

void row_get_thread(struct sql *s, const struct row_limits *l, struct profile_thread *t)
{
    sql_get_int(s, (int64_t)l->threads, (int64_t)l->threads);
    t->image = sql_get_index(s, l->images);
    t->tid = (int32_t)sql_get_int(s, INT32_MIN, INT32_MAX);
    t->name = sql_get_index(s, l->strings);
    t->ordinal = (uint32_t)sql_get_int(s, 0, UINT32_MAX);
}

void row_put_module(struct sql *s, uint32_t id, const struct row_module *m)
{
    sql_put_int(s, id);
    sql_put_int(s, m->path);
    sql_put_int(s, m->build_id);
    sql_put_bits(s, m->size_bytes);
}

void row_get_module(struct sql *s, const struct row_limits *l, struct row_module *m)
{
    sql_get_int(s, (int64_t)l->modules, (int64_t)l->modules);
    m->path = sql_get_index(s, l->strings);
    m->build_id = sql_get_index(s, l->strings);
    m->size_bytes = sql_get_bits(s);
}

void row_put_mapping(struct sql *s, const struct row_mapping *m)
{
    sql_put_int(s, m->image);
    sql_put_int(s, m->ordinal);
    sql_put_int(s, m->module);
    sql_put_bits(s, m->start);
    sql_put_bits(s, m->bias);
}

void row_get_mapping(struct sql *s, const struct row_limits *l, struct row_mapping *m)
{
    m->image = sql_get_index(s, l->images);
    m->ordinal = (uint32_t)sql_get_int(s, 0, UINT32_MAX);
    m->module = sql_get_index(s, l->modules);
    m->start = sql_get_bits(s);
    m->bias = sql_get_bits(s);
}

void row_put_location(struct sql *s, uint32_t id, const struct row_location *o)
{
    sql_put_int(s, id);
    sql_put_ref(s, o->module);
    sql_put_ref(s, o->image);
    sql_put_bits(s, o->address);
    sql_put_int(s, o->exact);
}

void row_get_location(struct sql *s, const struct row_limits *l, struct row_location *o)
{
    sql_get_int(s, (int64_t)l->locations, (int64_t)l->locations);
    o->module = sql_get_index_or_none(s, l->modules);
    o->image = sql_get_index_or_none(s, l->images);
    o->address = sql_get_bits(s);
    o->exact = sql_get_int(s, 0, 1);
}

void row_put_line(struct sql *s, const struct row_line *n)
{
    sql_put_int(s, n->location);
    sql_put_int(s, n->position);
    sql_put_int(s, n->line.function);
    sql_put_int(s, n->line.file);
    sql_put_int(s, n->line.line);
    sql_put_int(s, n->line.inlined);
}

void row_get_line(struct sql *s, const struct row_limits *l, struct row_line *n)
{
    n->location = sql_get_index(s, l->locations);
    n->position = (uint32_t)sql_get_int(s, 0, UINT32_MAX);
    n->line.function = sql_get_index(s, l->strings);
    n->line.file = sql_get_index(s, l->strings);
    n->line.line = (uint32_t)sql_get_int(s, 0, UINT32_MAX);
    n->line.inlined = sql_get_int(s, 0, 1);
}

void row_put_stack(struct sql *s, uint32_t id, const struct row_stack *k)
{
    sql_put_int(s, id);
    sql_put_ref(s, k->caller);
    sql_put_ref(s, k->location);
}

/* A caller comes before all that it calls: there are no circles. */
void row_get_stack(struct sql *s, const struct row_limits *l, struct row_stack *k)
{
    sql_get_int(s, (int64_t)l->stacks, (int64_t)l->stacks);
    k->caller = sql_get_index_or_none(s, l->stacks);
    k->location = sql_get_index_or_none(s, l->locations);
    bool is_end = l->stacks < ROW_STACK_ENDS;
    if ((k->caller == PROFILE_NONE) != is_end || (k->location == PROFILE_NONE) != is_end)
        s->bad = true;
}

void row_put_cell(struct sql *s, uint32_t id, const struct profile_cell *c)
{
    sql_put_int(s, id);
    sql_put_int(s, c->image);
    sql_put_int(s, c->stack);
    sql_put_int(s, c->thread);
    sql_put_int(s, c->size_class);
    sql_put_count(s, c->period_bytes);
    put_sums(s, &c->allocated);
    put_sums(s, &c->freed);
    put_sums(s, &c->at_peak);
    sql_put_count(s, c->temporary_samples);
    sql_put_real(s, c->temporary_bytes);
    for (size_t k = 0; k < PROFILE_LIFETIMES; k++)
        sql_put_int(s, c->lifetimes[k]);
}

void row_get_cell(struct sql *s, const struct row_limits *l, struct profile_cell *c)
{
    sql_get_int(s, (int64_t)l->cells, (int64_t)l->cells);
    c->image = sql_get_index(s, l->images);
    c->stack = sql_get_index(s, l->stacks);
    c->thread = sql_get_index(s, l->threads);
    c->size_class = (uint8_t)sql_get_int(s, 0, 63);
    c->period_bytes = sql_get_count(s);
}

void row_get_cell_peak(struct sql *s, struct profile_cell *c)
{
    c->at_peak = get_sums(s);
}

void row_get_cell_sums(struct sql *s, struct profile_cell *c)
{
    c->allocated = get_sums(s);
    c->freed = get_sums(s);
    row_get_cell_peak(s, c);
    c->temporary_samples = sql_get_count(s);
    c->temporary_bytes = sql_get_real(s);
}

void row_get_lifetimes(struct sql *s, struct profile_cell *c)
{
    for (size_t k = 0; k < PROFILE_LIFETIMES; k++)
        c->lifetimes[k] = (uint32_t)sql_get_int(s, 0, UINT32_MAX);
}

void row_put_sample(struct sql *s, uint32_t image, const struct profile_sample *v)
{
    sql_put_int(s, image);
    sql_put_bits(s, v->serial);
    sql_put_int(s, v->cell);
    sql_put_bits(s, v->address);
    sql_put_count(s, v->size_bytes);
    if (v->slack_bytes == PROFILE_SLACK_UNKNOWN)
        sql_put_ref(s, UINT32_MAX);
    else
        sql_put_count(s, v->slack_bytes);
    sql_put_count(s, v->born_ns);
}

void row_get_sample(struct sql *s, const struct row_limits *l, uint32_t *image, struct profile_sample *v)
{
    *image = sql_get_index(s, l->images);
    v->serial = sql_get_bits(s);
    v->cell = sql_get_index(s, l->cells);
    v->address = sql_get_bits(s);
    v->size_bytes = sql_get_count(s);
    v->slack_bytes = sql_get_count_or_none(s);
    v->born_ns = sql_get_count(s);
}

void row_put_free(struct sql *s, uint32_t image, const struct profile_free *f)
{
    sql_put_int(s, image);
    sql_put_bits(s, f->serial);
    sql_put_int(s, f->cell);
    sql_put_bits(s, f->address);
    sql_put_count(s, f->size_bytes);
    sql_put_count(s, f->born_ns);
    sql_put_count(s, f->freed_ns);
    sql_put_ref(s, f->stack);
    sql_put_ref(s, f->location);
    sql_put_ref(s, f->thread);
    sql_put_int(s, f->reallocated);
}

void row_get_free(struct sql *s, const struct row_limits *l, uint32_t *image, struct profile_free *f)
{
    *image = sql_get_index(s, l->images);
    f->serial = sql_get_bits(s);
    f->cell = sql_get_index(s, l->cells);
    f->address = sql_get_bits(s);
    f->size_bytes = sql_get_count(s);
    f->born_ns = sql_get_count(s);
    f->freed_ns = sql_get_count(s);
    f->stack = sql_get_index_or_none(s, l->stacks);
    f->location = sql_get_index_or_none(s, l->locations);
    f->thread = sql_get_index_or_none(s, l->threads);
    f->reallocated = sql_get_int(s, 0, 1);
}

void row_put_point(struct sql *s, const struct row_point *q)
{
    sql_put_int(s, q->point.image);
    sql_put_count(s, q->point.time_ns);
    sql_put_real(s, q->point.live_bytes);
    sql_put_real(s, q->point.allocated_bytes);
    sql_put_count(s, q->point.rss_anon_bytes);
    if (q->moment == ROW_NO_MOMENT)
        sql_put_ref(s, PROFILE_NONE);
    else
        sql_put_int(s, q->moment);
}

void row_get_point(struct sql *s, const struct row_limits *l, struct row_point *q)
{
    q->point.image = sql_get_index(s, l->images);
    q->point.time_ns = sql_get_count(s);
    q->point.live_bytes = sql_get_real(s);
    q->point.allocated_bytes = sql_get_real(s);
    q->point.rss_anon_bytes = sql_get_count(s);
    q->moment = ROW_NO_MOMENT;
    if (!sql_is_null(s))
        q->moment = sql_get_int(s, 0, ROW_NO_MOMENT - 1);
}

void row_put_moment_cell(struct sql *s, const struct row_moment_cell *m)
{
    sql_put_int(s, m->moment);
    sql_put_int(s, m->cell);
    put_sums(s, &m->allocated);
    put_sums(s, &m->freed);
}

void row_get_moment_key(struct sql *s, const struct row_limits *l, struct row_moment_cell *m)
{
    m->moment = sql_get_int(s, 0, ROW_NO_MOMENT - 1);
    m->cell = sql_get_index(s, l->cells);
}

void row_get_moment_sums(struct sql *s, struct row_moment_cell *m)
{
    m->allocated = get_sums(s);
    m->freed = get_sums(s);
}

void row_put_unobserved(struct sql *s, const struct profile_unobserved *u)
{
    sql_put_int(s, u->program);
    sql_put_int(s, u->reason);
    sql_put_count(s, u->processes);
}

void row_get_unobserved(struct sql *s, const struct row_limits *l, struct profile_unobserved *u)
{
    u->program = sql_get_index(s, l->strings);
    u->reason = sql_get_index(s, l->strings);
    u->processes = sql_get_count(s);
}
