/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_KERNEL_EVENTS_H
#define SYS_KERNEL_EVENTS_H

/*
 * The kernel's side of a trace: programs that write events of the traced processes into rings.
 *
 * Runs in: the tool, as root. Threads: one at a time. Owns: programs and the array of rings, until
 * kernel_events_close(); the kernel frees them when the process ends, however it ends.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"
#include "collect/trace/kernel_rings.h"

struct kernel_events;
struct probe_list;

struct kernel_events_options {
    uint32_t groups; /* enum kernel_event_group_bit */
    uint64_t
        ring_bytes; /* of each ring, of which a CPU has two; a power of two up to it is taken, and 256 MiB for all
                          * at most */
    bool overwrites;
    pid_t pid; /* of a process that runs; 0: the one that is forked next */
    /* functions whose calls are events, too; NULL: none. They stay the caller's, until kernel_events_close() */
    const struct probe_list *probes;
};

/** Returns 0, or -EPERM with a line: a privilege is missing. */
int kernel_events_check(struct error *e);
/**
 * Loads and attaches the programs. The process, or the first one that this process forks from then on, is traced, with
 * all that it starts; of a process that runs, also with those that it has started and that still run. Returns 0,
 * or with a line -EPERM: a privilege is missing; -EOPNOTSUPP: this kernel has not what it takes; another -errno.
 */
int kernel_events_open(struct kernel_events **out, const struct kernel_events_options *o, struct error *e);
/** Appends one line: where the probes are and what each of them costs here. */
void kernel_events_price(const struct kernel_events *k, struct buf *b);
/** The array, mapped, and what lies where. */
void *kernel_events_array(struct kernel_events *k);
const struct kernel_rings *kernel_events_rings(const struct kernel_events *k);
/** Ends it: from here on nothing is written. The array can still be read. */
void kernel_events_stop(struct kernel_events *k);
/**
 * After the end. Returns events, of whichever process, for which the kernel did not run a program, because they came
 * amid the same one on the same CPU.
 */
uint64_t kernel_events_missed(struct kernel_events *k);
/** For tests, after the end. Returns all events that the programs counted apart, if ALLIUM_KERNEL_COUNTS is set. */
uint64_t kernel_events_counted(struct kernel_events *k);
void kernel_events_close(struct kernel_events *k); /* NULL is allowed */

#endif
