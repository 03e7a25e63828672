/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/live_objects.h"

#include <errno.h>
#include <string.h>

#include "base/hash_map.h"
#include "base/sigsafe/clock_ns.h"
#include "base/units.h"

#define OBJECTS_MOST (1u << 28)

struct row {
    _Alignas(8) char key[SYS_KEY_BYTES_MAX];
    uint64_t objects, bytes;
    void *sum; /* for live->show(); NULL without it */
    bool shown;
};

struct live {
    struct map index; /* by key, as long as --by needs it */
    struct VEC(struct row) rows;
};

int live_objects_ready(struct sys_session *s, struct error *e)
{
    const struct sys_live *live = s->tool->live;
    const char *text = sys_option(s, live->option);
    uint64_t most = live->most;
    bool *follow = sys_variable(s, "follow_live", sizeof(*follow));
    *follow = live->always || text || sys_option(s, "live");
    if (text && (units_parse_size(text, &most) || !most || most > OBJECTS_MOST))
        return error_set(e, EINVAL, "invalid --%s '%s': use a number such as 512K", live->option, text);
    if (*follow && s->settings.config.sample)
        return error_set(e, EINVAL, "--live follows all of them: leave out --sample");
    bpf_map__set_max_entries(bpf_object__find_map_by_name(s->object, "live"), *follow ? (uint32_t)most : 1);
    if (*follow && !s->live)
        s->live = mem_alloc(sizeof(*s->live));
    return 0;
}

static void forget(struct live *l)
{
    vec_each (struct row, row, &l->rows)
        free(row->sum);
    map_release(&l->index);
    vec_release(&l->rows);
}

void live_objects_free(struct live *l)
{
    if (!l)
        return;
    forget(l);
    free(l);
}

static struct row *row_of(struct sys_session *s, const void *value)
{
    const struct sys_live *live = s->tool->live;
    const size_t bytes = s->settings.part->key_bytes;
    struct live *l = s->live;
    _Alignas(8) char key[SYS_KEY_BYTES_MAX] = {0};
    bool added;
    memcpy(key, (const char *)value + live->key_at, bytes);
    if (s->tool->merge_key)
        s->tool->merge_key(s, key);
    size_t at = map_put(&l->index, key, bytes, l->rows.len, &added);
    if (added) {
        struct row *row = vec_push(&l->rows);
        memcpy(row->key, key, bytes);
        row->sum = live->add ? mem_alloc(live->sum_bytes ? live->sum_bytes : s->tool->value_bytes) : NULL;
    }
    return &l->rows.at[at];
}

static void add(void *arg, const void *address, const void *value)
{
    struct sys_session *s = arg;
    const struct sys_live *live = s->tool->live;
    uint64_t at;
    if (live->counts && !live->counts(s, value))
        return;
    struct row *row = row_of(s, value);
    row->objects++;
    row->bytes += live->bytes ? live->bytes(value) : 0;
    memcpy(&at, address, sizeof(at));
    if (live->add)
        live->add(s, row->key, row->sum, at, value);
}

void live_objects_gather(struct sys_session *s)
{
    if (!s->live)
        return;
    forget(s->live);
    sys_each(s, "live", add, s);
}

void live_objects_row(struct sys_session *s, struct table *t, const void *key)
{
    const struct sys_live *live = s->tool->live;
    struct live *l = s->live;
    if (!l)
        return;
    size_t at = map_get(&l->index, key, s->settings.part->key_bytes);
    struct row *row = at == MAP_NONE ? NULL : &l->rows.at[at];
    if (live->bytes) {
        table_whole(t, live->bytes_column, row ? row->bytes : 0);
        table_whole(t, live->objects_column, row ? row->objects : 0);
    }
    if (row)
        row->shown = true;
}

void live_objects_rest(struct sys_session *s, struct table *t)
{
    const struct sys_live *live = s->tool->live;
    for (size_t i = 0; s->live && i < s->live->rows.len; i++) {
        const struct row *row = &s->live->rows.at[i];
        if (row->shown || sys_loses(s))
            continue;
        live->name(s, t, row->key, clock_ns(CLOCK_MONOTONIC));
        if (live->show)
            live->show(s, t, row->key, row->sum);
        live_objects_row(s, t, row->key);
        for (uint32_t c = live->first_column; live->bytes && c <= live->last_column; c++)
            table_whole(t, c, 0);
    }
}
