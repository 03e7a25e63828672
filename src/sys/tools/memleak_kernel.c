/* SPDX-License-Identifier: BSD-2-Clause */
/* `allium sys memleak` of the kernel: which code allocates what is never freed. */
#include "bpf/memleak_kernel.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/read_file.h"
#include "base/units.h"
#include "model/table/table_merge.h"
#include "sys/resolver.h"
#include "sys/session.h"
#include "sys/slab_cache_names.h"
#include "sys/tools/block_attach.h"
#include "sys/tools/memleak/memleak_kernel_site.h"
#include "sys/tools/memleak/memleak_kernel_sums.h"
#include "sys/tools/slab_attach.h"

enum column {
    KIND,
    SITE,
    CACHE,
    LIVE,
    LIVE_LOW,
    LIVE_HIGH,
    OBJECTS,
    OBJECTS_LOW,
    OBJECTS_HIGH,
    SAMPLES,
    OLDEST,
    NEWEST,
    GROWING,
    SLOPE,
    SLOPE_LOW,
    SLOPE_HIGH,
    UNSEEN_FREES,
    CAUTION,
    HISTOGRAM,
    KERNEL_STACK,
    USER_STACK
};

#define BIT(column) (1ull << (column))

static const struct table_column columns[] = {
    [KIND] = {"kind", TABLE_PLAIN, TABLE_TEXT},
    [SITE] = {"call_site", TABLE_PLAIN, TABLE_TEXT},
    [CACHE] = {"cache", TABLE_PLAIN, TABLE_TEXT, .drop_rank = 3},
    [LIVE] = {"live", TABLE_BYTES, TABLE_WHOLE},
    [LIVE_LOW] = {"live_low", TABLE_BYTES, TABLE_WHOLE, .hide_if_empty = true},
    [LIVE_HIGH] = {"live_high", TABLE_BYTES, TABLE_WHOLE, .hide_if_empty = true},
    [OBJECTS] = {"objects", TABLE_COUNT, TABLE_WHOLE},
    [OBJECTS_LOW] = {"objects_low", TABLE_COUNT, TABLE_WHOLE, .hide_if_empty = true, .drop_rank = 7},
    [OBJECTS_HIGH] = {"objects_high", TABLE_COUNT, TABLE_WHOLE, .hide_if_empty = true, .drop_rank = 7},
    [SAMPLES] = {"samples", TABLE_COUNT, TABLE_WHOLE, .hide_if_empty = true, .drop_rank = 6},
    [OLDEST] = {"oldest", TABLE_DURATION, TABLE_WHOLE},
    [NEWEST] = {"newest", TABLE_DURATION, TABLE_WHOLE, .drop_rank = 5},
    [GROWING] = {"growing", TABLE_PLAIN, TABLE_TEXT, .hide_if_empty = true},
    [SLOPE] = {"slope_per_hour", TABLE_BYTES, TABLE_SIGNED, "grows_per_hour", .hide_if_empty = true},
    [SLOPE_LOW] = {"slope_per_hour_low", TABLE_BYTES, TABLE_SIGNED, "from", .hide_if_empty = true,
                   .drop_rank = 4},
    [SLOPE_HIGH] = {"slope_per_hour_high", TABLE_BYTES, TABLE_SIGNED, "to", .hide_if_empty = true,
                    .drop_rank = 4},
    [UNSEEN_FREES] = {"unseen_frees", TABLE_COUNT, TABLE_WHOLE, .drop_rank = 2},
    [CAUTION] = {"caution", TABLE_PLAIN, TABLE_TEXT, .hide_if_empty = true, .drop_rank = 1},
    [HISTOGRAM] = {"age_histogram", TABLE_DURATION, TABLE_HISTOGRAM},
    [KERNEL_STACK] = {"kernel_stack", TABLE_PLAIN, TABLE_LINES},
    [USER_STACK] = {"user_stack", TABLE_PLAIN, TABLE_LINES},
};

/* By stack: about one object of kmalloc() in a hundred. A stack takes ten times as long as the rest of an event. */
#define STACK_PERIOD_BYTES 16384u

/* Of the kernel's caches, by number: whether frees by RCU go to lists of a CPU, of which no event tells. */
enum sheaves { SHEAVES_UNKNOWN, SHEAVES_NONE, SHEAVES_SOME };

struct own {
    uint64_t period_bytes, older_than_ns;
    struct memleak_sums *sums;
    struct memleak_sites *sites;
    struct cache_names *names;
    struct VEC(enum sheaves) sheaves;
};

static void release(struct sys_session *s)
{
    struct own *o = s->own;
    if (!o)
        return;
    memleak_sums_free(o->sums);
    memleak_sites_free(o->sites);
    slab_cache_names_free(o->names);
    vec_release(&o->sheaves);
    free(o);
    s->own = NULL;
}

/* ---- options ---- */

static const struct {
    const char *name;
    uint32_t kinds;
} kind_names[] = {{"slab", 1u << MEMLEAK_KERNEL_SLAB},
                  {"pages", 1u << MEMLEAK_KERNEL_PAGES},
                  {"movable", 1u << MEMLEAK_KERNEL_MOVABLE}};

static int parse_kinds(const char *text, uint32_t *kinds, struct error *e)
{
    const char *left = text;
    *kinds = 0;
    while (*left) {
        const size_t len = strcspn(left, ",");
        const uint32_t before = *kinds;
        for (size_t i = 0; i < sizeof(kind_names) / sizeof(*kind_names); i++)
            if (strlen(kind_names[i].name) == len && !strncmp(left, kind_names[i].name, len))
                *kinds |= kind_names[i].kinds;
        if (*kinds == before)
            break;
        left += len + (left[len] == ',');
    }
    return *left || !*kinds ? error_set(e, EINVAL, "invalid --only '%s': use slab, pages, movable", text) : 0;
}

static int parse_options(struct sys_session *s, struct own *o, struct error *e)
{
    const char *period = sys_option(s, "period"), *older = sys_option(s, "older-than"),
               *only = sys_option(s, "only");
    uint32_t *kinds = sys_variable(s, "kinds", sizeof(*kinds));
    o->period_bytes = s->settings.config.parts & MEMLEAK_KERNEL_BY_STACK ? STACK_PERIOD_BYTES : 1;
    if (period && (units_parse_size(period, &o->period_bytes) || !o->period_bytes ||
                   o->period_bytes > MEMLEAK_KERNEL_PERIOD_MOST))
        return error_set(e, EINVAL,
                         "invalid --period '%s': use 1, which follows every object, or a size up to 16M",
                         period);
    if (older && units_parse_duration(older, &o->older_than_ns))
        return error_set(e, EINVAL, "invalid --older-than '%s': use a duration such as 30s", older);
    return only ? parse_kinds(only, kinds, e) : 0;
}

static int ready(struct sys_session *s, struct error *e)
{
    struct own *o = s->own ? s->own : mem_alloc(sizeof(*o));
    s->own = o;
    int error = parse_options(s, o, e);
    if (error)
        return error;
    *(uint64_t *)sys_variable(s, "period_bytes", sizeof(uint64_t)) = o->period_bytes;
    *(uint64_t *)sys_variable(s, "parts_of_byte", sizeof(uint64_t)) = (UINT64_C(1) << 40) / o->period_bytes;
    *(uint64_t *)sys_variable(s, "page_bytes", sizeof(uint64_t)) = (uint64_t)sysconf(_SC_PAGESIZE);
    slab_attach_ready(s);
    if (!o->sums) {
        o->sums = memleak_sums_new(o->period_bytes, o->older_than_ns);
        o->sites = memleak_sites_new();
        o->names = slab_cache_names_new();
    }
    return block_attach_ready(s, e, "use --only slab");
}

/* ---- rows ---- */

/*
 * Blocks are by site as objects are: the call is the first one in the stack that is not in the page allocator. A stack
 * that was lost has no names, so all of them are one row.
 */
static void merge_key(struct sys_session *s, void *data)
{
    const uint32_t parts = s->settings.config.parts;
    struct memleak_kernel_key *key = data;
    const struct own *o = s->own;
    if (!(parts & MEMLEAK_KERNEL_BY_CACHE))
        key->cache = 0;
    if (parts & MEMLEAK_KERNEL_BY_SITE && key->kind != MEMLEAK_KERNEL_SLAB) {
        key->call_site = memleak_sites_find(o->sites, s, key->kernel_stack);
        key->kernel_stack = key->user_stack = SYS_NO_STACK;
    }
    if (parts & MEMLEAK_KERNEL_BY_STACK && key->user_stack < 0)
        key->pid = 0;
}

/* Rows of the kernel's table are frees without an event. Their sum is kept: they are shown with what is live. */
static void add(void *sum, const void *value)
{
    struct memleak_kernel_value *a = sum;
    const struct memleak_kernel_value *v = value;
    a->unseen_frees += v->unseen_frees;
}

static void row(struct sys_session *s, struct table *t, const void *key, const void *sum)
{
    const struct own *o = s->own;
    const struct memleak_kernel_value *v = sum;
    (void)t;
    memleak_sums_add_unseen(o->sums, s, key, v->unseen_frees);
}

static bool counts(struct sys_session *s, const void *value)
{
    const struct own *o = s->own;
    return memleak_sums_count(o->sums, s, value);
}

static void add_live(struct sys_session *s, const void *key, void *sum, uint64_t address, const void *value)
{
    const struct own *o = s->own;
    memleak_sums_add(o->sums, s, key, sum, address, value);
}

static void gather(struct sys_session *s)
{
    const struct own *o = s->own;
    memleak_sums_end(o->sums, s);
}

static void name_row(struct sys_session *s, struct table *t, const void *data, uint64_t time_ns)
{
    static const char *const kinds[] = {[MEMLEAK_KERNEL_SLAB] = "slab",
                                        [MEMLEAK_KERNEL_PAGES] = "pages",
                                        [MEMLEAK_KERNEL_MOVABLE] = "movable pages"};
    const struct memleak_kernel_key *key = data;
    const uint32_t parts = s->settings.config.parts;
    table_row(t);
    table_text(t, KIND, kinds[key->kind % MEMLEAK_KERNEL_KINDS]);
    if (parts & MEMLEAK_KERNEL_BY_SITE && key->call_site)
        resolver_kernel_call(s, t, SITE, key->call_site);
    if (parts & MEMLEAK_KERNEL_BY_STACK) {
        resolver_kernel_stack(s, t, KERNEL_STACK, key->kernel_stack);
        resolver_user_stack(s, t, USER_STACK, key->user_stack, key->pid, time_ns);
    }
}

static const char *cache_name(struct sys_session *s, uint32_t cache)
{
    const struct own *o = s->own;
    return cache == MEMLEAK_KERNEL_LARGE ? "(pages)" : slab_cache_names_find(o->names, s, cache);
}

/* Frees by kfree_rcu() of a cache with sheaves (since 6.18) go to a list of the CPU, without an event. */
static bool has_sheaves(struct sys_session *s, uint32_t cache)
{
    struct own *o = s->own;
    const char *name = cache < MEMLEAK_KERNEL_CACHES_MOST ? cache_name(s, cache) : NULL;
    if (!name)
        return false;
    while (o->sheaves.len <= cache)
        *vec_push(&o->sheaves) = SHEAVES_UNKNOWN;
    if (o->sheaves.at[cache] == SHEAVES_UNKNOWN) {
        struct buf path = BUF_INIT, text = BUF_INIT;
        buf_printf(&path, "/sys/kernel/slab/%s/sheaf_capacity", name);
        const bool some = !file_read(buf_str(&path), 64, &text) && atoi(buf_str(&text)) > 0;
        o->sheaves.at[cache] = some ? SHEAVES_SOME : SHEAVES_NONE;
        buf_release(&path);
        buf_release(&text);
    }
    return o->sheaves.at[cache] == SHEAVES_SOME;
}

/* Since the start. */
static uint64_t unseen_of_cache(const struct sys_session *s, uint32_t cache)
{
    uint64_t frees = 0;
    bpf_map_lookup_elem(sys_map(s, "unseen_frees"), &cache, &frees);
    return frees;
}

static void show_cautions(struct sys_session *s, struct table *t, const struct memleak_kernel_key *key,
                          const struct memleak_sum *sum)
{
    const struct own *o = s->own;
    const uint64_t unseen = memleak_sums_unseen(o->sums, s, key);
    const bool slab = key->kind == MEMLEAK_KERNEL_SLAB;
    table_whole(t, UNSEEN_FREES, unseen);
    if (unseen)
        table_text(t, CAUTION, "frees without event");
    else if (slab && unseen_of_cache(s, sum->cache))
        table_text(t, CAUTION, "cache has frees without event");
    else if (slab && has_sheaves(s, sum->cache))
        table_text(t, CAUTION, "cache has sheaves");
    else
        return;
    table_mark_unsure(t, LIVE);
    table_mark_unsure(t, OBJECTS);
}

static void show_cache(struct sys_session *s, struct table *t, const struct memleak_sum *sum)
{
    const char *name = sum->cache ? cache_name(s, sum->cache) : NULL;
    struct buf b = BUF_INIT;
    if (!name)
        return;
    buf_printf(&b, "%s%s", name, sum->other_caches ? TABLE_MERGE_OTHERS : "");
    table_text(t, CACHE, buf_str(&b));
    buf_release(&b);
}

static void show_estimates(const struct own *o, struct table *t, const struct memleak_sum *sum)
{
    const struct interval bytes = estimate_interval(&sum->bytes), objects = estimate_interval(&sum->objects);
    table_whole(t, LIVE, (uint64_t)llround(sum->bytes.value));
    table_whole(t, OBJECTS, (uint64_t)llround(sum->objects.value));
    if (o->period_bytes <= 1)
        return;
    table_whole(t, SAMPLES, sum->bytes.samples);
    table_whole(t, LIVE_LOW, (uint64_t)floor(bytes.low));
    table_whole(t, LIVE_HIGH, (uint64_t)ceil(bytes.high));
    table_whole(t, OBJECTS_LOW, (uint64_t)floor(objects.low));
    table_whole(t, OBJECTS_HIGH, (uint64_t)ceil(objects.high));
}

static void show_growth(const struct own *o, struct table *t, const struct memleak_sum *sum)
{
    const struct growth g = memleak_sums_growth(o->sums, sum);
    if (g.snapshots < 2)
        return;
    table_text(t, GROWING, g.lasting_ns ? "lasting" : g.growing ? "yes" : g.so_far ? "so far" : "no");
    table_signed(t, SLOPE, llround(g.bytes_per_hour));
    if (o->period_bytes <= 1)
        return;
    table_signed(t, SLOPE_LOW, (int64_t)floor(g.interval.low));
    table_signed(t, SLOPE_HIGH, (int64_t)ceil(g.interval.high));
}

static void show(struct sys_session *s, struct table *t, const void *key, const void *data)
{
    const struct memleak_sum *sum = data;
    const struct own *o = s->own;
    uint64_t slots[SYS_SLOTS];
    show_cache(s, t, sum);
    show_estimates(o, t, sum);
    table_whole(t, OLDEST, s->since_ns > sum->oldest_ns ? s->since_ns - sum->oldest_ns : 0);
    table_whole(t, NEWEST, s->since_ns > sum->newest_ns ? s->since_ns - sum->newest_ns : 0);
    show_growth(o, t, sum);
    show_cautions(s, t, key, sum);
    for (int i = 0; i < SYS_SLOTS; i++)
        slots[i] = (uint64_t)llround(sum->ages[i]);
    if (s->settings.config.histograms)
        table_histogram(t, HISTOGRAM, slots, SYS_SLOTS);
}

static const struct sys_live live = {
    .option = "live-objects",
    .most = 1u << 19,
    .always = true,
    .key_at = offsetof(struct memleak_kernel_live, key),
    .name = name_row,
    .add = add_live,
    .show = show,
    .sum_bytes = sizeof(struct memleak_sum),
    .counts = counts,
};

static const struct sys_part parts[] = {
    {"site", "the call that allocates", MEMLEAK_KERNEL_BY_SITE, offsetof(struct memleak_kernel_key, pid),
     BIT(SITE) | BIT(CACHE), SYS_STACK_KERNEL, .kernel_code = true, .names = BIT(KIND) | BIT(SITE)},
    {"stack", "the whole stack that allocates, sampled by bytes; see --period and --stacks",
     MEMLEAK_KERNEL_BY_STACK, sizeof(struct memleak_kernel_key),
     BIT(KERNEL_STACK) | BIT(USER_STACK) | BIT(CACHE), SYS_STACK_KERNEL,
     .names = BIT(KIND) | BIT(KERNEL_STACK) | BIT(USER_STACK)},
    {"cache", "the slab cache", MEMLEAK_KERNEL_BY_CACHE, offsetof(struct memleak_kernel_key, kernel_stack),
     BIT(CACHE), 0, .names = BIT(KIND) | BIT(CACHE)},
    {NULL, NULL, 0, 0, 0, 0},
};

static const struct sys_option options[] = {
    {"kernel", NULL, "follow the kernel's memory, also with --pid, --comm, --cgroup or a command", 0},
    {"only", "KINDS", "follow only these kinds of memory: slab, pages, movable, or some with commas between",
     0},
    {"older-than", "DURATION", "show only what was allocated at least DURATION ago", 0},
    {"period", "BYTES",
     "sample an object for each BYTES allocated; 1: follow every object (default: 16K by stack, else 1)", 0},
    {"live-objects", "N", "follow at most N objects (512K)", 0},
    {NULL},
};

static const struct sys_counted counted[] = {
    {MEMLEAK_KERNEL_UNSEEN_FREES,
     "object{s} whose address was handed out again: {its|their} free had no event", "frees_without_event",
     false},
    {MEMLEAK_KERNEL_UNSEEN_PAGES, "block{s} whose pages were handed out again: {its|their} free had no event",
     "frees_of_pages_without_event", false},
    {MEMLEAK_KERNEL_FREED_BEFORE, "free{s} of objects from before the start", "frees_of_unknown", false},
    {MEMLEAK_KERNEL_PAGES_BEFORE,
     "freed page{s} whose allocation was not followed: from before the start, or without an event",
     "freed_pages_of_unknown", false},
    {MEMLEAK_KERNEL_FREED_IN_PARTS, "free{s} of a part of a block", "frees_in_parts", false},
    {MEMLEAK_KERNEL_NAMES_FULL, "name{s} of {a cache|caches} had no room", "cache_names_lost", true},
    {MEMLEAK_KERNEL_FREES_LOST, "free{s} lost: the map of live objects was in use", "lost_frees", true},
    {MEMLEAK_KERNEL_SAMPLED, "allocation{s} sampled", "sampled_allocations", false},
    {0, NULL, NULL, false},
};

static const struct sys_attach_method methods[] = {
    {.name = "tp_btf", .attach = SYS_ATTACH(SLAB_PROGRAMS_BY_POSITION("btf"), BLOCK_PROGRAMS_BY_POSITION)},
    {.name = "raw_tp", .attach = SYS_ATTACH(SLAB_PROGRAMS_BY_POSITION("raw"), BLOCK_PROGRAMS_BY_POSITION)},
    {.name = "tp", .attach = SYS_ATTACH(SLAB_PROGRAMS_BY_NAME, BLOCK_PROGRAMS_BY_NAME)},
    {.name = NULL},
};

static const char *const examples[] = {
    "allium sys memleak --interval 10s --older-than 30s",
    "show every ten seconds what the kernel allocated and has not freed for half a minute",
    "allium sys memleak --by stack --only slab --where 'growing:yes or growing:lasting'",
    "show the stacks whose objects grow",
    "allium sys memleak --kernel --duration 10s -- mount /mnt",
    "show what a command left in the kernel",
    NULL,
};

static const struct sys_measure measure = {.doc = "the ages of live objects", .column = HISTOGRAM};

static const char *const questions[] = {
    "Which code of the kernel allocates memory and does not free it?",
    "What of it is old, and what grows? (--older-than)",
    "Which caches hold it? (--by cache)",
    NULL,
};

static const struct sys_explanation explanation = {
    .questions = questions,
    .event = "an allocation and its free",
    .event_ns = 430,
    .measured = "rows by site, exact; tp_btf, Linux 6.18 in a busy virtual machine",
    .unseen = "memory that was allocated before the tool began, and frees without an event, which are "
              "counted when the address is used again",
};

SYS_OBJECT_OF(memleak_kernel);

const struct sys_tool sys_memleak_kernel = {
    .name = "memleak_kernel",
    .summary = "show which code of the kernel allocates what is not freed, with ages and growth",
    .examples = examples,
    .explanation = &explanation,
    SYS_OBJECT(memleak_kernel),
    .methods = methods,
    .columns = columns,
    .n_columns = sizeof(columns) / sizeof(*columns),
    .weight = LIVE,
    .measure = &measure,
    .interval_ns = 5000000000u,
    .parts = parts,
    .options = options,
    .counted = counted,
    .key_bytes = sizeof(struct memleak_kernel_key),
    .value_bytes = sizeof(struct memleak_kernel_value),
    .merge_key = merge_key,
    .add = add,
    .row = row,
    .live = &live,
    .gather = gather,
    .ready = ready,
    .release = release,
};
