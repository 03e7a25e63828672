/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_KERNEL_EVENT_CLASSES_H
#define COLLECT_KERNEL_EVENT_CLASSES_H

/*
 * The kernel's events of a trace, as wire/kernel_event_schema.h lists them, and their groups.
 *
 * Runs in: the tool. Threads: any. Pure data.
 */

#include "base/sigsafe/event_class.h"
#include "wire/kernel_event_schema.h"

/** Returns the classes of the groups with these bits, and sets *n to their number. The caller frees the array. */
struct event_class *kernel_event_classes_of(uint32_t groups, uint32_t *n);
/** Returns the class of that name ("kernel:mmap"), and sets *group to the bit of its group. NULL: there is none. */
const struct event_class *kernel_event_class(const char *name, uint32_t *group);
/** Returns the bits of the groups in "faults,sched"; 0: *bad is the first unknown word, which ends at a comma or
 * the end. */
uint32_t kernel_event_groups(const char *list, const char **bad);
/** Returns the name of the group with this number; NULL: there is none. */
const char *kernel_event_group_name(uint32_t group);

#endif
