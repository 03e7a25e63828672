/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/trace/events_page.h"

#include <stdlib.h>

#include "base/mem.h"
#include "cli/profile_page.h"
#include "cli/source.h"
#include "cli/source_trace.h"
#include "cli/trace/event_choice.h"
#include "cli/trace/event_places.h"
#include "collect/trace/event_folder.h"
#include "collect/trace/order_doubts.h"
#include "collect/trace/trace_profile.h"
#include "model/trace/clock_kind.h"

struct reading {
    struct html_events *events;
    struct event_places *places;
    struct event_choice *choice;
    uint64_t to_ns;
};

/* Gives the events until the end of the span to the page. */
static int read_all(struct reading *r, struct event_folder *folder, struct error *e)
{
    struct trace_event event;
    struct order_doubts *doubts = order_doubts_new(folder);
    int found;
    while ((found = event_folder_next(folder, &event, e)) > 0 && event.realtime_ns <= r->to_ns) {
        event_places_take(r->places, &event);
        event.doubtful = order_doubts_take(doubts, &event);
        html_events_take(r->events, &event, event_choice_takes(r->choice, &event));
    }
    order_doubts_free(doubts);
    return found < 0 ? found : 0;
}

static int read_again(struct reading *r, const char *path, struct error *e)
{
    struct event_folder *folder;
    const int bad = event_folder_open(&folder, path, e);
    if (bad)
        return bad;
    html_events_again(r->events);
    event_choice_again(r->choice);
    const int found = read_all(r, folder, e);
    html_events_end(r->events, event_folder_lost(folder));
    event_folder_close(folder);
    return found;
}

/* Reads the trace twice. */
static int read_trace(struct html_events_options *o, struct html_events **out, struct event_folder *folder,
                      struct profile_filter *filter, struct error *e)
{
    struct reading r = {.to_ns = o->to_ns};
    o->n_classes = event_folder_classes(folder);
    const struct event_class **classes = mem_array(o->n_classes, sizeof(*classes));
    for (size_t i = 0; i < o->n_classes; i++)
        classes[i] = event_folder_class(folder, i);
    int bad = event_places_open(&r.places, o->folder, e);
    if (!bad) {
        o->classes = classes;
        o->place = event_places_of;
        o->place_arg = r.places;
        o->has_numbers = clock_kind_has_numbers(event_folder_clock(folder));
        r.choice = event_choice_new(filter, r.places);
        *out = r.events = html_events_new(o);
        bad = read_all(&r, folder, e);
        bad = bad ? bad : read_again(&r, o->folder, e);
    }
    event_choice_free(r.choice);
    event_places_close(r.places);
    free(classes);
    return bad;
}

static int read_source(struct html_events **out, const char *path, const char *time,
                       const struct profile *names, struct profile_filter *filter, uint64_t page_bytes,
                       struct error *e)
{
    struct trace_span span;
    struct event_folder *folder;
    int bad = source_trace_span(&span, path, time, e);
    bad = bad ? bad : event_folder_open(&folder, path, e);
    if (bad)
        return bad;
    char *words = profile_filter_words(filter);
    const uint64_t half = (page_bytes ? page_bytes : PROFILE_PAGE_BYTES) / 2;
    struct html_events_options o = {.names = names,
                                    .folder = path,
                                    .filter = words,
                                    .asks_age = profile_filter_asks_age(filter),
                                    .from_ns = span.from_ns,
                                    .to_ns = span.to_ns,
                                    .most_bytes =
                                        half < HTML_EVENTS_MOST_BYTES ? half : HTML_EVENTS_MOST_BYTES};
    bad = read_trace(&o, out, folder, words ? filter : NULL, e);
    event_folder_close(folder);
    free(words);
    if (bad) {
        html_events_free(*out);
        *out = NULL;
    }
    return bad;
}

int events_page_read(struct html_events **out, const char *source, const struct profile *names,
                     struct profile_filter *filter, uint64_t page_bytes, struct error *e)
{
    char *path;
    const char *time = NULL;
    *out = NULL;
    if (!source || source_kind(source) == SOURCE_PROCESS)
        return 0;
    if (source_kind(source) == SOURCE_FILE)
        path = mem_strdup(source);
    else if (source_moment(source, &path, &time, e))
        return 0; /* @TIME of a recording */
    const int bad = event_folder_is(path) ? read_source(out, path, time, names, filter, page_bytes, e) : 0;
    free(path);
    return bad;
}
