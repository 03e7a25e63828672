/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/profile/rollup.h"
#include "model/profile/rollup_calls.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/units.h"

#define SIZE_CLASSES 64

/* ---- which rows a cell belongs to ---- */

/* A unit is the cells of one stack (or thread, size class, image). They all belong to the same rows. */
struct unit {
    size_t first, n;             /* its rows in `members`, each once; it is exclusive in the first one */
    struct rollup_values values; /* sums of its cells */
};

struct build {
    const struct profile *p;
    const struct rollup_options *o;
    struct rollup *r;
    struct unit *units;
    struct profile_sums *kept;    /* by cell: sums of the selected live samples; NULL: all count */
    struct rollup_values nothing; /* the estimate from no samples: it bounds unsampled objects */
    struct map keys;
    struct VEC(uint32_t) members;
    struct VEC(uint32_t) stamps; /* by row: 1 + the last unit that has it as a member */
    struct frames frames;
    uint32_t *same;          /* from frames_same_locations(), for rows by stack only */
    uint32_t *rows_of_lines; /* by line: its row + 1; 0: not known yet */
    struct calls calls;
};

static uint32_t unit_of(const struct build *b, uint32_t cell)
{
    const struct profile_cell *c = &b->p->cells.at[cell];
    switch (b->o->group) {
    case ROLLUP_BY_THREAD:
        return c->thread;
    case ROLLUP_BY_SIZE:
        return c->size_class;
    case ROLLUP_BY_PROCESS:
        return c->image;
    default:
        return c->stack;
    }
}

/* Returns the row of this key. A new row has no name; the caller sets it. */
static size_t find_row(struct build *b, const void *key, size_t bytes)
{
    bool added;
    size_t row = map_put(&b->keys, key, bytes, b->r->rows.len, &added);
    if (added) {
        *vec_push(&b->r->rows) =
            (struct rollup_row){.module = "", .file = "", .index = PROFILE_NONE, .parent = PROFILE_NONE};
        *vec_push(&b->stamps) = 0;
    }
    return row;
}

static void add_member(struct build *b, uint32_t unit, size_t row)
{
    if (b->stamps.at[row] != unit + 1)
        *vec_push(&b->members) = (uint32_t)row;
    b->stamps.at[row] = unit + 1;
}

/* Finds the row of this key, and makes it a member of the unit. */
static struct rollup_row *join(struct build *b, uint32_t unit, const void *key, size_t bytes)
{
    size_t row = find_row(b, key, bytes);
    add_member(b, unit, row);
    return &b->r->rows.at[row];
}

static void name_row(struct build *b, struct rollup_row *row, const char *name, const struct frame *f)
{
    row->name = mem_strdup(name);
    if (b->o->group != ROLLUP_BY_FILE)
        row->module = frame_module(b->p, f);
}

/* Makes the row of a frame a member of the unit, and returns the row. Functions of the same name in two modules have
 * two rows. */
static size_t join_new_frame(struct build *b, uint32_t unit, const struct frame *f)
{
    char scratch[FRAME_NAME_BYTES];
    const char *function = frame_function(b->p, f, scratch);
    const char *module = frame_module(b->p, f), *file = frame_file(b->p, f);
    struct buf key = BUF_INIT;
    if (b->o->group == ROLLUP_BY_FILE && *file)
        buf_addstr(&key, file);
    else if (b->o->group == ROLLUP_BY_FILE && *module)
        buf_printf(&key, "%s (source unknown)", frame_basename(module));
    else if (b->o->group == ROLLUP_BY_MODULE)
        buf_addstr(&key, *module ? module : function);
    else
        buf_printf(&key, "%s%c%s", function, '\0', module);
    struct rollup_row *row = join(b, unit, key.data, key.len);
    if (!row->name)
        name_row(b, row, key.data, f);
    if (!*row->file && b->o->group != ROLLUP_BY_MODULE)
        row->file = file;
    buf_release(&key);
    return (size_t)(row - b->r->rows.at);
}

/* Makes the row of a frame a member of the unit. A line belongs to one place in the code and so to one row, which is
 * therefore stored by line. */
static void join_frame(struct build *b, uint32_t unit, const struct frame *f)
{
    uint32_t *known = f->line == PROFILE_NONE ? NULL : &b->rows_of_lines[f->line];
    if (known && *known) {
        add_member(b, unit, *known - 1);
        return;
    }
    size_t row = join_new_frame(b, unit, f);
    if (known)
        *known = (uint32_t)row + 1;
}

static void join_frames(struct build *b, uint32_t stack)
{
    frames_of(&b->frames, b->p, stack);
    const struct frame *first = b->frames.at + frames_passed_over(b->p, &b->frames);
    for (const struct frame *f = first; f < b->frames.at + b->frames.len; f++)
        if (f->location != PROFILE_NONE || f == first || b->o->group == ROLLUP_BY_FUNCTION)
            join_frame(b, stack, f);
}

/* The stack is a member of the directory of its site, and of each directory above. */
static void join_directories(struct build *b, uint32_t stack)
{
    frames_of(&b->frames, b->p, stack);
    const char *file = frame_file(b->p, frames_site(b->p, &b->frames));
    const char *slash = strrchr(file, '/');
    char *path = !*file   ? mem_strdup("[unknown]")
                 : !slash ? mem_strdup(".")
                          : mem_strndup(file, slash > file ? (size_t)(slash - file) : 1);
    for (;;) {
        struct rollup_row *row = join(b, stack, path, strlen(path));
        if (!row->name)
            row->name = mem_strdup(path);
        char *above = strrchr(path, '/');
        if (!above || !path[1])
            break;
        above[above == path] = '\0';
    }
    free(path);
}

static void join_owner(struct build *b, uint32_t stack)
{
    frames_of(&b->frames, b->p, stack);
    join_frame(b, stack, frames_owner(b->p, &b->frames));
}

static void join_stack(struct build *b, uint32_t stack)
{
    char scratch[FRAME_NAME_BYTES];
    struct buf key = BUF_INIT;
    frames_of(&b->frames, b->p, stack);
    vec_each (const struct frame, f, &b->frames) {
        uint32_t same = f->location == PROFILE_NONE ? PROFILE_NONE - 1 - f->end : b->same[f->location];
        buf_add(&key, &same, sizeof(same));
    }
    struct rollup_row *row = join(b, stack, key.data, key.len);
    if (!row->name)
        name_row(b, row, frame_function(b->p, b->frames.at, scratch), b->frames.at);
    if (row->index == PROFILE_NONE)
        row->index = stack;
    row->file = frame_file(b->p, b->frames.at);
    buf_release(&key);
}

/* Returns the row for a frame that was reached from row `parent` of the tree. */
static uint32_t step(struct build *b, const struct frame *f, uint32_t parent)
{
    char scratch[FRAME_NAME_BYTES];
    const char *function = frame_function(b->p, f, scratch);
    struct buf key = BUF_INIT;
    buf_add(&key, &parent, sizeof(parent));
    buf_printf(&key, "%s%c%s", function, '\0', frame_module(b->p, f));
    uint32_t at = (uint32_t)find_row(b, key.data, key.len);
    struct rollup_row *row = &b->r->rows.at[at];
    if (!row->name) {
        name_row(b, row, function, f);
        row->file = frame_file(b->p, f);
        row->parent = parent;
        row->depth = parent == PROFILE_NONE ? 0 : b->r->rows.at[parent].depth + 1;
    }
    buf_release(&key);
    return at;
}

/* Makes the rows on the stack's path through the tree members of the unit. The unit is exclusive in the last row of
 * the path, so this row comes first. */
static void join_calls(struct build *b, uint32_t stack)
{
    const struct frame *f = NULL;
    bool up = b->o->group == ROLLUP_BY_CALLERS;
    size_t n = calls_way(&b->calls, stack, up, &f), first = b->members.len;
    uint32_t row = PROFILE_NONE;
    for (size_t i = 0; i < n; i++)
        vec_push(&b->members);
    for (size_t i = n; i-- > 0; f += up ? 1 : -1)
        b->members.at[first + i] = row = step(b, f, row);
}

static void join_rows(struct build *b, uint32_t unit)
{
    if (b->o->group == ROLLUP_BY_STACK)
        join_stack(b, unit);
    else if (b->o->group == ROLLUP_BY_OWNER)
        join_owner(b, unit);
    else if (b->o->group == ROLLUP_BY_DIRECTORY)
        join_directories(b, unit);
    else if (b->o->group < ROLLUP_BY_OWNER)
        join_frames(b, unit);
    else if (rollup_is_tree(b->o->group))
        join_calls(b, unit);
    else {
        struct rollup_row *row = join(b, unit, &unit, sizeof(unit));
        row->name = rollup_index_name(b->p, b->o->group, unit);
        row->index = unit;
    }
}

/* ---- values ---- */

static void add_sums(struct rollup_value *v, const struct profile_cell *c, struct profile_sums s)
{
    profile_estimate(&v->bytes, &v->count, c, &s);
}

/* Returns the metrics of an image that are unknown, as bits 1 << metric. The past is known only in part; if single
 * samples are selected, only live memory is known. */
static unsigned unknown_of(const struct build *b, const struct profile_image *i)
{
    unsigned unknown = b->kept ? ROLLUP_NOT_OF_SAMPLES : 0;
    if (profile_is_kernel(i)) /* its events are not sorted by thread */
        unknown |= 1u << ROLLUP_TEMPORARY | 1u << ROLLUP_AGES;
    if (!profile_is_kernel(i) || !b->p->has_requested)
        unknown |= 1u << ROLLUP_REQUESTED | 1u << ROLLUP_SLACK;
    if (i->past)
        unknown |= 1u << ROLLUP_TEMPORARY | 1u << ROLLUP_AGES | (b->kept ? 1u << ROLLUP_LIVE : 0) |
                   (i->peak_ns ? 0 : 1u << ROLLUP_PEAK);
    return unknown;
}

static void add_cell(const struct build *b, struct rollup_values *v, uint32_t cell)
{
    const struct profile_cell *c = &b->p->cells.at[cell];
    unsigned unknown = unknown_of(b, &b->p->images.at[c->image]);
    v->unknown |= unknown;
    if (b->kept) {
        add_sums(&v->of[ROLLUP_LIVE], c, b->kept[cell]);
        return;
    }
    unknown |= b->o->without; /* metrics that are unknown or not needed are not added up */
    if (!(unknown >> ROLLUP_LIVE & 1))
        add_sums(&v->of[ROLLUP_LIVE], c, profile_live(c));
    if (!(unknown >> ROLLUP_ALLOCATED & 1))
        add_sums(&v->of[ROLLUP_ALLOCATED], c, c->allocated);
    if (!(unknown >> ROLLUP_PEAK & 1))
        add_sums(&v->of[ROLLUP_PEAK], c, c->at_peak);
    if (!(unknown >> ROLLUP_TEMPORARY & 1))
        add_sums(&v->of[ROLLUP_TEMPORARY], c, profile_temporary(c));
    v->requested_bytes += c->allocated.seen_bytes;
}

static void merge(struct rollup_values *into, const struct rollup_values *from)
{
    for (int m = 0; m < ROLLUP_METRICS; m++) {
        estimate_merge(&into->of[m].bytes, &from->of[m].bytes);
        estimate_merge(&into->of[m].count, &from->of[m].count);
    }
    into->unknown |= from->unknown;
    into->requested_bytes += from->requested_bytes;
}

static bool keeps_cell(struct build *b, uint32_t cell)
{
    return (!b->o->keep || b->o->keep(b->o->arg, b->p, cell)) &&
           calls_fit(&b->calls, b->p->cells.at[cell].stack);
}

static void add_cells(struct build *b)
{
    uint64_t last_period = UINT64_MAX;
    for (uint32_t i = 0; i < b->p->cells.len; i++) {
        uint64_t period = b->p->cells.at[i].period_bytes;
        /* An empty cell of each period. A second one of the same period would not change the estimate. */
        for (int m = 0; m < ROLLUP_METRICS && period != last_period; m++)
            add_sums(&b->nothing.of[m], &b->p->cells.at[i], (struct profile_sums){.samples = 0});
        last_period = period;
        if (!keeps_cell(b, i))
            continue;
        uint32_t at = unit_of(b, i);
        struct unit *unit = &b->units[at];
        if (!unit->n) {
            unit->first = b->members.len;
            join_rows(b, at);
            unit->n = b->members.len - unit->first;
        }
        add_cell(b, &unit->values, i);
    }
}

static void add_units(struct build *b, size_t n)
{
    for (const struct unit *u = b->units; u < b->units + n; u++) {
        if (!u->n)
            continue;
        merge(&b->r->total, &u->values);
        merge(&b->r->rows.at[b->members.at[u->first]].self, &u->values);
        for (size_t k = 0; k < u->n; k++)
            merge(&b->r->rows.at[b->members.at[u->first + k]].inclusive, &u->values);
    }
    const struct profile_cell silent = {.period_bytes = profile_silent_period(b->p)};
    for (int m = 0; silent.period_bytes && m < ROLLUP_METRICS; m++)
        add_sums(&b->nothing.of[m], &silent, (struct profile_sums){.samples = 0});
    merge(&b->r->total, &b->nothing);
    /* Code may have allocated unseen at every period of the profile. A thread, size class or process has cells of its
     * own, which bound what it allocated. */
    if (b->o->group <= ROLLUP_BY_OWNER || rollup_is_tree(b->o->group))
        vec_each (struct rollup_row, row, &b->r->rows) {
            merge(&row->self, &b->nothing);
            merge(&row->inclusive, &b->nothing);
        }
    if (!b->p->has_requested)
        b->r->total.unknown |= 1u << ROLLUP_REQUESTED | 1u << ROLLUP_SLACK;
    if (!b->members.len)
        vec_each (const struct profile_image, i, &b->p->images)
            b->r->total.unknown |= unknown_of(b, i);
}

/* ---- live samples: ages, and values when only some of them count ---- */

struct aged {
    uint64_t age_ns;
    uint32_t cell;
    double bytes; /* estimate of the bytes that the sample represents */
};
struct ages VEC(struct aged);

static int older_first(const void *a, const void *b)
{
    const struct aged *x = a, *y = b;
    return (x->age_ns < y->age_ns) - (x->age_ns > y->age_ns);
}

static void take_samples(struct build *b, struct ages *ages)
{
    const struct profile *p = b->p;
    if (!b->kept && b->o->without >> ROLLUP_AGES & 1)
        return;
    for (uint32_t i = 0; i < p->samples.len; i++) {
        const struct profile_sample *s = &p->samples.at[i];
        bool past = p->images.at[p->cells.at[s->cell].image].past; /* many of its live samples are missing */
        if (past || !keeps_cell(b, s->cell) || (b->kept && !b->o->keep_sample(b->o->arg, p, i)))
            continue;
        double weight = rollup_weight(s->size_bytes, p->cells.at[s->cell].period_bytes);
        double size = (double)s->size_bytes;
        *vec_push(ages) =
            (struct aged){.age_ns = profile_age_ns(p, s), .cell = s->cell, .bytes = weight * fmax(size, 1)};
        if (!b->kept)
            continue;
        struct profile_sums *sums = &b->kept[s->cell];
        sums->samples++;
        sums->seen_bytes += size;
        sums->bytes += weight * size;
        sums->count += weight;
    }
    if (ages->len)
        qsort(ages->at, ages->len, sizeof(*ages->at), older_first);
}

/* Adds one sample of `bytes`; the oldest sample comes first. The median is the age at which half of `all` bytes have
 * been seen. */
static void age(struct rollup_values *v, double *seen, double all, double bytes, uint64_t age_ns)
{
    if (!v->aged_samples++)
        v->oldest_ns = age_ns;
    if (2 * *seen < all)
        v->median_ns = age_ns;
    *seen += bytes;
}

static void add_ages(struct build *b, const struct ages *ages)
{
    struct {
        double self, inclusive;
    } *all = mem_array(b->r->rows.len, sizeof(*all)), *seen = mem_array(b->r->rows.len, sizeof(*seen));
    double total = 0, total_seen = 0;
    vec_each (const struct aged, s, ages) {
        const struct unit *u = &b->units[unit_of(b, s->cell)];
        total += s->bytes;
        all[b->members.at[u->first]].self += s->bytes;
        for (size_t k = 0; k < u->n; k++)
            all[b->members.at[u->first + k]].inclusive += s->bytes;
    }
    vec_each (const struct aged, s, ages) {
        const struct unit *u = &b->units[unit_of(b, s->cell)];
        uint32_t self = b->members.at[u->first];
        age(&b->r->total, &total_seen, total, s->bytes, s->age_ns);
        age(&b->r->rows.at[self].self, &seen[self].self, all[self].self, s->bytes, s->age_ns);
        for (size_t k = 0; k < u->n; k++) {
            uint32_t row = b->members.at[u->first + k];
            age(&b->r->rows.at[row].inclusive, &seen[row].inclusive, all[row].inclusive, s->bytes, s->age_ns);
        }
    }
    free(all);
    free(seen);
}

/* ---- order ---- */

static int larger_first(const void *a, const void *b, void *arg)
{
    const struct rollup *r = arg;
    const struct rollup_row *x = a, *y = b;
    enum rollup_sort sort = r->options.sort;
    bool inclusive = r->options.inclusive;
    double of_x = rollup_sort_value(sort, inclusive ? &x->inclusive : &x->self);
    double of_y = rollup_sort_value(sort, inclusive ? &y->inclusive : &y->self);
    if (of_x == of_y) {
        of_x = rollup_sort_value(sort, inclusive ? &x->self : &x->inclusive);
        of_y = rollup_sort_value(sort, inclusive ? &y->self : &y->inclusive);
    }
    if (of_x != of_y)
        return of_x < of_y ? 1 : -1;
    int order = strcmp(x->name, y->name);
    return order ? order : strcmp(x->module, y->module);
}

static size_t count_units(const struct profile *p, enum rollup_group group)
{
    switch (group) {
    case ROLLUP_BY_THREAD:
        return p->threads.len;
    case ROLLUP_BY_SIZE:
        return SIZE_CLASSES;
    case ROLLUP_BY_PROCESS:
        return p->images.len;
    default:
        return p->stacks.len;
    }
}

struct rollup *rollup_new(const struct profile *p, const struct rollup_options *o)
{
    struct rollup *r = mem_alloc(sizeof(*r));
    *r = (struct rollup){.profile = p, .options = *o};
    struct build b = {.p = p, .o = o, .r = r};
    struct ages ages = {0};
    size_t n = count_units(p, o->group);
    b.units = mem_array(n, sizeof(*b.units));
    b.same = o->group == ROLLUP_BY_STACK ? frames_same_locations(p) : NULL;
    b.kept = o->keep_sample ? mem_array(p->cells.len, sizeof(*b.kept)) : NULL;
    b.rows_of_lines = mem_array(p->lines.len, sizeof(*b.rows_of_lines));
    calls_init(&b.calls, p, o->focus);
    take_samples(&b, &ages);
    add_cells(&b);
    add_units(&b, n);
    add_ages(&b, &ages);
    if (rollup_is_tree(o->group))
        calls_order(r, larger_first);
    else if (r->rows.len && !o->unsorted)
        qsort_r(r->rows.at, r->rows.len, sizeof(*r->rows.at), larger_first, r);
    calls_release(&b.calls);
    free(b.units);
    free(b.same);
    free(b.rows_of_lines);
    free(b.kept);
    map_release(&b.keys);
    vec_release(&b.members);
    vec_release(&b.stamps);
    vec_release(&b.frames);
    vec_release(&ages);
    return r;
}

void rollup_free(struct rollup *r)
{
    if (!r)
        return;
    vec_each (struct rollup_row, row, &r->rows)
        free(row->name);
    vec_release(&r->rows);
    free(r);
}
