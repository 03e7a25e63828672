/* SPDX-License-Identifier: BSD-2-Clause */
/* `allium sys slabratetop`: which slab caches churn. */
#include "bpf/slabratetop.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/hash_map.h"
#include "collect/kernel/slabinfo.h"
#include "sys/session.h"
#include "sys/slab_cache_names.h"
#include "sys/tools/slab_attach.h"

enum column {
    CACHE,
    ALLOCATION_RATE,
    FREE_RATE,
    NET_RATE,
    UNSEEN,
    ALLOCATIONS,
    FREES,
    NET,
    ALLOCATED,
    FREED,
    ACTIVE,
    OBJECTS,
    OBJECT_BYTES,
    SIZE,
    ALIASES,
    HISTOGRAM,
};

#define BIT(column)   (1ull << (column))
#define FOLLOWED_MOST (1u << 19) /* objects, with --hist */

static const struct table_column columns[] = {
    [CACHE] = {"cache", TABLE_PLAIN, TABLE_TEXT},
    [ALLOCATION_RATE] = {"allocations_per_s", TABLE_COUNT, TABLE_REAL},
    [FREE_RATE] = {"frees_per_s", TABLE_COUNT, TABLE_REAL},
    [NET_RATE] = {"net_per_s", TABLE_BYTES, TABLE_REAL},
    [UNSEEN] = {"unseen_frees", TABLE_PLAIN, TABLE_FLAG, .hide_if_empty = true},
    [ALLOCATIONS] = {"allocations", TABLE_COUNT, TABLE_WHOLE, .drop_rank = 5},
    [FREES] = {"frees", TABLE_COUNT, TABLE_WHOLE, .drop_rank = 5},
    [NET] = {"net", TABLE_COUNT, TABLE_SIGNED, .drop_rank = 6},
    [ALLOCATED] = {"allocated", TABLE_BYTES, TABLE_WHOLE, .drop_rank = 2},
    [FREED] = {"freed", TABLE_BYTES, TABLE_WHOLE, .drop_rank = 6},
    [ACTIVE] = {"active_objects", TABLE_COUNT, TABLE_WHOLE, .drop_rank = 3},
    [OBJECTS] = {"objects", TABLE_COUNT, TABLE_WHOLE, .drop_rank = 4},
    [OBJECT_BYTES] = {"object", TABLE_BYTES, TABLE_WHOLE, .drop_rank = 1},
    [SIZE] = {"cache_size", TABLE_BYTES, TABLE_WHOLE, .drop_rank = 1},
    [ALIASES] = {"aliases", TABLE_PLAIN, TABLE_TEXT, .drop_rank = 7},
    [HISTOGRAM] = {"lifetime_histogram", TABLE_DURATION, TABLE_HISTOGRAM},
};

struct own {
    struct cache_names *names;
    struct map unseen;      /* names of caches of which an object once came again without a free */
    struct slab_caches now; /* read for the first row of a report: an idle tool leaves /proc/slabinfo alone */
    bool is_now;
};

/* Nothing gives way then: what finds no room is counted. */
static void follow_all(struct sys_session *s)
{
    struct bpf_map *followed = bpf_object__find_map_by_name(s->object, "followed");
    bpf_map__set_type(followed, BPF_MAP_TYPE_HASH);
    bpf_map__set_max_entries(followed, FOLLOWED_MOST);
}

static int ready(struct sys_session *s, struct error *e)
{
    (void)e;
    slab_attach_ready(s);
    if (s->settings.config.histograms)
        follow_all(s);
    if (s->own)
        return 0;
    struct own *o = s->own = mem_alloc(sizeof(*o));
    o->names = slab_cache_names_new();
    return 0;
}

static void release(struct sys_session *s)
{
    struct own *o = s->own;
    if (!o)
        return;
    slab_cache_names_free(o->names);
    map_release(&o->unseen);
    slab_release(&o->now);
    free(o);
    s->own = NULL;
}

static void gather(struct sys_session *s)
{
    struct own *o = s->own;
    o->is_now = false;
}

static const struct slab_cache *find_now(struct own *o, const char *name)
{
    struct error unread; /* then the columns stay empty */
    if (!o->is_now) {
        slab_release(&o->now);
        o->now = (struct slab_caches){0};
        slab_read(&o->now, "", &unread);
        o->is_now = true;
    }
    return slab_find(&o->now, name);
}

static void add(void *sum, const void *value)
{
    struct slabratetop_value *a = sum;
    const struct slabratetop_value *v = value;
    a->allocations += v->allocations;
    a->frees += v->frees;
    a->allocated_bytes += v->allocated_bytes;
    a->freed_bytes += v->freed_bytes;
    a->reused += v->reused;
    a->name = v->name ? v->name : a->name;
    a->slot_bytes = v->slot_bytes ? v->slot_bytes : a->slot_bytes;
}

/* Caches that the kernel made one are known to its events by one name. */
static void add_slabinfo(struct own *o, struct table *t, const char *name)
{
    const struct slab_cache *c = find_now(o, name);
    struct buf aliases = BUF_INIT;
    if (!c)
        return;
    table_whole(t, ACTIVE, c->active);
    table_whole(t, OBJECTS, c->objects);
    table_whole(t, SIZE, c->slabs * c->pages_per_slab * (uint64_t)sysconf(_SC_PAGESIZE));
    for (size_t i = 0; i < c->aliases_len; i++)
        buf_printf(&aliases, "%s%s", i ? " " : "", c->aliases[i]);
    if (aliases.len)
        table_text(t, ALIASES, buf_str(&aliases));
    buf_release(&aliases);
}

/* What is of whole pages has no cache; how much of it is freed, kfree() does not tell. */
static void add_cache(struct sys_session *s, struct table *t, const char *name,
                      const struct slabratetop_value *v)
{
    double seconds = (double)s->rows_ns / 1e9;
    int64_t net_bytes = (int64_t)(v->allocated_bytes - v->freed_bytes);
    table_whole(t, FREED, v->freed_bytes);
    if (seconds > 0)
        table_real(t, NET_RATE, (double)net_bytes / seconds);
    table_whole(t, OBJECT_BYTES, v->slot_bytes);
    if (name)
        add_slabinfo(s->own, t, name);
}

static bool has_unseen_frees(struct own *o, const char *name, const struct slabratetop_value *v)
{
    if (v->reused)
        map_put(&o->unseen, name, strlen(name), 1, NULL);
    return map_get(&o->unseen, name, strlen(name)) != MAP_NONE;
}

static void row(struct sys_session *s, struct table *t, const void *key, const void *sum)
{
    const struct slabratetop_value *v = sum;
    struct own *o = s->own;
    bool is_cache = ((const struct slabratetop_key *)key)->cache != 0;
    const char *name = is_cache ? slab_cache_names_find(o->names, s, v->name) : "(pages)";
    double seconds = (double)s->rows_ns / 1e9;
    table_row(t);
    table_text(t, CACHE, name);
    if (name && has_unseen_frees(o, name, v))
        table_flag(t, UNSEEN, true);
    table_whole(t, ALLOCATIONS, v->allocations);
    table_whole(t, FREES, v->frees);
    table_signed(t, NET, (int64_t)(v->allocations - v->frees));
    table_whole(t, ALLOCATED, v->allocated_bytes);
    if (seconds > 0) {
        table_real(t, ALLOCATION_RATE, (double)v->allocations / seconds);
        table_real(t, FREE_RATE, (double)v->frees / seconds);
    }
    if (is_cache)
        add_cache(s, t, name, v);
}

static const struct sys_part parts[] = {
    {"cache", "the slab cache", 0, sizeof(struct slabratetop_key), 0, 0},
    {NULL, NULL, 0, 0, 0, 0},
};

static const struct sys_counted counted[] = {
    {SLABRATETOP_NULL_FREES, "free{s} of NULL, which {frees|free} nothing", "null_frees", false},
    {SLABRATETOP_REUSED,
     "object{s}, of one in 16 that are followed, returned without a free: UNSEEN FREES shows the "
     "caches",
     "frees_without_event", false},
    {SLABRATETOP_NAMES_FULL, "name{s} of {a cache|caches} had no room", "cache_names_lost", true},
    {0, NULL, NULL, false},
};

static const struct sys_attach_method methods[] = {
    {.name = "tp_btf", .attach = SLAB_BY_POSITION("btf")},
    {.name = "raw_tp", .attach = SLAB_BY_POSITION("raw")},
    {.name = "tp", .attach = SLAB_BY_NAME},
    {.name = NULL},
};

static const char *const examples[] = {
    "allium sys slabratetop",
    "show every second the slab caches with most allocations and frees",
    "allium sys slabratetop --sort net_per_s --interval 10s",
    "show the caches that grow",
    "allium sys slabratetop --interval 1h -- find / -xdev",
    "show the caches of the whole machine while one command runs, in one report",
    NULL,
};

static const struct sys_measure measure = {.doc = "the lifetime of each freed object", .column = HISTOGRAM};

static const char *const questions[] = {
    "Which slab caches have most allocations and frees a second?",
    "Which caches grow? (--sort net_per_s)",
    "Which caches free objects without an event, so that rates of frees are too low?",
    "How long do objects live? (--hist)",
    NULL,
};

static const struct sys_explanation explanation = {
    .questions = questions,
    .event = "an allocation or a free",
    .event_ns = 180,
    .measured = "tp_btf, Linux 6.18 in a virtual machine",
    .unseen = "frees in bulk or after an RCU grace period; the caches that have them are marked",
};

SYS_OBJECT_OF(slabratetop);

const struct sys_tool sys_slabratetop = {
    .name = "slabratetop",
    .summary = "show slab caches by the rates of allocations and frees",
    .examples = examples,
    .explanation = &explanation,
    SYS_OBJECT(slabratetop),
    .methods = methods,
    .columns = columns,
    .n_columns = sizeof(columns) / sizeof(*columns),
    .weight = ALLOCATIONS,
    .measure = &measure,
    .interval_ns = 1000000000,
    .parts = parts,
    .counted = counted,
    .key_bytes = sizeof(struct slabratetop_key),
    .value_bytes = sizeof(struct slabratetop_value),
    .add = add,
    .row = row,
    .ready = ready,
    .gather = gather,
    .release = release,
};
