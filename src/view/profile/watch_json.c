/* SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <string.h>

#include "view/profile/common.h"
#include "view/profile/watch_view.h"

#define VERSION 3

static void write_growth(struct json *j, const struct growth *g)
{
    bool known = g->since_ns != 0;
    json_flag(j, "growing", g->growing);
    json_flag(j, "growth_lasts", g->lasting_ns != 0);
    json_flag(j, "grew_so_far", g->so_far);
    json_rounded(j, "slope_bytes_per_hour", known ? g->bytes_per_hour : NAN);
    json_rounded(j, "slope_bytes_per_hour_low", known ? floor(g->interval.low) : NAN);
    json_rounded(j, "slope_bytes_per_hour_high", known ? ceil(g->interval.high) : NAN);
    common_whole_or_null(j, "slope_since_ns", known, g->since_ns);
}

static void write_row(struct json *j, const struct watch_snapshot_image *i,
                      const struct watch_snapshot_row *row)
{
    const struct rollup_row *of = watch_snapshot_rollup_row(i, row);
    char scratch[FRAME_NAME_BYTES];
    struct frames frames = {0};
    frames_of(&frames, i->profile, of->index);
    json_open(j, NULL, '{');
    json_text(j, "name", frame_function(i->profile, frames_asker(i->profile, &frames), scratch));
    json_estimate(j, "old_bytes", &of->self.of[ROLLUP_LIVE].bytes);
    json_estimate(j, "old_objects", &of->self.of[ROLLUP_LIVE].count);
    json_whole(j, "old_samples", of->self.aged_samples);
    json_whole(j, "fresh_samples", row->fresh_samples);
    json_whole(j, "oldest_age_ns", of->self.oldest_ns);
    json_flag(j, "new", row->is_new);
    write_growth(j, &row->growth);
    common_stack_json(j, i->profile, of->index, true);
    json_close(j, '}');
    vec_release(&frames);
}

static void write_free(struct json *j, const struct profile *p, uint32_t index)
{
    json_open(j, NULL, '{');
    json_hex(j, "sample", p->frees.at[index].serial);
    common_block_json(j, p, false, index);
    json_close(j, '}');
}

static void add_pid(struct json *j, int32_t pid)
{
    common_whole_or_null(j, "pid", pid > 0, (uint64_t)pid);
}

static void write_image(struct json *j, const struct watch_snapshot *l, const struct watch_snapshot_image *i,
                        uint32_t top)
{
    const struct profile *p = i->profile;
    bool one = p->images.len == 1;
    json_open(j, NULL, '{');
    if (one) {
        add_pid(j, p->images.at[0].pid);
        json_hex(j, "image", p->images.at[0].id);
    } else {
        json_null(j, "pid");
        json_null(j, "image");
    }
    json_text(j, "program", one ? profile_text(p, p->images.at[0].comm) : NULL);
    json_flag(j, "began", i->began);
    json_estimate(j, "live_bytes", &i->live);
    json_whole(j, "older_than_ns", i->older_than_ns);
    json_estimate(j, "old_bytes", watch_snapshot_old(i));
    json_whole(j, "dismissed_samples", i->dismissed);
    json_whole(j, "rows_in_all", i->rows.len);
    json_open(j, "rows", '[');
    for (size_t k = 0; k < i->rows.len && (!top || k < top); k++)
        write_row(j, i, &i->rows.at[k]);
    json_close(j, ']');
    json_open(j, "frees", '[');
    for (uint32_t k = 0; l->kind == WATCH_SNAPSHOT_FREES && k < p->frees.len; k++)
        write_free(j, p, k);
    json_close(j, ']');
    json_close(j, '}');
}

static void write_alert(struct json *j, const struct watch_snapshot *l,
                        const struct watch_snapshot_alert *alert)
{
    const struct profile_image *of = &l->images.at[alert->image].profile->images.at[0];
    json_open(j, NULL, '{');
    json_text(j, "condition", alert->condition);
    add_pid(j, of->pid);
    json_hex(j, "image", of->id);
    common_whole_or_null(j, "row", alert->row != PROFILE_NONE, alert->row);
    json_close(j, '}');
}

static void write_snapshot(struct json *j, const struct watch_snapshot *l, uint32_t top)
{
    static const char *const kinds[] = {[WATCH_SNAPSHOT_CHANGES] = "time",
                                        [WATCH_SNAPSHOT_ALL] = "requested",
                                        [WATCH_SNAPSHOT_FREES] = "frees"};
    json_open(j, NULL, '{');
    json_text(j, "schema", "allium-watch");
    json_whole(j, "version", VERSION);
    json_whole(j, "snapshot", l->number);
    json_text(j, "why", kinds[l->kind]);
    json_instant(j, "time_ns", l->time_ns);
    json_open(j, "processes", '[');
    vec_each (const struct watch_snapshot_image, i, &l->images)
        write_image(j, l, i, top);
    json_close(j, ']');
    json_open(j, "ended", '[');
    vec_each (const struct watch_snapshot_ended, ended, &l->ended) {
        json_open(j, NULL, '{');
        add_pid(j, ended->pid);
        json_hex(j, "image", ended->image_id);
        json_text(j, "program", ended->comm);
        json_close(j, '}');
    }
    json_close(j, ']');
    json_open(j, "alerts", '[');
    vec_each (const struct watch_snapshot_alert, alert, &l->alerts)
        write_alert(j, l, alert);
    json_close(j, ']');
    json_close(j, '}');
}

void watch_json_write(struct sink *out, const struct watch_snapshot *l, uint32_t top)
{
    struct json j = {.out = out, .line = true};
    write_snapshot(&j, l, top);
}
