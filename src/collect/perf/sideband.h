/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_SIDEBAND_H
#define COLLECT_SIDEBAND_H

/*
 * What the kernel tells of address spaces while it happens, of all processes: mappings, names, forks and exits, through
 * perf events. It is the band beside the events of a tool: what it tells gives their addresses a meaning.
 *
 * Two things have no record: munmap, and mremap. What was unmapped seems to be there still until something else is
 * mapped over it; what was moved seems to be where it was. Only reading /proc/PID/maps again tells.
 *
 * Runs in: the tool. Threads: one. Takes CAP_PERFMON (or CAP_SYS_ADMIN), or a low kernel.perf_event_paranoid.
 * Owns: descriptors and rings, one of each for each CPU, until sideband_close().
 * Invariant: records are handed out in the order of their times, but for some that another CPU was still writing when
 * sideband_drain() began; those come with the next call. What a thread did before it caused an event is there when
 * the event is.
 * Process numbers are those of the PID namespace of the caller.
 */

#include "base/error.h"
#include "collect/perf/sideband_record.h"

struct sideband;

struct sideband_options {
    unsigned
        /* for each CPU, rounded up to a power of two; 0: 4 MiB (40,000 records), less where CPUs are many */
        ring_pages;
    const char *online_path; /* a list of CPUs such as "0-3,8"; NULL: the kernel's */
};

/** 0; -EACCES or -EPERM: it may not; -ENOSYS: no perf events here; or another -errno. options may be NULL. */
int sideband_open(const struct sideband_options *options, struct sideband **out, struct error *why);
void sideband_close(struct sideband *s);

/**
 * Readable when a ring has 128 KiB to be read, or is a quarter full; for poll(2), until sideband_close(). Nobody needs
 * to wait for it before draining.
 */
int sideband_fd(const struct sideband *s);

typedef void sideband_fn(void *arg, const struct sideband_record *record);
/**
 * Hands out all that happened before this call; texts are valid within the call only. Looks after CPUs that come and
 * go.
 */
void sideband_drain(struct sideband *s, sideband_fn *take, void *arg);

/** Records that did not fit into a ring, exactly, as of the last drain. */
uint64_t sideband_lost(const struct sideband *s);
/** Records that could not be understood. */
uint64_t sideband_malformed(const struct sideband *s);

#endif
