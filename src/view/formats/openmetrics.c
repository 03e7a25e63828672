/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/formats/openmetrics.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash_map.h"
#include "view/text/text.h"

struct family {
    const char *name, *help;
    bool bytes, usable;
    bool gauge; /* the value is counter - minus; else it is `counter` */
    enum account_counter counter, minus;
};

static const struct family families[] = {
    {"allocated_bytes", "Total of requested bytes.", .bytes = true, .counter = ACCOUNT_ALLOCATED_BYTES},
    {"allocations", "Total number of allocations.", .counter = ACCOUNT_ALLOCATED_CALLS},
    {"freed_bytes", "Requested bytes that were freed.", .bytes = true, .counter = ACCOUNT_RELEASED_BYTES},
    {"frees", "Allocations that were freed.", .counter = ACCOUNT_RELEASED_CALLS},
    {"failed_requests", "Requests that failed.", .counter = ACCOUNT_FAILED},
    {"allocated_usable_bytes", "Usable bytes that the allocator returned.", .bytes = true, .usable = true,
     .counter = ACCOUNT_ALLOCATED_USABLE},
    {"freed_here_bytes", "Bytes that this place freed, wherever they were allocated.", .bytes = true,
     .usable = true, .counter = ACCOUNT_FREED_BY_SITE_BYTES},
    {"frees_here", "Frees by this place, wherever the objects were allocated.", .usable = true,
     .counter = ACCOUNT_FREED_BY_SITE_CALLS},
    {"live_bytes", "Requested bytes that are live.", .bytes = true, .gauge = true,
     .counter = ACCOUNT_ALLOCATED_BYTES, .minus = ACCOUNT_RELEASED_BYTES},
    {"live_objects", "Objects that are live.", .gauge = true, .counter = ACCOUNT_ALLOCATED_CALLS,
     .minus = ACCOUNT_RELEASED_CALLS},
    {"live_usable_bytes", "Usable bytes that are live.", .bytes = true, .usable = true, .gauge = true,
     .counter = ACCOUNT_ALLOCATED_USABLE, .minus = ACCOUNT_RELEASED_USABLE},
};

/* Places with equal labels, added up. */
struct labelled {
    char *labels;
    struct account_sum sum;
};

struct places VEC(struct labelled);

/* ---- labels ---- */

/*
 * Appends a label. Control characters and bytes that are not UTF-8 become "?", so that no reader ends a line there.
 */
static void add_label(struct buf *b, const char *name, const char *value)
{
    if (!value || !*value)
        return;
    buf_printf(b, "%s%s=\"", b->len ? "," : "", name);
    while (*value) {
        size_t n = text_sequence(value);
        unsigned char c = (unsigned char)*value;
        if (c == '"' || c == '\\')
            buf_printf(b, "\\%c", c);
        else if (!n || c < ' ' || c == 0x7f)
            buf_addch(b, '?');
        else
            buf_add(b, value, n);
        value += n ? n : 1;
    }
    buf_addch(b, '"');
}

static void add_labels(struct buf *b, const struct account_key *key, const struct alloc_texts *texts)
{
    const char *module = alloc_texts_get(texts, key->module), *slash = module ? strrchr(module, '/') : NULL;
    add_label(b, "function", alloc_texts_get(texts, key->function));
    add_label(b, "file", alloc_texts_get(texts, key->file));
    add_label(b, "module", slash ? slash + 1 : module);
    add_label(b, "class", alloc_texts_get(texts, key->class));
    add_label(b, "name", alloc_texts_get(texts, key->name));
}

static void gather(struct places *p, const struct account_rows *rows, const struct alloc_texts *texts)
{
    struct map by_labels = {0};
    vec_each (const struct account_row, r, rows) {
        struct buf b = BUF_INIT;
        bool added;
        add_labels(&b, &r->key, texts);
        size_t at = map_put(&by_labels, buf_str(&b), b.len, p->len, &added);
        if (added)
            vec_push(p)->labels = buf_detach(&b);
        account_sum_add(&p->at[at].sum, &r->of[ACCOUNT_AFTER]);
        buf_release(&b);
    }
    map_release(&by_labels);
}

/* ---- families ---- */

static uint64_t value_of(const struct labelled *l, const struct family *f)
{
    return l->sum.of[f->counter] - (f->gauge ? l->sum.of[f->minus] : 0);
}

/* Largest first; negative gauges last. */
static int compare(const void *a, const void *b, void *family)
{
    const struct labelled *x = a, *y = b;
    const struct family *f = family;
    uint64_t p = value_of(x, f), q = value_of(y, f);
    bool less = f->gauge ? (int64_t)p < (int64_t)q : p < q;
    return p != q ? (less ? 1 : -1) : strcmp(x->labels, y->labels);
}

static void write_sample(struct sink *out, const struct openmetrics_options *o, const struct family *f,
                         const char *labels, uint64_t value)
{
    sink_printf(out, "%s_%s%s", o->prefix, f->name, f->gauge ? "" : "_total");
    if (*labels)
        sink_printf(out, "{%s}", labels);
    if (f->gauge)
        sink_printf(out, " %" PRIi64 "\n", (int64_t)value);
    else
        sink_printf(out, " %" PRIu64 "\n", value);
}

static void write_head(struct sink *out, const struct openmetrics_options *o, const char *name,
                       const char *type, bool bytes, const char *help)
{
    sink_printf(out, "# TYPE %s_%s %s\n", o->prefix, name, type);
    if (bytes)
        sink_printf(out, "# UNIT %s_%s bytes\n", o->prefix, name);
    sink_printf(out, "# HELP %s_%s %s\n", o->prefix, name, help);
}

/* Writes one family. Places with the value 0 are left out. */
static void write_family(struct sink *out, struct places *p, const struct openmetrics_options *o,
                         const struct family *f)
{
    uint64_t other = 0;
    write_head(out, o, f->name, f->gauge ? "gauge" : "counter", f->bytes, f->help);
    if (p->len)
        qsort_r(p->at, p->len, sizeof(*p->at), compare, (void *)f);
    for (size_t i = 0; i < p->len; i++) {
        uint64_t value = value_of(&p->at[i], f);
        if ((o->top && i >= o->top) || !value)
            other += value;
        else
            write_sample(out, o, f, p->at[i].labels, value);
    }
    write_sample(out, o, f, "place=\"other\"", other);
}

/* ---- what is not exact ---- */

static void write_losses(struct sink *out, const struct accounts *a, const struct openmetrics_options *o)
{
    static const char *const names[] = {[ACCOUNT_LOST_PLACES] = "places",
                                        [ACCOUNT_LOST_OBJECTS] = "objects",
                                        [ACCOUNT_LOST_FREES] = "frees_unseen"};
    write_head(out, o, "lost", "counter", false, "Objects, frees and places that could not be counted.");
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        uint64_t sum = 0;
        vec_each (const struct account_process, p, &a->processes)
            sum += p->losses[i];
        sink_printf(out, "%s_lost_total{what=\"%s\"} %" PRIu64 "\n", o->prefix, names[i], sum);
    }
}

void openmetrics_write(struct sink *out, const struct account_rows *rows, const struct alloc_texts *texts,
                       const struct accounts *a, const struct openmetrics_options *o)
{
    struct places places = {0};
    struct account_sum all = account_rows_total(rows, ACCOUNT_AFTER);
    gather(&places, rows, texts);
    for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++)
        if (o->usable || !families[i].usable)
            write_family(out, &places, o, &families[i]);
    write_losses(out, a, o);
    write_head(out, o, "inexact_places", "gauge", false,
               "Places with allocations that could not be attributed.");
    sink_printf(out, "%s_inexact_places %" PRIu32 "\n# EOF\n", o->prefix, all.inexact);
    vec_each (struct labelled, l, &places)
        free(l->labels);
    vec_release(&places);
}
