/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/recording.h"
#include "store/recording_reader.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/wait.h>

static int load_strings(struct loader *l, struct error *e)
{
    struct scan s;
    reader_scan(&s, l->r, SCHEMA_STRING);
    while (reader_scan_row(&s)) {
        sql_get_int(&s.row, (int64_t)l->rows.strings, (int64_t)l->rows.strings);
        /* An old one again, or another first one than "", would not get the next index. */
        uint32_t index = profile_string(l->p, reader_scan_text(&s));
        s.row.bad |= index != l->rows.strings++;
    }
    s.row.bad |= !s.row.rc && !l->rows.strings;
    return reader_scan_end(&s, e);
}

static int load_images(struct loader *l, struct error *e)
{
    struct scan s;
    reader_scan(&s, l->r, SCHEMA_IMAGE);
    while (reader_scan_row(&s)) {
        struct profile_image it = {0};
        row_image(&s.row, &l->rows, l->rows.images, &it);
        if (s.row.bad)
            break;
        struct loaded_image *image = vec_push(&l->images);
        image->index = PROFILE_NONE;
        image->past = l->at_ns && *l->at_ns < it.taken_ns;
        image->cut_ns = image->past ? it.began_ns : UINT64_MAX;
        l->rows.images++;
        if (l->at_ns && *l->at_ns < it.began_ns) {
            image->past = false;
            continue;
        }
        image->index = (uint32_t)l->p->images.len;
        *vec_push(&l->p->images) = it;
    }
    return reader_scan_end(&s, e);
}

static int load_modules(struct loader *l, struct error *e)
{
    struct scan s;
    reader_scan(&s, l->r, SCHEMA_MODULE);
    while (reader_scan_row(&s)) {
        struct row_module m = {0};
        row_module(&s.row, &l->rows, l->rows.modules, &m);
        *vec_push(&l->p->modules) =
            (struct profile_module){.path = m.path, .build_id = m.build_id, .end = m.size_bytes};
        l->rows.modules++;
    }
    return reader_scan_end(&s, e);
}

/* A module is where the first image that is shown has it. */
static int load_mappings(struct loader *l, struct error *e)
{
    struct scan s;
    struct VEC(bool) placed = {0};
    for (uint64_t i = 0; i < l->rows.modules; i++)
        vec_push(&placed);
    reader_scan(&s, l->r, SCHEMA_MAPPING);
    while (reader_scan_row(&s)) {
        struct row_mapping m = {0};
        row_mapping(&s.row, &l->rows, &m);
        if (s.row.bad || l->images.at[m.image].index == PROFILE_NONE)
            continue;
        *vec_push(&l->p->mappings) =
            (struct profile_mapping){l->images.at[m.image].index, m.module, m.start, m.bias};
        if (placed.at[m.module])
            continue;
        placed.at[m.module] = true;
        struct profile_module *it = &l->p->modules.at[m.module];
        it->start = m.start;
        it->end += m.start;
        it->bias = m.bias;
    }
    vec_release(&placed);
    return reader_scan_end(&s, e);
}

static void take_location(void *arg, struct scan *s)
{
    struct loader *l = arg;
    struct row_location o = {0};
    row_location(&s->row, &l->rows, l->rows.locations, &o);
    *vec_push(&l->p->locations) =
        (struct profile_location){.module = o.module, .address = o.address, .exact = o.exact};
    l->rows.locations++;
}

static int load_locations(struct loader *l, struct error *e)
{
    return reader_each(l->r, &(struct each){.table = SCHEMA_LOCATION, .take = take_location, .arg = l}, e);
}

static void take_line(void *arg, struct scan *s)
{
    struct loader *l = arg;
    struct row_line n = {0};
    row_line(&s->row, &l->rows, &n);
    s->row.bad |= !n.line.function || l->p->lines.len >= PROFILE_NONE;
    if (s->row.bad)
        return;
    struct profile_location *o = &l->p->locations.at[n.location];
    if (!o->n_lines)
        o->first_line = (uint32_t)l->p->lines.len;
    s->row.bad |= n.position != o->n_lines++;
    *vec_push(&l->p->lines) = n.line;
}

static int load_lines(struct loader *l, struct error *e)
{
    return reader_each(l->r, &(struct each){.table = SCHEMA_LINE, .take = take_line, .arg = l}, e);
}

static void take_stack(void *arg, struct scan *s)
{
    struct loader *l = arg;
    struct row_stack k = {0};
    row_stack(&s->row, &l->rows, l->rows.stacks, &k);
    if (s->row.bad)
        return;
    struct loaded_stack *it = vec_push(&l->stacks);
    *it = (struct loaded_stack){k.caller, k.location, PROFILE_NONE, 0, (uint8_t)l->rows.stacks};
    if (k.caller != PROFILE_NONE) {
        it->depth = l->stacks.at[k.caller].depth + 1;
        it->end = l->stacks.at[k.caller].end;
    }
    s->row.bad |= it->depth > RECORDING_DEPTH_MAX;
    l->rows.stacks++;
}

static int load_stacks(struct loader *l, struct error *e)
{
    return reader_each(l->r, &(struct each){.table = SCHEMA_STACK, .take = take_stack, .arg = l}, e);
}

static int load_threads(struct loader *l, struct error *e)
{
    struct scan s;
    reader_scan(&s, l->r, SCHEMA_THREAD);
    while (reader_scan_row(&s)) {
        struct profile_thread it = {0};
        row_thread(&s.row, &l->rows, l->rows.threads, &it);
        if (s.row.bad)
            break;
        uint32_t image = l->images.at[it.image].index;
        *vec_push(&l->threads) =
            (struct loaded_thread){it.image, image == PROFILE_NONE ? image : (uint32_t)l->p->threads.len};
        l->rows.threads++;
        it.image = image;
        if (image != PROFILE_NONE)
            *vec_push(&l->p->threads) = it;
    }
    return reader_scan_end(&s, e);
}

/* Nothing is shown as it was at its end, so that the sums of then are not needed. */
static bool all_past(const struct loader *l)
{
    vec_each (const struct loaded_image, i, &l->images)
        if (i->index != PROFILE_NONE && !i->past)
            return false;
    return true;
}

static struct profile_cell *take_cell(struct loader *l, struct scan *s)
{
    struct profile_cell *it = vec_push(&l->p->cells);
    row_cell(&s->row, &l->rows, l->rows.cells, it);
    *vec_push(&l->cells) = (struct loaded_cell){it->image, PROFILE_NONE, false};
    s->row.bad |= s->row.bad || l->threads.at[it->thread].image != it->image;
    l->rows.cells++;
    return it;
}

static void take_peak_of_cell(void *arg, struct scan *s)
{
    struct loader *l = arg;
    row_cell_peak(&s->row, &l->rows, take_cell(l, s));
}

static void take_sums_of_cell(void *arg, struct scan *s)
{
    struct loader *l = arg;
    row_cell_sums(&s->row, &l->rows, take_cell(l, s));
}

static void take_whole_cell(void *arg, struct scan *s)
{
    struct loader *l = arg;
    struct profile_cell *it = take_cell(l, s);
    row_cell_sums(&s->row, &l->rows, it);
    row_lifetimes(&s->row, &l->rows, it);
}

static int load_cells(struct loader *l, struct error *e)
{
    struct each of = {.table = SCHEMA_CELL, .take = take_whole_cell, .arg = l};
    if (l->r->without & RECORDING_LIFETIMES) {
        bool past = l->r->without & RECORDING_POINTS && all_past(l);
        of.columns = past ? ROW_CELL ", " ROW_CELL_PEAK : ROW_CELL ", " ROW_CELL_SUMS;
        of.take = past ? take_peak_of_cell : take_sums_of_cell;
    }
    return reader_each(l->r, &of, e);
}

bool load_use_stack(struct loader *l, uint32_t row, uint32_t *index)
{
    struct loaded_stack *k = &l->stacks.at[row];
    if (k->index == PROFILE_NONE) {
        if (l->p->stack_locations.len + k->depth > l->r->frames_max)
            return false;
        k->index = (uint32_t)l->p->stacks.len;
        *vec_push(&l->p->stacks) = (struct profile_stack){
            .first = (uint32_t)l->p->stack_locations.len, .depth = k->depth, .end = k->end};
        for (; k->location != PROFILE_NONE; k = &l->stacks.at[k->caller])
            *vec_push(&l->p->stack_locations) = k->location;
        k = &l->stacks.at[row];
    }
    *index = k->index;
    return true;
}

int load_refuse_frames(const struct loader *l, struct error *e)
{
    return error_set(e, EFBIG,
                     "%s has stacks of more than %" PRIu64 " frames in all, which cannot be; record again",
                     l->r->shown, l->r->frames_max);
}

/* Those of images left out go, and those that a past moment does not know. */
static int use_cells(struct loader *l, struct error *e)
{
    size_t kept = 0;
    for (size_t row = 0; row < l->cells.len; row++) {
        struct profile_cell it = l->p->cells.at[row];
        const struct loaded_image *image = &l->images.at[it.image];
        bool unknown =
            image->past && !it.allocated.samples && !(it.allocated.bytes > 0) && !it.at_peak.samples;
        if (image->index == PROFILE_NONE || unknown)
            continue;
        it.image = image->index;
        it.thread = l->threads.at[it.thread].index;
        if (!load_use_stack(l, it.stack, &it.stack))
            return load_refuse_frames(l, e);
        l->cells.at[row].index = (uint32_t)kept;
        l->p->cells.at[kept++] = it;
    }
    l->p->cells.len = kept;
    return 0;
}

static void take_sample(void *arg, struct scan *s)
{
    struct loader *l = arg;
    struct profile_sample it = {0};
    uint32_t image;
    row_sample(&s->row, &l->rows, &image, &it);
    if (s->row.bad)
        return;
    const struct loaded_cell *c = &l->cells.at[it.cell];
    s->row.bad |= c->image != image;
    if (c->index == PROFILE_NONE || it.born_ns > l->images.at[image].cut_ns)
        return;
    it.cell = c->index;
    *vec_push(&l->p->samples) = it;
}

static int load_samples(struct loader *l, struct error *e)
{
    return reader_each(l->r, &(struct each){.table = SCHEMA_SAMPLE, .take = take_sample, .arg = l}, e);
}

static bool use_free(struct loader *l, struct profile_free *it, uint64_t cut_ns)
{
    if (it->born_ns <= cut_ns && it->freed_ns > cut_ns) {
        *vec_push(&l->p->samples) = (struct profile_sample){.cell = it->cell,
                                                            .serial = it->serial,
                                                            .address = it->address,
                                                            .size_bytes = it->size_bytes,
                                                            .born_ns = it->born_ns};
        return true;
    }
    if (it->freed_ns > cut_ns)
        return true;
    if (it->thread != PROFILE_NONE)
        it->thread = l->threads.at[it->thread].index;
    if (it->stack != PROFILE_NONE && !load_use_stack(l, it->stack, &it->stack))
        return false;
    *vec_push(&l->p->frees) = *it;
    return true;
}

static int load_frees(struct loader *l, struct error *e)
{
    struct scan s;
    bool fits = true;
    reader_scan(&s, l->r, SCHEMA_FREE);
    while (fits && reader_scan_row(&s)) {
        struct profile_free it = {0};
        uint32_t image;
        row_free(&s.row, &l->rows, &image, &it);
        if (s.row.bad)
            break;
        const struct loaded_cell *c = &l->cells.at[it.cell];
        s.row.bad |=
            c->image != image || (it.thread != PROFILE_NONE && l->threads.at[it.thread].image != image);
        if (s.row.bad || c->index == PROFILE_NONE)
            continue;
        it.cell = c->index;
        fits = use_free(l, &it, l->images.at[image].cut_ns);
    }
    int rc = reader_scan_end(&s, e);
    return rc || fits ? rc : load_refuse_frames(l, e);
}

static int load_lifetimes(struct loader *l, struct error *e)
{
    struct scan s;
    reader_scan(&s, l->r, SCHEMA_LIFETIME);
    while (reader_scan_row(&s)) {
        int64_t class = sql_get_int(&s.row, 0, PROFILE_LIFETIMES - 2);
        s.row.bad |= (uint64_t) class != s.n - 1;
        l->p->lifetime_ns[class] = sql_get_count(&s.row);
    }
    return reader_scan_end(&s, e);
}

/*
 * If `allium run` did not finish a recording, nobody knows whether a process that it last saw running runs on. An image
 * of the past was running at the time that was asked for, and stays so.
 */
static void cut_short(struct loader *l)
{
    vec_each (struct profile_image, i, &l->p->images)
        if (i->state == PROFILE_IMAGE_RUNNING && !i->past)
            i->state = PROFILE_IMAGE_CUT;
}

static void set_signal(struct loader *l, uint64_t image_id, int64_t status)
{
    vec_each (struct profile_image, i, &l->p->images)
        if (i->id == image_id && image_id && i->state == PROFILE_IMAGE_ENDED && WIFSIGNALED((int)status))
            i->signal = WTERMSIG((int)status);
}

/* As sys_losses.c stores the counts of sys kmem. */
static const struct {
    const char *key;
    size_t at;
} facts_of_kernel[] = {
    {"sys_kmem_null_frees", offsetof(struct profile_kernel, null_frees)},
    {"sys_kmem_frees_without_event", offsetof(struct profile_kernel, frees_without_event)},
    {"sys_kmem_frees_of_unknown", offsetof(struct profile_kernel, older_frees)},
    {"sys_kmem_frees_after_loss", offsetof(struct profile_kernel, frees_after_loss)},
    {"sys_kmem_frees_unexplained", offsetof(struct profile_kernel, unexplained_frees)},
    {"sys_kmem_settled_objects", offsetof(struct profile_kernel, settled_objects)},
    {RECORDING_KERNEL_SETTLED, offsetof(struct profile_kernel, settled_bytes)},
    {RECORDING_KERNEL_SETTLE, offsetof(struct profile_kernel, settle_ns)},
};

static void load_fact_of_kernel(struct loader *l, const char *key, struct sql *row)
{
    for (size_t i = 0; i < sizeof(facts_of_kernel) / sizeof(*facts_of_kernel); i++) {
        if (strcmp(key, facts_of_kernel[i].key) != 0)
            continue;
        const uint64_t value = sql_get_count(row);
        memcpy((char *)&l->p->kernel + facts_of_kernel[i].at, &value, sizeof(value));
        l->p->kernel.known = true;
    }
}

static int load_facts(struct loader *l, struct error *e)
{
    struct scan s;
    bool ended = false;
    uint64_t killed = 0;
    int64_t status = 0;
    reader_scan(&s, l->r, SCHEMA_META);
    while (reader_scan_row(&s)) {
        const char *key = reader_scan_text(&s);
        if (!strcmp(key, SCHEMA_TAKEN))
            l->p->taken_ns = sql_get_count(&s.row);
        else if (!strcmp(key, RECORDING_PERIOD))
            l->p->period_bytes = (uint64_t)sql_get_int(&s.row, 1, INT64_MAX);
        else if (!strcmp(key, RECORDING_STARTED))
            l->p->started_ns = sql_get_count(&s.row);
        else if (!strcmp(key, RECORDING_ENDED))
            ended = true;
        else if (!strcmp(key, RECORDING_KILLED))
            killed = (uint64_t)sql_get_int(&s.row, INT64_MIN, INT64_MAX);
        else if (!strcmp(key, RECORDING_EXIT))
            status = sql_get_int(&s.row, INT32_MIN, INT32_MAX);
        else if (!strcmp(key, RECORDING_CPU))
            l->p->recorder_cpu_ns = sql_get_count(&s.row);
        else if (!strcmp(key, RECORDING_REQUESTED))
            l->p->has_requested = sql_get_int(&s.row, 0, 1);
        else if (!strcmp(key, RECORDING_MEMORY))
            l->p->recorder_peak_bytes = sql_get_count(&s.row);
        else if (!strcmp(key, SCHEMA_DROPPED))
            l->p->images_dropped = sql_get_count(&s.row);
        else if (!strcmp(key, SCHEMA_DROPPED_PEAK))
            l->p->images_dropped_peak_bytes = sql_get_real(&s.row);
        else if (!strcmp(key, RECORDING_KERNEL_FILTER))
            l->p->kernel.filter = profile_string(l->p, sql_get_text(&s.row));
        else
            load_fact_of_kernel(l, key, &s.row);
    }
    if (!ended) /* what was sampled may not have been written yet */
        l->p->period_bytes = 0;
    if (!ended && l->r->unwritten)
        cut_short(l);
    set_signal(l, killed, status);
    if (l->at_ns && *l->at_ns < l->p->taken_ns)
        l->p->taken_ns = *l->at_ns;
    return reader_scan_end(&s, e);
}

static int load_unobserved(struct loader *l, struct error *e)
{
    struct scan s;
    reader_scan(&s, l->r, SCHEMA_UNOBSERVED);
    while (reader_scan_row(&s)) {
        struct profile_unobserved it = {0};
        row_unobserved(&s.row, &l->rows, &it);
        if (!s.row.bad && it.processes)
            *vec_push(&l->p->unobserved) = it;
    }
    return reader_scan_end(&s, e);
}

static void release(struct loader *l)
{
    vec_release(&l->images);
    vec_release(&l->stacks);
    vec_release(&l->threads);
    vec_release(&l->cells);
    map_release(&l->moments);
}

int reader_load(struct reader *r, const uint64_t *at_ns, struct profile **p, struct error *e)
{
    /* Each needs what those before it have read. */
    static int (*const steps[])(struct loader *, struct error *) = {
        load_strings, load_images, load_points,        load_modules,   load_mappings, load_locations,
        load_lines,   load_stacks, load_threads,       load_cells,     load_moments,  use_cells,
        load_samples, load_frees,  load_stack_numbers, load_lifetimes, load_facts,    load_unobserved,
    };
    struct loader l = {.r = r, .p = profile_new(), .at_ns = at_ns, .last_moment = -1};
    int rc = 0;
    r->text_left_bytes = r->bytes;
    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps) && !rc; i++)
        rc = steps[i](&l, e);
    release(&l);
    assert(rc || profile_valid(l.p));
    *p = rc ? NULL : l.p;
    if (rc)
        profile_free(l.p);
    return rc;
}

int recording_load(struct profile **p, const char *path, const uint64_t *at_ns, struct error *e)
{
    return recording_load_without(p, path, at_ns, RECORDING_MOMENTS, e);
}

int recording_load_without(struct profile **p, const char *path, const uint64_t *at_ns, unsigned parts,
                           struct error *e)
{
    struct reader r;
    *p = NULL;
    int rc = reader_open(&r, path, e);
    r.without = parts;
    if (!rc)
        rc = reader_load(&r, at_ns, p, e);
    reader_close(&r);
    return rc;
}
