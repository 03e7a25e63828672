/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_EVENT_FILTER_H
#define SYS_EVENT_FILTER_H

/*
 * Whose events are wanted, in words that programs in the kernel can compare: which process allium is, in which
 * namespaces, and which one had the number that was asked for.
 *
 * Runs in: the tool.
 */

#include "base/error.h"
#include "bpf/sys.h"

/** Fills in what goes with c->filters, c->tgid and c->tid. 0, or -ESRCH: there is no such process, `e` has the line. */
int event_filter_fill(struct sys_config *c, struct error *e);

#endif
