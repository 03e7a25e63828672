/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/profile/common.h"
#include "view/profile/who_view.h"

#define VERSION 2

static void begin(struct json *j, const char *schema, const char *source)
{
    json_open(j, NULL, '{');
    json_text(j, "schema", schema);
    json_whole(j, "version", VERSION);
    json_text(j, "source", source);
}

static void write_known(struct json *j, const struct profile *p, const struct profile_summary *f)
{
    struct address_info_frees k = address_info_frees_of(p);
    json_flag(j, "exact", profile_summary_exact(f));
    json_flag(j, "past", f->past != 0);
    common_periods_json(j, p, f);
    json_open(j, "frees", '{');
    json_whole(j, "freed_samples", k.freed);
    json_whole(j, "remembered", k.remembered);
    common_whole_or_null(j, "reach_ns", k.remembered != 0, k.reach_ns);
    json_close(j, '}');
}

static void write_blocks(struct json *j, const char *key, const struct address_info_block *blocks, size_t n,
                         const struct profile *p)
{
    static const char *const places[] = {[ADDRESS_INFO_INSIDE] = "inside",
                                         [ADDRESS_INFO_SLACK] = "slack",
                                         [ADDRESS_INFO_BEFORE] = "before",
                                         [ADDRESS_INFO_BEHIND] = "behind"};
    json_open(j, key, '[');
    for (size_t i = 0; i < n; i++) {
        const struct address_info_block *b = &blocks[i];
        json_open(j, NULL, '{');
        json_text(j, "place", places[b->place]);
        json_whole(j, "distance_bytes", b->bytes);
        common_block_json(j, p, b->live, b->index);
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void write_chance(struct json *j, uint64_t size, uint64_t period)
{
    json_open(j, NULL, '{');
    json_whole(j, "size_bytes", size);
    json_real(j, "chance_percent", 100 * address_info_chance(size, period));
    json_close(j, '}');
}

void who_json_write(struct sink *out, const struct address_info *w, const struct profile *p,
                    const struct who_options *o)
{
    struct profile_summary f = profile_summary_of(p);
    struct json j = {.out = out};
    begin(&j, "allium-who", o->source);
    json_hex(&j, "address", w->address);
    write_known(&j, p, &f);
    json_open(&j, "chances", '[');
    if (f.period_high && o->size_bytes != UINT64_MAX)
        write_chance(&j, o->size_bytes, f.period_high);
    for (const uint64_t *size = who_sizes; f.period_high && *size && o->size_bytes == UINT64_MAX; size++)
        write_chance(&j, *size, f.period_high);
    json_close(&j, ']');
    write_blocks(&j, "rows", w->holding.at, w->holding.len, p);
    write_blocks(&j, "near", w->near.at, w->near.len, p);
    json_close(&j, '}');
}

void frees_json_write(struct sink *out, const struct profile *p, const uint32_t *order, size_t n,
                      const struct frees_options *o)
{
    struct profile_summary f = profile_summary_of(p);
    struct json j = {.out = out};
    size_t shown = o->top && o->top < n ? o->top : n;
    begin(&j, "allium-frees", o->source);
    json_text(&j, "filter", o->filter);
    write_known(&j, p, &f);
    json_whole(&j, "rows_in_all", n);
    json_open(&j, "rows", '[');
    for (size_t i = 0; i < shown; i++) {
        json_open(&j, NULL, '{');
        common_block_json(&j, p, false, order[i]);
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_close(&j, '}');
}
