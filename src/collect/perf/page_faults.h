/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_PAGE_FAULTS_H
#define COLLECT_PAGE_FAULTS_H

/*
 * The page faults of one process, with their addresses, from perf's software events: of all its threads, also
 * of threads that they create later; not of child processes.
 *
 * An event of a thread can be mapped only when it is limited to one CPU. So there are two events (minor,
 * major) for each thread and CPU; all events of a CPU write into one ring. A thread that was created while
 * events were opened may have two; its duplicate records are removed.
 *
 * Runs in: the tool.
 * Threads: one. Needs the rights of ptrace(2), and kernel.perf_event_paranoid of at most 2. Without
 * CAP_PERFMON (or with more than 1) the kernel does not report faults in system calls, such as read(2) into
 * untouched memory.
 * Owns: descriptors and rings, until page_faults_close().
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct page_faults;

struct page_fault {
    uint64_t address, time_ns; /* CLOCK_MONOTONIC; the page was present by then */
    uint32_t tid;
    bool major;
};

/** Returns 0, or -errno with a line: no permission, no such process, or too few descriptors. */
int page_faults_open(struct page_faults **out, pid_t pid, struct error *e);
void page_faults_close(struct page_faults *f);

typedef void page_faults_fn(void *arg, const struct page_fault *fault);
/** Reports the faults since the last call; those of one CPU in the order of time. */
void page_faults_drain(struct page_faults *f, page_faults_fn *take, void *arg);
/** Waits until a ring is a quarter full, or for timeout_ms. */
void page_faults_wait(struct page_faults *f, int timeout_ms);

/** Faults that found no room, as of the last drain. */
uint64_t page_faults_lost(const struct page_faults *f);
/** Returns true if the kernel does not report faults in system calls. */
bool page_faults_user_alone(const struct page_faults *f);

#endif
