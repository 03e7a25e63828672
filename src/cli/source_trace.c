/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/source_trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "cli/debuginfod.h"
#include "cli/source.h"
#include "cli/wrapper_lists.h"
#include "collect/ledger/profile_names.h"
#include "collect/trace/trace_accounts.h"
#include "collect/trace/trace_profile.h"
#include "model/trace/clock_kind.h"
#include "store/profile_load.h"

/* The recording tells the images, where they have their modules, and most names. A trace that was cut short may be
 * without one. */
static int load_recording(struct profile **p, const char *path, const uint64_t *until_ns, struct error *e)
{
    if (access(path, F_OK) && errno == ENOENT) {
        *p = profile_new();
        return 0;
    }
    return recording_load(p, path, until_ns, e);
}

/* Locations that are only in the trace: the recording was cut short. */
static void add_names(struct profile *p)
{
    char *cache = profile_names_cache_dir();
    struct symbols *symbols = symbols_new(cache);
    symbols_use_servers(symbols, debuginfod_servers());
    profile_names_apply(symbols, p, "");
    symbols_free(symbols);
    debuginfod_report();
    free(cache);
}

/* Images that ran at that time are shown as of then. */
static void set_end(struct profile *p, uint64_t to_ns)
{
    vec_each (struct profile_image, i, &p->images)
        if (i->past)
            i->taken_ns = to_ns;
    p->taken_ns = to_ns;
}

/* The span is all that the profile is about: it begins with it. */
static void set_begin(struct profile *p, uint64_t from_ns)
{
    size_t kept = 0;
    vec_each (struct profile_image, i, &p->images) {
        i->began_ns = i->began_ns > from_ns ? i->began_ns : from_ns;
        i->taken_ns = i->taken_ns > from_ns ? i->taken_ns : from_ns;
    }
    vec_each (const struct profile_point, point, &p->points)
        if (point->time_ns > from_ns)
            p->points.at[kept++] = *point;
    p->points.len = kept;
    p->started_ns = from_ns;
}

/* Reads one end of a span; "" is that of the trace. Returns 0, or -errno with a line. */
static int parse_end(const char *path, const char *text, uint64_t otherwise_ns, uint64_t *ns, struct error *e)
{
    *ns = otherwise_ns;
    return *text ? source_when(path, text, ns, e) : 0;
}

/* Reads "10s", "10s..20s", "10s.." or "..20s". `path`: of the recording. Returns 0, or -errno with a line. */
static int parse_span(struct trace_span *span, const char *path, const char *time, struct error *e)
{
    const char *dots = strstr(time, "..");
    if (!dots)
        return source_when(path, time, &span->to_ns, e);
    char *from = mem_strndup(time, (size_t)(dots - time));
    int bad = parse_end(path, from, 0, &span->from_ns, e);
    bad = bad ? bad : parse_end(path, dots + 2, UINT64_MAX, &span->to_ns, e);
    if (!bad && span->from_ns >= span->to_ns)
        bad = error_set(e, EINVAL, "invalid span '@%s': it ends before it begins", time);
    free(from);
    return bad;
}

int source_trace_span(struct trace_span *span, const char *folder, const char *time, struct error *e)
{
    struct buf path = BUF_INIT;
    *span = (struct trace_span){.to_ns = UINT64_MAX};
    buf_printf(&path, "%s/" SOURCE_TRACE_RECORDING, folder);
    const int bad = time ? parse_span(span, buf_str(&path), time, e) : 0;
    buf_release(&path);
    return bad;
}

/* Reads the profile without figures, as of the span. Returns 0, or -errno with a line. */
static int load_span(struct profile **p, const char *folder, const char *time, struct trace_span *span,
                     struct error *e)
{
    struct buf path = BUF_INIT;
    int bad = source_trace_span(span, folder, time, e);
    buf_printf(&path, "%s/" SOURCE_TRACE_RECORDING, folder);
    const bool has_end = span->to_ns != UINT64_MAX;
    bad = bad ? bad : load_recording(p, buf_str(&path), has_end ? &span->to_ns : NULL, e);
    buf_release(&path);
    if (!bad && has_end)
        set_end(*p, span->to_ns);
    return bad;
}

/* Appends the path of the recording. `folder` may also be one of the two folders of CTF in a trace. */
static void add_recording(struct buf *path, const char *folder)
{
    buf_printf(path, "%s/metadata", folder);
    const bool is_inner = !access(buf_str(path), F_OK);
    buf_reset(path);
    buf_printf(path, "%s/%s" SOURCE_TRACE_RECORDING, folder, is_inner ? "../" : "");
}

int source_trace_names(struct profile **p, const char *folder, struct error *e)
{
    struct buf path = BUF_INIT;
    add_recording(&path, folder);
    const int bad = load_recording(p, buf_str(&path), NULL, e);
    buf_release(&path);
    return bad;
}

/* The profile has no names yet. */
static int read_figures(struct profile **p, const char *folder, const char *time,
                        struct trace_profile_also also, struct trace_profile_counts *counts, struct error *e)
{
    struct trace_span span;
    *p = NULL;
    int bad = load_span(p, folder, time, &span, e);
    if (!bad && span.from_ns)
        set_begin(*p, span.from_ns);
    bad = bad ? bad : trace_profile_read_also(*p, folder, span, also, counts, e);
    if (bad) {
        profile_free(*p);
        *p = NULL;
    }
    return bad;
}

static int read_trace(struct profile **p, const char *folder, const char *time, struct object_calls *calls,
                      struct trace_profile_counts *counts, struct error *e)
{
    const int bad = read_figures(p, folder, time, (struct trace_profile_also){.calls = calls}, counts, e);
    if (!bad)
        add_names(*p);
    return bad;
}

int source_trace_lives(const char *folder, const char *time, const struct object_listener *listener,
                       struct error *e)
{
    struct profile *p;
    struct trace_profile_counts counts;
    const int bad =
        read_figures(&p, folder, time, (struct trace_profile_also){.listener = listener}, &counts, e);
    if (!bad)
        profile_free(p);
    return bad;
}

int source_trace_read(struct profile **p, const char *folder, const char *time, struct error *e)
{
    struct trace_profile_counts counts;
    const int bad = read_trace(p, folder, time, NULL, &counts, e);
    if (bad)
        return bad;
    (*p)->trace = (struct profile_trace){.known = true,
                                         .is_part = time != NULL,
                                         .filter = counts.filter,
                                         .clock = counts.clock,
                                         .without_stack = counts.without_stack,
                                         .cut_packets = counts.losses.cut_packets,
                                         .unknown_frees = counts.unknown_frees,
                                         .early_frees = counts.early_frees,
                                         .wall_step_ns = counts.wall_step_ns,
                                         .older = counts.older};
    if ((*p)->images.len)
        (*p)->images.at[0].losses[PROFILE_LOST_SAMPLES] += counts.losses.events;
    return 0;
}

int source_trace_accounts(struct accounts *a, struct alloc_texts *texts, const char *folder, const char *time,
                          struct error *e)
{
    struct profile *p;
    struct trace_profile_counts counts;
    struct object_calls calls = {.all = {0}};
    struct wrappers wrappers = {.all = {0}};
    const int bad = read_trace(&p, folder, time, &calls, &counts, e);
    if (!bad) {
        wrapper_lists_read(&wrappers);
        trace_accounts_add(a, texts, p, &calls, &counts, &wrappers);
        if (counts.losses.events)
            command_fail(
                0, "%llu events were lost while the trace was recorded: figures may be too high or too low",
                (unsigned long long)counts.losses.events);
        else if (counts.losses.cut_packets)
            command_fail(0, "the trace was cut short: figures may be too high or too low");
        else if (clock_kind_has_bounds(profile_text(p, counts.clock)))
            command_fail(
                0,
                "the order of events is not sure (--clock %s): what was freed, and what is live, are "
                "estimates",
                profile_text(p, counts.clock));
        wrappers_release(&wrappers);
    }
    object_calls_release(&calls);
    profile_free(p);
    return bad;
}
