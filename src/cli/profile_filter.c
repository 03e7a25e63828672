/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/profile_filter.h"

#include <errno.h>

#include "base/buf.h"
#include "base/units.h"
#include "model/profile/address_info.h"

enum field { FUNC, MODULE, FILE_NAME, COMM, THREAD, PID, SIZE, AGE };

static const struct query_field fields[] = {
    [FUNC] = {"func", QUERY_TEXT, "a function anywhere in the stack"},
    [MODULE] = {"module", QUERY_MODULE, "an executable or library in the stack"},
    [FILE_NAME] = {"file", QUERY_PATH, "a source file in the stack"},
    [COMM] = {"comm", QUERY_TEXT, "name of the process"},
    [THREAD] = {"thread", QUERY_TEXT, "name of the thread that allocated"},
    [PID] = {"pid", QUERY_NUMBER, "process id"},
    [SIZE] = {"size", QUERY_SIZE, "requested size of a live object"},
    [AGE] = {"age", QUERY_DURATION, "age of a live object"},
};

#define N_FIELDS (sizeof(fields) / sizeof(*fields))

struct subject {
    struct profile_filter *f;
    const struct profile *p;
    const struct profile_cell *cell;
    const struct profile_sample *sample; /* NULL: a cell or a free is asked about */
    const struct profile_free *free;     /* NULL: a cell or a sample is */
};

int profile_filter_init(struct profile_filter *f, const char *where, const char *older_than, struct error *e)
{
    *f = (struct profile_filter){0};
    if (older_than && units_parse_duration(older_than, &f->older_than_ns))
        return error_set(e, EINVAL, "invalid time '%s' for --older-than: use 500ms, 30s or 1h30m",
                         older_than);
    if (where) {
        int bad = query_parse(&f->query, where, fields, N_FIELDS, e, NULL);
        if (bad)
            return bad;
    }
    f->samples = older_than || (f->query && (query_uses(f->query, SIZE) || query_uses(f->query, AGE)));
    return 0;
}

void profile_filter_release(struct profile_filter *f)
{
    query_free(f->query);
    vec_release(&f->frames);
    *f = (struct profile_filter){0};
}

/* The frames at hand. True: the term holds. */
static bool offer_frames(const struct subject *s, size_t field, struct query_probe *probe)
{
    char scratch[FRAME_NAME_BYTES];
    vec_each (const struct frame, frame, &s->f->frames) {
        const char *text = field == FUNC     ? frame_function(s->p, frame, scratch)
                           : field == MODULE ? frame_module(s->p, frame)
                                             : frame_file(s->p, frame);
        if (*text && query_offer_text(probe, text))
            return true;
    }
    return false;
}

static void offer_stacks(const struct subject *s, size_t field, struct query_probe *probe)
{
    frames_of(&s->f->frames, s->p, s->cell->stack);
    if (offer_frames(s, field, probe) || !s->free)
        return;
    if (s->free->stack != PROFILE_NONE)
        frames_of(&s->f->frames, s->p, s->free->stack);
    else if (s->free->location != PROFILE_NONE)
        frames_at(&s->f->frames, s->p, s->free->location);
    else
        return;
    offer_frames(s, field, probe);
}

/* By its own name, and by that within its process. */
static void offer_thread(const struct profile *p, uint32_t thread, struct query_probe *probe)
{
    struct buf name = BUF_INIT;
    profile_add_thread_name(&name, p, thread);
    if (!query_offer_text(probe, profile_text(p, p->threads.at[thread].name)))
        query_offer_text(probe, buf_str(&name));
    buf_release(&name);
}

static void look_up(void *subject, size_t field, struct query_probe *probe)
{
    const struct subject *s = subject;
    const struct profile_image *image = &s->p->images.at[s->cell->image];
    switch ((enum field)field) {
    case FUNC:
    case MODULE:
    case FILE_NAME:
        offer_stacks(s, field, probe);
        break;
    case COMM:
        query_offer_text(probe, profile_text(s->p, image->comm));
        break;
    case THREAD:
        offer_thread(s->p, s->cell->thread, probe);
        break;
    case PID:
        query_offer_number(probe, image->pid);
        break;
    case SIZE:
        if (s->sample)
            query_offer_number(probe, (int64_t)s->sample->size_bytes);
        else if (s->free)
            query_offer_number(probe, (int64_t)s->free->size_bytes);
        break;
    case AGE:
        if (s->sample)
            query_offer_number(probe, (int64_t)profile_age_ns(s->p, s->sample));
        else if (s->free)
            query_offer_number(probe, (int64_t)address_info_lifetime_ns(s->free));
        break;
    }
}

static bool keep_cell(void *arg, const struct profile *p, uint32_t cell)
{
    struct profile_filter *f = arg;
    struct subject s = {.f = f, .p = p, .cell = &p->cells.at[cell]};
    return f->samples || !f->query || query_match(f->query, look_up, &s);
}

static bool keep_sample(void *arg, const struct profile *p, uint32_t sample)
{
    struct profile_filter *f = arg;
    const struct profile_sample *row = &p->samples.at[sample];
    struct subject s = {.f = f, .p = p, .cell = &p->cells.at[row->cell], .sample = row};
    return profile_age_ns(p, row) >= f->older_than_ns && (!f->query || query_match(f->query, look_up, &s));
}

bool profile_filter_keeps_free(struct profile_filter *f, const struct profile *p, uint32_t free)
{
    const struct profile_free *it = &p->frees.at[free];
    struct subject s = {.f = f, .p = p, .cell = &p->cells.at[it->cell], .free = it};
    return !f->query || query_match(f->query, look_up, &s);
}

struct event_subject {
    struct subject of_filter; /* without a cell */
    const struct profile_filter_event *event;
};

static void look_up_event(void *subject, size_t field, struct query_probe *probe)
{
    const struct event_subject *s = subject;
    const struct profile *p = s->of_filter.p;
    const struct profile_filter_event *e = s->event;
    switch ((enum field)field) {
    case FUNC:
    case MODULE:
    case FILE_NAME:
        if (e->stack != PROFILE_NONE)
            frames_of(&s->of_filter.f->frames, p, e->stack);
        else if (e->location != PROFILE_NONE)
            frames_at(&s->of_filter.f->frames, p, e->location);
        else
            break;
        offer_frames(&s->of_filter, field, probe);
        break;
    case COMM:
        if (e->image != PROFILE_NONE)
            query_offer_text(probe, profile_text(p, p->images.at[e->image].comm));
        break;
    case THREAD:
        if (e->thread != PROFILE_NONE)
            offer_thread(p, e->thread, probe);
        break;
    case PID:
        query_offer_number(probe, e->pid);
        break;
    case SIZE:
        if (e->has_size)
            query_offer_number(probe, e->size_bytes > INT64_MAX ? INT64_MAX : (int64_t)e->size_bytes);
        break;
    case AGE:
        break;
    }
}

bool profile_filter_keeps_event(struct profile_filter *f, const struct profile *p,
                                const struct profile_filter_event *e)
{
    struct event_subject s = {{.f = f, .p = p}, e};
    return !f->older_than_ns && (!f->query || query_match(f->query, look_up_event, &s));
}

bool profile_filter_asks_age(const struct profile_filter *f)
{
    return f->older_than_ns || (f->query && query_uses(f->query, AGE));
}

void profile_filter_apply(struct profile_filter *f, struct rollup_options *o)
{
    o->arg = f;
    o->keep = f->query && !f->samples ? keep_cell : NULL;
    o->keep_sample = f->samples ? keep_sample : NULL;
}

char *profile_filter_words(const struct profile_filter *f)
{
    struct buf b = BUF_INIT;
    char text[UNITS_TEXT_BYTES];
    if (!f->query && !f->samples)
        return NULL;
    if (f->older_than_ns)
        buf_printf(&b, "older than %s", units_format_duration(text, (double)f->older_than_ns));
    if (f->query)
        buf_printf(&b, "%swhere %s", b.len ? ", " : "", query_text(f->query));
    return buf_detach(&b);
}
