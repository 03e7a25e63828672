/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/model/kernel/advice, from the texts that it is derived from: each kind of measure where it must be found, with
 * its bytes, and where it must not.
 */
#include "test_advice.h"

#include "collect/kernel/state/advice_read.h"
#include "collect/kernel/state/boot_log.h"

static struct advice_cache *plant_cache(struct planted *p, const char *name, uint64_t bytes, unsigned order,
                                        uint64_t slabs, uint64_t used)
{
    struct advice_cache *c = vec_push(&p->in.caches);
    const uint64_t slab = (uint64_t)PAGE << order;
    *c = (struct advice_cache){.name = mem_strdup(name),
                               .object_bytes = bytes,
                               .align = 8,
                               .per_slab = slab / bytes,
                               .slab_bytes = slab,
                               .slabs = slabs,
                               .room = slabs * (slab / bytes),
                               .used = used,
                               .min_partial = 5,
                               .nodes = 1,
                               .order = order};
    return c;
}

static void plant_size(struct planted *p, const char *call, uint64_t requested, uint64_t object,
                       uint64_t live, bool pages)
{
    const size_t i = advice_take_call(&p->in, call, NULL);
    p->in.has_calls = p->in.has_sizes = true;
    *vec_push(&p->in.sizes) = (struct advice_size){i, requested, object, live, pages};
}

/* ---- objects ---- */

static void objects_that_miss_a_bucket(void **state)
{
    (void)state;
    struct planted p;
    setup(&p);
    plant_cache(&p, "kmalloc-1k", 1024, 2, 100, 1600);
    plant_cache(&p, "kmalloc-512", 512, 1, 100, 1600);
    plant_size(&p, "just_over+0x1", 520, 1024, 1600, false);
    plant_size(&p, "far_over+0x1", 700, 1024, 1600, false);
    plant_size(&p, "fits+0x1", 1000, 1024, 1600, false);
    plant_size(&p, "few+0x1", 520, 1024, 7, false);
    judge(&p);
    found(&p, "request 8 bytes less in just_over+0x1: that halves each object", 1600 * 512, 1600 * 512);
    assert_null(find(&p, "less in far_over"));
    assert_null(find(&p, "fits+0x1"));
    assert_null(find(&p, "few+0x1")); /* 3.5 KiB at most */
    /* 704 bytes: 11 in 8 KiB, where 16 KiB have 16 of the bucket: 100 slabs, or 146 and one for each CPU */
    found(&p, "far_over+0x1 a cache of their own: kmem_cache_create() of 704 bytes", 100 * 16384 - 148 * 8192,
          1600 * 16384 / 16 - 1600 * 8192 / 11);
    const struct advice_measure *less = find(&p, "less in just_over"),
                                *own = find(&p, "just_over+0x1 a cache of their own");
    assert_non_null(own); /* both are possible, one counts */
    assert_true(less->counted && !own->counted);
    assert_ptr_equal(&p.advice.measures.at[own->instead_of], less);
    assert_int_equal(p.advice.high_bytes, less->high_bytes + find(&p, "far_over")->high_bytes);
    drop(&p);
}

static void objects_of_several_sizes_need_the_largest(void **state)
{
    (void)state;
    struct planted p;
    setup(&p);
    plant_size(&p, "several+0x1", 520, 1024, 1000, false);
    plant_size(&p, "several+0x1", 530, 1024, 600, false);
    judge(&p);
    found(&p, "request 18 bytes less in several+0x1", 1600 * 512, 1600 * 512);
    p.in.lossy = true; /* they may be gone */
    judge(&p);
    found(&p, "request 18 bytes less in several+0x1", 0, 1600 * 512);
    plant_size(&p, "several+0x1", 800, 1024, 1, false);
    judge(&p);
    assert_null(find(&p, "less in several"));
    assert_non_null(find(&p, "kmem_cache_create() of 800 bytes"));
    drop(&p);
}

static void objects_of_pages(void **state)
{
    (void)state;
    struct planted p;
    setup(&p);
    plant_size(&p, "large+0x1", 9000, 16384, 10, true);
    plant_size(&p, "exact+0x1", 16384, 16384, 10, true);
    judge(&p);
    found(&p, "alloc_pages_exact() in large+0x1", 10 * 4096, 10 * 4096);
    found(&p, "request 808 bytes less in large+0x1: that halves each object", 10 * 8192, 10 * 8192);
    assert_null(find(&p, "exact+0x1"));
    assert_int_equal(p.advice.high_bytes, 10 * 8192);
    drop(&p);
    setup(&p);
    judge(&p);
    assert_true(is_unknown(&p, "sudo allium sys record -o FILE"));
    drop(&p);
}

/* ---- slabs ---- */

static void free_slabs_are_bounded(void **state)
{
    (void)state;
    struct planted p;
    setup(&p);
    struct advice_cache *c = plant_cache(&p, "planted", 64, 0, 50, 3000);
    c->partial = 5;
    c->partial_used = 2;
    c = plant_cache(&p, "half_full", 64, 0, 50, 3000);
    c->partial = 5;
    c->partial_used = 300; /* five slabs of 63 are as good as full */
    c = plant_cache(&p, "of_cpus", 64, 0, 50, 3000);
    c->cpu_slabs = 4;
    c->cpu_partial_slabs = 3;
    c->cpu_partial = 120;
    c = plant_cache(&p, "many", 64, 0, 50, 3000); /* a node keeps at most five that are empty */
    c->partial = 40;
    c->partial_used = 60;
    c = plant_cache(&p, "pressed", 64, 0, 50, 3000);
    c->partial = 5;
    c->reclaimable = true;
    judge(&p);
    found(&p, "slab/planted/shrink", 3 * PAGE, 4 * PAGE);
    assert_null(find(&p, "half_full"));
    found(&p, "slab/of_cpus/shrink", 0, 4 * PAGE);
    found(&p, "slab/many/shrink", 0, 5 * PAGE);
    found(&p, "echo 0 > /sys/kernel/slab/of_cpus/cpu_partial", 0, 3 * PAGE);
    assert_null(find(&p, "slab/planted/cpu_partial"));
    assert_false(find(&p, "of_cpus/cpu_partial")->counted);
    const struct advice_measure *pressed = find(&p, "slab/pressed/shrink");
    assert_true(pressed && pressed->reclaimable && !pressed->counted);
    found(&p, "memory pressure empties these caches", 0, 50 * PAGE);
    assert_false(find(&p, "memory pressure")->counted);
    assert_int_equal(p.advice.low_bytes, 3 * PAGE);
    assert_int_equal(p.advice.high_bytes, (4 + 4 + 5) * PAGE);
    drop(&p);
}

static void slabs_of_too_high_an_order(void **state)
{
    (void)state;
    struct planted p;
    setup(&p);
    p.in.major = 6;
    p.in.minor = 7;
    plant_cache(&p, "sparse", 2048, 3, 100, 400); /* a quarter of it is in use */
    judge(&p);
    found(&p, "boot with slub_max_order=0", 0, 100 * 32768 - 200 * PAGE);
    p.in.minor = 8;
    judge(&p);
    assert_non_null(find(&p, "boot with slab_max_order=0"));
    assert_true(find(&p, "slab_max_order=1")->instead_of != ADVICE_NONE);
    drop(&p);
    setup(&p);
    plant_cache(&p, "dense", 2048, 3, 100, 1600);
    plant_cache(&p, "large", 32768, 3, 100, 10)->reclaimable = false; /* it needs the order */
    plant_cache(&p, "wasteful", 2800, 3, 100, 1080);                  /* 11 in 32 KiB; 1 in 4 KiB */
    judge(&p);
    assert_null(find(&p, "max_order"));
    drop(&p);
}

static void objects_that_waste_the_end_of_a_slab(void **state)
{
    (void)state;
    struct planted p;
    setup(&p);
    plant_cache(&p, "task", 5888, 3, 100, 500); /* 5 in 32 KiB; 6 of 5456 bytes */
    plant_cache(&p, "even", 8192, 3, 100, 400);
    plant_cache(&p, "kmalloc-96", 96, 0, 100, 4200);
    judge(&p);
    found(&p, "objects of task 432 bytes smaller", (100 - 84) * 32768, 500 * 32768 / 5 - 500 * 32768 / 6);
    assert_null(find(&p, "even"));
    assert_null(find(&p, "kmalloc-96"));
    p.in.caches.at[0].align = 64; /* 5440 bytes */
    judge(&p);
    assert_non_null(find(&p, "objects of task 448 bytes smaller"));
    drop(&p);
}

/* ---- what the log of the boot tells ---- */

static const char log_head[] =
    "5,0,0,-;Linux version 6.12.0\n"
    "6,1,0,-;Dentry cache hash table entries: 4194304 (order: 13, 33554432 bytes, linear)\n"
    "6,2,0,-;TCP established hash table entries: 16384 (order: 5, 131072 bytes, linear)\n"
    "6,3,0,-;TCP bind hash table entries: 16384 (order: 7, 524288 bytes, linear)\n"
    "6,4,0,-;SLUB: HWalign=64, Order=0-3, MinObjects=0, CPUs=4, Nodes=1\n"
    "6,5,0,-;futex hash table entries: 1024 (order: 4, 65536 bytes, linear)\n";

static void tables_that_are_too_large(void **state)
{
    (void)state;
    struct planted p;
    setup(&p);
    p.in.cpus = 0;
    boot_log_parse(&p.in, log_head);
    assert_int_equal(p.in.cpus, 4);
    judge(&p);
    assert_null(find(&p, "hash_entries")); /* nothing is known of their use */
    dentry_state_parse(&p.in, "184386\t182465\t45\t0\t64355\t0\n");
    dentry_state_parse(&p.in, "100000\t90000\t45\t0\t64355\t0\n"); /* later; the most counts */
    plant_cache(&p, "TCP", 2048, 3, 10, 100);
    plant_cache(&p, "other", 2048, 3, 10, 100)->aliases = mem_strdup("more TCPv6 x");
    judge(&p);
    found(&p, "dhash_entries=524288", 33554432 - 524288 * 8, 33554432 - 524288 * 8);
    found(&p, "thash_entries=512", 131072 - 512 * 8 + 524288 - 512 * 32,
          131072 - 512 * 8 + 524288 - 512 * 32);
    assert_null(find(&p, "uhash_entries"));
    dentry_state_parse(&p.in, "3000000 0");
    judge(&p);
    assert_null(find(&p, "dhash_entries"));
    drop(&p);
    setup(&p);
    judge(&p);
    assert_true(is_unknown(&p, "Tables sized at boot"));
    drop(&p);
}

static void log_buffers_that_are_too_large(void **state)
{
    (void)state;
    struct planted p;
    setup(&p);
    boot_log_parse(&p.in, "6,0,0,-;printk: log_buf_len: 1048576 bytes\n");
    judge(&p);
    assert_null(find(&p, "log_buf_len")); /* why it was made is not known */
    command_line_parse(&p.in, "quiet log_buf_len=1M -- log_buf_len=2M\n");
    judge(&p);
    found(&p, "boot without log_buf_len=1048576", 0, 1048576 + 1048576 / 32 * 112);
    p.in.log_option_bytes = 0;
    p.in.log_static = (struct advice_figure){true, 131072}; /* it was made for many CPUs */
    judge(&p);
    found(&p, "boot with log_buf_len=262144", (1048576 - 262144) / 2 * 9, (1048576 - 262144) / 2 * 9);
    drop(&p);
    setup(&p);
    boot_log_parse(&p.in, "6,0,0,-;printk: log buffer data + meta data: 131072 + 458752 = 589824 bytes\n");
    judge(&p);
    assert_null(find(&p, "CONFIG_LOG_BUF_SHIFT"));
    p.in.log_static = (struct advice_figure){true, 131072};
    p.in.log_boot.value = 20000;
    judge(&p);
    found(&p, "CONFIG_LOG_BUF_SHIFT=16", 589824 / 2, 589824 / 2);
    p.in.log_boot.value = 60000;
    judge(&p);
    assert_null(find(&p, "CONFIG_LOG_BUF_SHIFT"));
    drop(&p);
}

static void reservations(void **state)
{
    (void)state;
    struct planted p;
    setup(&p);
    boot_log_parse(&p.in, log_head);
    judge(&p);
    assert_null(find(&p, "crashkernel"));
    assert_null(find(&p, "swiotlb"));
    assert_null(find(&p, "kfence"));
    assert_null(find(&p, "nr_hugepages"));
    assert_null(find(&p, "cma="));
    boot_log_parse(&p.in,
                   "4,0,0,-;crashkernel reserved: 0x00000000ac000000 - 0x00000000bc000000 (256 MB)\n"
                   "6,1,0,-;software IO TLB: mapped [mem 0x00000000b7ed7000-0x00000000bbed7000] (64MB)\n");
    p.in.huge_free = (struct advice_figure){true, 10};
    p.in.huge_reserved = (struct advice_figure){true, 3};
    p.in.huge_bytes = (struct advice_figure){true, 2 << 20};
    p.in.cma_bytes = (struct advice_figure){true, 32 << 20};
    judge(&p);
    found(&p, "crashkernel=", 256 << 20, 256 << 20);
    found(&p, "swiotlb=", 64 << 20, (64 << 20) + 32768 * 24 + 2 * 4096);
    found(&p, "lower vm.nr_hugepages by 7", 7 * (2 << 20), 7 * (2 << 20));
    found(&p, "cma=", 0, 32 << 20);
    boot_log_parse(&p.in,
                   "6,0,0,-;Reserving 128MB of memory at 2752MB for crashkernel (System RAM: 8191MB)\n");
    assert_int_equal(p.in.crash_bytes.value, 128 << 20);
    boot_log_parse(&p.in, "6,9,0,-;kfence: initialized - using 2097152 bytes for 255 objects at 0x?-0x?\n");
    judge(&p);
    found(&p, "boot with kfence.sample_interval=0", 2 << 20, (2 << 20) + 255 * 1280 + 4096);
    release_parse(&p.in, "6.5.13");
    judge(&p);
    found(&p, "boot with kfence.sample_interval=0", 2 << 20, 2 << 20);
    drop(&p);
}

/* ---- code ---- */

static void modules_without_users(void **state)
{
    (void)state;
    struct planted p;
    setup(&p);
    judge(&p);
    assert_true(is_unknown(&p, "/proc/modules"));
    modules_parse(&p.in, "idle 40960 0 - Live\nused 40960 1 idle, Live\nkept 40960 0 [permanent], "
                         "Live\nbad\nodd 1 - - Live\n");
    plant_file(&p, "idle_init+0x1 [idle]", NULL, 5000);
    judge(&p);
    found(&p, "rmmod idle", 40960, 45960);
    assert_null(find(&p, "rmmod used"));
    assert_null(find(&p, "rmmod kept"));
    assert_int_equal(p.in.modules.len, 3);
    drop(&p);
}

/* ---- from a root ---- */

static const char *text_of(void *arg, const char *path)
{
    return kernel_state_text(arg, path);
}

/* The whole way, from files: what is read, and that no address of the kernel and no program's record is. */
static void a_root_is_read(void **unused)
{
    (void)unused;
    static const char *const attributes[][2] = {
        {"slab_size", "64"},     {"object_size", "64"},         {"objs_per_slab", "64"},
        {"order", "0"},          {"slabs", "50 N0=50"},         {"total_objects", "3200 N0=3200"},
        {"objects", "3100"},     {"partial", "5 N0=5"},         {"objects_partial", "1 N0=1"},
        {"cpu_slabs", "2 N0=2"}, {"slabs_cpu_partial", "0(0)"}, {"cpu_partial", "120"},
        {"min_partial", "5"},    {"reclaim_account", "0"},      {"align", "8"}};
    struct planted p;
    struct kernel_state texts = {.texts = {0}};
    char *root = make_root();
    setup(&p);
    for (size_t i = 0; i < sizeof(attributes) / sizeof(*attributes); i++) {
        char path[128];
        snprintf(path, sizeof(path), "sys/kernel/slab/planted/%s", attributes[i][0]);
        put(root, path, attributes[i][1]);
    }
    put(root, "proc/modules", "idle 40960 0 - Live 0xffffffffc0a00000 (E)\n");
    put(root, "proc/meminfo",
        "MemTotal: 1000000 kB\nHugePages_Free: 4\nHugePages_Rsvd: 0\nHugepagesize: 2048 kB\n");
    put(root, "proc/sys/kernel/osrelease", "6.12.5-test\n");
    put(root, "proc/sys/fs/dentry-state", "1000 900 45 0 0 0\n");
    put(root, "dev/kmsg",
        "5,0,0,-;Linux version\n SUBSYSTEM=none\n"
        "12,1,1,-;Dentry cache hash table entries: 8388608 (order: 14, 67108864 bytes, linear)\n"
        "6,2,2,-;Dentry cache hash table entries: 4194304 (order: 13, 33554432 bytes, linear)\n"
        "6,3,3,-;at ffffffff81000000, and 0xffff888000000000, not ffff\n"
        "6,4,4,-;Run /sbin/init as init process\n6,5,5,-;later\n");
    kernel_state_read(&texts, root, KERNEL_STATE_MEMORY | KERNEL_STATE_KERNEL);
    assert_string_equal(kernel_state_text(&texts, KERNEL_STATE_MODULES), "idle 40960 0 - Live\n");
    const char *log = kernel_state_text(&texts, KERNEL_STATE_BOOT_LOG);
    assert_non_null(strstr(log, "6,3,3,-;at ?, and 0x?, not ffff\n"));
    assert_null(strstr(log, "8388608"));
    assert_null(strstr(log, "SUBSYSTEM"));
    assert_null(strstr(log, "later"));
    advice_read(&p.in, text_of, &texts, PAGE);
    judge(&p);
    assert_int_equal(p.in.minor, 12);
    found(&p, "slab/planted/shrink", 4 * PAGE, 6 * PAGE);
    found(&p, "dhash_entries=2048", 33554432 - 2048 * 8, 33554432 - 2048 * 8);
    found(&p, "rmmod idle", 40960, 40960);
    found(&p, "vm.nr_hugepages by 4", 8 << 20, 8 << 20);
    assert_string_equal(p.advice.measures.at[0].change, "boot with dhash_entries=2048"); /* the largest */
    kernel_state_release(&texts);
    drop(&p);
    remove_root(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST("objects that miss a bucket, and such that do not", objects_that_miss_a_bucket),
        TEST("objects of several sizes need room for the largest", objects_of_several_sizes_need_the_largest),
        TEST("objects of whole pages", objects_of_pages),
        TEST("free slabs are bounded by what the kernel tells", free_slabs_are_bounded),
        TEST("slabs of too high an order", slabs_of_too_high_an_order),
        TEST("objects that waste the end of each slab", objects_that_waste_the_end_of_a_slab),
        TEST("tables that are too large for what is in them", tables_that_are_too_large),
        TEST("log buffers that are too large", log_buffers_that_are_too_large),
        TEST("reservations", reservations),
        TEST("modules without users", modules_without_users),
        TEST("a root is read, without addresses", a_root_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
