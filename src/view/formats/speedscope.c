/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/formats/speedscope.h"

#include <math.h>
#include <string.h>

#include "view/formats/folded.h"
#include "view/formats/json.h"
#include "view/profile/profile_summary.h"
#include "view/text/text.h"

#define METRICS 7
/*
 * Limit of figures, which a damaged recording may exceed: up to here doubles and the numbers of JavaScript are exact
 * integers.
 */
#define LARGEST (double)(1ull << 53)

static const struct {
    const char *name, *unit;
    enum rollup_sort sort;
} metrics[METRICS] = {
    {"live bytes", "bytes", ROLLUP_SORT_LIVE},           {"bytes at the peak", "bytes", ROLLUP_SORT_PEAK},
    {"allocated bytes", "bytes", ROLLUP_SORT_ALLOCATED}, {"allocations", "none", ROLLUP_SORT_ALLOCATIONS},
    {"temporary bytes", "bytes", ROLLUP_SORT_TEMPORARY}, {"requested bytes", "bytes", ROLLUP_SORT_REQUESTED},
    {"slack bytes", "bytes", ROLLUP_SORT_SLACK},
};

/* A stack of one process. */
struct sample {
    char *names;            /* names of the stack, as folded.h writes them */
    uint32_t image;         /* PROFILE_NONE: there is only one */
    size_t first, n_frames; /* in `sample_frames` */
    double values[METRICS];
    uint64_t weights[METRICS];
};

struct writer {
    const struct profile *p;
    const struct rollup_options *o;
    struct buf frames; /* the elements of the JSON list */
    struct map frame_index;
    size_t n_frames;
    struct VEC(size_t) sample_frames; /* leaf first */
    struct VEC(struct sample) samples;
    struct frames scratch;
    unsigned unknown; /* bits of `metrics` */
    uint32_t image;   /* only cells of this image count; PROFILE_NONE: all */
};

/* ---- frames: written once, when they are first met ---- */

static void add_clean(struct buf *b, const char *name)
{
    static const struct text_style utf8 = {.utf8 = true};
    buf_addstr(b, ""); /* makes the buffer non-NULL if the name is empty */
    text_add_name(b, &utf8, name);
}

static size_t frame_of(struct writer *w, const char *name, const char *file, uint32_t line)
{
    struct buf key = BUF_INIT;
    bool added;
    add_clean(&key, name);
    buf_addch(&key, '\0');
    size_t file_at = key.len;
    add_clean(&key, file);
    buf_addch(&key, '\0');
    buf_add(&key, &line, sizeof(line));
    size_t at = map_put(&w->frame_index, key.data, key.len, w->n_frames, &added);
    if (added) {
        struct sink out = sink_to_buf(&w->frames);
        struct json j = {.out = &out, .depth = 3, .more = w->n_frames++ > 0};
        json_open(&j, NULL, '{');
        json_text(&j, "name", key.data);
        if (key.data[file_at])
            json_text(&j, "file", key.data + file_at);
        if (line)
            json_whole(&j, "line", line);
        json_close(&j, '}');
    }
    buf_release(&key);
    return at;
}

static size_t process_frame(struct writer *w, uint32_t image)
{
    const struct profile_image *i = &w->p->images.at[image];
    struct buf name = BUF_INIT;
    buf_printf(&name, "%s (%d)", profile_text(w->p, i->comm), i->pid);
    size_t at = frame_of(w, buf_str(&name), "", 0);
    buf_release(&name);
    return at;
}

/* ---- samples ---- */

static void add_sample(struct writer *w, const struct rollup_row *row)
{
    char scratch[FRAME_NAME_BYTES];
    struct buf names = BUF_INIT;
    folded_add_stack(&names, w->p, &w->scratch, row->index);
    struct sample s = {.image = w->image, .first = w->sample_frames.len, .n_frames = w->scratch.len};
    vec_each (const struct frame, f, &w->scratch) {
        size_t at = frame_of(w, frame_function(w->p, f, scratch), frame_file(w->p, f), frame_line(w->p, f));
        *vec_push(&w->sample_frames) = at;
    }
    for (int m = 0; m < METRICS; m++)
        s.values[m] = rollup_sort_value(metrics[m].sort, &row->self);
    s.names = buf_detach(&names);
    *vec_push(&w->samples) = s;
}

static bool keep_cell(void *arg, const struct profile *p, uint32_t cell)
{
    const struct writer *w = arg;
    return (w->image == PROFILE_NONE || p->cells.at[cell].image == w->image) &&
           (!w->o->keep || w->o->keep(w->o->arg, p, cell));
}

static bool keep_sample(void *arg, const struct profile *p, uint32_t sample)
{
    const struct writer *w = arg;
    return w->o->keep_sample(w->o->arg, p, sample);
}

static void add_samples(struct writer *w, uint32_t image)
{
    struct rollup_options o = {.group = ROLLUP_BY_STACK, .keep = keep_cell, .arg = w};
    o.keep_sample = w->o->keep_sample ? keep_sample : NULL;
    w->image = image;
    struct rollup *r = rollup_new(w->p, &o);
    vec_each (const struct rollup_row, row, &r->rows)
        add_sample(w, row);
    for (int m = 0; m < METRICS; m++)
        if (!rollup_sort_known(metrics[m].sort, &r->total))
            w->unknown |= 1u << m;
    rollup_free(r);
}

static int by_image(const struct sample *x, const struct sample *y)
{
    return (x->image > y->image) - (x->image < y->image);
}

static int by_names(const void *a, const void *b)
{
    const struct sample *x = a, *y = b;
    int order = strcmp(x->names, y->names);
    if (!order)
        order = by_image(x, y);
    return order ? order : (x->first > y->first) - (x->first < y->first);
}

/* Sorts samples by process. speedscope first shows them in this order, as if it were the time. */
static int by_process(const void *a, const void *b)
{
    int order = by_image(a, b);
    return order ? order : by_names(a, b);
}

/*
 * Rounds the weights. The remainder of one stack is added to the next one with the same names, so that their sum is
 * rounded only once.
 */
static void weigh(struct writer *w, int metric)
{
    double sum = 0, given = 0;
    const char *names = "";
    vec_each (struct sample, s, &w->samples) {
        if (strcmp(s->names, names))
            sum = given = 0;
        names = s->names;
        sum = fmin(sum + s->values[metric], LARGEST);
        double rounded = fmax(rint(sum), given);
        s->weights[metric] = (uint64_t)(rounded - given);
        given = rounded;
    }
}

static void weigh_all(struct writer *w)
{
    if (!w->samples.len)
        return;
    qsort(w->samples.at, w->samples.len, sizeof(*w->samples.at), by_names);
    for (int m = 0; m < METRICS; m++)
        weigh(w, m);
    qsort(w->samples.at, w->samples.len, sizeof(*w->samples.at), by_process);
}

/* ---- the file ---- */

static void write_stack(struct writer *w, struct json *j, const struct sample *s)
{
    json_open(j, NULL, '[');
    if (s->image != PROFILE_NONE)
        json_whole(j, NULL, process_frame(w, s->image));
    for (size_t i = s->n_frames; i-- > 0;)
        json_whole(j, NULL, w->sample_frames.at[s->first + i]);
    json_close(j, ']');
}

static void write_profile(struct writer *w, struct json *j, int metric)
{
    uint64_t sum = 0;
    json_open(j, NULL, '{');
    json_text(j, "type", "sampled");
    json_text(j, "name", metrics[metric].name);
    json_text(j, "unit", metrics[metric].unit);
    json_open(j, "samples", '[');
    vec_each (const struct sample, s, &w->samples)
        if (s->weights[metric])
            write_stack(w, j, s);
    json_close(j, ']');
    json_open(j, "weights", '[');
    vec_each (const struct sample, s, &w->samples)
        if (s->weights[metric]) {
            json_whole(j, NULL, s->weights[metric]);
            sum += s->weights[metric];
        }
    json_close(j, ']');
    json_whole(j, "startValue", 0);
    json_whole(j, "endValue", sum);
    json_close(j, '}');
}

static void write_name(const struct writer *w, struct json *j)
{
    struct profile_summary f = profile_summary_of(w->p);
    struct buf name = BUF_INIT, clean = BUF_INIT;
    if (f.main_image != PROFILE_NONE) {
        const struct profile_image *i = &w->p->images.at[f.main_image];
        buf_printf(&name, "%s (%d)", profile_text(w->p, i->comm), i->pid);
    }
    if (w->p->images.len > 1)
        buf_printf(&name, " and %zu more", w->p->images.len - 1);
    add_clean(&clean, name.len ? buf_str(&name) : "nothing");
    json_text(j, "name", buf_str(&clean));
    buf_release(&name);
    buf_release(&clean);
}

static void write_file(struct writer *w, struct sink *out, const char *exporter)
{
    struct json j = {.out = out};
    json_open(&j, NULL, '{');
    json_text(&j, "$schema", "https://www.speedscope.app/file-format-schema.json");
    json_text(&j, "exporter", exporter);
    write_name(w, &j);
    json_whole(&j, "activeProfileIndex", 0);
    json_open(&j, "profiles", '[');
    for (int m = 0; m < METRICS; m++)
        if (!(w->unknown >> m & 1))
            write_profile(w, &j, m);
    json_close(&j, ']');
    json_open(&j, "shared", '{'); /* last, because all frames are known then */
    json_open(&j, "frames", '[');
    sink_write(out, w->frames.data, w->frames.len);
    json_close(&j, ']');
    json_close(&j, '}');
    json_close(&j, '}');
}

void speedscope_write(struct sink *out, const struct profile *p, const struct rollup_options *o,
                      const char *exporter)
{
    struct writer w = {.p = p, .o = o};
    if (p->images.len <= 1)
        add_samples(&w, PROFILE_NONE);
    else
        for (uint32_t i = 0; i < p->images.len; i++)
            add_samples(&w, i);
    weigh_all(&w);
    write_file(&w, out, exporter);
    vec_each (const struct sample, s, &w.samples)
        free(s->names);
    vec_release(&w.samples);
    vec_release(&w.sample_frames);
    vec_release(&w.scratch);
    map_release(&w.frame_index);
    buf_release(&w.frames);
}
