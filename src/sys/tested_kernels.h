/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_TESTED_KERNELS_H
#define SYS_TESTED_KERNELS_H

/*
 * The kernels on which the tools were tested: `make check-kernels` boots them, or the tests ran on them.
 * Other kernels are reported as untested, and may work all the same.
 */

#include <stdbool.h>

#define KERNELS_TESTED "6.1, 6.12 and 6.18"
#define KERNELS_LEAST  "5.15"

/** Returns whether the release ("6.12.117+deb12-cloud-amd64") belongs to one of these series. */
bool kernels_tested(const char *release);

#endif
