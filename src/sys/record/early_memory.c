/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/record/early_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/kernel/proc_text.h"
#include "collect/kernel/slabinfo.h"

/* The kernel allocates the pages of a trace buffer there, with an object of this cache for each. */
#define PAGES_FUNCTION "__rb_allocate_pages"
#define PAGES_CACHE    "kmalloc-64"

/* The cache of kmalloc() that objects without a cache have in accounts. */
#define KMALLOC_PREFIX "(kmalloc "
#define PAGES_NAME     "(pages)"

void early_memory_take_free(void *arg, const struct kmem_event *e)
{
    struct early_memory *m = arg;
    bool added;
    size_t at = map_put(&m->freed_index, e->cache, strlen(e->cache), m->freed.len, &added);
    if (added)
        snprintf(vec_push(&m->freed)->cache, sizeof(m->freed.at->cache), "%s", e->cache);
    m->freed.at[at].n++;
}

/* ---- the caches ---- */

/* What /sys/kernel/slab says of a cache. */
struct attributes {
    uint64_t cpu_slabs;
    bool has_cpu_slabs;
    bool has_sheaves; /* free objects in them count as in use, and nothing tells how many there are */
};

struct sysfs {
    struct VEC(struct attributes) all;
    struct map by_folder;
    struct slab_links links;
    struct map folder_of; /* the number of a link by its name */
};

static void take_attribute(struct sysfs *s, const char *name, const char *key, const char *value)
{
    bool added;
    if (!strcmp(key, "->")) {
        struct slab_link *l = vec_push(&s->links);
        snprintf(l->name, sizeof(l->name), "%s", name);
        snprintf(l->unique, sizeof(l->unique), "%s", value);
        map_put(&s->folder_of, name, strlen(name), s->links.len - 1, NULL);
        return;
    }
    size_t at = map_put(&s->by_folder, name, strlen(name), s->all.len, &added);
    if (added)
        *vec_push(&s->all) = (struct attributes){.cpu_slabs = 0};
    struct attributes *a = &s->all.at[at];
    if (!strcmp(key, "cpu_slabs")) {
        a->cpu_slabs = strtoull(value, NULL, 10);
        a->has_cpu_slabs = true;
    }
    a->has_sheaves |= !strcmp(key, "sheaf_capacity") && strtoull(value, NULL, 10) > 0;
}

static void parse_sysfs(struct sysfs *s, const char *text)
{
    char name[SLAB_NAME_BYTES], key[64], value[SLAB_NAME_BYTES];
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n')
        if (sscanf(line, "%255[^\t\n]\t%63[^\t\n]\t%255[^\t\n]", name, key, value) == 3)
            take_attribute(s, name, key, value);
}

static void release_sysfs(struct sysfs *s)
{
    vec_release(&s->all);
    vec_release(&s->links);
    map_release(&s->by_folder);
    map_release(&s->folder_of);
}

static const struct attributes *find_attributes(const struct sysfs *s, const char *cache)
{
    const size_t link = map_get(&s->folder_of, cache, strlen(cache));
    const char *folder = link == MAP_NONE ? cache : s->links.at[link].unique;
    const size_t at = map_get(&s->by_folder, folder, strlen(folder));
    return at == MAP_NONE ? NULL : &s->all.at[at];
}

/* "kmalloc-64", "kmalloc-cg-64", "dma-kmalloc-64" */
static bool is_kmalloc(const char *cache)
{
    return strstr(cache, "kmalloc-") != NULL;
}

static bool has_others(const struct slab_cache *c)
{
    for (size_t i = 0; i < c->aliases_len; i++)
        if (!is_kmalloc(c->aliases[i]))
            return true;
    return false;
}

/* Returns the stride of the cache in which the pages of trace buffers have an object. */
static uint64_t add_caches(struct early_memory *m, const struct kernel_state *s)
{
    struct slab_caches caches = {.bad_lines = 0};
    struct sysfs sysfs = {.all = {0}};
    const char *info = kernel_state_text(s, KERNEL_STATE_SLABINFO),
               *slab = kernel_state_text(s, KERNEL_STATE_SLAB);
    m->has_objects = info && !slab_parse(&caches, info);
    parse_sysfs(&sysfs, slab ? slab : "");
    struct slab_links links = {0};
    vec_each (const struct slab_link, l, &sysfs.links)
        *vec_push(&links) = *l;
    slab_add_links(&caches, &links);
    vec_release(&links);
    vec_each (const struct slab_cache, c, &caches.all) {
        const struct attributes *a = find_attributes(&sysfs, c->name);
        const bool known = a && a->has_cpu_slabs && !a->has_sheaves;
        early_objects_add_cache(
            m->objects,
            &(struct early_cache){.name = c->name,
                                  .stride_bytes = c->stride_bytes,
                                  .active = c->active,
                                  .slots = c->objects,
                                  .cpu_slots = known ? a->cpu_slabs * c->objects_per_slab : EARLY_UNKNOWN,
                                  .is_kmalloc = is_kmalloc(c->name),
                                  .has_others = has_others(c)});
    }
    const struct slab_cache *pages = slab_find(&caches, PAGES_CACHE);
    const uint64_t stride = pages ? pages->stride_bytes : 0;
    release_sysfs(&sysfs);
    slab_release(&caches);
    return stride;
}

/* ---- the accounts ---- */

struct sums {
    struct early_memory *m;
    const struct kmem_accounts *accounts;
    const struct kmem_account *rows;
    struct map index; /* by text and stride */
    struct VEC(struct early_live) live;
};

static void add_live(void *arg, const struct kmem_object *o)
{
    struct sums *s = arg;
    const struct kmem_account *row = &s->rows[o->row];
    const uint64_t allocated_bytes = o->allocated_bytes;
    const struct {
        uint64_t cache, bytes;
    } key = {row->cache, allocated_bytes};
    const char *cache = kmem_accounts_text(s->accounts, row->cache);
    bool added;
    if (!strcmp(cache, PAGES_NAME)) {
        s->m->large_bytes += allocated_bytes;
        return;
    }
    size_t at = map_put(&s->index, &key, sizeof(key), s->live.len, &added);
    if (added)
        *vec_push(&s->live) =
            (struct early_live){.cache = cache,
                                .is_kmalloc = !strncmp(cache, KMALLOC_PREFIX, strlen(KMALLOC_PREFIX)),
                                .stride_bytes = allocated_bytes};
    s->live.at[at].objects++;
}

static void add_accounts(struct early_memory *m, const struct kmem_accounts *a)
{
    size_t n_rows;
    struct sums s = {.m = m, .accounts = a, .rows = kmem_accounts_rows(a, &n_rows)};
    kmem_accounts_each_live(a, add_live, &s);
    vec_each (const struct early_live, l, &s.live)
        early_objects_add_live(m->objects, l);
    vec_each (const struct early_freed, f, &m->freed)
        early_objects_add_frees(m->objects, f->cache, f->n);
    vec_release(&s.live);
    map_release(&s.index);
}

static struct early_site *find_site(struct early_memory *m, struct map *index, const char *site)
{
    bool added;
    size_t at = map_put(index, site, strlen(site), m->sites.len, &added);
    if (added)
        vec_push(&m->sites)->site = mem_strdup(site);
    return &m->sites.at[at];
}

/* Objects without a cache are not in the kernel's records. */
static void add_traced_sites(struct early_memory *m, struct map *index, struct kernel_capture *c)
{
    size_t n;
    const struct kmem_account *rows = kmem_accounts_rows(c->accounts, &n);
    for (size_t i = 0; i < n; i++) {
        struct buf name = BUF_INIT;
        if (rows[i].allocations <= rows[i].frees ||
            !strcmp(kmem_accounts_text(c->accounts, rows[i].cache), PAGES_NAME))
            continue;
        c->names.add_call(c->names.arg, &name, rows[i].call_site);
        find_site(m, index, buf_str(&name))->traced += rows[i].allocations - rows[i].frees;
        buf_release(&name);
    }
}

static uint64_t live_in(struct kernel_capture *c, const char *function)
{
    size_t n;
    uint64_t live = 0;
    const struct kmem_account *rows = kmem_accounts_rows(c->accounts, &n);
    for (size_t i = 0; i < n; i++) {
        struct buf name = BUF_INIT;
        c->names.add_function(c->names.arg, &name, rows[i].call_site);
        live += !strcmp(buf_str(&name), function) ? rows[i].allocations - rows[i].frees : 0;
        buf_release(&name);
    }
    return live;
}

/* ---- stacks ---- */

static int by_site_and_age(const void *a, const void *b)
{
    const struct slab_trace *x = *(const struct slab_trace *const *)a,
                            *y = *(const struct slab_trace *const *)b;
    const int order = strcmp(x->site, y->site);
    return order ? order : x->age_max < y->age_max ? 1 : x->age_max > y->age_max ? -1 : 0;
}

static int by_bytes(const void *a, const void *b)
{
    const struct early_stack *x = a, *y = b;
    return x->bytes < y->bytes ? 1 : x->bytes > y->bytes ? -1 : 0;
}

/* Returns how many of `older` objects are of this stack. */
static uint64_t add_stack(struct early_memory *m, const struct slab_cache *in, const struct slab_trace *t,
                          uint64_t older)
{
    const uint64_t n = t->objects < older ? t->objects : older, bytes = in ? n * in->stride_bytes : 0;
    *vec_push(&m->stacks) = (struct early_stack){t, n, bytes};
    m->stacks_objects += n;
    m->stacks_bytes += bytes;
    return n;
}

/*
 * Of the objects that a call has live, as many are older as the trace does not have. If they have several stacks, those
 * with the oldest objects are taken first.
 */
static void find_stacks(struct early_memory *m, const struct kernel_state *s, struct kernel_capture *c,
                        const struct slab_traces *traces)
{
    struct VEC(const struct slab_trace *) sorted = {0};
    struct map index = {0};
    struct slab_caches caches = {.bad_lines = 0};
    const char *info = kernel_state_text(s, KERNEL_STATE_SLABINFO);
    slab_parse(&caches, info ? info : "");
    add_traced_sites(m, &index, c);
    vec_each (const struct slab_trace, t, &traces->all) {
        *vec_push(&sorted) = t;
        find_site(m, &index, t->site)->recorded += t->objects;
    }
    if (sorted.len)
        qsort(sorted.at, sorted.len, sizeof(*sorted.at), by_site_and_age);
    uint64_t older = 0;
    for (size_t i = 0; i < sorted.len; i++) {
        const struct slab_trace *t = sorted.at[i];
        const struct early_site *site = find_site(m, &index, t->site);
        if (!i || strcmp(sorted.at[i - 1]->site, t->site) != 0)
            older = site->recorded > site->traced ? site->recorded - site->traced : 0;
        if (older)
            older -= add_stack(m, slab_find(&caches, t->cache), t, older);
    }
    if (m->stacks.len)
        qsort(m->stacks.at, m->stacks.len, sizeof(*m->stacks.at), by_bytes);
    slab_release(&caches);
    vec_release(&sorted);
    map_release(&index);
}

/* ---- the rest ---- */

/* Pages that are in use, and that meminfo names nothing for. */
static uint64_t unnamed_pages(const char *meminfo)
{
    static const char *const named[] = {"MemFree",       "Buffers", "Cached",      "SwapCached",
                                        "AnonPages",     "Slab",    "KernelStack", "PageTables",
                                        "SecPageTables", "Percpu",  "VmallocUsed", NULL};
    char line[PROC_TEXT_BYTES];
    uint64_t total = 0, sum = 0, value;
    while (proc_text_next(&meminfo, line)) {
        if (proc_text_value(line, "MemTotal", &value))
            total = value;
        for (size_t i = 0; named[i]; i++)
            if (proc_text_value(line, named[i], &value))
                sum += value;
    }
    return total > sum ? total - sum : 0;
}

/* Of lines "6,339,514,-;Memory: 432144K/523768K available (...)", as kernel_state.h has them. */
static void find_reserved(struct early_memory *m, const char *log)
{
    for (const char *line = log; *line && !m->has_reserved;
         line += strcspn(line, "\n"), line += *line == '\n') {
        const size_t head = strcspn(line, ";\n");
        m->has_reserved = line[head] == ';' && early_reserved_parse(&m->reserved, line + head + 1);
    }
}

void early_memory_compute(struct early_memory *m, const struct kernel_state *s, struct kernel_capture *c,
                          const struct boot_trace *b, const struct slab_traces *traces)
{
    const char *meminfo = kernel_state_text(s, "/proc/meminfo"),
               *log = kernel_state_text(s, KERNEL_STATE_BOOT_LOG);
    m->first_ns = kmem_accounts_totals(c->accounts)->first_ns;
    m->lost = c->lost;
    m->trace = *b;
    m->objects = early_objects_new();
    const uint64_t stride = add_caches(m, s);
    add_accounts(m, c->accounts);
    const uint64_t seen = live_in(c, PAGES_FUNCTION);
    early_objects_set_own(m->objects, stride, b->buffer_pages > seen ? b->buffer_pages - seen : 0);
    early_objects_compute(m->objects, m->lost);
    const uint64_t unnamed = unnamed_pages(meminfo ? meminfo : ""), known = b->buffer_bytes + m->large_bytes;
    m->pages_bytes = unnamed > known ? unnamed - known : 0;
    find_reserved(m, log ? log : "");
    if (traces->all.len)
        find_stacks(m, s, c, traces);
}

void early_memory_release(struct early_memory *m)
{
    early_objects_free(m->objects);
    vec_release(&m->freed);
    vec_each (struct early_site, site, &m->sites)
        free(site->site);
    vec_release(&m->sites);
    vec_release(&m->stacks);
    map_release(&m->freed_index);
    *m = (struct early_memory){.first_ns = 0};
}
