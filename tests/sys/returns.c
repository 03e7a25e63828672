/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether a probe on a return ends a program with a seccomp filter. Of the kernels that can be had none does, so that a
 * filter against another system call stands for one that does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "sys/probe/return_check.h"

static void this_kernel_harms_nobody(void **state)
{
    (void)state;
    struct error e = {""};
    assert_int_equal(return_check_try(RETURN_CHECK_URETPROBE), 1);
    assert_int_equal(return_check("sys memleak", &e), 0);
    assert_string_equal(e.text, "");
}

static void who_is_ended_is_noticed(void **state)
{
    (void)state;
    assert_int_equal(return_check_try(SYS_exit_group), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"this kernel's probes on returns end no program with a filter", this_kernel_harms_nobody},
        {"a program that its filter ends is noticed", who_is_ended_is_noticed},
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
