/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of the reader of traces: an input is the metadata, a NUL, and one stream. Whatever they are, times do not
 * go back, each event is within its packet, and the profile of the events is valid and balances. The events are written
 * in LTTng's form, too.
 */
#include "require.h"

#include "collect/trace/trace_profile.h"
#include "model/trace/event_counts.h"
#include "model/trace/event_query.h"
#include "model/trace/event_spans.h"
#include "model/trace/live_bytes.h"
#include "view/lttng/lttng_writer.h"

#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct heard {
    uint64_t begun, ended;
    uint32_t last_cell;
};

static void hear(void *arg, const struct object_life *life)
{
    struct heard *h = arg;
    h->begun += !life->is_end;
    h->ended += life->is_end;
    h->last_cell = life->cell > h->last_cell ? life->cell : h->last_cell;
    require(h->ended <= h->begun, "a life that ends has begun");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define QUERY                                                                                                \
    "func:f or file:f or module:m or cpu:9 or process:9 or thread:9 or time>1h or event:x or size>4k or "    \
    "name:x* or "                                                                                            \
    "ptr:7 or price>2 or kind:A or i:4"

static char folder[256], metadata[280], stream[280], twin[280], exported[280], notes[280];
static uint64_t middle_ns; /* of the trace that list() has read */

static void remove_folder(void)
{
    unlink(metadata);
    unlink(stream);
    unlink(twin);
    unlink(notes);
    rmdir(exported);
    rmdir(folder);
}

static void make_folder(void)
{
    if (*folder)
        return;
    const char *scratch = getenv("TMPDIR"); /* whoever starts this removes it, also after a crash */
    snprintf(folder, sizeof(folder), "%s/trace-%d", scratch ? scratch : "/tmp", (int)getpid());
    snprintf(metadata, sizeof(metadata), "%s/metadata", folder);
    snprintf(stream, sizeof(stream), "%s/events_1-1_0", folder);
    snprintf(twin, sizeof(twin), "%s/events_1-1_1", folder);
    snprintf(notes, sizeof(notes), "%s/.cut", folder); /* of packets that the reader has closed */
    snprintf(exported, sizeof(exported), "%s/lttng", folder);
    mkdir(folder, 0700);
    mkdir(exported, 0700);
    atexit(remove_folder);
}

static void put(const char *path, const uint8_t *bytes, size_t n)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    require(fd >= 0 && write(fd, bytes, n) == (ssize_t)n, "write");
    close(fd);
}

static struct event_place nowhere(void *arg, const struct trace_event *e)
{
    (void)arg, (void)e;
    return (struct event_place){.function = NULL};
}

/* `taken`: events before this one. */
static void take_span(struct event_spans *spans, const struct trace_event *e, struct span_change *change,
                      uint64_t taken)
{
    event_spans_take(spans, e, change);
    require(!change->ended || change->ended->ended_ns >= change->ended->began_ns, "a duration");
    require(!change->ended || change->ended->number < taken, "the number of the event that began it");
    event_spans_choose(spans);
}

static void add_up_losses(const struct event_folder *t)
{
    uint64_t lost = 0, of_stretches = 0;
    vec_each (const struct cpu_loss, l, &event_folder_lost(t)->by_cpu)
        lost += l->events;
    vec_each (const struct lost_stretch, s, &event_folder_lost(t)->stretches) {
        of_stretches += s->events;
        require(s->from_ns <= s->to_ns, "a stretch of time");
    }
    require(lost == event_folder_losses(t).events && lost == of_stretches,
            "the losses of all CPUs are those of the trace");
}

/* Reads each event, and each byte of its fields by way of a query. */
static void list(void)
{
    struct event_folder *t;
    struct trace_event event;
    struct error e = {""};
    struct event_query *query = NULL;
    uint64_t last_ns = 0;
    if (event_folder_open(&t, folder, &e)) {
        require(*e.text, "a line");
        return;
    }
    const size_t n = event_folder_classes(t);
    const struct event_class **classes = mem_array(n + 1, sizeof(*classes));
    for (size_t i = 0; i < n; i++)
        classes[i] = event_folder_class(t, i);
    const int unfit = event_query_new(&query, QUERY, classes, n, &e);
    struct query_range ranges[QUERY_RANGES_MAX];
    require(unfit || event_query_ranges(query, "size", ranges) <= QUERY_RANGES_MAX, "ranges");
    require(unfit || !event_query_uses_time(query) || !event_query_uses_place(query) || *QUERY,
            "what it uses");
    uint64_t first_ns = 0;
    struct event_counts *counts = event_counts_new(EVENT_COUNTS_BY_EVENT);
    struct event_spans *spans = event_spans_new(classes, n);
    struct live_bytes *live = live_bytes_new();
    struct span_change change;
    uint64_t live_now, taken = 0;
    for (int found; (found = event_folder_next(t, &event, &e)) != 0;) {
        if (found < 0) {
            require(*e.text, "a line");
            break;
        }
        require(event.class != NULL, "a class");
        if (!unfit)
            event_query_fits(query, &event, last_ns, nowhere, NULL);
        event_counts_add(counts, &event);
        take_span(spans, &event, &change, taken++);
        live_bytes_take(live, &event, &live_now);
        last_ns = event.time_ns;
        first_ns = first_ns ? first_ns : event.realtime_ns;
        middle_ns = first_ns + (event.realtime_ns - first_ns) / 2;
    }
    event_spans_finish(spans, &change);
    for (size_t i = 0; i < change.n_unfinished; i++)
        require(change.unfinished[i].chosen && change.unfinished[i].number < taken,
                "a span that has not ended");
    event_spans_free(spans);
    live_bytes_free(live);
    table_free(event_counts_table(counts, 0));
    event_counts_free(counts);
    event_query_free(query);
    free(classes);
    add_up_losses(t);
    event_folder_wall_step_ns(t);
    require(!event_folder_residual_ns(t) || event_folder_domains(t), "clocks of a domain");
    event_folder_close(t);
}

static void finish_export(struct lttng_writer *w)
{
    char path[320];
    struct error e = {""};
    for (size_t i = 0; i < lttng_writer_streams(w); i++) {
        const uint32_t cpu = lttng_writer_cpu(w, i);
        require(!lttng_writer_finish(w, cpu, 1, &e), "the end: %s", e.text);
        snprintf(path, sizeof(path), "%s/channel0_%u", exported, cpu);
        require(!unlink(path), "a file for CPU %u", cpu);
    }
    snprintf(path, sizeof(path), "%s/metadata", exported);
    require(!unlink(path), "metadata");
    lttng_writer_free(w);
}

static void export(void)
{
    struct event_folder *t;
    struct trace_event event;
    struct error e = {""};
    struct lttng_writer *w;
    int bad = 0;
    if (event_folder_open(&t, folder, &e))
        return;
    const struct ctf_trace *from = event_folder_domain(t, 0);
    const struct lttng_trace to = {.kernel = !strcmp(from->domain, "kernel"), .name = "fuzz"};
    require(!lttng_writer_new(&w, exported, &to, from->classes.at, from->classes.len, &e), "%s", e.text);
    while (!bad && event_folder_next(t, &event, &e) > 0)
        bad = lttng_writer_event(w, &event, "a name of a thread", 0, &e);
    require(!bad, "%s", e.text);
    finish_export(w);
    event_folder_close(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = memchr(data, 0, size);
    const size_t text = end ? (size_t)(end - data) : size;
    make_folder();
    unlink(notes);
    put(metadata, data, text);
    put(stream, data + text + (end != NULL), size - text - (end != NULL));
    if (size % 4 == 1) /* of another CPU, with the same events */
        put(twin, data + text + (end != NULL), size - text - (end != NULL));
    else
        unlink(twin);
    middle_ns = 0;
    list();
    export();
    struct profile *p = profile_new();
    /* as of a recording: an image with a module and a point */
    *vec_push(&p->images) = (struct profile_image){.id = 1, .pid = 7};
    *vec_push(&p->modules) = (struct profile_module){.end = 1 << 20};
    *vec_push(&p->mappings) = (struct profile_mapping){.start = 0};
    *vec_push(&p->points) = (struct profile_point){.time_ns = 20};
    *vec_push(&p->stacks) = (struct profile_stack){.first = 0};
    *vec_push(&p->stack_numbers) = (struct profile_stack_number){.number = 1};
    struct trace_profile_counts counts;
    struct error e = {""};
    const struct trace_span span = {.from_ns = size % 2 ? middle_ns : 0, .to_ns = UINT64_MAX};
    struct object_calls calls = {.all = {0}};
    struct heard heard = {.begun = 0};
    const struct object_listener listener = {hear, &heard};
    if (!trace_profile_read_also(p, folder, span, (struct trace_profile_also){&calls, &listener}, &counts,
                                 &e)) {
        double live = 0, held = 0;
        require(profile_valid(p), "a valid profile");
        vec_each (const struct profile_cell, c, &p->cells)
            live += profile_live(c).count;
        held = (double)p->samples.len;
        /* single objects are not known without times */
        require(heard.begun - heard.ended == (uint64_t)llround(live),
                "what is live has begun, and not ended");
        require(!heard.begun || heard.last_cell < p->cells.len, "a cell");
        require(live == held || *profile_text(p, counts.clock), "%g live objects, %g samples", live, held);
    }
    object_calls_release(&calls);
    profile_free(p);
    return 0;
}
