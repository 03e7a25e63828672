/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/trace/trace_accounts.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "collect/accounts/site_accounts.h"
#include "collect/accounts/site_names.h"
#include "collect/ledger/profile_names.h"
#include "model/trace/clock_kind.h"

struct site {
    uint32_t image, location;
    struct account_sum sum;
};

struct work {
    const struct profile *p;
    const struct wrappers *wrappers;
    struct alloc_texts *texts;
    struct VEC(struct site) sites;
    struct map by_place;         /* of an image's location the number of the site */
    struct symbol_calls **calls; /* of each module; NULL: its file is not here */
};

static uint64_t *sums_at(struct work *w, uint32_t image, uint32_t location)
{
    const uint64_t key = (uint64_t)image << 32 | location;
    bool added;
    const size_t number = map_put_u64(&w->by_place, key, w->sites.len, &added);
    if (added)
        *vec_push(&w->sites) = (struct site){.image = image, .location = location, .sum = {.places = 1}};
    return w->sites.at[number].sum.of;
}

static void add_up(struct work *w, const struct object_calls *calls)
{
    vec_each (const struct profile_cell, c, &w->p->cells) {
        uint64_t *of = sums_at(w, c->image, w->p->stack_locations.at[w->p->stacks.at[c->stack].first]);
        of[ACCOUNT_ALLOCATED_CALLS] += c->allocated.samples;
        of[ACCOUNT_ALLOCATED_BYTES] += (uint64_t)c->allocated.seen_bytes;
        of[ACCOUNT_RELEASED_CALLS] += c->freed.samples;
        of[ACCOUNT_RELEASED_BYTES] += (uint64_t)c->freed.seen_bytes;
    }
    vec_each (const struct object_call, c, &calls->all) {
        uint64_t *of = sums_at(w, c->image, c->location);
        of[ACCOUNT_FAILED] += c->failed;
        of[ACCOUNT_FREED_BY_SITE_CALLS] += c->freed;
        of[ACCOUNT_FREED_BY_SITE_BYTES] += c->freed_bytes;
    }
}

static struct account_row row_of(struct work *w, const struct site *s)
{
    const struct profile *p = w->p;
    const struct profile_image *i = &p->images.at[s->image];
    const struct profile_location *l = &p->locations.at[s->location];
    struct account_row row = {.copies = 1, .code = l->address, .of = {[ACCOUNT_AFTER] = s->sum}};
    row.key.comm = alloc_texts_put_string(w->texts, profile_text(p, i->comm));
    row.key.pid = (uint32_t)i->pid;
    if (l->module == PROFILE_NONE) {
        row.code = 0;
        row.key.function = alloc_texts_put_string(w->texts, SITES_NO_MODULE);
        return row;
    }
    row.key.module = alloc_texts_put_string(w->texts, profile_text(p, p->modules.at[l->module].path));
    if (!l->n_lines)
        return row;
    struct symbol_frame *at = mem_array(l->n_lines, sizeof(*at));
    for (uint32_t k = 0; k < l->n_lines; k++) {
        const struct profile_line *line = &p->lines.at[l->first_line + k];
        at[k] = (struct symbol_frame){.function = profile_text(p, line->function),
                                      .file = line->file ? profile_text(p, line->file) : NULL,
                                      .line = line->line,
                                      .inlined = line->inlined};
    }
    const struct symbol_frames frames = {.at = at, .len = l->n_lines};
    site_names_put(&row, &frames, false, w->calls[l->module], w->wrappers, w->texts);
    free(at);
    return row;
}

static void add_process(struct accounts *a, const struct profile *p, uint32_t image,
                        const struct trace_profile_counts *counts)
{
    const struct profile_image *i = &p->images.at[image];
    struct account_process process = {
        .image_id = i->id, .began_ns = i->began_ns, .taken_ns = i->taken_ns, .pid = i->pid};
    strncpy(process.comm, profile_text(p, i->comm), sizeof(process.comm) - 1);
    process.losses[ACCOUNT_LOST_FREES] = i->losses[PROFILE_LOST_FREES_UNSEEN];
    process.losses[ACCOUNT_FOREIGN_FREES] = i->losses[PROFILE_INHERITED_FREES];
    if (!image)
        process.losses[ACCOUNT_FOREIGN_FREES] += counts->unknown_frees + counts->older.objects;
    *vec_push(&a->processes) = process;
}

void trace_accounts_add(struct accounts *a, struct alloc_texts *texts, const struct profile *p,
                        const struct object_calls *calls, const struct trace_profile_counts *counts,
                        const struct wrappers *wrappers)
{
    struct work w = {.p = p, .wrappers = wrappers, .texts = texts};
    w.calls = mem_array(p->modules.len, sizeof(struct symbol_calls *));
    for (uint32_t m = 0; m < p->modules.len; m++)
        w.calls[m] = profile_names_calls(p, m);
    add_up(&w, calls);
    a->of_trace = true;
    vec_each (struct site, s, &w.sites) {
        s->sum.inexact = counts->losses.events || counts->losses.cut_packets ||
                         clock_kind_has_bounds(profile_text(p, counts->clock)) ||
                         p->images.at[s->image].losses[PROFILE_LOST_FREES_UNSEEN];
        *vec_push(&a->rows) = row_of(&w, s);
    }
    for (uint32_t i = 0; i < p->images.len; i++)
        add_process(a, p, i, counts);
    accounts_merge(a, texts);
    for (uint32_t m = 0; m < p->modules.len; m++)
        symbol_calls_free(w.calls[m]);
    free(w.calls);
    vec_release(&w.sites);
    map_release(&w.by_place);
}
