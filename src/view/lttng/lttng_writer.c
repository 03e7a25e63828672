/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/lttng/lttng_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/hash_map.h"
#include "base/vec.h"
#include "view/lttng/lttng_stream.h"

#define NONE UINT32_MAX

/* A class of LTTng's. Its number is its index. */
struct theirs {
    const char *name;
    const struct lttng_field *fields;
    uint32_t n_fields;
    struct lttng_field *own; /* to be freed; NULL: the fields are a rule's */
};

/* Where a field of an event of ours lies. */
struct source {
    const struct event_field *field; /* NULL: it has none */
    uint32_t at;
};

/* How an event of ours becomes one of theirs. */
struct plan {
    const struct event_class *ours;
    const struct lttng_rule *rule; /* NULL: the event is kept as it is */
    uint32_t theirs;
    uint32_t completes; /* a number of theirs; NONE: no event */
    /* indexes in `sources`: for the fields of `theirs`, and for those of `completes` */
    uint32_t sources, completing;
    struct source when, pid; /* of rule->when; of the process */
    uint32_t next;           /* another plan of the same class + 1; 0: none */
};

/* The last event of a thread that waits for another one. */
struct waiting {
    uint32_t theirs;
    uint32_t stream;
    uint64_t at; /* of its payload */
};
struct lttng_writer {
    int folder;
    char *path;
    struct lttng_trace trace;
    struct VEC(struct theirs) theirs;
    struct VEC(struct plan) plans;
    struct VEC(struct source) sources;
    uint32_t *by_id; /* for each number of a class of ours its first plan + 1; UINT16_MAX + 1 of them */
    struct VEC(struct lttng_stream) streams;
    struct map by_cpu; /* the index of a CPU's stream */
    struct VEC(struct waiting) waiting;
    struct map by_thread;   /* the index in `waiting` */
    struct buf data, again; /* of the event, and of the one that it completes */
    uint64_t last_ns;
};

/* ---- classes ---- */

static uint32_t find_theirs(const struct lttng_writer *w, const char *name)
{
    for (uint32_t i = 0; i < w->theirs.len; i++)
        if (!w->theirs.at[i].own && !strcmp(w->theirs.at[i].name, name))
            return i;
    return NONE;
}

static struct source find_source(const struct event_class *c, const char *name)
{
    uint32_t at = 0;
    const struct event_field *f = name ? trace_event_class_field(c, name, &at) : NULL;
    return f ? (struct source){f, at} : (struct source){NULL, 0};
}

/* Adds the sources of the fields of `theirs`, and returns the index of the first. */
static uint32_t add_sources(struct lttng_writer *w, const struct event_class *ours, uint32_t theirs)
{
    const uint32_t first = (uint32_t)w->sources.len;
    for (uint32_t i = 0; theirs != NONE && i < w->theirs.at[theirs].n_fields; i++)
        *vec_push(&w->sources) = find_source(ours, w->theirs.at[theirs].fields[i].from);
    return first;
}

static void add_plan(struct lttng_writer *w, const struct event_class *ours, const struct lttng_rule *rule,
                     uint32_t theirs)
{
    struct plan p = {.ours = ours, .rule = rule, .theirs = theirs, .completes = NONE};
    if (rule && rule->completes)
        p.completes = find_theirs(w, rule->completes);
    p.sources = add_sources(w, ours, p.theirs);
    p.completing = add_sources(w, ours, p.completes);
    p.when = find_source(ours, rule ? rule->when : NULL);
    p.pid = find_source(ours, w->trace.kernel ? "pid" : NULL);
    uint32_t *last = &w->by_id[ours->id];
    while (*last)
        last = &w->plans.at[*last - 1].next;
    *last = (uint32_t)w->plans.len + 1; /* before the plans move */
    *vec_push(&w->plans) = p;
}

static void add_rules(struct lttng_writer *w, const struct event_class *classes, size_t n)
{
    uint32_t n_rules;
    const struct lttng_rule *rules = lttng_rules(w->trace.kernel, &n_rules);
    for (const struct lttng_rule *r = rules; r < rules + n_rules; r++) {
        uint32_t theirs = find_theirs(w, r->theirs);
        if (theirs == NONE) {
            theirs = (uint32_t)w->theirs.len;
            *vec_push(&w->theirs) =
                (struct theirs){.name = r->theirs, .fields = r->fields, .n_fields = r->n_fields};
        }
        for (size_t i = 0; i < n && r->ours; i++)
            if (!strcmp(classes[i].name, r->ours))
                add_plan(w, &classes[i], r, theirs);
    }
}

/* Texts of ours have a fixed number of bytes; LTTng's end with NUL. */
static void add_unchanged(struct lttng_writer *w, const struct event_class *c)
{
    struct lttng_field *own = mem_array(c->n_fields + 1u, sizeof(*own));
    for (uint32_t i = 0; i < c->n_fields; i++) {
        own[i] = (struct lttng_field){.as = c->fields[i], .origin = LTTNG_FIELD, .from = c->fields[i].name};
        if (own[i].as.type == EVENT_TEXT)
            own[i].as.bytes = 0;
    }
    const uint32_t theirs = (uint32_t)w->theirs.len;
    *vec_push(&w->theirs) =
        (struct theirs){.name = c->name, .fields = own, .n_fields = c->n_fields, .own = own};
    add_plan(w, c, NULL, theirs);
}

/* Returns whether a rule fits each event of the class. */
static bool has_rule_for_all(const struct lttng_writer *w, const struct event_class *c)
{
    for (uint32_t i = w->by_id[c->id]; i; i = w->plans.at[i - 1].next)
        if (!w->plans.at[i - 1].rule->when)
            return true;
    return false;
}

static int write_metadata(struct lttng_writer *w, struct error *e)
{
    struct buf b = BUF_INIT;
    lttng_metadata_begin(&b, &w->trace);
    for (uint32_t i = 0; i < w->theirs.len; i++)
        lttng_metadata_class(&b, &w->trace, i, w->theirs.at[i].name, w->theirs.at[i].fields,
                             w->theirs.at[i].n_fields);
    const int fd = openat(w->folder, "metadata", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int code = fd < 0 ? errno : 0;
    for (size_t done = 0; !code && done < b.len;) {
        const ssize_t n = write(fd, b.data + done, b.len - done);
        code = n > 0 ? 0 : n ? errno : ENOSPC;
        done += n > 0 ? (size_t)n : 0;
    }
    if (fd >= 0 && close(fd) && !code)
        code = errno;
    buf_release(&b);
    return code ? error_set(e, code, "%s/metadata: %s", w->path, strerror(code)) : 0;
}

int lttng_writer_new(struct lttng_writer **out, const char *folder, const struct lttng_trace *t,
                     const struct event_class *classes, size_t n, struct error *e)
{
    struct lttng_writer *w = *out = mem_alloc(sizeof(*w));
    w->trace = *t;
    w->path = mem_strdup(folder);
    w->by_id = mem_array(UINT16_MAX + 1u, sizeof(*w->by_id));
    w->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (w->folder < 0)
        return error_set(e, errno, "%s: %s", folder, strerror(errno));
    add_rules(w, classes, n);
    for (size_t i = 0; i < n; i++)
        if (!has_rule_for_all(w, &classes[i]))
            add_unchanged(w, &classes[i]);
    if (w->theirs.len > LTTNG_ID_MAX)
        return error_set(e, E2BIG, "%s: too many kinds of events for LTTng's form", folder);
    return write_metadata(w, e);
}

void lttng_writer_free(struct lttng_writer *w)
{
    if (!w)
        return;
    vec_each (struct theirs, t, &w->theirs)
        free(t->own);
    vec_each (struct lttng_stream, s, &w->streams)
        lttng_stream_release(s);
    vec_release(&w->theirs);
    vec_release(&w->plans);
    vec_release(&w->sources);
    vec_release(&w->streams);
    vec_release(&w->waiting);
    map_release(&w->by_cpu);
    map_release(&w->by_thread);
    buf_release(&w->data);
    buf_release(&w->again);
    if (w->folder >= 0)
        close(w->folder);
    free(w->by_id);
    free(w->path);
    free(w);
}

/* ---- fields ---- */

static uint64_t number_at(const struct trace_event *e, struct source s)
{
    const bool has = s.field && s.field->type != EVENT_TEXT && s.field->type != EVENT_FLOAT;
    return has ? trace_event_number(s.field, e->fields + s.at) : 0;
}

static uint64_t number_of(const struct trace_event *e, const char *name)
{
    return number_at(e, find_source(e->class, name));
}

/* The bits of the processor's error code that the event tells: written to, by the program, to be executed. */
static uint64_t fault_code(const struct trace_event *e)
{
    const uint64_t access = number_of(e, "access");
    return (access == 1 ? 2 : 0) | (number_of(e, "mode") ? 0 : 4) | (access == 2 ? 16 : 0);
}

static void put_text(struct buf *b, const char *text, size_t most, uint32_t bytes)
{
    static const char zeros[16];
    const size_t n = strnlen(text, most), wanted = bytes ? bytes : n + 1;
    const size_t taken = n < wanted ? n : wanted - 1;
    buf_add(b, text, taken);
    for (size_t left = wanted - taken; left;) {
        const size_t part = left < sizeof(zeros) ? left : sizeof(zeros);
        buf_add(b, zeros, part);
        left -= part;
    }
}

static void put_field(struct buf *b, const struct lttng_field *f, struct source from,
                      const struct trace_event *e, const char *name)
{
    const unsigned char *value = e->fields + from.at;
    uint64_t number = f->number;
    if (f->as.type == EVENT_TEXT) {
        const bool has = from.field && from.field->type == EVENT_TEXT;
        const char *text = f->origin == LTTNG_NAME ? name : has ? (const char *)value : "";
        put_text(b, text, has ? from.field->bytes : strlen(text), f->as.bytes);
        return;
    }
    if (f->as.type == EVENT_FLOAT) {
        buf_add(b, value, f->as.bytes);
        return;
    }
    switch (f->origin) {
    case LTTNG_FIELD:
        number = number_at(e, from);
        break;
    case LTTNG_THREAD:
        number = e->thread;
        break;
    case LTTNG_FAULT:
        number = fault_code(e);
        break;
    case LTTNG_NUMBER:
    case LTTNG_NAME:
        break;
    }
    buf_add(b, &number, f->as.bytes);
}

static void put_fields(const struct lttng_writer *w, struct buf *b, uint32_t theirs, uint32_t sources,
                       const struct trace_event *e, const char *name)
{
    const struct theirs *t = &w->theirs.at[theirs];
    for (uint32_t i = 0; i < t->n_fields; i++)
        put_field(b, &t->fields[i], w->sources.at[sources + i], e, name);
}

static void put_context(const struct lttng_writer *w, struct buf *b, const struct plan *p,
                        const struct trace_event *e, const char *name)
{
    struct lttng_context c = {.pid = p->pid.field ? (int32_t)number_at(e, p->pid) : e->pid,
                              .thread = (int32_t)e->thread};
    memcpy(c.name, name, strnlen(name, sizeof(c.name) - 2));
    buf_add(b, &c, LTTNG_CONTEXT_BYTES(w->trace.kernel));
}

/* ---- events ---- */

/* The last plan of a class fits each of its events. */
static const struct plan *plan_of(const struct lttng_writer *w, const struct trace_event *e)
{
    const struct plan *p = &w->plans.at[w->by_id[e->class->id] - 1];
    while (p->rule && p->rule->when && (int64_t)number_at(e, p->when) != p->rule->is)
        p = &w->plans.at[p->next - 1];
    return p;
}

static uint32_t stream_of(struct lttng_writer *w, uint32_t cpu)
{
    bool added;
    const uint32_t at = (uint32_t)map_put_u64(&w->by_cpu, cpu, w->streams.len, &added);
    if (added)
        *vec_push(&w->streams) = (struct lttng_stream){
            .folder = w->folder, .cpu = cpu, .uuid = w->trace.uuid, .last_ns = w->last_ns};
    return at;
}

static struct waiting *waiting_of(struct lttng_writer *w, uint32_t thread)
{
    bool added;
    const size_t at = map_put_u64(&w->by_thread, thread, w->waiting.len, &added);
    return added ? vec_push(&w->waiting) : &w->waiting.at[at];
}

/* Writes the payload of the event that this one completes again. */
static int complete(struct lttng_writer *w, const struct plan *p, const struct trace_event *e,
                    const char *name)
{
    struct waiting *waiting = waiting_of(w, e->thread);
    const bool fits = waiting->at && waiting->theirs == p->completes;
    const bool wanted = !p->rule->if_failed || (!number_of(e, "ptr") && number_of(e, "size"));
    const uint64_t at = waiting->at;
    waiting->at = 0;
    if (!fits || !wanted)
        return 0;
    buf_reset(&w->again);
    put_fields(w, &w->again, p->completes, p->completing, e, name);
    return lttng_stream_change(&w->streams.at[waiting->stream], at, w->again.data, (uint32_t)w->again.len);
}

static int failed(const struct lttng_writer *w, int bad, struct error *e)
{
    return bad ? error_set(e, -bad, "%s: %s", w->path, strerror(-bad)) : 0;
}

int lttng_writer_event(struct lttng_writer *w, const struct trace_event *event, const char *name,
                       uint64_t lost, struct error *e)
{
    uint64_t at = 0;
    const struct plan *p = plan_of(w, event);
    const uint32_t stream = stream_of(w, event->cpu);
    buf_reset(&w->data);
    put_context(w, &w->data, p, event, name);
    const uint32_t context = (uint32_t)w->data.len;
    put_fields(w, &w->data, p->theirs, p->sources, event, name);
    int bad = p->completes != NONE ? complete(w, p, event, name) : 0;
    const struct lttng_event out = {.time_ns = event->time_ns,
                                    .id = (uint16_t)p->theirs,
                                    .data = w->data.data,
                                    .bytes = (uint32_t)w->data.len};
    w->last_ns = event->time_ns;
    bad = bad ? bad : lttng_stream_add(&w->streams.at[stream], &out, lost, &at);
    if (p->rule && p->rule->waits)
        *waiting_of(w, event->thread) =
            (struct waiting){.theirs = p->theirs, .stream = stream, .at = at + context};
    return failed(w, bad, e);
}

int lttng_writer_finish(struct lttng_writer *w, uint32_t cpu, uint64_t lost, struct error *e)
{
    return failed(w, lttng_stream_finish(&w->streams.at[stream_of(w, cpu)], lost), e);
}

size_t lttng_writer_streams(const struct lttng_writer *w)
{
    return w->streams.len;
}

uint32_t lttng_writer_cpu(const struct lttng_writer *w, size_t n)
{
    return w->streams.at[n].cpu;
}
