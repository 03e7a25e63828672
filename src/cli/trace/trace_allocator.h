/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_TRACE_ALLOCATOR_H
#define CLI_TRACE_ALLOCATOR_H

/* How much of the allocator's time was page faults, reclaim and time off the CPU, at the end of `allium trace`. */

#include <stdint.h>

/**
 * Reads the trace and prints a line on stderr, if the trace has beginnings of calls (group `begin`) and events of the
 * kernel that may lie in them. `events`: how many it has; if reading them would take long, the line says how to do it.
 */
void trace_allocator_print(const char *folder, uint64_t events);

#endif
