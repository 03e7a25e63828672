/* SPDX-License-Identifier: BSD-2-Clause */
/* `allium sys kmem`: the kernel's own objects, by the code that allocates them. */
#include "bpf/kmem.h"

#include <stddef.h>
#include <string.h>

#include "base/buf.h"
#include "collect/kernel/slabinfo.h"
#include "model/table/table_merge.h"
#include "symbol/symbol_names.h"
#include "sys/record/kernel_capture.h"
#include "sys/resolver.h"
#include "sys/session.h"
#include "sys/slab_cache_names.h"
#include "sys/tools/slab_attach.h"

enum column {
    SITE,
    FUNCTION,
    SOURCE_FILE,
    DIRECTORY,
    SOURCE_LINE,
    MODULE,
    FREE_SITE,
    CGROUP,
    PID,
    COMM,
    CONTAINER,
    TOTAL,
    SLACK,
    REQUESTED,
    ALLOCATIONS,
    FREES,
    FREED,
    LIVE,
    LIVE_OBJECTS,
    SETTLED,
    AT_PEAK,
    OLDEST,
    CROSS_CPU,
    CROSS_NODE,
    CACHE,
    ALIASES,
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
    [SOURCE_LINE] = {"line", TABLE_PLAIN, TABLE_TEXT},
    [MODULE] = {"module", TABLE_PLAIN, TABLE_TEXT},
    [FREE_SITE] = {"free_site", TABLE_PLAIN, TABLE_TEXT},
    [CGROUP] = {"cgroup", TABLE_PLAIN, TABLE_TEXT},
    [PID] = {"pid", TABLE_PLAIN, TABLE_WHOLE},
    [COMM] = {"comm", TABLE_PLAIN, TABLE_TEXT},
    [CONTAINER] = {SYS_CONTAINER, .drop_rank = 1},
    [TOTAL] = {"allocated", TABLE_BYTES, TABLE_WHOLE},
    [SLACK] = {"slack", TABLE_BYTES, TABLE_WHOLE, .drop_rank = 3},
    [REQUESTED] = {"requested", TABLE_BYTES, TABLE_WHOLE, .drop_rank = 4},
    [ALLOCATIONS] = {"allocations", TABLE_COUNT, TABLE_WHOLE},
    [FREES] = {"frees", TABLE_COUNT, TABLE_WHOLE},
    [FREED] = {"freed", TABLE_BYTES, TABLE_WHOLE, .drop_rank = 4},
    [LIVE] = {"live", TABLE_BYTES, TABLE_WHOLE, .hide_if_empty = true},
    [LIVE_OBJECTS] = {"live_objects", TABLE_COUNT, TABLE_WHOLE, .hide_if_empty = true, .drop_rank = 3},
    [SETTLED] = {"settled", TABLE_BYTES, TABLE_WHOLE, .hide_if_empty = true, .drop_rank = 5},
    [AT_PEAK] = {"at_peak", TABLE_BYTES, TABLE_WHOLE, .drop_rank = 4},
    [OLDEST] = {"oldest", TABLE_DURATION, TABLE_WHOLE, .drop_rank = 6, .merge_largest = true},
    [CROSS_CPU] = {"cross_cpu_frees", TABLE_COUNT, TABLE_WHOLE},
    [CROSS_NODE] = {"cross_node_frees", TABLE_COUNT, TABLE_WHOLE, .drop_rank = 1},
    [CACHE] = {"cache", TABLE_PLAIN, TABLE_TEXT, .drop_rank = 2},
    [ALIASES] = {"aliases", TABLE_PLAIN, TABLE_TEXT, .hide_if_empty = true, .drop_rank = 7,
                 .merge_largest = true},
    [GFP] = {"gfp", TABLE_PLAIN, TABLE_TEXT, .drop_rank = 5, .merge_words = '|'},
    [HISTOGRAM] = {"requested_histogram", TABLE_BYTES, TABLE_HISTOGRAM},
    [KERNEL_STACK] = {"kernel_stack", TABLE_PLAIN, TABLE_LINES},
    [USER_STACK] = {"user_stack", TABLE_PLAIN, TABLE_LINES},
};

struct own {
    struct cache_names *names;
    struct slab_caches now; /* for their aliases */
};

static void release(struct sys_session *s)
{
    struct own *o = s->own;
    if (!o)
        return;
    slab_cache_names_free(o->names);
    slab_release(&o->now);
    free(o);
    s->own = NULL;
}

/* An object that is live takes no more room than its key reaches. */
static int ready(struct sys_session *s, struct error *e)
{
    struct bpf_map *live = bpf_object__find_map_by_name(s->object, "live");
    bool *free_stacks = sys_variable(s, "free_stacks", sizeof(*free_stacks));
    (void)e;
    *free_stacks = sys_option(s, "frees") != NULL;
    bpf_map__set_value_size(live, (uint32_t)offsetof(struct kmem_live, key) + s->settings.part->key_bytes);
    slab_attach_ready(s);
    if (s->own)
        return 0;
    struct own *o = s->own = mem_alloc(sizeof(*o));
    o->names = slab_cache_names_new();
    return 0;
}

/*
 * Rows are merged by the names of functions, files and directories later, and need to tell caches apart until then.
 * The process is in the key for the names of its stack. A stack that was lost has no names, so all of them are one row.
 */
static void merge_key(struct sys_session *s, void *data)
{
    const uint32_t keep = KMEM_BY_CACHE | KMEM_BY_FUNCTION | KMEM_BY_FILE | KMEM_BY_DIRECTORY;
    struct kmem_key *key = data;
    if (!(s->settings.config.parts & keep))
        key->cache = 0;
    if (s->settings.config.parts & KMEM_BY_STACK && key->user_stack < 0)
        key->pid = 0;
}

/* The cache with the most bytes is named. */
static void add_name(struct kmem_value *a, const struct kmem_value *v)
{
    const uint64_t bytes = v->named_bytes ? v->named_bytes : v->allocated_bytes + v->freed_bytes;
    const uint32_t others = (a->name | v->name) & KMEM_AND_OTHERS;
    const uint32_t had = a->name & ~KMEM_AND_OTHERS, name = v->name & ~KMEM_AND_OTHERS;
    if (!had || had == name) {
        a->name = name | others;
        a->named_bytes += bytes;
    } else if (name) {
        a->name = (bytes > a->named_bytes ? name : had) | KMEM_AND_OTHERS;
        a->named_bytes = bytes > a->named_bytes ? bytes : a->named_bytes;
    }
}

static void add(void *sum, const void *value)
{
    struct kmem_value *a = sum;
    const struct kmem_value *v = value;
    add_name(a, v);
    a->allocations += v->allocations;
    a->frees += v->frees;
    a->requested_bytes += v->requested_bytes;
    a->allocated_bytes += v->allocated_bytes;
    a->freed_bytes += v->freed_bytes;
    a->frees_of_pages += v->frees_of_pages;
    a->gfp |= v->gfp;
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
    if (parts & KMEM_BY_PROCESS)
        table_whole(t, PID, key->pid);
    if (parts & (KMEM_BY_PROCESS | KMEM_BY_COMM))
        table_text(t, COMM, key->comm);
    if (parts & KMEM_BY_STACK) {
        resolver_kernel_stack(s, t, KERNEL_STACK, key->kernel_stack);
        resolver_user_stack(s, t, USER_STACK, key->user_stack, key->pid, time_ns);
    }
}

static void add_cache(struct sys_session *s, struct table *t, const struct kmem_value *v)
{
    const struct own *o = s->own;
    const uint32_t number = v->name & ~KMEM_AND_OTHERS;
    const char *name = number == KMEM_PAGES ? "(pages)" : slab_cache_names_find(o->names, s, number);
    struct buf b = BUF_INIT;
    if (!name)
        return;
    buf_printf(&b, "%s%s", name, v->name & KMEM_AND_OTHERS ? TABLE_MERGE_OTHERS : "");
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
    (v->frees_of_pages ? table_at_least : table_whole)(t, FREED, v->freed_bytes);
    add_cache(s, t, v);
    if (v->allocations)
        resolver_gfp(s, t, GFP, v->gfp);
}

static void set_text(struct table *t, uint32_t row, uint32_t column, const char *text, size_t len)
{
    struct buf b = BUF_INIT;
    buf_add(&b, text, len);
    *table_cell(t, row, column) = (struct table_value){.known = true, .text = mem_strdup(buf_str(&b))};
    buf_release(&b);
}

/* Caches that the kernel merged are known to its events by one name. */
static void add_aliases(struct own *o, struct table *t, uint32_t row)
{
    const struct table_value *cache = table_at(t, row, CACHE);
    struct buf name = BUF_INIT, aliases = BUF_INIT;
    if (cache->known)
        buf_add(&name, cache->text, table_merge_name_len(cache->text));
    const struct slab_cache *c = name.len ? slab_find(&o->now, buf_str(&name)) : NULL;
    for (size_t i = 0; c && i < c->aliases_len; i++)
        buf_printf(&aliases, "%s%s", i ? " " : "", c->aliases[i]);
    if (aliases.len)
        set_text(t, row, ALIASES, buf_str(&aliases), aliases.len);
    buf_release(&name);
    buf_release(&aliases);
}

/* The rows that have the most bytes come first, since the first one of rows of equal weight names the merged one. */
static void merge_by(struct table *t, uint64_t by)
{
    table_sort(t, FREED, TABLE_MOST_FIRST);
    table_merge(t, by, TOTAL);
}

static void rest(struct sys_session *s, struct table *t)
{
    const uint32_t parts = s->settings.config.parts;
    struct own *o = s->own;
    struct error unread; /* then there are no aliases */
    if (parts & (KMEM_BY_FUNCTION | KMEM_BY_FILE | KMEM_BY_DIRECTORY)) {
        const uint64_t named = BIT(parts & KMEM_BY_FUNCTION ? FUNCTION
                                   : parts & KMEM_BY_FILE   ? SOURCE_FILE
                                                            : DIRECTORY);
        merge_by(t, named | BIT(CACHE));
        merge_by(t, named);
    }
    if (parts & KMEM_BY_CACHE) /* a cache that was made anew has another address */
        merge_by(t, BIT(CACHE));
    table_sort(t, FREED, TABLE_MOST_FIRST); /* the order of rows that are equal in the requested column */
    slab_release(&o->now);
    o->now = (struct slab_caches){0};
    if (parts & KMEM_TELL_CACHES && table_rows(t) && !slab_read(&o->now, "", &unread))
        for (uint32_t i = 0; i < table_rows(t); i++)
            add_aliases(o, t, i);
}

/*
 * "ext4_alloc_inode+0x1f [ext4] (fs/ext4/super.c:1359)" is in the function "ext4_alloc_inode [ext4]", "fs/pipe.c" in
 * the directory "fs".
 */
static void name_again(struct table *t, uint32_t row)
{
    const struct table_value *site = table_at(t, row, SITE), *file = table_at(t, row, SOURCE_FILE);
    if (site->known) {
        struct symbol_names names = {.kept = {0}};
        struct buf raw = BUF_INIT, b = BUF_INIT;
        const char *module = strstr(site->text, " [");
        const bool is_code = strstr(site->text, "+0x") != NULL; /* else "allium itself", "[unknown]" */
        buf_add(&raw, site->text, is_code ? strcspn(site->text, "+ ") : strlen(site->text));
        const char *plain = symbol_names_function(&names, buf_str(&raw));
        buf_addstr(&b, plain ? plain : buf_str(&raw));
        if (module)
            buf_add(&b, module, strcspn(module, "]") + (strchr(module, ']') != NULL));
        buf_addstr(&b, strstr(site->text, KERNEL_CAPTURE_HELPER) ? KERNEL_CAPTURE_HELPER : "");
        if (!table_at(t, row, FUNCTION)->known) /* else the source tells: inlined functions have no symbol */
            set_text(t, row, FUNCTION, buf_str(&b), b.len);
        if (is_code)
            set_text(t, row, MODULE, module ? module + 1 : "vmlinux",
                     module ? strcspn(module + 1, "]") + 1 : strlen("vmlinux"));
        buf_release(&raw);
        buf_release(&b);
        symbol_names_release(&names);
    }
    if (file->known) {
        const char *slash = strrchr(file->text, '/');
        bool unknown = !strncmp(file->text, "[unknown] ", strlen("[unknown] "));
        size_t len = unknown ? strlen(file->text) : slash ? (size_t)(slash - file->text) : 1;
        set_text(t, row, DIRECTORY, unknown || slash ? file->text : ".", len);
    }
}

static uint64_t live_bytes(const void *value)
{
    return ((const struct kmem_live *)value)->allocated_bytes;
}

static void add_live(struct sys_session *s, const void *key, void *sum, uint64_t address, const void *value)
{
    const struct kmem_live *object = value;
    (void)s;
    (void)key;
    (void)address;
    add_name(sum, &(struct kmem_value){.name = object->name, .allocated_bytes = object->allocated_bytes});
}

static void show_cache(struct sys_session *s, struct table *t, const void *key, const void *sum)
{
    (void)key;
    add_cache(s, t, sum);
}

static const struct sys_live live = {
    .option = "live-objects",
    .most = 1u << 19,
    .key_at = offsetof(struct kmem_live, key),
    .bytes = live_bytes,
    .bytes_column = LIVE,
    .objects_column = LIVE_OBJECTS,
    .first_column = TOTAL,
    .last_column = FREED,
    .name = name_row,
    .add = add_live,
    .show = show_cache,
};

#define CACHES   (BIT(CACHE) | BIT(ALIASES) | BIT(GFP))
#define OF_PAIRS (BIT(FREE_SITE) | BIT(CROSS_CPU) | BIT(CROSS_NODE))

static const struct sys_part parts[] = {
    {"site", "the call that allocates, or frees", KMEM_BY_SITE, offsetof(struct kmem_key, kernel_stack),
     BIT(SITE) | CACHES, .kernel_code = true, .names = BIT(SITE)},
    {"stack", "the whole stack that allocates, with --frees also that which frees; see --stacks",
     KMEM_BY_STACK, offsetof(struct kmem_key, comm), BIT(KERNEL_STACK) | BIT(USER_STACK) | CACHES,
     SYS_STACK_KERNEL, .option = "frees", .option_columns = BIT(FREES) | BIT(FREED),
     .names = BIT(KERNEL_STACK) | BIT(USER_STACK)},
    {"process", "the process that was running", KMEM_BY_PROCESS, sizeof(struct kmem_key),
     BIT(PID) | BIT(COMM) | BIT(CONTAINER) | BIT(GFP), 0, .names = BIT(PID) | BIT(COMM),
     .rows = "kmem_process"},
    {"comm", "the name of that process", KMEM_BY_COMM, sizeof(struct kmem_key), BIT(COMM) | BIT(GFP), 0,
     .names = BIT(COMM)},
    {"cache", "the slab cache", KMEM_BY_CACHE, offsetof(struct kmem_key, call_site), CACHES, 0,
     .names = BIT(CACHE)},
    {"function", "the function in which the call is", KMEM_BY_SITE | KMEM_BY_FUNCTION,
     offsetof(struct kmem_key, kernel_stack), BIT(FUNCTION) | BIT(CACHE) | BIT(ALIASES), 0,
     .names = BIT(FUNCTION), .made_of = BIT(SITE)},
    {"file", "the file of the kernel's source in which the call is", KMEM_BY_SITE | KMEM_BY_FILE,
     offsetof(struct kmem_key, kernel_stack), BIT(SOURCE_FILE) | BIT(CACHE) | BIT(ALIASES), .source = true,
     .names = BIT(SOURCE_FILE)},
    {"directory", "that file's directory", KMEM_BY_SITE | KMEM_BY_DIRECTORY,
     offsetof(struct kmem_key, kernel_stack), BIT(DIRECTORY) | BIT(CACHE) | BIT(ALIASES), .source = true,
     .names = BIT(DIRECTORY), .made_of = BIT(SOURCE_FILE)},
    {"line", "the line of the kernel's source", 0, 0, BIT(SOURCE_LINE) | CACHES, .source = true,
     .recorded = true, .names = BIT(SOURCE_LINE)},
    {"module", "the kernel or its module", 0, 0, BIT(MODULE), .recorded = true, .names = BIT(MODULE),
     .made_of = BIT(SITE)},
    {"gfp", "the flags of the allocation", 0, 0, BIT(GFP), .recorded = true, .names = BIT(GFP)},
    {"cgroup", "the process's control group", 0, 0, BIT(CGROUP) | BIT(GFP), .recorded = true,
     .names = BIT(CGROUP), .rows = "kmem_process"},
    {"pair", "the call that allocates and the one that frees", 0, 0, BIT(SITE) | BIT(CACHE) | OF_PAIRS,
     .recorded = true, .names = BIT(SITE) | BIT(FREE_SITE) | BIT(CACHE), .rows = "kmem_pair",
     .weight = FREED},
    {NULL, NULL, 0, 0, 0, 0},
};

static const struct sys_charge charge = {SITE,  TOTAL, SLACK, REQUESTED,   ALLOCATIONS,
                                         FREES, FREED, LIVE,  LIVE_OBJECTS};

static const struct sys_option options[] = {
    {"live", NULL, "follow each object until it is freed, and show live memory",
     1u << LIVE | 1u << LIVE_OBJECTS},
    {"live-objects", "N", "follow at most N objects (512K); implies --live", 1u << LIVE | 1u << LIVE_OBJECTS},
    {"frees", NULL,
     "take the stack of each free, too, with --by stack: a free costs as much as an allocation then", 0},
    {NULL},
};

static const struct sys_counted counted[] = {
    {KMEM_NULL_FREES, "free{s} of NULL, which {frees|free} nothing", "null_frees", false},
    {KMEM_REUSED, "live object{s} whose address returned: {its|their} free had no event",
     "frees_without_event", false},
    {KMEM_NAMES_FULL, "name{s} of {a cache|caches} had no room", "cache_names_lost", true},
    {KMEM_FREED_BEFORE, "free{s} of objects from before the start", "frees_of_unknown", false},
    {KMEM_FREED_AFTER_LOSS, "free{s} of objects whose allocation may be among the lost events",
     "frees_after_loss", false},
    {KMEM_FREED_UNEXPLAINED,
     "free{s} of objects that came without an event (in bulk), where others had been freed",
     "frees_unexplained", false},
    {KMEM_SETTLED, "live object{s} {was|were} freed in the time of --settle after the end", "settled_objects",
     false},
    {0, NULL, NULL, false},
};

static const struct sys_attach_method methods[] = {
    {.name = "tp_btf", .attach = SLAB_BY_POSITION("btf")},
    {.name = "raw_tp", .attach = SLAB_BY_POSITION("raw")},
    {.name = "tp", .attach = SLAB_BY_NAME},
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

static const char *const questions[] = {
    "Which code of the kernel allocates most objects, and how many bytes of them are slack?",
    "Which code allocated what the kernel holds and has not freed? (--live)",
    "For which process does the kernel allocate? (--by process)",
    "Which part of the kernel's source allocates? (--by directory)",
    NULL,
};

static const struct sys_explanation explanation = {
    .questions = questions,
    .event = "an allocation or a free",
    .event_ns = 130,
    .measured = "rows by site; tp_btf, Linux 6.18 in a virtual machine",
    .unseen = "frees in bulk or after an RCU grace period, memory of single CPUs, and pages that are no "
              "objects (see allium sys kpages)",
};

SYS_OBJECT_OF(kmem);

const struct sys_tool sys_kmem = {
    .name = "kmem",
    .summary = "show kernel objects (slab) by the call, stack, process or source that allocates them",
    .examples = examples,
    .explanation = &explanation,
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
    .merge_key = merge_key,
    .add = add,
    .weigh = weigh,
    .row = row,
    .live = &live,
    .recorded =
        BIT(SOURCE_LINE) | BIT(MODULE) | BIT(CGROUP) | BIT(SETTLED) | BIT(AT_PEAK) | BIT(OLDEST) | OF_PAIRS,
    .charge = &charge,
    .reads_traces = true,
    .marks_helpers = true,
    .directory = DIRECTORY,
    .name_again = name_again,
    .rest = rest,
    .ready = ready,
    .release = release,
};
