/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/profile/watch_snapshot.h"

void look_free(struct look *l)
{
    if (!l)
        return;
    vec_each (struct look_image, i, &l->images) {
        rollup_free(i->rollup);
        profile_free(i->profile);
        vec_release(&i->rows);
    }
    vec_each (struct look_ended, ended, &l->ended)
        free(ended->comm);
    vec_each (struct look_alert, alert, &l->alerts)
        free(alert->condition);
    vec_release(&l->images);
    vec_release(&l->ended);
    vec_release(&l->alerts);
    free(l);
}

bool look_is_quiet(const struct look *l)
{
    if (l->kind != LOOK_CHANGES || l->ended.len || l->alerts.len)
        return false;
    vec_each (const struct look_image, i, &l->images)
        if (i->began || i->changed)
            return false;
    return true;
}

const struct estimate *look_old(const struct look_image *i)
{
    return &i->rollup->total.of[ROLLUP_LIVE].bytes;
}

const struct rollup_row *look_rollup_row(const struct look_image *i, const struct look_row *row)
{
    return &i->rollup->rows.at[row->number];
}
