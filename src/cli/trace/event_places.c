/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/trace/event_places.h"

#include <stdlib.h>

#include "base/mem.h"
#include "cli/source_trace.h"
#include "cli/wrapper_lists.h"
#include "collect/trace/trace_sites.h"

struct event_places {
    struct profile *p;
    struct trace_sites *sites;
};

int event_places_open(struct event_places **out, const char *folder, struct error *e)
{
    struct profile *p;
    *out = NULL;
    const int bad = source_trace_names(&p, folder, e);
    if (bad)
        return bad;
    wrapper_lists_mark(p);
    struct event_places *places = *out = mem_alloc(sizeof(*places));
    places->p = p;
    places->sites = trace_sites_new(p);
    return 0;
}

void event_places_close(struct event_places *p)
{
    if (!p)
        return;
    trace_sites_free(p->sites);
    profile_free(p->p);
    free(p);
}

void event_places_take(struct event_places *p, const struct trace_event *e)
{
    if (trace_sites_is_module(e))
        trace_sites_take(p->sites, e);
}

uint64_t event_places_site(const struct trace_event *e)
{
    const unsigned char *at;
    const struct event_field *f = trace_event_field(e, "site", &at);
    return f && f->type == EVENT_HEX ? trace_event_number(f, at) : 0;
}

struct event_place event_places_of(void *arg, const struct trace_event *e)
{
    struct event_places *w = arg;
    struct event_place place = {.function = NULL};
    const uint64_t site = event_places_site(e);
    if (!site)
        return place;
    const uint32_t image = trace_sites_image(w->sites, e);
    const uint32_t location = trace_sites_location(w->sites, image, site); /* may add one: the array moves */
    const struct profile_location *l = &w->p->locations.at[location];
    if (l->module != PROFILE_NONE)
        place.module = profile_text(w->p, w->p->modules.at[l->module].path);
    place.address = l->address;
    for (uint32_t i = 0; i < l->n_lines; i++) {
        const struct profile_line *line = &w->p->lines.at[l->first_line + i];
        place.function = profile_text(w->p, line->function);
        place.file = profile_text(w->p, line->file);
        place.line = line->line;
        if (!line->wrapper)
            break;
    }
    return place;
}

struct trace_sites *event_places_sites(struct event_places *p)
{
    return p->sites;
}

const struct profile *event_places_profile(const struct event_places *p)
{
    return p->p;
}
