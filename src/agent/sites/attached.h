/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SITES_ATTACHED_H
#define SITES_ATTACHED_H

/*
 * The agent in a process that was running when it came (`allium attach`). The functions of the allocator begin with
 * jumps to ours; `next` has the ways around them (wire/attach_state.h).
 *
 * Runs in: target.
 */

#include <stdbool.h>

/** See read_settings of agent/sites_link.h. */
bool attached_read_settings(void);

#endif
