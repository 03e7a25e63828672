/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/profile_rows.h"

_Static_assert(PROFILE_LOSSES == 10, "the table image has a column for each loss");
_Static_assert(PROFILE_LIFETIMES == 16, "the table cell has a column for each class of lifetimes");

/* A row that is being stored or loaded. */
struct row {
    struct sql *s;
    const struct row_limits *limits;
    bool stores;
};

static struct row begin(struct sql *s, const struct row_limits *limits)
{
    static const struct row_limits none;
    return (struct row){s, limits ? limits : &none, !limits};
}

/* Each of these stores the member as the next column, or loads it from there. */

static void bits(const struct row *r, uint64_t *v)
{
    if (r->stores)
        sql_put_bits(r->s, *v);
    else
        *v = sql_get_bits(r->s);
}

static void count(const struct row *r, uint64_t *v)
{
    if (r->stores)
        sql_put_count(r->s, *v);
    else
        *v = sql_get_count(r->s);
}

static void count_or_none(const struct row *r, uint64_t *v)
{
    if (!r->stores)
        *v = sql_get_count_or_none(r->s);
    else if (*v == UINT64_MAX)
        sql_put_ref(r->s, UINT32_MAX);
    else
        sql_put_count(r->s, *v);
}

static void real(const struct row *r, double *v)
{
    if (r->stores)
        sql_put_real(r->s, *v);
    else
        *v = sql_get_real(r->s);
}

static int64_t whole(const struct row *r, int64_t v, int64_t low, int64_t high)
{
    if (!r->stores)
        return sql_get_int(r->s, low, high);
    sql_put_int(r->s, v);
    return v;
}

static void number(const struct row *r, uint32_t *v)
{
    *v = (uint32_t)whole(r, *v, 0, UINT32_MAX);
}

static void signed_number(const struct row *r, int32_t *v)
{
    *v = (int32_t)whole(r, *v, INT32_MIN, INT32_MAX);
}

static void flag(const struct row *r, bool *v)
{
    *v = whole(r, *v, 0, 1);
}

static void id(const struct row *r, uint64_t number)
{
    whole(r, (int64_t)number, (int64_t)number, (int64_t)number);
}

static void ref(const struct row *r, uint64_t limit, uint32_t *v)
{
    if (r->stores)
        sql_put_int(r->s, *v);
    else
        *v = sql_get_index(r->s, limit);
}

static void ref_or_none(const struct row *r, uint64_t limit, uint32_t *v)
{
    if (r->stores)
        sql_put_ref(r->s, *v);
    else
        *v = sql_get_index_or_none(r->s, limit);
}

static void sums(const struct row *r, struct profile_sums *v)
{
    count(r, &v->samples);
    real(r, &v->seen_bytes);
    real(r, &v->bytes);
    real(r, &v->count);
}

/* ---- the tables ---- */

void row_image(struct sql *s, const struct row_limits *l, uint64_t row, struct profile_image *i)
{
    const struct row r = begin(s, l);
    id(&r, row);
    bits(&r, &i->id);
    bits(&r, &i->parent_id);
    signed_number(&r, &i->pid);
    signed_number(&r, &i->parent_pid);
    ref(&r, r.limits->strings, &i->comm);
    ref(&r, r.limits->strings, &i->exe);
    ref(&r, r.limits->strings, &i->args);
    i->state = (enum profile_image_state)whole(&r, i->state, 0, PROFILE_IMAGE_DETACHED);
    count(&r, &i->began_ns);
    count(&r, &i->taken_ns);
    count(&r, &i->off_ns);
    count(&r, &i->peak_ns);
    real(&r, &i->peak_bytes);
    count(&r, &i->operations_begun);
    count(&r, &i->operations_done);
    count(&r, &i->cold_ns);
    count(&r, &i->ledger_bytes);
    count(&r, &i->ledger_limit_bytes);
    ref(&r, r.limits->strings, &i->ledger_full);
    count(&r, &i->rss_anon_bytes);
    count(&r, &i->torn_samples);
    flag(&r, &i->inconsistent);
    for (size_t k = 0; k < PROFILE_LOSSES; k++)
        count(&r, &i->losses[k]);
}

void row_thread(struct sql *s, const struct row_limits *l, uint64_t row, struct profile_thread *t)
{
    const struct row r = begin(s, l);
    id(&r, row);
    ref(&r, r.limits->images, &t->image);
    signed_number(&r, &t->tid);
    ref(&r, r.limits->strings, &t->name);
    number(&r, &t->ordinal);
}

void row_module(struct sql *s, const struct row_limits *l, uint64_t row, struct row_module *m)
{
    const struct row r = begin(s, l);
    id(&r, row);
    ref(&r, r.limits->strings, &m->path);
    ref(&r, r.limits->strings, &m->build_id);
    bits(&r, &m->size_bytes);
}

void row_mapping(struct sql *s, const struct row_limits *l, struct row_mapping *m)
{
    const struct row r = begin(s, l);
    ref(&r, r.limits->images, &m->image);
    number(&r, &m->ordinal);
    ref(&r, r.limits->modules, &m->module);
    bits(&r, &m->start);
    bits(&r, &m->bias);
}

void row_location(struct sql *s, const struct row_limits *l, uint64_t row, struct row_location *o)
{
    const struct row r = begin(s, l);
    id(&r, row);
    ref_or_none(&r, r.limits->modules, &o->module);
    ref_or_none(&r, r.limits->images, &o->image);
    bits(&r, &o->address);
    flag(&r, &o->exact);
}

void row_line(struct sql *s, const struct row_limits *l, struct row_line *n)
{
    const struct row r = begin(s, l);
    ref(&r, r.limits->locations, &n->location);
    number(&r, &n->position);
    ref(&r, r.limits->strings, &n->line.function);
    ref(&r, r.limits->strings, &n->line.file);
    number(&r, &n->line.line);
    flag(&r, &n->line.inlined);
}

/* The calling stack has a lower number: there are no circles. */
void row_stack(struct sql *s, const struct row_limits *l, uint64_t row, struct row_stack *k)
{
    const struct row r = begin(s, l);
    id(&r, row);
    ref_or_none(&r, r.limits->stacks, &k->caller);
    ref_or_none(&r, r.limits->locations, &k->location);
    bool is_end = row < ROW_STACK_ENDS;
    if ((k->caller == PROFILE_NONE) != is_end || (k->location == PROFILE_NONE) != is_end)
        s->bad = true;
}

void row_cell(struct sql *s, const struct row_limits *l, uint64_t row, struct profile_cell *c)
{
    const struct row r = begin(s, l);
    id(&r, row);
    ref(&r, r.limits->images, &c->image);
    ref(&r, r.limits->stacks, &c->stack);
    ref(&r, r.limits->threads, &c->thread);
    c->size_class = (uint8_t)whole(&r, c->size_class, 0, 63);
    count(&r, &c->period_bytes);
}

void row_cell_peak(struct sql *s, const struct row_limits *l, struct profile_cell *c)
{
    const struct row r = begin(s, l);
    sums(&r, &c->at_peak);
}

void row_cell_sums(struct sql *s, const struct row_limits *l, struct profile_cell *c)
{
    const struct row r = begin(s, l);
    sums(&r, &c->allocated);
    sums(&r, &c->freed);
    sums(&r, &c->at_peak);
    count(&r, &c->temporary_samples);
    real(&r, &c->temporary_bytes);
}

void row_lifetimes(struct sql *s, const struct row_limits *l, struct profile_cell *c)
{
    const struct row r = begin(s, l);
    for (size_t k = 0; k < PROFILE_LIFETIMES; k++)
        number(&r, &c->lifetimes[k]);
}

void row_sample(struct sql *s, const struct row_limits *l, uint32_t *image, struct profile_sample *v)
{
    const struct row r = begin(s, l);
    ref(&r, r.limits->images, image);
    bits(&r, &v->serial);
    ref(&r, r.limits->cells, &v->cell);
    bits(&r, &v->address);
    count(&r, &v->size_bytes);
    count_or_none(&r, &v->slack_bytes);
    count(&r, &v->born_ns);
}

void row_free(struct sql *s, const struct row_limits *l, uint32_t *image, struct profile_free *f)
{
    const struct row r = begin(s, l);
    ref(&r, r.limits->images, image);
    bits(&r, &f->serial);
    ref(&r, r.limits->cells, &f->cell);
    bits(&r, &f->address);
    count(&r, &f->size_bytes);
    count(&r, &f->born_ns);
    count(&r, &f->freed_ns);
    ref_or_none(&r, r.limits->stacks, &f->stack);
    ref_or_none(&r, r.limits->locations, &f->location);
    ref_or_none(&r, r.limits->threads, &f->thread);
    flag(&r, &f->reallocated);
}

void row_point(struct sql *s, const struct row_limits *l, struct row_point *q)
{
    const struct row r = begin(s, l);
    ref(&r, r.limits->images, &q->point.image);
    count(&r, &q->point.time_ns);
    real(&r, &q->point.live_bytes);
    real(&r, &q->point.allocated_bytes);
    count(&r, &q->point.rss_anon_bytes);
    bool none = r.stores ? q->moment == ROW_NO_MOMENT : sql_is_null(s);
    if (none && r.stores)
        sql_put_ref(s, PROFILE_NONE);
    q->moment = none ? ROW_NO_MOMENT : whole(&r, q->moment, 0, ROW_NO_MOMENT - 1);
}

void row_moment_key(struct sql *s, const struct row_limits *l, struct row_moment_cell *m)
{
    const struct row r = begin(s, l);
    m->moment = whole(&r, m->moment, 0, ROW_NO_MOMENT - 1);
    ref(&r, r.limits->cells, &m->cell);
}

void row_moment_sums(struct sql *s, const struct row_limits *l, struct row_moment_cell *m)
{
    const struct row r = begin(s, l);
    sums(&r, &m->allocated);
    sums(&r, &m->freed);
}

void row_unobserved(struct sql *s, const struct row_limits *l, struct profile_unobserved *u)
{
    const struct row r = begin(s, l);
    ref(&r, r.limits->strings, &u->program);
    ref(&r, r.limits->strings, &u->reason);
    count(&r, &u->processes);
}
