/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/recording_writer.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* What is under way while one image is put. */
struct put {
    struct recording *r;
    const struct profile *p;
    struct writer_image *image;
    bool last; /* nothing will be compared with what is put now */
    struct intern rows;
    uint8_t lifetime[PROFILE_LIFETIMES]; /* class in the profile -> class in the recording */
};

struct writer_image *writer_image(struct recording *r, uint64_t image_id)
{
    size_t row = map_get_u64(&r->image_ids, image_id);
    return row == MAP_NONE ? NULL : r->images.at[row];
}

void writer_image_free(struct writer_image *i)
{
    if (!i)
        return;
    vec_release(&i->threads);
    vec_release(&i->mappings);
    vec_release(&i->cells);
    vec_release(&i->samples);
    vec_release(&i->frees);
    vec_release(&i->points);
    free(i);
}

static void put_image_row(struct put *u)
{
    struct profile_image it = u->p->images.at[0];
    it.comm = intern_string(&u->rows, it.comm);
    it.exe = intern_string(&u->rows, it.exe);
    it.args = intern_string(&u->rows, it.args);
    it.ledger_full = intern_string(&u->rows, it.ledger_full);
    struct sql *s = writer_statement(u->r, SCHEMA_IMAGE);
    row_image(s, NULL, u->image->row, &it);
    writer_run(u->r, s);
}

static void put_threads(struct put *u)
{
    for (size_t i = 0; i < u->p->threads.len; i++) {
        const struct profile_thread *t = &u->p->threads.at[i];
        struct profile_thread it = {u->image->row, t->tid, intern_string(&u->rows, t->name), t->ordinal};
        bool is_new = i >= u->image->threads.len;
        if (is_new)
            vec_push(&u->image->threads)->row = u->r->n_threads++;
        struct writer_thread *known = &u->image->threads.at[i];
        if (!is_new && it.tid == known->stored.tid && it.name == known->stored.name &&
            it.ordinal == known->stored.ordinal)
            continue;
        known->stored = it;
        struct sql *s = writer_statement(u->r, SCHEMA_THREAD);
        row_thread(s, NULL, known->row, &it);
        writer_run(u->r, s);
    }
}

static void put_mappings(struct put *u)
{
    for (uint32_t i = 0; i < u->p->modules.len; i++) {
        const struct profile_module *m = &u->p->modules.at[i];
        struct row_mapping it = {u->image->row, i, intern_module(&u->rows, i), m->start, m->bias};
        bool is_new = i >= u->image->mappings.len;
        if (is_new)
            vec_push(&u->image->mappings);
        struct row_mapping *known = &u->image->mappings.at[i];
        if (!is_new && it.module == known->module && it.start == known->start && it.bias == known->bias)
            continue;
        *known = it;
        struct sql *s = writer_statement(u->r, SCHEMA_MAPPING);
        row_mapping(s, NULL, &it);
        writer_run(u->r, s);
    }
}

/* The class with the nearest bound, in powers: clocks that differ by a little, or ticks of another length. */
static uint8_t nearest_class(const uint64_t *bounds_ns, uint64_t bound_ns)
{
    uint8_t nearest = 0;
    double least = INFINITY;
    for (uint8_t k = 0; k < PROFILE_LIFETIMES - 1; k++) {
        double apart = fabs(log((double)bound_ns + 1) - log((double)bounds_ns[k] + 1));
        if (apart < least) {
            least = apart;
            nearest = k;
        }
    }
    return nearest;
}

static void put_lifetimes(struct put *u)
{
    static const uint64_t none[PROFILE_LIFETIMES - 1];
    const uint64_t *bounds = u->p->lifetime_ns;
    bool given = memcmp(bounds, none, sizeof(none));
    for (uint8_t k = 0; k < PROFILE_LIFETIMES; k++)
        u->lifetime[k] = k;
    if (!given)
        return;
    if (u->r->has_lifetimes) {
        for (uint8_t k = 0; k < PROFILE_LIFETIMES - 1; k++)
            u->lifetime[k] = nearest_class(u->r->lifetime_ns, bounds[k]);
        return;
    }
    for (uint8_t k = 0; k < PROFILE_LIFETIMES - 1; k++) {
        struct sql *s = writer_statement(u->r, SCHEMA_LIFETIME);
        u->r->lifetime_ns[k] = bounds[k];
        sql_put_int(s, k);
        sql_put_count(s, bounds[k]);
        writer_run(u->r, s);
    }
    u->r->has_lifetimes = true;
}

static bool same_sums(const struct profile_sums *a, const struct profile_sums *b)
{
    return a->samples == b->samples && a->seen_bytes == b->seen_bytes && a->bytes == b->bytes &&
           a->count == b->count;
}

static bool same_values(const struct profile_cell *a, const struct profile_cell *b)
{
    return same_sums(&a->allocated, &b->allocated) && same_sums(&a->freed, &b->freed) &&
           same_sums(&a->at_peak, &b->at_peak) && a->temporary_samples == b->temporary_samples &&
           a->temporary_bytes == b->temporary_bytes &&
           !memcmp(a->lifetimes, b->lifetimes, sizeof(a->lifetimes));
}

static uint64_t mix(uint64_t h, uint64_t word)
{
    h = (h ^ word) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

/* What a cell counts, in one word: asking for the stack's row each time would cost far more. */
static uint64_t identity(const struct profile *p, const struct profile_cell *c)
{
    const struct profile_stack *k = &p->stacks.at[c->stack];
    uint64_t h = mix(c->thread, k->end);
    h = mix(h, c->size_class);
    h = mix(h, c->period_bytes);
    for (uint32_t i = 0; i < k->depth; i++) {
        const struct profile_location *o = &p->locations.at[p->stack_locations.at[k->first + i]];
        h = mix(h, (uint64_t)o->module << 1 | o->exact);
        h = mix(h, o->address);
    }
    return h;
}

static void write_cell(struct put *u, struct writer_cell *c)
{
    struct sql *s = writer_statement(u->r, SCHEMA_CELL);
    row_cell(s, NULL, c->row, &c->stored);
    row_cell_sums(s, NULL, &c->stored);
    row_lifetimes(s, NULL, &c->stored);
    writer_run(u->r, s);
}

static void put_cell(struct put *u, size_t at)
{
    const struct profile_cell *given = &u->p->cells.at[at];
    struct profile_cell it = *given;
    memset(it.lifetimes, 0, sizeof(it.lifetimes));
    for (size_t k = 0; k < PROFILE_LIFETIMES; k++)
        it.lifetimes[u->lifetime[k]] += given->lifetimes[k];
    bool is_new = at >= u->image->cells.len;
    if (is_new)
        vec_push(&u->image->cells)->row = u->r->n_cells++;
    struct writer_cell *known = &u->image->cells.at[at];
    uint64_t is = is_new && u->last ? 0 : identity(u->p, given);
    bool is_other = is_new || is != known->identity;
    if (!is_other && same_values(&it, &known->stored))
        return;
    it.image = u->image->row;
    it.stack = is_other ? intern_stack(&u->rows, given->stack) : known->stored.stack;
    it.thread = u->image->threads.at[given->thread].row;
    known->stored = it;
    known->identity = is;
    write_cell(u, known);
}

/* A row cannot go, others come after it; one that counts nothing is as good. */
static void empty_cell(struct put *u, struct writer_cell *c)
{
    struct profile_cell it = {.image = c->stored.image,
                              .stack = c->stored.stack,
                              .thread = c->stored.thread,
                              .size_class = c->stored.size_class,
                              .period_bytes = c->stored.period_bytes};
    if (same_values(&it, &c->stored))
        return;
    c->stored = it;
    write_cell(u, c);
}

static void put_cells(struct put *u)
{
    for (size_t i = 0; i < u->p->cells.len; i++)
        put_cell(u, i);
    for (size_t i = u->p->cells.len; i < u->image->cells.len; i++)
        empty_cell(u, &u->image->cells.at[i]);
}

struct keyed {
    uint64_t serial;
    uint32_t index;
};

static int by_serial(const void *a, const void *b)
{
    uint64_t left = ((const struct keyed *)a)->serial, right = ((const struct keyed *)b)->serial;
    return left < right ? -1 : left > right;
}

static void write_sample(struct put *u, uint32_t index)
{
    struct profile_sample it = u->p->samples.at[index];
    it.cell = u->image->cells.at[it.cell].row;
    struct sql *s = writer_statement(u->r, SCHEMA_SAMPLE);
    row_sample(s, NULL, &u->image->row, &it);
    writer_run(u->r, s);
}

static void write_free(struct put *u, uint32_t index)
{
    struct profile_free it = u->p->frees.at[index];
    it.cell = u->image->cells.at[it.cell].row;
    it.stack = it.stack == PROFILE_NONE ? PROFILE_NONE : intern_stack(&u->rows, it.stack);
    it.location = it.location == PROFILE_NONE ? PROFILE_NONE : intern_location(&u->rows, it.location);
    it.thread = it.thread == PROFILE_NONE ? PROFILE_NONE : u->image->threads.at[it.thread].row;
    struct sql *s = writer_statement(u->r, SCHEMA_FREE);
    row_free(s, NULL, &u->image->row, &it);
    writer_run(u->r, s);
}

/* Makes the rows in the file those of `now`, by walking both in the order of the serials. Frees `now`. */
static void replace_rows(struct put *u, struct writer_serials *stored, struct keyed *now, size_t n,
                         void (*write)(struct put *, uint32_t), enum writer_statement delete)
{
    struct writer_serials kept = {0};
    size_t old = 0;
    qsort(now, n, sizeof(*now), by_serial);
    for (size_t i = 0; i <= n; i++) {
        bool end = i == n;
        if (!end && i && now[i].serial == now[i - 1].serial)
            continue;
        for (; old < stored->len && (end || stored->at[old] < now[i].serial); old++) {
            struct sql *s = writer_statement(u->r, delete);
            sql_put_int(s, u->image->row);
            sql_put_bits(s, stored->at[old]);
            writer_run(u->r, s);
        }
        if (end)
            break;
        if (old < stored->len && stored->at[old] == now[i].serial)
            old++;
        else
            write(u, now[i].index);
        *vec_push(&kept) = now[i].serial;
    }
    vec_release(stored);
    *stored = kept;
    free(now);
}

static void put_samples(struct put *u)
{
    size_t n = u->p->samples.len;
    struct keyed *now = mem_array(n, sizeof(*now));
    for (size_t i = 0; i < n; i++)
        now[i] = (struct keyed){u->p->samples.at[i].serial, (uint32_t)i};
    replace_rows(u, &u->image->samples, now, n, write_sample, WRITER_DELETE_SAMPLE);
}

static void put_frees(struct put *u)
{
    size_t n = u->p->frees.len;
    struct keyed *now = mem_array(n, sizeof(*now));
    for (size_t i = 0; i < n; i++)
        now[i] = (struct keyed){u->p->frees.at[i].serial, (uint32_t)i};
    replace_rows(u, &u->image->frees, now, n, write_free, WRITER_DELETE_FREE);
}

static int check(struct recording *r, const struct profile *p, struct error *e)
{
    if (p->images.len != 1 || !profile_valid(p))
        return error_set(e, EINVAL, "%s: a profile of %zu images cannot be put into a recording", r->shown,
                         p->images.len);
    uint64_t id = p->images.at[0].id;
    if (!writer_image(r, id) && map_get_u64(&r->image_ids, id) != MAP_NONE)
        return error_set(e, EINVAL, "%s: image %016" PRIx64 " was put for the last time before", r->shown,
                         id);
    return 0;
}

static struct writer_image *add_image(struct recording *r, uint64_t id)
{
    struct writer_image *image = mem_alloc(sizeof(*image));
    image->row = (uint32_t)r->images.len;
    *vec_push(&r->images) = image;
    map_put_u64(&r->image_ids, id, image->row, NULL);
    return image;
}

int writer_put_image(struct recording *r, const struct profile *p, bool last, struct error *e)
{
    int rc = writer_result(r, e);
    rc = rc ? rc : check(r, p, e);
    if (rc)
        return rc;
    struct put u = {.r = r, .p = p, .image = writer_image(r, p->images.at[0].id), .last = last};
    if (!u.image)
        u.image = add_image(r, p->images.at[0].id);
    intern_init(&u.rows, r, p, u.image->row);
    put_image_row(&u);
    put_lifetimes(&u);
    put_threads(&u);
    put_mappings(&u);
    for (uint32_t i = 0; i < p->locations.len; i++)
        intern_location(&u.rows, i);
    put_cells(&u);
    put_samples(&u);
    put_frees(&u);
    if (last)
        rc = writer_put_stack_numbers(&u.rows, e);
    intern_release(&u.rows);
    if (p->taken_ns > r->taken_ns) {
        r->taken_ns = p->taken_ns;
        writer_put_number(r, SCHEMA_TAKEN, (int64_t)(p->taken_ns > INT64_MAX ? INT64_MAX : p->taken_ns));
    }
    return rc ? rc : writer_result(r, e);
}

int recording_put_image(struct recording *r, const struct profile *p, bool last, struct error *e)
{
    int rc = writer_put_image(r, p, last, e);
    if (rc || !last)
        return rc;
    struct writer_image **image = &r->images.at[map_get_u64(&r->image_ids, p->images.at[0].id)];
    writer_image_free(*image);
    *image = NULL;
    return 0;
}
