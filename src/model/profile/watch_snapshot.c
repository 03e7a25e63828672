/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/profile/watch_snapshot.h"

void watch_snapshot_free(struct watch_snapshot *l)
{
    if (!l)
        return;
    vec_each (struct watch_snapshot_image, i, &l->images) {
        rollup_free(i->rollup);
        profile_free(i->profile);
        vec_release(&i->rows);
    }
    vec_each (struct watch_snapshot_ended, ended, &l->ended)
        free(ended->comm);
    vec_each (struct watch_snapshot_alert, alert, &l->alerts)
        free(alert->condition);
    vec_release(&l->images);
    vec_release(&l->ended);
    vec_release(&l->alerts);
    free(l);
}

bool watch_snapshot_is_quiet(const struct watch_snapshot *l)
{
    if (l->kind != WATCH_SNAPSHOT_CHANGES || l->ended.len || l->alerts.len)
        return false;
    vec_each (const struct watch_snapshot_image, i, &l->images)
        if (i->began || i->changed)
            return false;
    return true;
}

const struct estimate *watch_snapshot_old(const struct watch_snapshot_image *i)
{
    return &i->rollup->total.of[ROLLUP_LIVE].bytes;
}

const struct rollup_row *watch_snapshot_rollup_row(const struct watch_snapshot_image *i,
                                                   const struct watch_snapshot_row *row)
{
    return &i->rollup->rows.at[row->number];
}
