/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BENCH_KERNEL_MANY_H
#define BENCH_KERNEL_MANY_H

/*
 * One attachment for many uprobes (Linux 6.6 and later), to an empty BPF program.
 *
 * Runs in: the tool, as root. Threads: one.
 */

#include <stdint.h>

#include "bench/kernel/kernel_probe.h"

/**
 * Attaches to `n` instructions of target->file, of which the first is at target->offset, and the others follow at
 * distances of `stride`. Returns a descriptor, which ends the attachment when it is closed; or -errno and a line.
 */
int kernel_many_attach(const struct kernel_probe_target *target, uint32_t n, uint32_t stride,
                       struct error *e);

#endif
