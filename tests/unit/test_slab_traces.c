/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel records of the live objects of its caches, and what its log says of the boot. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collect/kernel/slab_traces.h"

static void objects_have_a_call_an_age_and_a_stack(void **state)
{
    (void)state;
    struct slab_traces t = {.all = {0}};
    slab_traces_parse(&t, "dentry", false,
                      "   4743 __d_alloc+0x2b/0x210 age=856/1089/1546 pid=1-143 cpus=0\n"
                      "        __d_alloc+0x2b/0x210\n"
                      "        ext4_lookup+0x60/0x450 [ext4]\n"
                      "        0xffffffffc02150c2\n"
                      "\n"
                      "      1 kmalloc_it+0x1/0x2 [brd] waste=64/64 age=7 pid=1\n"
                      "\n"
                      "      3 <not-available> age=1/2/3\n");
    assert_int_equal(t.all.len, 3);
    assert_string_equal(t.all.at[0].cache, "dentry");
    assert_string_equal(t.all.at[0].site, "__d_alloc+0x2b");
    assert_string_equal(t.all.at[0].stack, "__d_alloc+0x2b\next4_lookup+0x60 [ext4]\n[unknown]");
    assert_int_equal(t.all.at[0].objects, 4743);
    assert_int_equal(t.all.at[0].age_min, 856);
    assert_int_equal(t.all.at[0].age_max, 1546);
    assert_string_equal(t.all.at[1].site, "kmalloc_it+0x1 [brd]");
    assert_string_equal(t.all.at[1].stack, "");
    assert_int_equal(t.all.at[1].age_max, 7);
    assert_string_equal(t.all.at[2].site, "<not-available>");
    assert_int_equal(t.all.at[0].age_mean, 1089);
    assert_int_equal(t.all.at[0].pid_min, 1);
    assert_int_equal(t.all.at[0].pid_max, 143);
    assert_string_equal(t.all.at[0].cpus, "0");
    assert_string_equal(t.all.at[0].nodes, "");
    assert_int_equal(t.all.at[1].waste_bytes, 64);
    assert_int_equal(t.all.at[1].pid_max, 1);
    assert_int_equal(t.broken, 0);
    slab_traces_release(&t);
}

static void other_texts_have_no_objects(void **state)
{
    (void)state;
    struct slab_traces t = {.all = {0}};
    slab_traces_parse(&t, "a", false, "");
    slab_traces_parse(&t, "a", false, "No data\n");
    slab_traces_parse(&t, "a", false, "    f+0x1/0x2\n  12\n 0 f+0x1/0x2\n12x f\n");
    assert_int_equal(t.all.len, 0);
    slab_traces_release(&t);
}

static void sizes_come_from_the_state_or_the_name(void **state)
{
    (void)state;
    static const char *const caches[] = {"dentry",    "kmalloc-cg-1k", "kmalloc-rnd-03-96", "dma-kmalloc-2M",
                                         "kmalloc-x", "kmalloc-12q",   "vmap_area"};
    static const uint64_t want[] = {192, 1024, 96, 2 << 20, 0, 0, 0};
    struct slab_traces t = {.code_sizes = true};
    for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++)
        slab_traces_parse(&t, caches[i], i == 1, "  2 f+0x1/0x20 [m] age=1 pid=2 cpus=0-1 nodes=0\n");
    slab_traces_find_sizes(&t, "dentry\torder\t0\ndentry\tobject_size\t192\nUDP\t->\t:0001280\n");
    for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++)
        assert_int_equal(t.all.at[i].object_bytes, want[i]);
    assert_string_equal(t.all.at[0].site, "f+0x1/0x20 [m]");
    assert_string_equal(t.all.at[0].cpus, "0-1");
    assert_true(t.all.at[1].is_freed);
    slab_traces_release(&t);
}

static void paths_name_the_cache(void **state)
{
    (void)state;
    char cache[8];
    assert_false(slab_traces_name("/tmp/copies/dentry/alloc_traces", cache, sizeof(cache)));
    assert_string_equal(cache, "dentry");
    assert_true(slab_traces_name("filp/free_calls", cache, sizeof(cache)));
    assert_string_equal(cache, "filp");
    assert_false(slab_traces_name("/tmp/some.txt", cache, sizeof(cache)));
    assert_string_equal(cache, "");
    assert_false(slab_traces_name("-", cache, sizeof(cache)));
    static const char one[] = "   12 f+0x1/0x2 age=3\n";
    assert_true(slab_traces_is_text(one, sizeof(one) - 1));
    assert_false(slab_traces_is_text("   12 f+0x1/0x2\n age=3\n", 24));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_have_a_call_an_age_and_a_stack),
        cmocka_unit_test(other_texts_have_no_objects),
        cmocka_unit_test(sizes_come_from_the_state_or_the_name),
        cmocka_unit_test(paths_name_the_cache),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
