/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_EVENT_FILTER_H
#define SYS_EVENT_FILTER_H

/*
 * Converts the event filters to numbers that programs in the kernel compare: allium's own process, the
 * namespaces, and the process that had the requested pid.
 */

#include "base/error.h"
#include "bpf/sys.h"

/** Fills in c->filters, c->tgid and c->tid. Returns 0, or -ESRCH with a line in `e` if there is no such
 * process. */
int event_filter_fill(struct sys_config *c, struct error *e);

#endif
