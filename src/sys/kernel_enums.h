/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_KERNEL_ENUMS_H
#define SYS_KERNEL_ENUMS_H

/*
 * Names of the values of an enum of the running kernel, from its BTF: such numbers change with version and
 * configuration.
 *
 * Runs in: the tool. Owns: the names, until kernel_enums_release().
 */

#include <stdint.h>

#define KERNEL_ENUMS_VALUES_MAX 64

struct kernel_enums {
    char *names[KERNEL_ENUMS_VALUES_MAX]; /* by value; NULL: it has none */
};

/**
 * The names of the kernel's `enum type` in lower case, without `prefix`; those that do not begin with it are left out.
 * Of two names for a value the later one counts: the earlier may be a limit. All NULL where the kernel has no such
 * enum.
 */
void kernel_enums_load(struct kernel_enums *e, const char *type, const char *prefix);
void kernel_enums_release(struct kernel_enums *e);

#endif
