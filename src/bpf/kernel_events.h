/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_KERNEL_EVENTS_H
#define BPF_KERNEL_EVENTS_H

/*
 * The kernel's events of a trace: what the tool sets before the programs are loaded, and what a CPU's writer keeps. The
 * events themselves are in wire/kernel_event_schema.h.
 */

#include "bpf/sys.h"

/** The layout of the array of rings; offsets are in bytes. */
struct kernel_ring_shape {
    __u32 cpus, overwrites;
    __u64 packet_bytes, ring_bytes;
    __u64 read_at, data_at; /* the reader's positions by CPU; the first CPU's ring */
};

/** The state of one CPU's writers; see kernel_ring.bpf.h. */
struct kernel_ring_writer {
    __u64 reserved;         /* a head: places up to here are taken */
    __u64 writers;          /* at work now */
    __u64 time;             /* of the last event */
    __u64 position, events; /* of a recent packet, in full */
};

#define KERNEL_EVENTS_TRACED_MAX 32768u /* processes at a time */

enum kernel_events_count {
    KERNEL_EVENTS_TRACED_FULL = SYS_COUNT_OWN, /* processes that found no room there */
    KERNEL_EVENTS_WANTED,                      /* all events, if counts_wanted: for tests */
};

#endif
