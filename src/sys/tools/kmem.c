/* SPDX-License-Identifier: BSD-2-Clause */
/* `allium sys kmem`: the kernel's own objects, by who asks for them. */
#include "bpf/kmem.h"

#include <stddef.h>

#include "base/buf.h"
#include "model/table/table_merge.h"
#include "sys/resolver.h"
#include "sys/session.h"
#include "sys/slab_cache_names.h"
#include "sys/tools/slab_attach.h"

enum column {
    SITE,
    FUNCTION,
    SOURCE_FILE,
    DIRECTORY,
    PID,
    COMM,
    CONTAINER,
    TOTAL,
    SLACK,
    REQUESTED,
    ALLOCATIONS,
    FREES,
    LIVE,
    LIVE_OBJECTS,
    CACHE,
    GFP,
    HISTOGRAM,
    KERNEL_STACK,
    USER_STACK
};

#define BIT(column) (1ull << (column))

static const struct table_column columns[] = {
    [SITE] = {"call_site", TABLE_PLAIN, TABLE_TEXT},
    [FUNCTION] = {"function", TABLE_PLAIN, TABLE_TEXT},
    [SOURCE_FILE] = {"file", TABLE_PLAIN, TABLE_TEXT},
    [DIRECTORY] = {"directory", TABLE_PLAIN, TABLE_TEXT},
    [PID] = {"pid", TABLE_PLAIN, TABLE_WHOLE},
    [COMM] = {"comm", TABLE_PLAIN, TABLE_TEXT},
    [CONTAINER] = {SYS_CONTAINER, .drop_rank = 1},
    [TOTAL] = {"allocated", TABLE_BYTES, TABLE_WHOLE},
    [SLACK] = {"slack", TABLE_BYTES, TABLE_WHOLE},
    [REQUESTED] = {"requested", TABLE_BYTES, TABLE_WHOLE, .drop_rank = 3},
    [ALLOCATIONS] = {"allocations", TABLE_COUNT, TABLE_WHOLE},
    [FREES] = {"frees", TABLE_COUNT, TABLE_WHOLE},
    [LIVE] = {"live", TABLE_BYTES, TABLE_WHOLE, .hide_if_empty = true},
    [LIVE_OBJECTS] = {"live_objects", TABLE_COUNT, TABLE_WHOLE, .hide_if_empty = true, .drop_rank = 2},
    [CACHE] = {"cache", TABLE_PLAIN, TABLE_TEXT, .drop_rank = 4},
    [GFP] = {"gfp", TABLE_PLAIN, TABLE_TEXT, .drop_rank = 5},
    [HISTOGRAM] = {"requested_histogram", TABLE_BYTES, TABLE_HISTOGRAM},
    [KERNEL_STACK] = {"kernel_stack", TABLE_PLAIN, TABLE_LINES},
    [USER_STACK] = {"user_stack", TABLE_PLAIN, TABLE_LINES},
};

static void release(struct sys_session *s)
{
    slab_cache_names_free(s->own);
    s->own = NULL;
}

/* An object that is live takes no more room than its key reaches. */
static int ready(struct sys_session *s, struct error *e)
{
    struct bpf_map *live = bpf_object__find_map_by_name(s->object, "live");
    (void)e;
    s->own = s->own ? s->own : slab_cache_names_new();
    bpf_map__set_value_size(live, (uint32_t)offsetof(struct kmem_live, key) + s->settings.part->key_bytes);
    return 0;
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
    a->name = !a->name || !v->name ? a->name | v->name
              : a->name == v->name ? a->name
                                   : v->name | KMEM_AND_OTHERS;
    a->time_ns = v->time_ns > a->time_ns ? v->time_ns : a->time_ns;
}

static uint64_t weigh(const void *value)
{
    return ((const struct kmem_value *)value)->allocated_bytes;
}

static void name_row(struct sys_session *s, struct table *t, const void *data, uint64_t time_ns)
{
    const struct kmem_key *key = data;
    uint32_t parts = s->settings.config.parts;
    table_row(t);
    if (parts & KMEM_BY_FUNCTION)
        resolver_kernel_function(s, t, FUNCTION, key->call_site);
    else if (parts & KMEM_BY_FILE)
        resolver_kernel_file(s, t, SOURCE_FILE, key->call_site);
    else if (parts & KMEM_BY_DIRECTORY)
        resolver_kernel_directory(s, t, DIRECTORY, key->call_site);
    else if (parts & KMEM_BY_SITE)
        resolver_kernel_call(s, t, SITE, key->call_site);
    if (parts & KMEM_BY_PROCESS) {
        table_whole(t, PID, key->pid);
        table_text(t, COMM, key->comm);
    }
    if (parts & KMEM_BY_STACK) {
        resolver_kernel_stack(s, t, KERNEL_STACK, key->kernel_stack);
        resolver_user_stack(s, t, USER_STACK, key->user_stack, key->pid, time_ns);
    }
}

static void add_cache(struct sys_session *s, struct table *t, const struct kmem_value *v)
{
    const char *name = slab_cache_names_find(s->own, s, v->name & ~KMEM_AND_OTHERS);
    struct buf b = BUF_INIT;
    if (!name)
        return;
    buf_printf(&b, "%s%s", name, v->name & KMEM_AND_OTHERS ? " and others" : "");
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
    add_cache(s, t, v);
    if (v->allocations)
        resolver_gfp(s, t, GFP, v->gfp);
}

static void rest(struct sys_session *s, struct table *t)
{
    uint32_t parts = s->settings.config.parts;
    if (parts & (KMEM_BY_FUNCTION | KMEM_BY_FILE | KMEM_BY_DIRECTORY))
        table_merge(t, parts & KMEM_BY_FUNCTION ? FUNCTION : parts & KMEM_BY_FILE ? SOURCE_FILE : DIRECTORY);
}

static uint64_t live_bytes(const void *value)
{
    return ((const struct kmem_live *)value)->allocated_bytes;
}

static const struct sys_live live = {
    .option = "live-objects",
    .most = 1u << 19,
    .key_at = offsetof(struct kmem_live, key),
    .bytes = live_bytes,
    .bytes_column = LIVE,
    .objects_column = LIVE_OBJECTS,
    .first_column = TOTAL,
    .last_column = FREES,
    .name = name_row,
};

static const struct sys_part parts[] = {
    {"site", "the call that allocates, or frees", KMEM_BY_SITE, offsetof(struct kmem_key, kernel_stack),
     BIT(SITE) | BIT(GFP), .kernel_code = true},
    {"stack", "the whole stack, see --stacks", KMEM_BY_STACK, offsetof(struct kmem_key, comm),
     BIT(KERNEL_STACK) | BIT(USER_STACK) | BIT(GFP), SYS_STACK_KERNEL},
    {"process", "the process that was running", KMEM_BY_PROCESS, sizeof(struct kmem_key),
     BIT(PID) | BIT(COMM) | BIT(CONTAINER) | BIT(GFP), 0},
    {"function", "the function in which the call is", KMEM_BY_SITE | KMEM_BY_FUNCTION,
     offsetof(struct kmem_key, kernel_stack), BIT(FUNCTION), 0},
    {"file", "the file of the kernel's source in which the call is", KMEM_BY_SITE | KMEM_BY_FILE,
     offsetof(struct kmem_key, kernel_stack), BIT(SOURCE_FILE), .source = true},
    {"directory", "that file's directory", KMEM_BY_SITE | KMEM_BY_DIRECTORY,
     offsetof(struct kmem_key, kernel_stack), BIT(DIRECTORY), .source = true},
    {NULL, NULL, 0, 0, 0, 0},
};

static const struct sys_option options[] = {
    {"live", NULL, "follow each object until it is freed, and show live memory",
     1u << LIVE | 1u << LIVE_OBJECTS},
    {"live-objects", "N", "follow at most N objects (512K); implies --live", 1u << LIVE | 1u << LIVE_OBJECTS},
    {NULL},
};

static const struct sys_counted counted[] = {
    {KMEM_NULL_FREES, "free{s} of NULL, which {frees|free} nothing", "null_frees", false},
    {KMEM_REUSED, "live object{s} whose address returned: {its|their} free had no event",
     "frees_without_event", false},
    {KMEM_NAMES_FULL, "name{s} of {a cache|caches} had no room", "cache_names_lost", true},
    {KMEM_FREED_BEFORE, "free{s} of objects from before the start", "frees_of_unknown", false},
    {0, NULL, NULL, false},
};

static const struct sys_attach_method methods[] = {
    {.name = "tp_btf", .attach = SLAB_BY_POSITION("btf")},
    {.name = "raw_tp", .attach = SLAB_BY_POSITION("raw")},
    {.name = "tp", .lacks = "the names of slab caches", .lacking = BIT(CACHE), .attach = SLAB_BY_NAME},
    {.name = NULL},
};

static const char *const examples[] = {
    "allium sys kmem --duration 10s",
    "show which calls in the kernel allocate objects, the bytes, and the slack",
    "allium sys kmem --live --interval 5s --sort live --top 20",
    "show live memory every five seconds",
    "allium sys kmem --by stack --where 'allocated>1M' -- find / -xdev",
    "show the kernel allocations of one command, with stacks",
    NULL,
};

static const struct sys_measure measure = {.doc = "the requested bytes of each allocation",
                                           .column = HISTOGRAM};

SYS_OBJECT_OF(kmem);

const struct sys_tool sys_kmem = {
    .name = "kmem",
    .summary = "show kernel objects (slab) by the call, stack, process or source that allocates them",
    .examples = examples,
    SYS_OBJECT(kmem),
    .methods = methods,
    .columns = columns,
    .n_columns = sizeof(columns) / sizeof(*columns),
    .weight = TOTAL,
    .measure = &measure,
    .container = CONTAINER,
    .parts = parts,
    .options = options,
    .counted = counted,
    .key_bytes = sizeof(struct kmem_key),
    .value_bytes = sizeof(struct kmem_value),
    .user_stack_at = offsetof(struct kmem_key, user_stack),
    .add = add,
    .weigh = weigh,
    .row = row,
    .live = &live,
    .rest = rest,
    .ready = ready,
    .release = release,
};
