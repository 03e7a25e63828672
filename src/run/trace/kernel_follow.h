/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUN_KERNEL_FOLLOW_H
#define RUN_KERNEL_FOLLOW_H

/*
 * The kernel's side of a trace: attaches the programs, reads their rings by a thread of its own, and writes the events
 * as CTF beside those of the program, or adds them up.
 *
 * Runs in: the tool, as root. Threads: the caller's, and one that this makes. Owns: programs, rings and files, until
 * kernel_follow_end().
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"

struct event_class;
struct kernel_follow;
struct probe_list;
struct ring_sums;

struct kernel_follow_counts {
    uint64_t events, lost, bytes;
    uint64_t missed;  /* at most: events of any process that came while the same program ran */
    uint64_t damaged; /* pieces of rings that could not be read */
    uint64_t counted; /* for tests, see kernel_events_counted() */
};

#define KERNEL_FOLLOW_ALL        UINT32_MAX /* groups */
#define KERNEL_FOLLOW_RING_BYTES (4ull << 20)
#define KERNEL_FOLLOW_RING_LEAST (32ull << 10)
#define KERNEL_FOLLOW_RING_MOST  (64ull << 20)

/** The names of all groups, for a line. */
const char *kernel_follow_group_names(void);
/** Returns the bits of the groups in "faults,sched"; 0: *bad is the first word that is none, up to a comma or the end.
 */
uint32_t kernel_follow_groups(const char *list, const char **bad);
/** Returns 0, or -EPERM with a line: a privilege is missing. */
int kernel_follow_check(struct error *e);

struct kernel_follow_options {
    uint32_t groups;                 /* of kernel_follow_groups(); 0: none */
    const struct probe_list *probes; /* the caller's: functions whose calls are events, too. NULL: none */
    uint64_t ring_bytes;             /* of each ring, of which a CPU has two; made a power of two */
    bool overwrites;                 /* full rings replace their oldest events */
    pid_t pid;                       /* of a process that runs; 0: the one that is forked next */
};

/**
 * Attaches. The process, or the next one that this process forks, is traced, with all processes that it starts. Returns
 * 0, or -errno with a line; -EPERM and -EOPNOTSUPP: tracing the kernel is not possible here.
 */
int kernel_follow_begin(struct kernel_follow **out, const struct kernel_follow_options *o, struct error *e);
/** Appends a line that says what the probes on functions cost. */
void kernel_follow_price(const struct kernel_follow *f, struct buf *b);
/** Starts to read the rings, and to write into this folder of a trace. `folder` NULL: only snapshots look at the rings.
 * Returns 0, or -errno with a line. */
int kernel_follow_start(struct kernel_follow *f, const char *folder, struct error *e);
/**
 * Starts to read, and adds the events to `sums`, which gets their classes, instead of writing them. Returns 0, or
 * -errno with a line.
 */
int kernel_follow_start_sums(struct kernel_follow *f, struct ring_sums *sums, struct error *e);
/** The rings, mapped until kernel_follow_end(): what snapshots look at. */
void *kernel_follow_rings(struct kernel_follow *f, size_t *bytes);
/** Returns the classes of its events and sets *n to their number. The caller frees the array. */
struct event_class *kernel_follow_classes(const struct kernel_follow *f, uint32_t *n);
/** Ends it, and reads what is left. Returns 0, or -errno with a line. NULL is allowed. */
int kernel_follow_end(struct kernel_follow *f, struct kernel_follow_counts *out, struct error *e);

#endif
