/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/collect/kernel/state: the kernel's files about its own memory, as they are and as they should never be.
 */
#include "test_kernel.h"

#include "collect/kernel/state/memory_parse.h"
#include "model/kernel/frag.h"

#define PAGE 4096

static void buddyinfo_has_blocks_by_order(void **state)
{
    (void)state;
    struct memory_state s = {.bad_lines = 0};
    buddyinfo_parse(&s, "Node 0, zone      DMA      1      0      3 \nNode 1, zone   Normal  618 1922   7 \n"
                        "Node 0, zone    DMA32 281474976710657\nNode 2, zone\nnothing\n");
    assert_int_equal(s.zones.len, 2);
    assert_int_equal(s.bad_lines, 3);
    assert_string_equal(s.zones.at[0].name, "DMA");
    assert_int_equal(s.zones.at[0].orders, 3);
    assert_int_equal(s.zones.at[0].blocks[2], 3);
    assert_int_equal(s.zones.at[1].node, 1);
    assert_int_equal(s.zones.at[1].blocks[1], 1922);
    assert_false(s.zones.at[1].typed);
    memory_state_release(&s);
}

static void pagetypeinfo_has_types(void **state)
{
    (void)state;
    struct memory_state s = {.bad_lines = 0};
    pagetypeinfo_parse(&s, "Page block order: 9\nPages per block:  512\n\n"
                           "Free pages count per migrate type at order       0      1 \n"
                           "Node    0, zone   Normal, type    Unmovable      1   1526 \n"
                           "Node    0, zone   Normal, type      Movable >100000      3 \n\n"
                           "Number of blocks type     Unmovable      Movable \n"
                           "Node 0, zone   Normal          178         1275 \n"
                           "Number of mixed blocks    Unmovable      Movable \n"
                           "Node 0, zone   Normal            4            5 \n");
    assert_int_equal(s.bad_lines, 0);
    assert_int_equal(s.block_order, 9);
    assert_int_equal(s.n_types, 2);
    assert_string_equal(s.types[1], "Movable");
    assert_int_equal(s.zones.len, 1);
    const struct memory_zone *z = &s.zones.at[0];
    assert_true(z->typed && z->type_capped && z->mixed_known);
    assert_int_equal(z->type_blocks[0][1], 1526);
    assert_int_equal(z->type_blocks[1][0], 100000);
    assert_int_equal(z->page_blocks[1], 1275);
    assert_int_equal(z->mixed_blocks[0], 4);
    memory_state_release(&s);
}

static const char zoneinfo[] =
    "Node 0, zone      DMA\n  per-node stats\n      nr_free 5\n  pages free     3840\n"
    "        min      41\n        low      51\n        high     61\n        present  3998\n"
    "        managed  3840\n        protection: (0, 3019)\n  pagesets\n    cpu: 0\n"
    "              count:    7\n              high:     0\n  vm stats threshold: 4\n"
    "    cpu: 1\n              count:    2\n  vm stats threshold: 4\n"
    "Node 0, zone  Movable\n  pages free     0\n        managed  0\n";

static void zoneinfo_has_watermarks(void **state)
{
    (void)state;
    struct memory_state s = {.bad_lines = 0};
    zone_marks_parse(&s, zoneinfo);
    assert_int_equal(s.zones.len, 1);
    const struct memory_zone *z = &s.zones.at[0];
    assert_int_equal(z->at[ZONE_FREE], 3840);
    assert_int_equal(z->at[ZONE_HIGH], 61);
    assert_int_equal(z->at[ZONE_CPU_LISTS], 9);
    assert_int_equal(s.cpus, 2);
    assert_int_equal(s.counter_slack_pages, 8);
    memory_state_release(&s);
}

static void vmallocinfo_has_areas(void **state)
{
    (void)state;
    struct memory_state s = {.bad_lines = 0};
    vmallocinfo_parse(&s,
                      "0x0-0x5000   20480 kernel_clone+0x94/0x3e0 pages=4 vmalloc N0=4\n"
                      "0x7000-0x9000    8192 acpi_os_map_iomem+0x1bc/0x1e0 phys=0x00000000000a0000 ioremap\n"
                      "?   12288 unpurged vm_area\n?    8192 vm_map_ram\n0x5-0x4 7 a\n0x1-0x3 7 a\n?\n");
    assert_int_equal(s.areas.len, 4);
    assert_int_equal(s.bad_lines, 3);
    const struct memory_area *a = s.areas.at;
    assert_true(a[0].placed && a[0].paged && !a[1].paged && !a[2].placed && a[2].unpurged);
    assert_string_equal(a[0].caller, "kernel_clone+0x94/0x3e0");
    assert_string_equal(a[0].kind, "vmalloc");
    assert_int_equal(a[0].pages, 4);
    assert_int_equal(a[1].begin, 0x7000);
    assert_string_equal(a[3].caller, "vm_map_ram");
    memory_state_release(&s);
}

#define ROW(name, numbers) name " " numbers " : tunables 0 0 0 : slabdata 51 52 0\n"
#define SLABINFO           "slabinfo - version: 2.1\n" ROW("first", "3200 3264 64 64 1") ROW("own", "8 9 100 40 4")
#define ATTRIBUTES                                                                                           \
    ":0000064\tobject_size\t60\n:0000064\tobjects\t3201 N0=3201\n:0000064\tsheaf_capacity\t0\n"              \
    ":0000064\tslabs_cpu_partial\t136(13) C0=73(7) C1=63(6)\nfirst\t->\t:0000064\nother\t->\t:0000064\n"     \
    "own\torder\t99\nown\tobjs_per_slab\t0\n"

static void caches_have_attributes_and_aliases(void **state)
{
    (void)state;
    struct memory_state s = {.bad_lines = 0};
    slab_state_parse(&s, SLABINFO, ATTRIBUTES "cut\n");
    assert_int_equal(s.caches.len, 2);
    assert_int_equal(s.bad_lines, 1);
    const struct memory_cache *c = memory_state_cache(&s, "first"), *own = memory_state_cache(&s, "own");
    assert_non_null(c);
    assert_string_equal(c->aliases, "other");
    assert_int_equal(c->at[CACHE_OBJECT_BYTES], 60);
    assert_int_equal(c->at[CACHE_USED], 3201); /* that of the folder */
    assert_int_equal(c->at[CACHE_ROOM], 3264); /* that of slabinfo */
    assert_int_equal(c->at[CACHE_CPU_PARTIAL_SLABS], 13);
    assert_true(memory_cache_has(c, CACHE_SHEAF) && !memory_cache_has(c, CACHE_PARTIAL));
    assert_int_equal(own->at[CACHE_ORDER], 2); /* no order is 99, and no slab has room for none */
    assert_int_equal(own->at[CACHE_PER_SLAB], 40);
    memory_state_release(&s);
}

static void caches_are_known_without_slabinfo(void **state)
{
    (void)state;
    struct memory_state s = {.bad_lines = 0};
    slab_state_parse(&s, NULL, ATTRIBUTES);
    assert_int_equal(s.caches.len, 2);
    assert_string_equal(s.caches.at[0].name, "first");
    assert_string_equal(s.caches.at[0].aliases, "other");
    assert_string_equal(s.caches.at[1].name, "own");
    assert_int_equal(s.caches.at[0].at[CACHE_USED], 3201);
    memory_state_release(&s);
}

static void a_state_tells_the_size_of_its_pages(void **state)
{
    (void)state;
    struct memory_state s;
    struct kernel_state texts = {.texts = {0}};
    static const char meminfo[] = "MemTotal:         245760 kB\nSlab:   100 kB\n", /* 3840 pages of 64 KiB */
        vmstat[] = "compact_stall 7\nallocstall_dma 1\nallocstall_normal 2\n";
    kernel_state_add(&texts, "/proc/zoneinfo", zoneinfo, strlen(zoneinfo));
    kernel_state_add(&texts, "/proc/meminfo", meminfo, strlen(meminfo));
    kernel_state_add(&texts, "/proc/vmstat", vmstat, strlen(vmstat));
    memory_parse_state(&s, &texts, PAGE);
    assert_int_equal(s.page_bytes, 65536);
    assert_int_equal(s.figures[MEMORY_SLAB], 102400);
    assert_int_equal(s.figures[MEMORY_COMPACT_STALLS], 7);
    assert_int_equal(s.figures[MEMORY_ALLOCATION_STALLS], 3);
    assert_false(memory_state_has(&s, MEMORY_HUGE_FAULTS) || s.areas_known || s.slab_attributes);
    assert_int_equal(s.nodes, 1);
    memory_state_release(&s);
    kernel_state_release(&texts);
}

/* With a balloon the zones have fewer pages than MemTotal says: half as many here. */
static void a_balloon_does_not_change_the_size_of_pages(void **state)
{
    (void)state;
    struct memory_state s;
    struct kernel_state texts = {.texts = {0}};
    static const char meminfo[] = "MemTotal: 30720 kB\nAnonPages: 400 kB\nMapped: 80 kB\n",
                      vmstat[] = "nr_anon_pages 101\nnr_mapped 20\nnr_mapped_other 7000\n";
    kernel_state_add(&texts, "/proc/zoneinfo", zoneinfo, strlen(zoneinfo));
    kernel_state_add(&texts, "/proc/meminfo", meminfo, strlen(meminfo));
    kernel_state_add(&texts, "/proc/vmstat", vmstat, strlen(vmstat));
    memory_parse_state(&s, &texts, 16384);
    assert_int_equal(s.page_bytes, 4096);
    memory_state_release(&s);
    kernel_state_release(&texts);
}

/* A tree that stands for / : what is read, parsed and computed of it is what stands in it. */
static void a_planted_tree_is_read(void **state)
{
    (void)state;
    static const struct {
        const char *attribute, *value;
    } attributes[] = {
        {"object_size", "90"},
        {"slab_size", "100"},
        {"objs_per_slab", "40"},
        {"order", "0"},
        {"slabs", "10 N0=10"},
        {"partial", "4 N0=4"},
        {"objects_partial", "3 N0=3"},
        {"cpu_slabs", "0"},
        {"objects", "243"},
        {"total_objects", "400"},
        {"slabs_cpu_partial", "0(0)"},
        {"sheaf_capacity", "0"},
        {"shrink", "nothing"},
        {"reclaim_account", "1"},
    };
    char *root = make_root();
    struct kernel_state texts = {.texts = {0}};
    struct memory_state s;
    struct frag f;
    for (size_t i = 0; i < sizeof(attributes) / sizeof(*attributes); i++) {
        struct buf name = BUF_INIT;
        buf_printf(&name, "sys/kernel/slab/:a-0000100/%s", attributes[i].attribute);
        put(root, buf_str(&name), attributes[i].value);
        buf_release(&name);
    }
    put_link(root, "sys/kernel/slab/planted", ":a-0000100");
    put_link(root, "sys/kernel/slab/other", ":a-0000100");
    put(root, "proc/slabinfo", "slabinfo - version: 2.1\n" ROW("planted", "243 400 100 40 1"));
    put(root, "proc/buddyinfo", "Node 0, zone   Normal 10 4 0 1 \n");
    put(root, "proc/vmallocinfo",
        "0xffffc90000000000-0xffffc90000005000   20480 a+0x1/0x2 pages=4 vmalloc N0=4\n"
        "0xffffc90000008000-0xffffc9000000a000    8192 b+0x1/0x2 pages=1 vmalloc N0=1\n");
    put(root, "proc/meminfo", "Slab: 212 kB\n");
    kernel_state_read(&texts, root, KERNEL_STATE_MEMORY);
    memory_parse_state(&s, &texts, PAGE);
    frag_compute(&f, &s, &(struct frag_range){.known = false});
    assert_int_equal(s.bad_lines, 0);
    assert_int_equal(f.caches.len, 1);
    const struct frag_cache *c = &f.caches.at[0];
    assert_string_equal(c->of->name, "planted");
    assert_string_equal(c->of->aliases, "other");
    assert_int_equal(c->at[FRAG_BYTES].low, 40960);
    assert_int_equal(c->at[FRAG_FREE].low, 15700);
    assert_int_equal(c->at[FRAG_PADDING].low, 2430);
    assert_int_equal(c->at[FRAG_TAILS].low, 960);
    assert_int_equal(c->at[FRAG_SHRINK].low, PAGE);
    assert_int_equal(c->at[FRAG_SHRINK].high, 3 * PAGE);
    assert_int_equal(f.zones.at[0].unusable[3], 692);
    assert_int_equal(f.vmalloc.holes_bytes.low, 0x3000);
    assert_int_equal(f.whole.rest_bytes, 4096);
    frag_release(&f);
    memory_state_release(&s);
    kernel_state_release(&texts);
    remove_root(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST("buddyinfo has blocks by order", buddyinfo_has_blocks_by_order),
        TEST("pagetypeinfo has types of blocks, and mixed ones where the kernel counts them",
             pagetypeinfo_has_types),
        TEST("a balloon does not change the size of pages", a_balloon_does_not_change_the_size_of_pages),
        TEST("zoneinfo has watermarks, and the number of CPUs", zoneinfo_has_watermarks),
        TEST("vmallocinfo has areas, with and without addresses", vmallocinfo_has_areas),
        TEST("caches have the attributes of their folders, and aliases", caches_have_attributes_and_aliases),
        TEST("caches are known without slabinfo", caches_are_known_without_slabinfo),
        TEST("a state tells the size of its pages", a_state_tells_the_size_of_its_pages),
        TEST("a planted tree is read, and its fragmentation computed", a_planted_tree_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
