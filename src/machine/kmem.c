/* SPDX-License-Identifier: BSD-2-Clause */
/* `allium sys kmem`: the kernel's own objects, by who asks for them. */
#include "bpf/kmem.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/units.h"
#include "machine/names.h"
#include "machine/session.h"

#define LIVE_OBJECTS_DEFAULT (1u << 19)

enum column {
    SITE,
    PID,
    COMM,
    TOTAL,
    SLACK,
    REQUESTED,
    ALLOCATIONS,
    FREES,
    LIVE,
    LIVE_OBJECTS,
    CACHE,
    GFP,
    KERNEL_STACK,
    USER_STACK
};

#define BIT(column) (1ull << (column))

static const struct table_column columns[] = {
    [SITE] = {"call_site", TABLE_PLAIN, TABLE_TEXT},
    [PID] = {"pid", TABLE_PLAIN, TABLE_WHOLE},
    [COMM] = {"comm", TABLE_PLAIN, TABLE_TEXT},
    [TOTAL] = {"allocated", TABLE_BYTES, TABLE_WHOLE},
    [SLACK] = {"slack", TABLE_BYTES, TABLE_WHOLE},
    [REQUESTED] = {"requested", TABLE_BYTES, TABLE_WHOLE, .drop = 3},
    [ALLOCATIONS] = {"allocations", TABLE_COUNT, TABLE_WHOLE},
    [FREES] = {"frees", TABLE_COUNT, TABLE_WHOLE},
    [LIVE] = {"live", TABLE_BYTES, TABLE_WHOLE, .rare = true},
    [LIVE_OBJECTS] = {"live_objects", TABLE_COUNT, TABLE_WHOLE, .rare = true, .drop = 2},
    [CACHE] = {"cache", TABLE_PLAIN, TABLE_TEXT, .drop = 4},
    [GFP] = {"gfp", TABLE_PLAIN, TABLE_TEXT, .drop = 5},
    [KERNEL_STACK] = {"kernel_stack", TABLE_PLAIN, TABLE_LINES},
    [USER_STACK] = {"user_stack", TABLE_PLAIN, TABLE_LINES},
};

/* What is live, by row: made anew whenever rows are. */
struct live_row {
    struct kmem_key key;
    uint64_t objects, bytes;
    bool shown;
};

struct own {
    bool follow;
    struct map index;
    struct VEC(struct live_row) rows;
};

static struct own *own(struct sys_session *s)
{
    if (!s->own)
        s->own = mem_alloc(sizeof(struct own));
    return s->own;
}

static void release(struct sys_session *s)
{
    struct own *o = own(s);
    map_release(&o->index);
    vec_release(&o->rows);
    free(o);
    s->own = NULL;
}

/* Before the programs are loaded: the map of live objects is as large as is asked for, its values as long as the key. */
static int ready(struct sys_session *s, struct error *e)
{
    struct bpf_map *live = bpf_object__find_map_by_name(s->object, "live");
    const char *most = sys_option(s, "live-objects");
    uint64_t objects = LIVE_OBJECTS_DEFAULT;
    bool *follow = sys_variable(s, "follow_live", sizeof(*follow));
    if (most && (units_parse_size(most, &objects) || !objects || objects > 1u << 28))
        return error_set(e, EINVAL, "--live-objects %s is no number of objects, as 512K is", most);
    if (s->settings.config.sample && (most || sys_option(s, "live")))
        return error_set(e, EINVAL, "--live follows all objects: leave out --sample");
    own(s)->follow = *follow = sys_option(s, "live") != NULL || most;
    bpf_map__set_max_entries(live, *follow ? (uint32_t)objects : 1);
    bpf_map__set_value_size(live, (uint32_t)offsetof(struct kmem_live, key) + s->settings.part->key_bytes);
    return 0;
}

static struct live_row *live_row(struct own *o, const struct kmem_key *key)
{
    bool added;
    size_t at = map_put(&o->index, key, sizeof(*key), o->rows.len, &added);
    if (added)
        *vec_push(&o->rows) = (struct live_row){.key = *key};
    return &o->rows.at[at];
}

static void add_live(void *arg, const void *key, const void *value)
{
    struct sys_session *s = arg;
    const struct kmem_live *object = value;
    struct kmem_key row = {0};
    (void)key;
    memcpy(&row, &object->key, s->settings.part->key_bytes);
    struct live_row *l = live_row(own(s), &row);
    l->objects++;
    l->bytes += object->allocated_bytes;
}

static void gather(struct sys_session *s)
{
    struct own *o = own(s);
    map_release(&o->index);
    vec_release(&o->rows);
    if (o->follow)
        sys_each(s, "live", add_live, s);
}

static void add(void *sum, const void *value)
{
    struct kmem_value *a = sum;
    const struct kmem_value *v = value;
    a->allocations += v->allocations;
    a->frees += v->frees;
    a->requested_bytes += v->requested_bytes;
    a->allocated_bytes += v->allocated_bytes;
    a->gfp |= v->gfp;
    a->caches_differ |= v->caches_differ || (a->cache && v->cache && a->cache != v->cache);
    a->cache = v->cache ? v->cache : a->cache;
    a->time_ns = v->time_ns > a->time_ns ? v->time_ns : a->time_ns;
}

static uint64_t weigh(const void *value)
{
    return ((const struct kmem_value *)value)->allocated_bytes;
}

static void name_row(struct sys_session *s, struct table *t, const struct kmem_key *key, uint64_t time_ns)
{
    uint32_t parts = s->settings.config.parts;
    table_row(t);
    if (parts & KMEM_BY_SITE)
        names_kernel(s, t, SITE, key->call_site);
    if (parts & KMEM_BY_PROCESS) {
        table_whole(t, PID, key->pid);
        table_text(t, COMM, key->comm);
    }
    if (parts & KMEM_BY_STACK) {
        names_kernel_stack(s, t, KERNEL_STACK, key->kernel_stack);
        names_user_stack(s, t, USER_STACK, key->user_stack, key->pid, time_ns);
    }
}

static void add_live_columns(struct sys_session *s, struct table *t, const struct kmem_key *key)
{
    struct own *o = own(s);
    size_t at = o->follow ? map_get(&o->index, key, sizeof(*key)) : MAP_NONE;
    if (!o->follow)
        return;
    table_whole(t, LIVE, at == MAP_NONE ? 0 : o->rows.at[at].bytes);
    table_whole(t, LIVE_OBJECTS, at == MAP_NONE ? 0 : o->rows.at[at].objects);
    if (at != MAP_NONE)
        o->rows.at[at].shown = true;
}

static void add_cache(struct sys_session *s, struct table *t, const struct kmem_value *v)
{
    char name[KMEM_CACHE_NAME_BYTES] = "";
    struct buf b = BUF_INIT;
    if (!v->cache || bpf_map_lookup_elem(sys_map(s, "cache_names"), &v->cache, name))
        return;
    name[KMEM_CACHE_NAME_BYTES - 1] = '\0';
    buf_printf(&b, "%s%s", name, v->caches_differ ? " and others" : "");
    table_text(t, CACHE, buf_str(&b));
    buf_release(&b);
}

static void row(struct sys_session *s, struct table *t, const void *key, const void *sum)
{
    const struct kmem_value *v = sum;
    name_row(s, t, key, v->time_ns);
    table_whole(t, TOTAL, v->allocated_bytes);
    table_whole(t, SLACK, v->allocated_bytes - v->requested_bytes);
    table_whole(t, REQUESTED, v->requested_bytes);
    table_whole(t, ALLOCATIONS, v->allocations);
    table_whole(t, FREES, v->frees);
    add_live_columns(s, t, key);
    add_cache(s, t, v);
    if (v->allocations)
        names_gfp(s, t, GFP, v->gfp);
}

/* Rows of which something is live though nothing happened in them lately. */
static void rest(struct sys_session *s, struct table *t)
{
    struct own *o = own(s);
    for (size_t i = 0; i < o->rows.len; i++) {
        struct kmem_key key = o->rows.at[i].key;
        if (o->rows.at[i].shown)
            continue;
        name_row(s, t, &key, sys_now_ns());
        add_live_columns(s, t, &key);
        for (uint32_t c = TOTAL; c <= FREES; c++)
            table_whole(t, c, 0);
    }
}

static const struct sys_part parts[] = {
    {"site", "the call that allocates, or frees", KMEM_BY_SITE, offsetof(struct kmem_key, kernel_stack),
     BIT(SITE), 0},
    {"stack", "the whole stack, see --stacks", KMEM_BY_STACK, offsetof(struct kmem_key, comm),
     BIT(KERNEL_STACK) | BIT(USER_STACK), SYS_STACK_KERNEL},
    {"process", "the process that was running", KMEM_BY_PROCESS, sizeof(struct kmem_key),
     BIT(PID) | BIT(COMM), 0},
    {NULL, NULL, 0, 0, 0, 0},
};

static const struct sys_option options[] = {
    {"live", NULL, "follow each object until it is freed, and tell what is live"},
    {"live-objects", "N", "at most so many of them (512K); implies --live"},
    {NULL, NULL, NULL},
};

static const struct sys_counted counted[] = {
    {KMEM_NULL_FREES, "frees of NULL, which free nothing", "null_frees", false},
    {KMEM_REUSED, "live objects whose address came again: their free had no event", "frees_without_event",
     false},
    {KMEM_FREED_BEFORE, "frees of objects from before the start", "frees_of_unknown", false},
    {0, NULL, NULL, false},
};

#define KMALLOC_ARGUMENTS "call_site,ptr,bytes_req,bytes_alloc,gfp_flags"
#define CACHE_ARGUMENTS   "call_site,ptr,s,gfp_flags"
#define FREE_ARGUMENTS    "call_site,ptr"

static const struct sys_rung rungs[] = {
    {.name = "tp_btf",
     .attach = {{"btf_kmalloc", "kmalloc", KMALLOC_ARGUMENTS, NULL},
                {"btf_cache_alloc", "kmem_cache_alloc", CACHE_ARGUMENTS, NULL},
                {"btf_kfree", "kfree", FREE_ARGUMENTS, NULL},
                {"btf_cache_free", "kmem_cache_free", FREE_ARGUMENTS, NULL}}},
    {.name = "raw_tp",
     .attach = {{"raw_kmalloc", "kmalloc", KMALLOC_ARGUMENTS, NULL},
                {"raw_cache_alloc", "kmem_cache_alloc", CACHE_ARGUMENTS, NULL},
                {"raw_kfree", "kfree", FREE_ARGUMENTS, NULL},
                {"raw_cache_free", "kmem_cache_free", FREE_ARGUMENTS, NULL}}},
    {.name = "tp",
     .lacks = "the names of slab caches",
     .lacking = BIT(CACHE),
     .attach = {{"tp_kmalloc", NULL, NULL, NULL},
                {"tp_cache_alloc", NULL, NULL, NULL},
                {"tp_kmalloc_node", NULL, NULL, "trace_event_raw_kmem_alloc_node"},
                {"tp_cache_alloc_node", NULL, NULL, "trace_event_raw_kmem_alloc_node"},
                {"tp_kfree", NULL, NULL, NULL},
                {"tp_cache_free", NULL, NULL, NULL}}},
    {.name = NULL},
};

static const char *const examples[] = {
    "allium sys kmem --duration 10s",
    "which calls in the kernel asked for objects, for how much, and how much of it was never asked for",
    "allium sys kmem --live --interval 5s --sort live --top 20",
    "what is held, every five seconds",
    "allium sys kmem --by stack --where 'allocated>1M' -- find / -xdev",
    "what one command costs the kernel, with stacks",
    NULL,
};

SYS_OBJECT_OF(kmem);

const struct sys_tool sys_kmem = {
    .name = "kmem",
    .summary = "kernel objects (slab) by the call, stack or process that asks for them",
    .examples = examples,
    SYS_OBJECT(kmem),
    .rungs = rungs,
    .columns = columns,
    .n_columns = sizeof(columns) / sizeof(*columns),
    .weight = TOTAL,
    .parts = parts,
    .options = options,
    .counted = counted,
    .key_bytes = sizeof(struct kmem_key),
    .value_bytes = sizeof(struct kmem_value),
    .user_stack_at = offsetof(struct kmem_key, user_stack),
    .add = add,
    .weigh = weigh,
    .row = row,
    .rest = rest,
    .ready = ready,
    .gather = gather,
    .release = release,
};
