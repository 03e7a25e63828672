/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_KERNEL_EVENTS_H
#define BPF_KERNEL_EVENTS_H

/*
 * The kernel's events of a trace: what the tool sets before the programs are loaded, and what a CPU's writer keeps. The
 * events themselves are in wire/kernel_event_schema.h.
 */

#include "bpf/sys.h"

/** The layout of the array of rings; offsets are in bytes. A CPU has two rings: number CPU, and number `cpus` + CPU. */
struct kernel_ring_shape {
    __u32 cpus, overwrites;
    __u64 packet_bytes, ring_bytes;
    __u64 read_at, data_at; /* the reader's positions by ring; the first ring */
    __u32 preemptible;      /* a program may be interrupted by another thread of its CPU */
};

/** What a struct ring_cpu of the array has: that of a CPU's first ring also has the state of its writer. */
struct kernel_ring_cpu {
    __u64 head, ready_bytes, written;
    __u64 busy;             /* 1: a program writes an event */
    __u64 time;             /* of the last event */
    __u64 position, events; /* of the last packet, in full */
    __u64 unused;
    __u64 lost[8];
};

/** The state of the writers of a CPU's second ring; see kernel_ring.bpf.h. */
struct kernel_ring_writer {
    __u64 reserved;         /* a head: places up to here are taken */
    __u64 writers;          /* at work now */
    __u64 time;             /* of the last event */
    __u64 position, events; /* of a recent packet, in full */
};

/* Traced processes are bits, by their number in the initial namespace, which is below this. */
#define KERNEL_EVENTS_PIDS (1u << 22)

enum kernel_events_count {
    KERNEL_EVENTS_WANTED = SYS_COUNT_OWN, /* all events, if counts_wanted: for tests */
};

#endif
