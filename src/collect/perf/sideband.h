/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_SIDEBAND_H
#define COLLECT_SIDEBAND_H

/*
 * The side band: perf events about the address spaces of all processes: mappings, names, forks and exits. It
 * accompanies the events of a tool and gives their addresses a meaning.
 *
 * Two things have no record: munmap and mremap. Unmapped memory seems to be mapped still until something else
 * is mapped over it; moved memory seems to be at its old place. Only reading /proc/PID/maps again corrects
 * this.
 *
 * Runs in: the tool. Threads: one. Needs CAP_PERFMON (or CAP_SYS_ADMIN), or a low kernel.perf_event_paranoid.
 * Owns: descriptors and rings, one of each for each CPU, until sideband_close().
 * Invariant: records are reported in the order of their times, except some that another CPU was still writing
 * when sideband_drain() began; those come with the next call. What a thread did before it caused an event is
 * there when the event is. Pids are those of the caller's PID namespace.
 */

#include "base/error.h"
#include "collect/perf/sideband_record.h"

struct sideband;

struct sideband_options {
    /* for each CPU, rounded up to a power of two; 0: 4 MiB (40,000 records), less if there are many CPUs */
    unsigned ring_pages;
    const char *online_path; /* a list of CPUs such as "0-3,8"; NULL: the kernel's */
};

/** Returns 0; -EACCES or -EPERM: no permission; -ENOSYS: no perf events here; or another -errno. `options`
 * may be NULL. */
int sideband_open(const struct sideband_options *options, struct sideband **out, struct error *why);
void sideband_close(struct sideband *s);

/**
 * Returns a descriptor for poll(2), readable when a ring has 128 KiB of data or is a quarter full; valid
 * until sideband_close(). Draining does not require waiting for it.
 */
int sideband_fd(const struct sideband *s);

typedef void sideband_fn(void *arg, const struct sideband_record *record);
/**
 * Reports everything that happened before this call; texts are valid within the call only. Handles CPUs that
 * come and go.
 */
void sideband_drain(struct sideband *s, sideband_fn *take, void *arg);

/** Returns the exact number of records that did not fit into a ring, as of the last drain. */
uint64_t sideband_lost(const struct sideband *s);
/** Returns the number of records that could not be parsed. */
uint64_t sideband_malformed(const struct sideband *s);

#endif
