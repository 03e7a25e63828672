/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_KERNEL_ENUMS_H
#define SYS_KERNEL_ENUMS_H

/*
 * The names of the values of an enum of the running kernel, from its BTF. The numbers differ between versions
 * and configurations.
 */

#include <stdint.h>

#define KERNEL_ENUMS_VALUES_MAX 64

struct kernel_enums {
    char *names[KERNEL_ENUMS_VALUES_MAX]; /* by value; NULL: the value has no name */
};

/**
 * Reads the names of the kernel's `enum type` in lower case, without `prefix`; names without it are left out.
 * If two names have one value, the later name counts: the earlier one may be a limit. All are NULL if the
 * kernel has no such enum.
 */
void kernel_enums_load(struct kernel_enums *e, const char *type, const char *prefix);
void kernel_enums_release(struct kernel_enums *e);

#endif
