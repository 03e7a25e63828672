/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_RECORDER_NAMES_H
#define SYS_RECORDER_NAMES_H

/*
 * How code, flags and control groups of the running kernel are named, for kernel_capture.h.
 *
 * Runs in: the tool. Threads: one. Owns: its members but `tasks`, until recorder_names_release().
 */

#include "sys/kernel_enums.h"
#include "sys/record/kernel_capture.h"
#include "sys/record/tasks.h"

struct names;

/** The call_site of allocations by this process: no code is at this address. */
#define RECORDER_OWN_SITE 0
#define RECORDER_OWN_NAME "allium itself"
/** The call_site of a free if its event names no call. */
#define RECORDER_NO_SITE 1
/** In place of a program that was only interrupted. */
#define RECORDER_INTERRUPT_NAME "[interrupt]"

struct recorder_names {
    struct names *names;
    const struct tasks *tasks;
    struct kernel_enums types; /* of pages: migrate types */
    bool has_types;            /* read already */
};

/** Returns functions on `r`, which must outlive them. `source`: files of the source are known. */
struct kernel_code_names recorder_names_of(struct recorder_names *r, bool source);
void recorder_names_release(struct recorder_names *r);

#endif
