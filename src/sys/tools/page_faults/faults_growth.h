/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_FAULTS_GROWTH_H
#define SYS_FAULTS_GROWTH_H

/*
 * The growth of the resident memory of processes: from the value of each process at the start, and the
 * kernel's report of each change (kmem:rss_stat, struct faults_resident).
 *
 * Runs in: the tool. Owns: its data about each process, until growth_free().
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/faults.h"

struct growth;

/** Reads the present resident memory of each process, before changes are reported. */
struct growth *growth_new(void);
void growth_free(struct growth *g);
/** Returns the growth in bytes since the last call for this process, or since growth_new(), or since its
 * start. */
int64_t growth_since(struct growth *g, uint32_t pid, const struct faults_resident *now);

#endif
