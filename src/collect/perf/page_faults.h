/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_PAGE_FAULTS_H
#define COLLECT_PAGE_FAULTS_H

/*
 * The page faults of one process, with their addresses, from perf's software events: of all its threads, and of those
 * that they make later; not of children.
 *
 * An event of a thread can only be mapped when it is of one CPU, so there are two (minor, major) for each thread and
 * CPU; all of a CPU write into one ring. A thread that was made while we looked for them may have two: what it tells
 * twice is handed out once.
 *
 * Runs in: the tool. Threads: one. Takes what ptrace(2) takes, and kernel.perf_event_paranoid of at most 2; without
 * CAP_PERFMON (or one of at most 1) the kernel does not tell of faults in system calls, such as read(2) into memory
 * that nobody touched.
 * Owns: descriptors and rings, until page_faults_close().
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct page_faults;

struct page_fault {
    uint64_t address, time_ns; /* CLOCK_MONOTONIC; the page was there by then */
    uint32_t tid;
    bool major;
};

/** 0, or -errno with a line: it may not, there is no such process, or too few descriptors. */
int page_faults_open(struct page_faults **out, pid_t pid, struct error *e);
void page_faults_close(struct page_faults *f);

typedef void page_faults_fn(void *arg, const struct page_fault *fault);
/** Hands out what came since the last call; of one CPU in the order of time. */
void page_faults_drain(struct page_faults *f, page_faults_fn *take, void *arg);
/** Waits until a ring is a quarter full, or so long. */
void page_faults_wait(struct page_faults *f, int timeout_ms);

/** Faults for which there was no room, as of the last drain. */
uint64_t page_faults_lost(const struct page_faults *f);
/** True: those in system calls are not told. */
bool page_faults_user_alone(const struct page_faults *f);

#endif
