/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MACHINE_RUNGS_H
#define MACHINE_RUNGS_H

/*
 * Does a rung fit the kernel that runs? What can be told from its BTF is told before anything is loaded.
 *
 * Runs in: the tool.
 */

#include <bpf/btf.h>

#include "base/buf.h"
#include "machine/tool.h"

/** Whether the tracepoint's first arguments have these names, in this order. False: `why` has the reason. */
bool rungs_arguments_fit(const struct btf *btf, const char *tracepoint, const char *arguments,
                         struct buf *why);

#endif
