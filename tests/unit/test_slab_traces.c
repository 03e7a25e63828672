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
    slab_traces_parse(&t, "dentry",
                      "   4743 __d_alloc+0x2b/0x210 age=856/1089/1546 pid=1-143 cpus=0\n"
                      "        __d_alloc+0x2b/0x210\n"
                      "        ext4_lookup+0x60/0x450 [ext4]\n"
                      "\n"
                      "      1 kmalloc_it+0x1/0x2 [brd] waste=64/64 age=7 pid=1\n"
                      "\n"
                      "      3 <not-available> age=1/2/3\n");
    assert_int_equal(t.all.len, 3);
    assert_string_equal(t.all.at[0].cache, "dentry");
    assert_string_equal(t.all.at[0].site, "__d_alloc+0x2b");
    assert_string_equal(t.all.at[0].stack, "__d_alloc+0x2b\next4_lookup+0x60 [ext4]");
    assert_int_equal(t.all.at[0].objects, 4743);
    assert_int_equal(t.all.at[0].age_min, 856);
    assert_int_equal(t.all.at[0].age_max, 1546);
    assert_string_equal(t.all.at[1].site, "kmalloc_it+0x1 [brd]");
    assert_string_equal(t.all.at[1].stack, "");
    assert_int_equal(t.all.at[1].age_max, 7);
    assert_string_equal(t.all.at[2].site, "<not-available>");
    slab_traces_release(&t);
}

static void other_texts_have_no_objects(void **state)
{
    (void)state;
    struct slab_traces t = {.all = {0}};
    slab_traces_parse(&t, "a", "");
    slab_traces_parse(&t, "a", "No data\n");
    slab_traces_parse(&t, "a", "    f+0x1/0x2\n  12\n 0 f+0x1/0x2\n12x f\n");
    assert_int_equal(t.all.len, 0);
    slab_traces_release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_have_a_call_an_age_and_a_stack),
        cmocka_unit_test(other_texts_have_no_objects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
