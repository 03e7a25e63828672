/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/accounts/accounts_table.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

enum {
    C_TOTAL,
    C_SLACK,
    C_REQ,
    C_REQUESTED,
    C_LIVE_CHANGE,
    C_LIVE,
    C_LIVE_SLACK,
    C_OBJECTS_CHANGE,
    C_OBJECTS,
    C_PEAK,
    C_PEAK_HIGH,
    C_ALLOCATED_CHANGE,
    C_ALLOCATED_RATE,
    C_ALLOCATED,
    C_ALLOCATIONS_CHANGE,
    C_ALLOCATIONS_RATE,
    C_ALLOCATIONS,
    C_FREES,
    C_ALLOC_FREE,
    C_FREED_BY_SITE,
    C_FREES_HERE,
    C_FAILED_CHANGE,
    C_FAILED,
    C_PLACES,
    C_INEXACT,
    C_ACCURATE,
    C_CALLER,
    C_CLASS,
    C_NAME,
    C_FUNCTION,
    C_PLACE,
    C_MODULE,
    C_PROGRAM,
    C_PID,
    COLUMNS
};

static const struct table_column columns[COLUMNS] = {
    [C_TOTAL] = {"total", TABLE_BYTES, TABLE_WHOLE},
    [C_SLACK] = {"slack", TABLE_BYTES, TABLE_SIGNED},
    [C_REQ] = {"req", TABLE_BYTES, TABLE_WHOLE},
    [C_REQUESTED] = {"requested", TABLE_BYTES, TABLE_WHOLE},
    [C_LIVE_CHANGE] = {"live_change", TABLE_BYTES, TABLE_SIGNED},
    [C_LIVE] = {"live", TABLE_BYTES, TABLE_SIGNED},
    [C_LIVE_SLACK] = {"live_slack", TABLE_BYTES, TABLE_SIGNED},
    [C_OBJECTS_CHANGE] = {"objects_change", TABLE_PLAIN, TABLE_SIGNED, .drop_rank = 2},
    [C_OBJECTS] = {"live_objects", TABLE_PLAIN, TABLE_SIGNED},
    [C_PEAK] = {"peak", TABLE_BYTES, TABLE_WHOLE},
    [C_PEAK_HIGH] = {"peak_high", TABLE_BYTES, TABLE_WHOLE, .drop_rank = 5},
    [C_ALLOCATED_CHANGE] = {"allocated_change", TABLE_BYTES, TABLE_SIGNED},
    [C_ALLOCATED_RATE] = {"allocated_per_s", TABLE_BYTES, TABLE_REAL},
    [C_ALLOCATED] = {"allocated", TABLE_BYTES, TABLE_WHOLE},
    [C_ALLOCATIONS_CHANGE] = {"allocations_change", TABLE_COUNT, TABLE_SIGNED},
    [C_ALLOCATIONS_RATE] = {"allocations_per_s", TABLE_COUNT, TABLE_REAL},
    [C_ALLOCATIONS] = {"allocations", TABLE_COUNT, TABLE_WHOLE},
    [C_FREES] = {"frees", TABLE_COUNT, TABLE_WHOLE},
    [C_ALLOC_FREE] = {"alloc/free", TABLE_PLAIN, TABLE_TEXT, .width = 41} /* two uint64_t */,
    [C_FREED_BY_SITE] = {"freed_here", TABLE_BYTES, TABLE_WHOLE},
    [C_FREES_HERE] = {"frees_here", TABLE_COUNT, TABLE_WHOLE},
    [C_FAILED_CHANGE] = {"failed_change", TABLE_COUNT, TABLE_SIGNED, .hide_if_empty = true},
    [C_FAILED] = {"failed", TABLE_COUNT, TABLE_WHOLE, .hide_if_empty = true},
    [C_PLACES] = {"sites", TABLE_COUNT, TABLE_WHOLE, .drop_rank = 1},
    [C_INEXACT] = {"inexact", TABLE_COUNT, TABLE_WHOLE},
    [C_ACCURATE] = {"accurate", TABLE_PLAIN, TABLE_FLAG},
    [C_CALLER] = {"site", TABLE_PLAIN, TABLE_TEXT, .wrap = true},
    [C_CLASS] = {"class", TABLE_PLAIN, TABLE_TEXT, .hide_if_empty = true, .shrinkable = true, .drop_rank = 4},
    [C_NAME] = {"name", TABLE_PLAIN, TABLE_TEXT, .hide_if_empty = true, .shrinkable = true, .drop_rank = 3},
    [C_FUNCTION] = {"function", TABLE_PLAIN, TABLE_TEXT, .hide_if_empty = true, .shrinkable = true},
    [C_PLACE] = {"place", TABLE_PLAIN, TABLE_TEXT, .hide_if_empty = true, .shrinkable = true},
    [C_MODULE] = {"module", TABLE_PLAIN, TABLE_TEXT, .hide_if_empty = true, .shrinkable = true,
                  .drop_rank = 6},
    [C_PROGRAM] = {"program", TABLE_PLAIN, TABLE_TEXT, .hide_if_empty = true},
    [C_PID] = {"pid", TABLE_PLAIN, TABLE_WHOLE, .hide_if_empty = true},
};

#define BIT(column) (1ull << (column))

/* Returns the columns that have a meaning in a table of this shape, as bits. */
static uint64_t columns_of(const struct account_shape *shape)
{
    static const uint64_t of_views[] = {
        [ACCOUNT_NOW] = BIT(C_LIVE) | BIT(C_OBJECTS) | BIT(C_PEAK) | BIT(C_PEAK_HIGH) | BIT(C_ALLOCATED) |
                        BIT(C_ALLOCATIONS) | BIT(C_FAILED),
        [ACCOUNT_CHANGE] = BIT(C_LIVE_CHANGE) | BIT(C_LIVE) | BIT(C_OBJECTS_CHANGE) |
                           BIT(C_ALLOCATED_CHANGE) | BIT(C_ALLOCATIONS_CHANGE) | BIT(C_FAILED_CHANGE),
        [ACCOUNT_RATE] = BIT(C_ALLOCATED_RATE) | BIT(C_ALLOCATIONS_RATE) | BIT(C_LIVE_CHANGE) | BIT(C_LIVE) |
                         BIT(C_OBJECTS) | BIT(C_FAILED_CHANGE),
    };
    static const uint64_t of_groups[] = {
        [ACCOUNT_BY_PLACE] =
            BIT(C_ACCURATE) | BIT(C_CLASS) | BIT(C_NAME) | BIT(C_FUNCTION) | BIT(C_PLACE) | BIT(C_MODULE),
        [ACCOUNT_BY_FUNCTION] = BIT(C_PLACES) | BIT(C_INEXACT) | BIT(C_FUNCTION),
        [ACCOUNT_BY_FILE] = BIT(C_PLACES) | BIT(C_INEXACT) | BIT(C_PLACE),
        [ACCOUNT_BY_DIRECTORY] = BIT(C_PLACES) | BIT(C_INEXACT) | BIT(C_PLACE),
        [ACCOUNT_BY_MODULE] = BIT(C_PLACES) | BIT(C_INEXACT) | BIT(C_MODULE),
        [ACCOUNT_BY_CLASS] = BIT(C_PLACES) | BIT(C_INEXACT) | BIT(C_CLASS),
        [ACCOUNT_BY_PROCESS] = BIT(C_PLACES) | BIT(C_INEXACT) | BIT(C_PROGRAM) | BIT(C_PID),
    };
    uint64_t rates = shape->seconds > 0 ? BIT(C_ALLOCATED_RATE) | BIT(C_ALLOCATIONS_RATE) : 0;
    static const uint64_t of_sites = BIT(C_TOTAL) | BIT(C_SLACK) | BIT(C_REQUESTED) | BIT(C_LIVE_SLACK) |
                                     BIT(C_FREES) | BIT(C_FREED_BY_SITE) | BIT(C_FREES_HERE);
    if (shape->kind != ACCOUNT_OF_TAGS && shape->view == ACCOUNT_NOW)
        return (of_views[ACCOUNT_NOW] & ~(BIT(C_ALLOCATED) | BIT(C_PEAK) | BIT(C_PEAK_HIGH))) | of_sites |
               of_groups[shape->group];
    return of_views[shape->view] | of_groups[shape->group] | (shape->view == ACCOUNT_CHANGE ? rates : 0);
}

static uint32_t column_of(const struct account_shape *shape)
{
    static const uint8_t sorted[][3] = {
        [ACCOUNT_SORT_LIVE] = {C_LIVE, C_LIVE_CHANGE, C_LIVE_CHANGE},
        [ACCOUNT_SORT_OBJECTS] = {C_OBJECTS, C_OBJECTS_CHANGE, C_OBJECTS},
        [ACCOUNT_SORT_PEAK] = {C_PEAK, C_LIVE_CHANGE, C_LIVE_CHANGE},
        [ACCOUNT_SORT_ALLOCATED] = {C_ALLOCATED, C_ALLOCATED_CHANGE, C_ALLOCATED_RATE},
        [ACCOUNT_SORT_ALLOCATIONS] = {C_ALLOCATIONS, C_ALLOCATIONS_CHANGE, C_ALLOCATIONS_RATE},
        [ACCOUNT_SORT_FAILED] = {C_FAILED, C_FAILED_CHANGE, C_FAILED_CHANGE},
        [ACCOUNT_SORT_TOTAL] = {C_TOTAL, C_ALLOCATED_CHANGE, C_ALLOCATED_RATE},
        [ACCOUNT_SORT_SLACK] = {C_SLACK, C_ALLOCATED_CHANGE, C_ALLOCATED_RATE},
        [ACCOUNT_SORT_FREES] = {C_FREES, C_ALLOCATIONS_CHANGE, C_ALLOCATIONS_RATE},
        [ACCOUNT_SORT_FREED_BY_SITE] = {C_FREED_BY_SITE, C_ALLOCATIONS_CHANGE, C_ALLOCATIONS_RATE},
    };
    return sorted[shape->sort][shape->view];
}

/* Returns the change of a counter. It is negative only between two processes of which the second allocated less:
 * counters of one process never fall. */
static int64_t grown(const struct account_row *r, enum account_counter counter)
{
    return (int64_t)(r->of[ACCOUNT_AFTER].of[counter] - r->of[ACCOUNT_BEFORE].of[counter]);
}

static void put_now(struct table *t, const struct account_row *r)
{
    const struct account_sum *now = &r->of[ACCOUNT_AFTER];
    table_signed(t, C_LIVE, account_live_bytes(now));
    table_signed(t, C_OBJECTS, account_live_objects(now));
    table_whole(t, C_PEAK, now->of[ACCOUNT_PEAK_BYTES]);
    table_whole(t, C_PEAK_HIGH, now->of[ACCOUNT_PEAK_HIGH_BYTES]);
    table_whole(t, C_ALLOCATED, now->of[ACCOUNT_ALLOCATED_BYTES]);
    table_whole(t, C_ALLOCATIONS, now->of[ACCOUNT_ALLOCATED_CALLS]);
    if (now->of[ACCOUNT_FAILED])
        table_whole(t, C_FAILED, now->of[ACCOUNT_FAILED]);
}

static void put_site(struct table *t, const struct account_row *r)
{
    const struct account_sum *now = &r->of[ACCOUNT_AFTER];
    struct buf b = BUF_INIT;
    bool known = account_slack_is_known(now);
    table_whole(t, C_TOTAL, now->of[known ? ACCOUNT_ALLOCATED_USABLE : ACCOUNT_ALLOCATED_BYTES]);
    if (known) {
        table_signed(t, C_SLACK,
                     (int64_t)(now->of[ACCOUNT_ALLOCATED_USABLE] - now->of[ACCOUNT_ALLOCATED_BYTES]));
        table_signed(t, C_LIVE_SLACK, account_slack_bytes(now));
    }
    table_whole(t, C_REQ, now->of[ACCOUNT_ALLOCATED_BYTES]);
    table_whole(t, C_REQUESTED, now->of[ACCOUNT_ALLOCATED_BYTES]);
    table_whole(t, C_FREES, now->of[ACCOUNT_RELEASED_CALLS]);
    table_whole(t, C_FREED_BY_SITE, now->of[ACCOUNT_FREED_BY_SITE_BYTES]);
    table_whole(t, C_FREES_HERE, now->of[ACCOUNT_FREED_BY_SITE_CALLS]);
    buf_printf(&b, "%" PRIu64 "/%" PRIu64, now->of[ACCOUNT_ALLOCATED_CALLS], now->of[ACCOUNT_RELEASED_CALLS]);
    table_text(t, C_ALLOC_FREE, buf_str(&b));
    buf_release(&b);
}

static void put_change(struct table *t, const struct account_row *r, double seconds)
{
    const struct account_sum *before = &r->of[ACCOUNT_BEFORE], *after = &r->of[ACCOUNT_AFTER];
    table_signed(t, C_LIVE_CHANGE, account_live_bytes(after) - account_live_bytes(before));
    table_signed(t, C_OBJECTS_CHANGE, account_live_objects(after) - account_live_objects(before));
    table_signed(t, C_ALLOCATED_CHANGE, grown(r, ACCOUNT_ALLOCATED_BYTES));
    table_signed(t, C_ALLOCATIONS_CHANGE, grown(r, ACCOUNT_ALLOCATED_CALLS));
    if (grown(r, ACCOUNT_FAILED))
        table_signed(t, C_FAILED_CHANGE, grown(r, ACCOUNT_FAILED));
    if (seconds <= 0)
        return;
    table_real(t, C_ALLOCATED_RATE, (double)grown(r, ACCOUNT_ALLOCATED_BYTES) / seconds);
    table_real(t, C_ALLOCATIONS_RATE, (double)grown(r, ACCOUNT_ALLOCATED_CALLS) / seconds);
}

void account_names_put(struct table *t, uint32_t first, const struct account_key *key,
                       const struct alloc_texts *texts)
{
    struct buf place = BUF_INIT;
    const char *file = alloc_texts_get(texts, key->file);
    table_text(t, first, alloc_texts_get(texts, key->class));
    table_text(t, first + 1, alloc_texts_get(texts, key->name));
    table_text(t, first + 2, alloc_texts_get(texts, key->function));
    buf_addstr(&place, file ? file : "");
    if (file && key->line)
        buf_printf(&place, ":%u", key->line);
    table_text(t, first + 3, file ? buf_str(&place) : NULL);
    buf_release(&place);
}

/* Sets the caller: "push at list.c:12 [libfoo.so.1], inlined in main at main.c:3 (tail call)". */
static void put_caller(struct table *t, const struct account_key *key, const struct alloc_texts *texts)
{
    struct buf b = BUF_INIT;
    const char *function = alloc_texts_get(texts, key->function), *file = alloc_texts_get(texts, key->file);
    const char *module = alloc_texts_get(texts, key->module), *outer = alloc_texts_get(texts, key->name);
    const char *class = alloc_texts_get(texts, key->class), *slash = module ? strrchr(module, '/') : NULL;
    buf_addstr(&b, function ? function : "?");
    if (file) {
        const char *last = strrchr(file, '/');
        buf_printf(&b, " at %s:%u", last ? last + 1 : file, key->line);
    }
    if (module)
        buf_printf(&b, " [%s]", slash ? slash + 1 : module);
    if (outer)
        buf_printf(&b, ", %s", outer);
    if (class)
        buf_printf(&b, " (%s)", class);
    table_text(t, C_CALLER, buf_str(&b));
    buf_release(&b);
}

static void put_name(struct table *t, const struct account_row *r, const struct alloc_texts *texts)
{
    const struct account_key *key = &r->key;
    const struct account_sum *a = &r->of[ACCOUNT_BEFORE], *b = &r->of[ACCOUNT_AFTER];
    put_caller(t, key, texts);
    account_names_put(t, C_CLASS, key, texts);
    table_text(t, C_MODULE, alloc_texts_get(texts, key->module));
    table_text(t, C_PROGRAM, alloc_texts_get(texts, key->comm));
    if (key->pid)
        table_whole(t, C_PID, key->pid);
    table_whole(t, C_PLACES, a->places > b->places ? a->places : b->places);
    table_whole(t, C_INEXACT, a->inexact > b->inexact ? a->inexact : b->inexact);
    table_flag(t, C_ACCURATE, !a->inexact && !b->inexact);
}

void accounts_table_choose(struct account_rows *r, const struct account_shape *shape)
{
    size_t kept = 0;
    if (shape->kind == ACCOUNT_OF_TAGS || shape->kind == ACCOUNT_OF_KERNEL)
        return;
    vec_each (const struct account_row, row, r) {
        uint64_t made = 0, freed = 0;
        for (int i = 0; i < ACCOUNT_MOMENTS; i++) {
            made |= row->of[i].of[ACCOUNT_ALLOCATED_CALLS] | row->of[i].of[ACCOUNT_FAILED];
            freed |= row->of[i].of[ACCOUNT_FREED_BY_SITE_CALLS];
        }
        if (shape->kind == ACCOUNT_OF_SITES ? made : freed)
            r->at[kept++] = *row;
    }
    r->len = kept;
}

/* Shows the columns of the kernel's slab accounting; for sites that free, the bytes and frees of each site. */
static void show_site(struct table *t, const struct account_shape *shape)
{
    uint64_t shown = BIT(C_FREED_BY_SITE) | BIT(C_FREES_HERE);
    if (shape->kind == ACCOUNT_OF_SITES)
        shown = BIT(C_TOTAL) | BIT(C_SLACK) | BIT(C_REQ) | BIT(C_LIVE) | BIT(C_ALLOC_FREE) | BIT(C_FAILED);
    if (shape->group == ACCOUNT_BY_PLACE)
        shown |= BIT(C_CALLER);
    else
        shown |= columns_of(shape) & (BIT(C_PLACES) | BIT(C_FUNCTION) | BIT(C_PLACE) | BIT(C_MODULE) |
                                      BIT(C_CLASS) | BIT(C_PROGRAM) | BIT(C_PID));
    t->hidden = ~(shown | (columns_of(shape) & (BIT(C_INEXACT) | BIT(C_ACCURATE))));
}

void accounts_table_for_screen(struct table *t, const struct account_shape *shape)
{
    const uint64_t names = BIT(C_CLASS) | BIT(C_NAME) | BIT(C_FUNCTION) | BIT(C_PLACE) | BIT(C_MODULE);
    if (shape->kind != ACCOUNT_OF_TAGS && shape->view == ACCOUNT_NOW)
        show_site(t, shape);
    else if (shape->kind != ACCOUNT_OF_TAGS && shape->group == ACCOUNT_BY_PLACE)
        t->hidden = (t->hidden | names) & ~BIT(C_CALLER);
    for (uint32_t row = 0; row < table_rows(t); row++)
        if (table_at(t, row, C_INEXACT)->whole)
            return;
    t->hidden |= BIT(C_INEXACT) | BIT(C_ACCURATE);
}

/* ---- order ---- */

static double change_of(const struct account_row *r, uint32_t column)
{
    const struct account_sum *before = &r->of[ACCOUNT_BEFORE], *after = &r->of[ACCOUNT_AFTER];
    switch (column) {
    case C_LIVE_CHANGE:
        return (double)(account_live_bytes(after) - account_live_bytes(before));
    case C_OBJECTS_CHANGE:
        return (double)(account_live_objects(after) - account_live_objects(before));
    case C_ALLOCATED_CHANGE:
    case C_ALLOCATED_RATE:
        return (double)grown(r, ACCOUNT_ALLOCATED_BYTES);
    case C_ALLOCATIONS_CHANGE:
    case C_ALLOCATIONS_RATE:
        return (double)grown(r, ACCOUNT_ALLOCATED_CALLS);
    default:
        return (double)grown(r, ACCOUNT_FAILED);
    }
}

/* Returns the value of a row in a column, for sorting; NAN if it is unknown. */
static double number_of(const struct account_row *r, uint32_t column)
{
    static const uint8_t counters[] = {[C_PEAK] = ACCOUNT_PEAK_BYTES,
                                       [C_ALLOCATED] = ACCOUNT_ALLOCATED_BYTES,
                                       [C_ALLOCATIONS] = ACCOUNT_ALLOCATED_CALLS,
                                       [C_FREES] = ACCOUNT_RELEASED_CALLS,
                                       [C_FREED_BY_SITE] = ACCOUNT_FREED_BY_SITE_BYTES,
                                       [C_FAILED] = ACCOUNT_FAILED};
    const struct account_sum *now = &r->of[ACCOUNT_AFTER];
    bool known = account_slack_is_known(now);
    switch (column) {
    case C_LIVE:
        return (double)account_live_bytes(now);
    case C_OBJECTS:
        return (double)account_live_objects(now);
    case C_TOTAL:
        return (double)now->of[known ? ACCOUNT_ALLOCATED_USABLE : ACCOUNT_ALLOCATED_BYTES];
    case C_SLACK:
        return known ? (double)(int64_t)(now->of[ACCOUNT_ALLOCATED_USABLE] - now->of[ACCOUNT_ALLOCATED_BYTES])
                     : NAN;
    case C_PEAK:
    case C_ALLOCATED:
    case C_ALLOCATIONS:
    case C_FREES:
    case C_FREED_BY_SITE:
    case C_FAILED:
        return (double)now->of[counters[column]];
    default:
        return change_of(r, column);
    }
}

/* Rows with equal values, for example without any change, are sorted by allocated bytes, the most first. */
static struct account_order_key order_key(const struct account_row *r, void *arg)
{
    const struct account_shape *shape = arg;
    uint32_t then = shape->view == ACCOUNT_NOW ? C_ALLOCATED : C_ALLOCATED_CHANGE;
    return (struct account_order_key){.number = number_of(r, column_of(shape)), .then = number_of(r, then)};
}

struct table *accounts_table_new(const struct account_rows *r, const struct alloc_texts *texts,
                                 const struct account_shape *shape)
{
    struct table *t = table_new(shape->schema, 2, columns, COLUMNS);
    t->hidden = ~(uint64_t)columns_of(shape);
    const struct account_order order = {.key = order_key, .arg = (void *)shape, .top = shape->top};
    struct account_ordered ordered = {0};
    account_rows_order(&ordered, r, &order);
    vec_each (const uint32_t, at, &ordered) {
        const struct account_row *row = &r->at[*at];
        table_row(t);
        put_now(t, row);
        put_site(t, row);
        put_change(t, row, shape->seconds);
        put_name(t, row, texts);
    }
    vec_release(&ordered);
    return t;
}
