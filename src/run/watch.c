/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/sigsafe/clock_ns.h"
#include "collect/ledger/ledger_copy.h"
#include "collect/ledger/ledger_profile.h"
#include "collect/ledger/ledger_scan.h"
#include "collect/ledger/ledger_seal.h"
#include "collect/ledger/profile_names.h"
#include "collect/process/container.h"
#include "collect/process/proc.h"
#include "run/watch_old.h"
#include "symbol/symbol.h"

struct track {
    uint64_t image_id;
    int32_t pid;
    char *comm;
    struct series *series;
    struct alert_state alerts[ALERT_TERMS_MAX];
    bool found; /* by the present scan */
};

struct watch {
    struct watch_options o;
    struct VEC(struct track) tracks;
    struct container_roots roots;
    uint64_t snapshots;
};

struct watch *watch_new(const struct watch_options *o)
{
    struct watch *w = mem_alloc(sizeof(*w));
    w->o = *o;
    return w;
}

static void release(struct track *t)
{
    series_free(t->series);
    free(t->comm);
}

void watch_free(struct watch *w)
{
    if (!w)
        return;
    vec_each (struct track, t, &w->tracks)
        release(t);
    vec_release(&w->tracks);
    container_roots_release(&w->roots);
    free(w);
}

bool watch_is_over(const struct watch *w)
{
    return w->o.pid && !w->tracks.len && !proc_runs(w->o.pid);
}

/* ---- one profile ---- */

static bool is_dismissed(const struct watch_options *o, const struct profile *p,
                         const struct profile_sample *s)
{
    return suppressions_has(o->dismissed, p->images.at[p->cells.at[s->cell].image].id, s->serial);
}

static bool keep_listed(void *arg, const struct profile *p, uint32_t sample)
{
    const struct watch_options *o = arg;
    return watch_is_old(o, p, sample) && !is_dismissed(o, p, &p->samples.at[sample]);
}

static struct estimate live_of(const struct watch_options *o, const struct profile *p)
{
    struct rollup_options options = o->live;
    options.group = ROLLUP_BY_PROCESS;
    struct rollup *r = rollup_new(p, &options);
    struct estimate live = r->total.of[ROLLUP_LIVE].bytes;
    rollup_free(r);
    return live;
}

/* Lists the old samples. The image takes over the profile. Rows have neither growth nor marks yet. */
static void list_old(struct watch_snapshot_image *i, const struct watch_options *o, struct profile *p)
{
    struct rollup_options options = {
        .group = ROLLUP_BY_STACK, .sort = ROLLUP_SORT_LIVE, .keep_sample = keep_listed, .arg = (void *)o};
    i->profile = p;
    i->live = live_of(o, p);
    i->older_than_ns = watch_old_age_ns(o, &p->images.at[0]);
    i->half_its_age = o->older_than_ns == WATCH_OLDER_DEFAULT && i->older_than_ns < WATCH_OLD_AGE_NS;
    i->rollup = rollup_new(p, &options);
    for (uint32_t k = 0; k < p->samples.len; k++)
        i->dismissed += is_dismissed(o, p, &p->samples.at[k]) && watch_is_old(o, p, k);
    for (uint32_t k = 0; k < i->rollup->rows.len; k++)
        if (i->rollup->rows.at[k].self.aged_samples)
            *vec_push(&i->rows) = (struct watch_snapshot_row){.number = k};
}

static struct watch_snapshot *new_snapshot(enum watch_snapshot_kind kind, uint64_t number)
{
    struct watch_snapshot *l = mem_alloc(sizeof(*l));
    *l = (struct watch_snapshot){.time_ns = clock_ns(CLOCK_REALTIME), .number = number, .kind = kind};
    return l;
}

struct watch_snapshot *watch_snapshot_of(const struct watch_options *o, struct profile *p)
{
    struct watch_snapshot *l = new_snapshot(WATCH_SNAPSHOT_ALL, 1);
    l->time_ns = p->taken_ns;
    wrappers_mark(o->wrappers, p);
    if (p->images.len)
        list_old(vec_push(&l->images), o, p);
    else
        profile_free(p); /* nothing was sampled */
    return l;
}

/* ---- an image over time ---- */

/* The stacks of one profile, and their numbers in the series. */
struct numbering {
    struct series *series;
    const struct profile *p;
    uint32_t *same, *numbers; /* PROFILE_NONE: none yet */
};

static struct numbering numbering_new(struct series *s, const struct profile *p)
{
    struct numbering n = {.series = s, .p = p, .same = frames_same_locations(p)};
    n.numbers = mem_array(p->stacks.len, sizeof(*n.numbers));
    for (size_t i = 0; i < p->stacks.len; i++)
        n.numbers[i] = PROFILE_NONE;
    return n;
}

static void numbering_free(struct numbering *n)
{
    free(n->same);
    free(n->numbers);
}

/*
 * The key of a stack is the list of its locations, without those of the agent. So stacks keep their numbers from one
 * snapshot to the next.
 */
static uint32_t number_of(struct numbering *n, uint32_t stack)
{
    const struct profile_stack *st = &n->p->stacks.at[stack];
    const uint32_t *at = st->depth ? &n->p->stack_locations.at[st->first] : NULL;
    struct frames frames = {0};
    struct buf key = BUF_INIT;
    if (n->numbers[stack] != PROFILE_NONE)
        return n->numbers[stack];
    frames_of(&frames, n->p, stack);
    uint32_t i = 0, first = frames.at[0].location;
    while (i < st->depth && at[i] != first)
        i++;
    for (; i < st->depth; i++)
        buf_add(&key, &n->same[at[i]], sizeof(*n->same));
    buf_addch(&key, (char)st->end);
    n->numbers[stack] = series_stack_of(n->series, key.data, key.len);
    buf_release(&key);
    vec_release(&frames);
    return n->numbers[stack];
}

/*
 * A snapshot has the old samples: those that were allocated up to the time of the snapshot less the age. The series
 * runs in that time, so that its slopes are true even while the age itself grows.
 */
static void feed(struct numbering *n, const struct watch_options *o)
{
    const struct profile *p = n->p;
    uint64_t age_ns = watch_old_age_ns(o, &p->images.at[0]);
    for (uint32_t k = 0; k < p->samples.len; k++) {
        const struct profile_sample *sample = &p->samples.at[k];
        const struct profile_cell *cell = &p->cells.at[sample->cell];
        if (!watch_is_old(o, p, k))
            continue;
        struct series_sample row = {.serial = sample->serial,
                                    .arrived_ns = sample->born_ns,
                                    .size_bytes = sample->size_bytes,
                                    .period_bytes = cell->period_bytes,
                                    .stack = number_of(n, cell->stack)};
        series_see(n->series, &row);
    }
    series_end_snapshot(n->series, p->taken_ns > age_ns ? p->taken_ns - age_ns : 0);
}

static int ascending(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Removes dismissed samples that are not live any more. */
static void forget_ended_samples(const struct watch_options *o, const struct profile *p, uint64_t image_id)
{
    struct VEC(uint64_t) serials = {0};
    if (!suppressions_has_image(o->dismissed, image_id))
        return;
    vec_each (const struct profile_sample, s, &p->samples)
        *vec_push(&serials) = s->serial;
    if (serials.len)
        qsort(serials.at, serials.len, sizeof(uint64_t), ascending);
    suppressions_retain(o->dismissed, image_id, serials.at, serials.len);
    vec_release(&serials);
}

/* Sets growth and marks of the rows. Rows that are listed now are not new at the next snapshot. */
static void mark_rows(struct watch_snapshot_image *i, struct numbering *n, const struct watch_options *o,
                      uint64_t image_id)
{
    struct series *series = n->series;
    vec_each (const struct watch_snapshot_row, row, &i->rows)
        number_of(n, watch_snapshot_rollup_row(i, row)->index);
    uint64_t *fresh = mem_array(series->stacks.len, sizeof(*fresh));
    vec_each (const struct series_sample, s, &series->samples)
        fresh[s->stack] += s->fresh && !suppressions_has(o->dismissed, image_id, s->serial);
    vec_each (struct watch_snapshot_row, row, &i->rows) {
        uint32_t number = number_of(n, watch_snapshot_rollup_row(i, row)->index);
        struct series_stack *stack = &series->stacks.at[number];
        row->growth = growth_of(series, number);
        row->fresh_samples = i->began ? 0 : fresh[number];
        row->is_new = !stack->shown && !i->began;
        row->turned = row->growth.growing != stack->growing;
        stack->shown = true;
        stack->growing = row->growth.growing;
        i->changed |= row->fresh_samples || row->is_new || row->turned;
    }
    free(fresh);
}

/* ---- alerts ---- */

/* Returns the row that has grown for the longest time, or PROFILE_NONE. */
static uint32_t longest_growing(const struct watch_snapshot_image *i)
{
    uint32_t longest = PROFILE_NONE;
    uint64_t most_ns = 0;
    for (uint32_t k = 0; k < i->rows.len; k++)
        if (i->rows.at[k].growth.lasting_ns > most_ns) {
            most_ns = i->rows.at[k].growth.lasting_ns;
            longest = k;
        }
    return longest;
}

static void find_alerts(const struct watch *w, struct watch_snapshot *l, uint32_t image, struct track *t)
{
    const struct watch_snapshot_image *i = &l->images.at[image];
    uint32_t row = longest_growing(i);
    struct alert_facts facts = {.time_ns = i->profile->taken_ns,
                                .live_bytes = estimate_interval(&i->live).low,
                                .growing_ns = row == PROFILE_NONE ? 0 : i->rows.at[row].growth.lasting_ns};
    for (size_t k = 0; w->o.alert && k < w->o.alert->n; k++) {
        const struct alert_term *term = &w->o.alert->terms[k];
        if (alert_judge(term, &t->alerts[k], &facts))
            *vec_push(&l->alerts) =
                (struct watch_snapshot_alert){.image = image,
                                              .row = term->kind == ALERT_GROWING ? row : PROFILE_NONE,
                                              .condition = mem_strdup(term->text)};
    }
}

/* ---- the ledgers ---- */

static struct track *track_of(const struct watch *w, uint64_t image_id)
{
    vec_each (struct track, t, &w->tracks)
        if (t->image_id == image_id)
            return t;
    return NULL;
}

static void complain(const struct ledger_entry *entry, const char *why, int bad, struct error *e)
{
    if (entry->pid)
        error_set(e, -bad, "the ledger of process %d: %s", (int)entry->pid, why);
    else
        error_set(e, -bad, "%s: %s", entry->path, why);
}

/* Returns NULL with *bad if the ledger cannot be read; -EPROTO: it is being created. */
static struct profile *read_ledger(const struct ledger_entry *entry, int *bad, struct error *e)
{
    struct ledger_copy copy;
    struct error unread = {""};
    int fd = ledger_entry_open(entry);
    if (fd >= 0)
        ledger_seal_opened(entry, fd);
    *bad = fd < 0 ? fd : ledger_copy_read(fd, &copy, &unread);
    if (fd < 0 && *bad != -ENOENT && *bad != -ESTALE)
        complain(entry, strerror(-*bad), *bad, e);
    else if (fd >= 0 && *bad && *bad != -EPROTO)
        complain(entry, unread.text, *bad, e);
    if (fd >= 0)
        close(fd);
    if (*bad)
        return NULL;
    struct profile *p = ledger_profile(&copy);
    struct proc_status status;
    ledger_copy_release(&copy);
    proc_status(entry->pid, &status);
    p->images.at[0].state = PROFILE_IMAGE_RUNNING;
    p->images.at[0].pid = entry->pid;
    p->images.at[0].rss_anon_bytes = status.rss_anon_bytes;
    return p;
}

static void name(struct watch *w, struct symbols **symbols, struct profile *p)
{
    if (!*symbols) {
        char *cache = profile_names_cache_dir();
        *symbols = symbols_new(cache);
        symbols_use_servers(*symbols, w->o.servers);
        free(cache);
    }
    profile_names_apply(*symbols, p, container_root(&w->roots, p->images.at[0].pid));
    wrappers_mark(w->o.wrappers, p);
}

/* Names the rows that are shown; naming all would take long. */
static void name_shown(struct watch *w, struct watch_snapshot *l, struct symbols **symbols)
{
    bool *shown = mem_array(l->images.len, sizeof(*shown));
    for (size_t i = 0; i < l->images.len; i++)
        shown[i] = l->kind != WATCH_SNAPSHOT_CHANGES || l->images.at[i].began || l->images.at[i].changed;
    vec_each (const struct watch_snapshot_alert, alert, &l->alerts)
        shown[alert->image] = true;
    for (size_t i = 0; i < l->images.len && !w->o.named && !w->o.nameless; i++)
        if (shown[i])
            name(w, symbols, l->images.at[i].profile);
    free(shown);
}

static bool is_wanted(const struct watch *w, const struct ledger_entry *entry)
{
    return entry->alive && (w->o.dir || (w->o.pid ? entry->pid == w->o.pid : entry->owner == geteuid()));
}

/*
 * The file name has the pid of the process in its own pid namespace; in ours, another process may have that number.
 * 0: the process is not visible here.
 */
static void find_pid(const struct watch *w, struct ledger_entry *entry)
{
    const struct track *t = track_of(w, entry->image_id);
    if (!w->o.pid)
        entry->pid = t && t->pid ? t->pid : ledger_scan_holder(entry);
}

static void add_process(struct watch *w, struct watch_snapshot *l, const struct ledger_entry *entry,
                        struct symbols **symbols, struct error *e)
{
    int bad;
    struct track *t = track_of(w, entry->image_id);
    struct profile *p = read_ledger(entry, &bad, e);
    bool began = p && !t;
    if (began) {
        t = vec_push(&w->tracks);
        *t = (struct track){.image_id = entry->image_id, .pid = entry->pid, .series = series_new()};
        t->comm = mem_strdup(profile_text(p, p->images.at[0].comm));
    }
    if (t) {
        t->found = true;
        t->pid = entry->pid;
    }
    if (!p)
        return;
    /* the id in the name of the ledger, by which the track is found */
    p->images.at[0].id = entry->image_id;
    if (w->o.named)
        name(w, symbols, p);
    forget_ended_samples(&w->o, p, entry->image_id);
    struct watch_snapshot_image *i = vec_push(&l->images);
    struct numbering n = numbering_new(t->series, p);
    i->began = began;
    feed(&n, &w->o);
    list_old(i, &w->o, p);
    mark_rows(i, &n, &w->o, entry->image_id);
    numbering_free(&n);
}

static int most_first(const void *a, const void *b)
{
    double x = watch_snapshot_old(a)->value, y = watch_snapshot_old(b)->value;
    return (x < y) - (x > y);
}

/*
 * Removes the tracks of images without a ledger in the list, or with that of an ended process; and their dismissed
 * samples.
 */
static void forget_ended(struct watch *w, struct watch_snapshot *l)
{
    size_t kept = 0;
    vec_each (struct track, t, &w->tracks) {
        if (t->found) {
            w->tracks.at[kept++] = *t;
            continue;
        }
        suppressions_retain(w->o.dismissed, t->image_id, NULL, 0);
        *vec_push(&l->ended) =
            (struct watch_snapshot_ended){.pid = t->pid, .image_id = t->image_id, .comm = t->comm};
        t->comm = NULL;
        release(t);
    }
    w->tracks.len = kept;
}

struct presence {
    bool known;
    struct ledger_scan scan;
};

static bool is_there(void *arg, uint64_t image_id)
{
    struct presence *p = arg;
    if (!p->known)
        ledger_scan_all(&p->scan);
    p->known = true;
    vec_each (const struct ledger_entry, entry, &p->scan.list)
        if (entry->image_id == image_id && entry->alive)
            return true;
    return false;
}

/*
 * Removes the samples of ended images that the file had. Images that are not watched keep theirs while they live; so
 * all ledgers are searched once.
 */
static void forget_gone(struct watch *w)
{
    struct presence p = {.known = false};
    suppressions_forget(w->o.dismissed, is_there, &p);
    ledger_scan_release(&p.scan);
}

struct watch_snapshot *watch_take_snapshot(struct watch *w, enum watch_snapshot_kind kind, struct error *e)
{
    struct ledger_scan scan = {0};
    struct symbols *symbols = NULL;
    struct watch_snapshot *l = new_snapshot(w->snapshots ? kind : WATCH_SNAPSHOT_ALL, w->snapshots + 1);
    w->snapshots++;
    vec_each (struct track, t, &w->tracks)
        t->found = false;
    if (w->o.dir)
        ledger_dir_scan(w->o.dir, &scan.list);
    else if (w->o.pid)
        ledger_scan_process(&scan, w->o.pid);
    else
        ledger_dir_scan_all(&scan.list);
    vec_each (struct ledger_entry, entry, &scan.list)
        if (is_wanted(w, entry)) {
            find_pid(w, entry);
            add_process(w, l, entry, &symbols, e);
        }
    forget_ended(w, l);
    if (l->images.len)
        qsort(l->images.at, l->images.len, sizeof(*l->images.at), most_first);
    for (uint32_t i = 0; i < l->images.len; i++)
        find_alerts(w, l, i, track_of(w, l->images.at[i].profile->images.at[0].id));
    ledger_scan_release(&scan);
    if (l->number == 1)
        forget_gone(w);
    name_shown(w, l, &symbols);
    symbols_free(symbols);
    return l;
}

uint64_t watch_dismiss(struct watch *w)
{
    uint64_t n = 0;
    vec_each (struct track, t, &w->tracks) {
        struct VEC(uint64_t) serials = {0};
        vec_each (const struct series_sample, s, &t->series->samples)
            *vec_push(&serials) = s->serial;
        n += suppressions_add(w->o.dismissed, t->image_id, serials.at, serials.len);
        vec_release(&serials);
    }
    return n;
}
