/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/profile/profile_concat.h"

#include <stdlib.h>
#include <string.h>

/* The numbers that the first image, thread and so on of the next profile get; `strings` has them one by one. */
struct offsets {
    uint32_t image, thread, module, line, location, stack_location, stack;
    uint32_t *strings;
};

static uint32_t shifted(uint32_t index, uint32_t by)
{
    return index == PROFILE_NONE ? index : index + by;
}

static struct offsets offsets_in(struct profile *to, const struct profile *p)
{
    struct offsets at = {(uint32_t)to->images.len,    (uint32_t)to->threads.len,
                         (uint32_t)to->modules.len,   (uint32_t)to->lines.len,
                         (uint32_t)to->locations.len, (uint32_t)to->stack_locations.len,
                         (uint32_t)to->stacks.len,    mem_array(p->strings.len, sizeof(*at.strings))};
    for (size_t i = 0; i < p->strings.len; i++)
        at.strings[i] = profile_string(to, p->strings.at[i]);
    return at;
}

static void add_images(struct profile *to, const struct profile *p, const struct offsets *at)
{
    vec_each (const struct profile_image, i, &p->images) {
        struct profile_image it = *i;
        it.comm = at->strings[i->comm];
        it.exe = at->strings[i->exe];
        it.args = at->strings[i->args];
        it.ledger_full = at->strings[i->ledger_full];
        *vec_push(&to->images) = it;
    }
    vec_each (const struct profile_thread, t, &p->threads) {
        struct profile_thread it = *t;
        it.image += at->image;
        it.name = at->strings[t->name];
        *vec_push(&to->threads) = it;
    }
    vec_each (const struct profile_unobserved, u, &p->unobserved) {
        struct profile_unobserved it = *u;
        it.program = at->strings[u->program];
        it.reason = at->strings[u->reason];
        *vec_push(&to->unobserved) = it;
    }
}

static void add_code(struct profile *to, const struct profile *p, const struct offsets *at)
{
    vec_each (const struct profile_module, m, &p->modules) {
        struct profile_module it = *m;
        it.path = at->strings[m->path];
        it.build_id = at->strings[m->build_id];
        *vec_push(&to->modules) = it;
    }
    vec_each (const struct profile_line, l, &p->lines) {
        struct profile_line it = *l;
        it.function = at->strings[l->function];
        it.file = at->strings[l->file];
        *vec_push(&to->lines) = it;
    }
    vec_each (const struct profile_location, l, &p->locations) {
        struct profile_location it = *l;
        it.module = shifted(l->module, at->module);
        it.first_line += at->line;
        *vec_push(&to->locations) = it;
    }
    vec_each (const uint32_t, l, &p->stack_locations)
        *vec_push(&to->stack_locations) = *l + at->location;
    vec_each (const struct profile_stack, s, &p->stacks) {
        struct profile_stack it = *s;
        it.first += at->stack_location;
        *vec_push(&to->stacks) = it;
    }
}

static void add_cells(struct profile *to, const struct profile *p, const struct offsets *at)
{
    vec_each (const struct profile_cell, c, &p->cells) {
        struct profile_cell it = *c;
        it.image += at->image;
        it.thread += at->thread;
        it.stack += at->stack;
        *vec_push(&to->cells) = it;
    }
}

struct profile *profile_concat(const struct profile *const *of, uint32_t n)
{
    struct profile *to = profile_new();
    to->period_bytes = n ? of[0]->period_bytes : 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct profile *p = of[i];
        struct offsets at = offsets_in(to, p);
        add_images(to, p, &at);
        add_code(to, p, &at);
        add_cells(to, p, &at);
        free(at.strings);
        to->images_dropped += p->images_dropped;
        to->images_dropped_peak_bytes += p->images_dropped_peak_bytes;
        to->recorder_cpu_ns += p->recorder_cpu_ns;
        to->taken_ns = p->taken_ns > to->taken_ns ? p->taken_ns : to->taken_ns;
        to->period_bytes = p->period_bytes == to->period_bytes ? to->period_bytes : 0;
        memcpy(to->lifetime_ns, p->lifetime_ns, sizeof(to->lifetime_ns));
    }
    return to;
}
