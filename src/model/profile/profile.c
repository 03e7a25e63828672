/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/profile/profile.h"

#include <math.h>
#include <string.h>

struct profile *profile_new(void)
{
    struct profile *p = mem_alloc(sizeof(*p));
    profile_string(p, "");
    return p;
}

void profile_free(struct profile *p)
{
    if (!p)
        return;
    vec_each (char *, text, &p->strings)
        free(*text);
    vec_release(&p->strings);
    vec_release(&p->images);
    vec_release(&p->threads);
    vec_release(&p->modules);
    vec_release(&p->mappings);
    vec_release(&p->lines);
    vec_release(&p->locations);
    vec_release(&p->stack_locations);
    vec_release(&p->stacks);
    vec_release(&p->cells);
    vec_release(&p->samples);
    vec_release(&p->frees);
    vec_release(&p->stack_numbers);
    vec_release(&p->points);
    vec_release(&p->marks);
    vec_release(&p->moments);
    vec_release(&p->moment_cells);
    vec_release(&p->unobserved);
    map_release(&p->string_index);
    free(p);
}

uint32_t profile_string(struct profile *p, const char *text)
{
    bool added;
    if (!text)
        text = "";
    uint32_t at = (uint32_t)map_put(&p->string_index, text, strlen(text), p->strings.len, &added);
    if (added)
        *vec_push(&p->strings) = mem_strdup(text);
    return at;
}

static bool names_valid(const struct profile *p)
{
    size_t strings = p->strings.len;
    vec_each (const struct profile_module, m, &p->modules)
        if (m->path >= strings || m->build_id >= strings)
            return false;
    vec_each (const struct profile_line, l, &p->lines)
        if (l->function >= strings || l->file >= strings)
            return false;
    vec_each (const struct profile_mapping, m, &p->mappings)
        if (m->image >= p->images.len || m->module >= p->modules.len)
            return false;
    vec_each (const struct profile_location, l, &p->locations)
        if ((l->module != PROFILE_NONE && l->module >= p->modules.len) ||
            (uint64_t)l->first_line + l->n_lines > p->lines.len)
            return false;
    vec_each (const uint32_t, l, &p->stack_locations)
        if (*l >= p->locations.len)
            return false;
    vec_each (const struct profile_stack, s, &p->stacks)
        if ((uint64_t)s->first + s->depth > p->stack_locations.len || s->end > PROFILE_STACK_BROKEN)
            return false;
    return true;
}

static bool moments_valid(const struct profile *p)
{
    vec_each (const struct profile_moment, m, &p->moments) {
        if (m->image >= p->images.len || (uint64_t)m->first + m->n > p->moment_cells.len)
            return false;
        for (uint32_t i = m->first; i < m->first + m->n; i++)
            if (p->moment_cells.at[i].cell >= p->cells.len ||
                p->cells.at[p->moment_cells.at[i].cell].image != m->image)
                return false;
    }
    return true;
}

static bool books_valid(const struct profile *p)
{
    size_t strings = p->strings.len;
    vec_each (const struct profile_image, i, &p->images)
        if (i->comm >= strings || i->exe >= strings || i->args >= strings || i->ledger_full >= strings)
            return false;
    vec_each (const struct profile_thread, t, &p->threads)
        if (t->image >= p->images.len || t->name >= strings)
            return false;
    vec_each (const struct profile_cell, c, &p->cells)
        if (c->image >= p->images.len || c->stack >= p->stacks.len || c->thread >= p->threads.len ||
            c->size_class > 63)
            return false;
    vec_each (const struct profile_sample, s, &p->samples)
        if (s->cell >= p->cells.len)
            return false;
    vec_each (const struct profile_stack_number, k, &p->stack_numbers)
        if (k->image >= p->images.len || k->stack >= p->stacks.len)
            return false;
    vec_each (const struct profile_free, f, &p->frees)
        if (f->cell >= p->cells.len || (f->stack != PROFILE_NONE && f->stack >= p->stacks.len) ||
            (f->location != PROFILE_NONE && f->location >= p->locations.len) ||
            (f->thread != PROFILE_NONE && f->thread >= p->threads.len))
            return false;
    vec_each (const struct profile_point, q, &p->points)
        if (q->image >= p->images.len)
            return false;
    vec_each (const struct profile_mark, m, &p->marks)
        if (m->text >= strings)
            return false;
    vec_each (const struct profile_unobserved, u, &p->unobserved)
        if (u->program >= strings || u->reason >= strings)
            return false;
    return true;
}

bool profile_valid(const struct profile *p)
{
    return p->strings.len && names_valid(p) && books_valid(p) && moments_valid(p);
}

bool profile_is_of_kernel(const struct profile *p)
{
    vec_each (const struct profile_image, i, &p->images)
        if (!profile_is_kernel(i))
            return false;
    return p->images.len;
}

static void reach(uint64_t *to, uint64_t ns)
{
    if (ns > *to)
        *to = ns;
}

void profile_end(struct profile *p)
{
    struct profile_image *i = &p->images.at[0];
    uint64_t last = i->began_ns;
    reach(&last, i->ended_ns);
    reach(&last, i->peak_ns);
    vec_each (const struct profile_sample, s, &p->samples)
        reach(&last, s->born_ns);
    vec_each (const struct profile_free, f, &p->frees)
        reach(&last, f->freed_ns);
    if (last < i->taken_ns)
        p->taken_ns = i->taken_ns = last;
}

uint64_t profile_age_ns(const struct profile *p, const struct profile_sample *s)
{
    uint64_t taken = p->images.at[p->cells.at[s->cell].image].taken_ns;
    return taken > s->born_ns ? taken - s->born_ns : 0;
}

struct profile_sums profile_live(const struct profile_cell *c)
{
    const struct profile_sums *a = &c->allocated, *f = &c->freed;
    /* Counters are read one by one: a free under way may be in one sum and not in the other. */
    return (struct profile_sums){
        .samples = a->samples > f->samples ? a->samples - f->samples : 0,
        .seen_bytes = a->seen_bytes > f->seen_bytes ? a->seen_bytes - f->seen_bytes : 0,
        .bytes = a->bytes > f->bytes ? a->bytes - f->bytes : 0,
        .count = a->count > f->count ? a->count - f->count : 0,
    };
}

struct profile_sums profile_temporary(const struct profile_cell *c)
{
    struct profile_sums s = {.samples = c->temporary_samples, .bytes = c->temporary_bytes};
    const struct profile_sums *all = c->freed.bytes > 0 ? &c->freed : &c->allocated;
    double k = (double)s.samples;
    if (!s.samples || !(all->bytes > 0))
        return (struct profile_sums){.samples = s.samples, .count = k};
    s.seen_bytes = fmin(s.bytes * fmin(all->seen_bytes / all->bytes, 1), s.bytes);
    s.count = fmax(s.bytes * (all->count / all->bytes), k);
    return s;
}

/* Where all is exact, all bytes were seen: those that were allocated, which may be more than was requested. */
static struct estimate_cell estimate_cell(const struct profile_cell *c, const struct profile_sums *s)
{
    return (struct estimate_cell){.samples = s->samples,
                                  .seen = c->period_bytes == 1 ? s->bytes : s->seen_bytes,
                                  .bytes = s->bytes,
                                  .count = s->count,
                                  .period = (double)c->period_bytes};
}

void profile_estimate(struct estimate *bytes, struct estimate *count, const struct profile_cell *c,
                      const struct profile_sums *s)
{
    struct estimate_cell cell = estimate_cell(c, s);
    estimate_add_cell(bytes, count, &cell);
}

void profile_estimate_bytes(struct estimate *e, const struct profile_cell *c, const struct profile_sums *s)
{
    struct estimate_cell cell = estimate_cell(c, s);
    estimate_add_cell_bytes(e, &cell);
}

void profile_estimate_count(struct estimate *e, const struct profile_cell *c, const struct profile_sums *s)
{
    struct estimate_cell cell = estimate_cell(c, s);
    estimate_add_cell_count(e, &cell);
}

void profile_add_thread_name(struct buf *b, const struct profile *p, uint32_t thread)
{
    const struct profile_thread *t = &p->threads.at[thread];
    const struct profile_image *i = &p->images.at[t->image];
    const char *name = profile_text(p, t->name), *comm = profile_text(p, i->comm);
    bool has_name = *name && strcmp(name, comm); /* a new thread has the name of its creator */
    buf_addstr(b, comm);
    if (!t->tid)
        buf_addstr(b, "/other threads");
    else if (t->tid != i->pid)
        buf_printf(b, "/%s", has_name ? name : "thread");
}
