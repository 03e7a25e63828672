/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_FAULTS_GROWTH_H
#define SYS_FAULTS_GROWTH_H

/*
 * By how much the resident memory of processes has grown: from what each had when we began, and what the kernel says at
 * each change (kmem:rss_stat, struct faults_resident).
 *
 * Runs in: the tool. Owns: what is known of each process, until growth_free().
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/faults.h"

struct growth;

/** Reads what each process has resident now: before the changes are listened to. */
struct growth *growth_new(void);
void growth_free(struct growth *g);
/** Bytes since the last call for this process, or since growth_new(), or its start. */
int64_t growth_since(struct growth *g, uint32_t pid, const struct faults_resident *now);

#endif
