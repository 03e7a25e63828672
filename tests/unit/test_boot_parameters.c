/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel's command line asks to trace, and how large the buffers for that should be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/kernel/boot_parameters.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

static void an_event_is_asked_for_by_its_name_with_or_without_its_system(void **state)
{
    (void)state;
    const char *line = "root=/dev/vda trace_event=sched:sched_switch,kmem:kmalloc,kfree quiet\n";
    assert_true(boot_parameters_trace(line, "kmem", "kmalloc"));
    assert_true(boot_parameters_trace(line, "kmem", "kfree"));
    assert_true(boot_parameters_trace(line, "sched", "sched_switch"));
    assert_false(boot_parameters_trace(line, "kmem", "kmem_cache_alloc"));
    assert_false(boot_parameters_trace(line, "kmem", "kmalloc_node"));
}

static void a_system_and_wildcards_ask_for_several_events(void **state)
{
    (void)state;
    assert_true(boot_parameters_trace("trace_event=kmem", "kmem", "kfree"));
    assert_true(boot_parameters_trace("trace_event=kmem:*", "kmem", "kfree"));
    assert_true(boot_parameters_trace("trace_event=kmem:", "kmem", "kfree"));
    assert_true(
        boot_parameters_trace("a trace_event=task trace_event=*:kmem_cache_*", "kmem", "kmem_cache_free"));
    assert_false(boot_parameters_trace("trace_event=*:kmem_cache_*", "kmem", "kfree"));
}

static void other_parameters_ask_for_nothing(void **state)
{
    (void)state;
    assert_false(boot_parameters_trace("", "kmem", "kfree"));
    assert_false(boot_parameters_trace("trace_event=", "kmem", "kfree"));
    assert_false(boot_parameters_trace("trace_event=,,", "kmem", "kfree"));
    assert_false(boot_parameters_trace("xtrace_event=kmem trace_events=kmem kmem", "kmem", "kfree"));
}

static void the_buffers_have_room_for_the_boot_of_a_machine_like_this_one(void **state)
{
    (void)state;
    /* 1,000,000 objects * 5 events * 64 bytes are 305 MiB. */
    assert_int_equal(boot_parameters_buffer_mib(&(struct boot_machine){64 * GIB, 4, 1000000}), 512);
    /* The share of 16 GiB is 2 GiB: 512 MiB each. */
    assert_int_equal(boot_parameters_buffer_mib(&(struct boot_machine){16 * GIB, 4, 9000000}), 512);
    assert_int_equal(boot_parameters_buffer_mib(&(struct boot_machine){16 * GIB, 5, 9000000}), 256);
    assert_int_equal(boot_parameters_buffer_mib(&(struct boot_machine){480 * MIB, 1, 40000}), 32);
}

static void there_is_a_least_and_a_largest_size(void **state)
{
    (void)state;
    assert_int_equal(boot_parameters_buffer_mib(&(struct boot_machine){16 * GIB, 2, 0}), 32);
    assert_int_equal(boot_parameters_buffer_mib(&(struct boot_machine){4096 * GIB, 2, UINT64_C(1) << 40}),
                     1024);
    assert_int_equal(boot_parameters_buffer_mib(&(struct boot_machine){32 * MIB, 8, 0}), 1);
    assert_int_equal(boot_parameters_buffer_mib(&(struct boot_machine){0, 0, 0}), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_is_asked_for_by_its_name_with_or_without_its_system),
        cmocka_unit_test(a_system_and_wildcards_ask_for_several_events),
        cmocka_unit_test(other_parameters_ask_for_nothing),
        cmocka_unit_test(the_buffers_have_room_for_the_boot_of_a_machine_like_this_one),
        cmocka_unit_test(there_is_a_least_and_a_largest_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
