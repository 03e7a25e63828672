/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/trace/trace_chrome.h"

#include <inttypes.h>
#include <stdlib.h>

#include "allium_version.h"
#include "base/mem.h"
#include "base/units.h"
#include "cli/trace/event_places.h"
#include "collect/trace/event_folder.h"
#include "view/events/events_view.h"
#include "view/formats/chrome.h"
#include "view/text/notes.h"

struct trace_chrome {
    const char *path;
    struct event_folder *classes_of; /* stays open: the classes are its own */
    const struct event_class **classes;
    struct event_places *places;
    struct chrome *chrome;
    struct trace_losses losses;
};

/* Gives all events of the trace to the view. */
static int read_all(struct trace_chrome *t, struct event_folder *folder, struct error *e)
{
    struct trace_event event;
    int found;
    while ((found = event_folder_next(folder, &event, e)) > 0) {
        event_places_take(t->places, &event);
        chrome_event(t->chrome, &event);
    }
    t->losses = event_folder_losses(folder);
    return found;
}

int trace_chrome_open(struct trace_chrome **out, const char *folder, struct error *e)
{
    struct event_folder *f;
    *out = NULL;
    int bad = event_folder_open(&f, folder, e);
    if (bad)
        return bad;
    struct trace_chrome *t = mem_alloc(sizeof(*t));
    const size_t n = event_folder_classes(f);
    t->path = folder;
    t->classes_of = f;
    t->classes = mem_array(n, sizeof(*t->classes));
    for (size_t i = 0; i < n; i++)
        t->classes[i] = event_folder_class(f, i);
    bad = event_places_open(&t->places, folder, e);
    if (!bad) {
        const struct chrome_options o = {.classes = t->classes,
                                         .n_classes = n,
                                         .place = event_places_of,
                                         .place_arg = t->places,
                                         .names = event_places_profile(t->places),
                                         .exporter = "allium@" ALLIUM_VERSION,
                                         .most_bytes = CHROME_MOST_BYTES};
        t->chrome = chrome_new(&o);
        bad = read_all(t, f, e);
    }
    if (bad)
        trace_chrome_close(t);
    else
        *out = t;
    return bad;
}

static void note_left_out(const struct chrome_counts *n, struct buf *notes)
{
    char text[UNITS_TEXT_BYTES];
    const char *most = units_format_size(text, (double)CHROME_MOST_BYTES);
    if (n->left.slices)
        notes_add(notes,
                  "left out to stay below %s: %" PRIu64 " slices of %" PRIu64 ", none longer than %" PRIu64
                  " ns",
                  most, n->left.slices, n->left.slices + n->slices, n->left.shortest_ns);
    if (n->left.instants)
        notes_add(notes, "left out to stay below %s: %" PRIu64 " of %" PRIu64 " events, evenly", most,
                  n->left.instants, n->left.instants + n->instants);
    if (n->left.step_ns)
        notes_add(notes, "counters have the highest and the last value of each %s",
                  units_format_duration(text, (double)n->left.step_ns));
    if (!n->has_begin)
        notes_add(notes, "calls of the allocator have no durations, and are in the counter alone: record "
                         "them with allium trace --events alloc,begin");
}

int trace_chrome_write(struct trace_chrome *t, struct sink *out, struct buf *notes, struct error *e)
{
    struct event_folder *f;
    struct buf missing = BUF_INIT;
    int bad = event_folder_open(&f, t->path, e);
    if (bad)
        return bad;
    chrome_begin(t->chrome, out);
    bad = read_all(t, f, e);
    const struct chrome_counts n = chrome_end(t->chrome);
    event_folder_close(f);
    note_left_out(&n, notes);
    events_view_missing(&missing, &n.missing);
    if (missing.len)
        notes_add(notes, "%s", buf_str(&missing));
    if (t->losses.events)
        notes_add(notes, "%" PRIu64 " events were lost while the trace was recorded", t->losses.events);
    if (t->losses.cut_packets)
        notes_add(notes, "the trace was cut short: the last packet of %" PRIu64 " files is not whole",
                  t->losses.cut_packets);
    buf_release(&missing);
    return bad;
}

void trace_chrome_close(struct trace_chrome *t)
{
    if (!t)
        return;
    chrome_free(t->chrome);
    event_places_close(t->places);
    free(t->classes);
    event_folder_close(t->classes_of);
    free(t);
}
