/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the readers of kernel facts say, as text, for tests/cli/kernel_facts.py to compare with what others say.
 *
 *     kernel_facts symbols        lines of addresses in hex -> "NAME FUNCTION MODULE OFFSET GONE", or "-"
 *     kernel_facts lookup         lines of names -> addresses in hex, 0: none
 *     kernel_facts words          lines of GFP flags in hex -> names; first the source and the migrate types
 *     kernel_facts slab           "NAME OBJECTS STRIDE OBJECT_SIZE ALIAS..."
 *     kernel_facts cgroup PATH    "HIERARCHY ID LEVEL PATH USAGE LIMIT PEAK", or the error
 *     kernel_facts paths          lines of "HIERARCHY ID" -> path, or "-"
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "collect/kernel/cgroup.h"
#include "collect/kernel/gfp_words.h"
#include "collect/kernel/slabinfo.h"
#include "symbol/kernel_symbols.h"
#include "sys/kernel_enums.h"
#include "sys/kernel_symbol_address.h"

static int fail(const struct error *e)
{
    fprintf(stderr, "%s\n", e->text);
    return 1;
}

static int tell_symbols(void)
{
    struct kernel_symbols *k;
    struct kernel_symbol s;
    struct error e = {""};
    uint64_t address;
    if (kernel_symbols_new("", &k, &e))
        return fail(&e);
    puts("ready");
    fflush(stdout);
    while (scanf("%" SCNx64, &address) == 1) {
        if (kernel_symbols_find(k, address, &s))
            printf("%s %s %s %" PRIu64 " %d\n", s.name, s.function, s.module[0] ? s.module : "-", s.offset,
                   s.gone);
        else
            puts("-");
        fflush(stdout);
    }
    fprintf(stderr, "read %u times\n", kernel_symbols_reads(k));
    kernel_symbols_free(k);
    return 0;
}

static int tell_addresses(void)
{
    char name[512];
    while (scanf("%511s", name) == 1)
        printf("%" PRIx64 "\n", kernel_symbol_address(name));
    return 0;
}

static int tell_words(void)
{
    struct gfp_words w;
    struct kernel_enums types;
    uint64_t flags;
    gfp_words_read(&w);
    kernel_enums_load(&types, "migratetype", "MIGRATE_");
    printf("%d", w.gfp_from);
    for (int i = 0; i < 16; i++)
        printf(" %s", types.names[i] ? types.names[i] : "-");
    putchar('\n');
    while (scanf("%" SCNx64, &flags) == 1) {
        struct buf b = BUF_INIT;
        gfp_format(&w.gfp, flags, &b);
        puts(buf_str(&b));
        buf_release(&b);
    }
    gfp_words_release(&w);
    kernel_enums_release(&types);
    return 0;
}

static int tell_slab(void)
{
    struct slab_caches s;
    struct error e = {""};
    if (slab_read(&s, "", &e))
        return fail(&e);
    vec_each (const struct slab_cache, c, &s.all) {
        printf("%s %" PRIu64 " %" PRIu64 " %" PRIu64, c->name, c->objects, c->stride_bytes, c->object_bytes);
        for (size_t i = 0; i < c->aliases_len; i++)
            printf(" %s", c->aliases[i]);
        putchar('\n');
    }
    fprintf(stderr, "%zu bad lines\n", s.bad_lines);
    slab_release(&s);
    return 0;
}

static int tell_cgroup(const char *path)
{
    static struct cgroup_ref c;
    struct cgroup_memory m;
    struct error e = {""};
    int bad = cgroup_find(path, &c, &e);
    if (bad)
        return fail(&e);
    cgroup_memory_read(&c, &m);
    printf("%d %" PRIu64 " %d %s %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", c.hierarchy, c.id, c.level, c.path,
           m.usage_bytes, m.limit_bytes, m.peak_bytes);
    return 0;
}

static int tell_paths(void)
{
    struct cgroups *c = cgroups_new();
    int hierarchy;
    uint64_t id;
    while (scanf("%d %" SCNu64, &hierarchy, &id) == 2 && hierarchy >= 0 && hierarchy < CGROUP_HIERARCHIES) {
        const char *path = cgroups_path(c, (enum cgroup_hierarchy)hierarchy, id);
        puts(path ? path : "-");
        fflush(stdout);
    }
    cgroups_free(c);
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "symbols"))
        return tell_symbols();
    if (!strcmp(what, "lookup"))
        return tell_addresses();
    if (!strcmp(what, "words"))
        return tell_words();
    if (!strcmp(what, "slab"))
        return tell_slab();
    if (!strcmp(what, "cgroup") && argc > 2)
        return tell_cgroup(argv[2]);
    if (!strcmp(what, "paths"))
        return tell_paths();
    return 2;
}
