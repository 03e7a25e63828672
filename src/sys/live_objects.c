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
    void *sum; /* the tool's value, for live->show(); NULL without it */
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
    *follow = text || sys_option(s, "live");
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

static void add(void *arg, const void *unused, const void *value)
{
    struct sys_session *s = arg;
    struct live *l = s->live;
    const size_t bytes = s->settings.part->key_bytes;
    _Alignas(8) char key[SYS_KEY_BYTES_MAX] = {0};
    bool added;
    (void)unused;
    memcpy(key, (const char *)value + s->tool->live->key_at, bytes);
    if (s->tool->merge_key)
        s->tool->merge_key(s, key);
    size_t at = map_put(&l->index, key, bytes, l->rows.len, &added);
    if (added) {
        struct row *row = vec_push(&l->rows);
        memcpy(row->key, key, bytes);
        row->sum = s->tool->live->add ? mem_alloc(s->tool->value_bytes) : NULL;
    }
    l->rows.at[at].objects++;
    l->rows.at[at].bytes += s->tool->live->bytes(value);
    if (s->tool->live->add)
        s->tool->live->add(l->rows.at[at].sum, value);
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
    table_whole(t, live->bytes_column, row ? row->bytes : 0);
    table_whole(t, live->objects_column, row ? row->objects : 0);
    if (row)
        row->shown = true;
}

void live_objects_rest(struct sys_session *s, struct table *t)
{
    const struct sys_live *live = s->tool->live;
    for (size_t i = 0; s->live && i < s->live->rows.len; i++) {
        const struct row *row = &s->live->rows.at[i];
        if (row->shown)
            continue;
        live->name(s, t, row->key, clock_ns(CLOCK_MONOTONIC));
        if (live->show)
            live->show(s, t, row->sum);
        live_objects_row(s, t, row->key);
        for (uint32_t c = live->first_column; c <= live->last_column; c++)
            table_whole(t, c, 0);
    }
}
