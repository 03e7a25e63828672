/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/accounts/accounts.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash_map.h"

/* ---- sums ---- */

int64_t account_live_bytes(const struct account_sum *s)
{
    return (int64_t)(s->of[ACCOUNT_ALLOCATED_BYTES] - s->of[ACCOUNT_RELEASED_BYTES]);
}

int64_t account_live_objects(const struct account_sum *s)
{
    return (int64_t)(s->of[ACCOUNT_ALLOCATED_CALLS] - s->of[ACCOUNT_RELEASED_CALLS]);
}

bool account_slack_is_known(const struct account_sum *s)
{
    return s->of[ACCOUNT_ALLOCATED_USABLE] >= s->of[ACCOUNT_ALLOCATED_BYTES];
}

int64_t account_slack_bytes(const struct account_sum *s)
{
    return (int64_t)(s->of[ACCOUNT_ALLOCATED_USABLE] - s->of[ACCOUNT_RELEASED_USABLE]) -
           account_live_bytes(s);
}

uint64_t account_faults(const struct account_sum *s)
{
    return s->faults[ACCOUNT_MINOR] + s->faults[ACCOUNT_MAJOR];
}

void account_sum_add(struct account_sum *to, const struct account_sum *from)
{
    uint64_t peak = to->of[ACCOUNT_PEAK_BYTES], other = from->of[ACCOUNT_PEAK_BYTES];
    for (int i = 0; i < ACCOUNT_COUNTERS; i++)
        to->of[i] += from->of[i];
    to->of[ACCOUNT_PEAK_BYTES] = peak > other ? peak : other;
    int64_t live = account_live_bytes(to);
    if (peak + other && live > (int64_t)to->of[ACCOUNT_PEAK_BYTES])
        to->of[ACCOUNT_PEAK_BYTES] = (uint64_t)live;
    for (int i = 0; i < ACCOUNT_FAULTS; i++)
        to->faults[i] += from->faults[i];
    to->places += from->places;
    to->inexact += from->inexact;
}

struct account_sum account_rows_total(const struct account_rows *r, enum account_moment moment)
{
    struct account_sum total = {{0}};
    vec_each (const struct account_row, row, r)
        account_sum_add(&total, &row->of[moment]);
    return total;
}

/* ---- one reading ---- */

void accounts_release(struct accounts *a)
{
    vec_release(&a->rows);
    vec_release(&a->processes);
}

/* The merged row keeps the function of the first copy. Copies are sorted by function, then by code, so that the order
 * of the ledger does not matter. */
static int compare_copies(const void *a, const void *b, void *arg)
{
    const struct account_row *x = a, *y = b;
    const char *s = alloc_texts_get(arg, x->key.function), *t = alloc_texts_get(arg, y->key.function);
    int order = strcmp(s ? s : "", t ? t : "");
    return order ? order : (x->code > y->code) - (x->code < y->code);
}

static struct account_row *row_of(struct account_rows *r, struct map *by_key, const struct account_key *key)
{
    bool added;
    size_t at = map_put(by_key, key, sizeof(*key), r->len, &added);
    if (added)
        vec_push(r)->key = *key;
    return &r->at[at];
}

void accounts_merge(struct accounts *a, const struct alloc_texts *texts)
{
    struct account_rows merged = {0};
    struct map by_key = {0};
    if (a->rows.len)
        qsort_r(a->rows.at, a->rows.len, sizeof(*a->rows.at), compare_copies, (void *)texts);
    vec_each (const struct account_row, r, &a->rows) {
        struct account_key key = r->key;
        if (key.line)
            key.function = ALLOC_NO_TEXT;
        struct account_row *to = row_of(&merged, &by_key, &key);
        struct account_sum *sum = &to->of[ACCOUNT_AFTER];
        if (!to->copies) {
            to->key.function = r->key.function;
            to->code = r->code;
        }
        to->copies += r->copies;
        account_sum_add(sum, &r->of[ACCOUNT_AFTER]);
        sum->places = 1;
        sum->inexact = sum->inexact != 0;
    }
    map_release(&by_key);
    vec_release(&a->rows);
    a->rows = merged;
}

double accounts_seconds(const struct accounts *before, const struct accounts *after)
{
    double seconds = 0;
    vec_each (const struct account_process, b, &before->processes)
        vec_each (const struct account_process, a, &after->processes)
            if (a->image_id == b->image_id && b->taken_ns && a->taken_ns > b->taken_ns) {
                double of_this = (double)(a->taken_ns - b->taken_ns) / 1e9;
                seconds = of_this > seconds ? of_this : seconds;
            }
    return seconds;
}

/* ---- rows of one or of two ---- */

/* Returns the key that identifies a place: by its line, or by its function if it has no line. A place with a line may
 * be in different functions in copies of other builds, so its function is left out unless `parts` includes it. */
static struct account_key place_of(const struct account_key *key, unsigned parts)
{
    struct account_key place = *key;
    if (key->line && !(parts & ACCOUNT_PART_FUNCTION))
        place.function = ALLOC_NO_TEXT;
    if (!(parts & ACCOUNT_PART_PROCESS))
        place.comm = place.pid = 0;
    return place;
}

static void join(struct account_rows *to, struct map *by_key, const struct accounts *a,
                 enum account_moment moment, unsigned parts)
{
    vec_each (const struct account_row, r, &a->rows) {
        struct account_key key = place_of(&r->key, parts);
        struct account_row *row = row_of(to, by_key, &key);
        struct account_sum *sum = &row->of[moment];
        row->key.function = r->key.function;
        row->code = r->code;
        row->copies = row->copies > r->copies ? row->copies : r->copies;
        account_sum_add(sum, &r->of[ACCOUNT_AFTER]);
        sum->places = 1;
        sum->inexact = sum->inexact != 0;
    }
}

void account_rows_join(struct account_rows *to, const struct accounts *before, const struct accounts *after,
                       unsigned parts)
{
    struct map by_key = {0};
    if (before)
        join(to, &by_key, before, ACCOUNT_BEFORE, parts);
    join(to, &by_key, after, ACCOUNT_AFTER, parts);
    map_release(&by_key);
}

/* The directory of each file, by the file's number; UINT32_MAX: not looked up yet. */
struct directories VEC(uint32_t);

static uint32_t directory_of(struct directories *known, struct alloc_texts *texts, uint32_t file)
{
    while (known->len <= file)
        *vec_push(known) = UINT32_MAX;
    if (known->at[file] == UINT32_MAX)
        known->at[file] = alloc_texts_directory(texts, file);
    return known->at[file];
}

static struct account_key coarser(const struct account_key *key, enum account_group group,
                                  struct alloc_texts *texts, struct directories *known)
{
    switch (group) {
    case ACCOUNT_BY_FUNCTION:
        return (struct account_key){.function = key->function};
    case ACCOUNT_BY_MODULE_FUNCTION:
        return (struct account_key){.module = key->module, .function = key->function};
    case ACCOUNT_BY_FILE:
        return (struct account_key){.file = key->file};
    case ACCOUNT_BY_DIRECTORY:
        return (struct account_key){.file = directory_of(known, texts, key->file)};
    case ACCOUNT_BY_MODULE:
        return (struct account_key){.module = key->module};
    case ACCOUNT_BY_CLASS:
        return (struct account_key){.class = key->class};
    case ACCOUNT_BY_PROCESS:
        return (struct account_key){.comm = key->comm, .pid = key->pid};
    default:
        return place_of(key, 0);
    }
}

void account_rows_group(struct account_rows *to, const struct account_rows *from, enum account_group group,
                        struct alloc_texts *texts)
{
    struct map by_key = {0};
    struct directories known = {0};
    vec_each (const struct account_row, r, from) {
        struct account_key key = coarser(&r->key, group, texts, &known);
        struct account_row *row = row_of(to, &by_key, &key);
        if (group == ACCOUNT_BY_PLACE)
            row->key.function = r->key.function;
        for (int moment = 0; moment < ACCOUNT_MOMENTS; moment++)
            account_sum_add(&row->of[moment], &r->of[moment]);
        row->copies += r->copies;
        row->code = r->code;
    }
    vec_release(&known);
    map_release(&by_key);
}

void account_rows_keep_changed(struct account_rows *r)
{
    size_t kept = 0;
    vec_each (const struct account_row, row, r)
        if (memcmp(row->of[ACCOUNT_BEFORE].of, row->of[ACCOUNT_AFTER].of, sizeof(row->of[0].of)) != 0)
            r->at[kept++] = *row;
    r->len = kept;
}
