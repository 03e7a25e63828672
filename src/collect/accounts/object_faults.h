/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_OBJECT_FAULTS_H
#define COLLECT_OBJECT_FAULTS_H

/*
 * Counts the page faults of a process by the account of the object in the page. This shows which allocation's
 * memory is touched for the first time, or read back from swap.
 *
 * The object is looked up some milliseconds after the fault. An object that enters the map shortly after its
 * first page was touched (an allocator writes its own words before it returns) is found; one that was freed
 * within that time is not.
 *
 * Runs in: the tool. Threads: one. Owns: all of it, until object_faults_close().
 */

#include "base/error.h"
#include "base/hash_map.h"
#include "base/vec.h"
#include "collect/accounts/object_lookup.h"
#include "model/accounts/accounts.h"

#include <stdint.h>
#include <sys/types.h>

struct object_faults_sum {
    uint64_t minor, major;
    uint64_t shared; /* those of both kinds that hit a page with objects of other accounts, too */
};

struct object_faults;

/** Returns 0, or -errno with a line that names the missing privilege. */
int object_faults_open(struct object_faults **out, pid_t pid, const struct object_lookup_where *where,
                       struct error *e);
void object_faults_close(struct object_faults *f);
/**
 * Waits for faults for at most timeout_ms, and counts them. Returns 0, or -ESRCH if the process has ended.
 */
int object_faults_step(struct object_faults *f, int timeout_ms);
/** Counts the remaining events. */
void object_faults_finish(struct object_faults *f);

/** Returns zeros for an account without faults. */
struct object_faults_sum object_faults_of(const struct object_faults *f, uint32_t account);
struct account_faults_rest object_faults_rest(const struct object_faults *f);
/** Returns true if the kernel does not report faults in system calls. */
bool object_faults_user_alone(const struct object_faults *f);

#endif
