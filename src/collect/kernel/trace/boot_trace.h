/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_BOOT_TRACE_H
#define COLLECT_BOOT_TRACE_H

/*
 * A trace that the kernel began early in its boot, because its command line asks for events ("trace_event="). It is in
 * the top-level buffers of tracefs, which everybody may use: it is only touched if nobody else does.
 *
 * Runs in: the tool, as root. Threads: one. Owns: nothing.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "collect/kernel/trace/trace_instance.h"

struct boot_trace {
    uint64_t read_before; /* events that somebody has read: they are not in the buffers any more */
    uint64_t buffer_bytes, buffer_pages; /* of all CPUs; each page has an object of the slab allocator */
    bool was_on;                         /* tracing; it is off while the buffers are read */
};

/**
 * Checks that the buffers have events of kmem since the boot, and no others than the command line asks for; nothing is
 * changed. Returns 0, or -errno with a line: -ENODATA there are none, -EBUSY they are in use for something else.
 */
int boot_trace_check(struct boot_trace *b, const struct trace_instance *top, const char *command_line,
                     struct error *e);
/** Returns whether an event ("task/task_rename") is traced. */
bool boot_trace_has(const struct trace_instance *top, const char *event);
/**
 * Ends the events of kmem and task, and switches tracing off. `offset_ns` becomes CLOCK_REALTIME minus the trace's
 * clock. Returns as above.
 */
int boot_trace_stop(struct boot_trace *b, const struct trace_instance *top, int64_t *offset_ns,
                    struct error *e);
/** Switches tracing on again, if it was on. The events stay as they are. */
void boot_trace_resume(const struct boot_trace *b, const struct trace_instance *top);

#endif
