/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_TESTED_KERNELS_H
#define SYS_TESTED_KERNELS_H

/*
 * Which kernels the tools were run on: `make check-kernels` boots them, or they were tested on directly. Others are
 * untested, which is said, and may work all the same.
 *
 * Runs in: the tool. Threads: any.
 */

#include <stdbool.h>

#define KERNELS_TESTED "6.1, 6.12 and 6.18"
#define KERNELS_LEAST  "5.15"

/** Is the release ("6.12.117+deb12-cloud-amd64") of one of these series? */
bool kernels_tested(const char *release);

#endif
