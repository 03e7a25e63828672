/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_OBJECT_FAULTS_H
#define COLLECT_OBJECT_FAULTS_H

/*
 * Page faults of a process by the account of the object that lies in the page: which allocation's memory is touched for
 * the first time, or read back from swap.
 *
 * The object is looked up some milliseconds after the fault. An object that is entered shortly after its first page (an
 * allocator writes its own words before it returns) is found by then; one that was freed within that time is not.
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
    uint64_t shared; /* of both: pages in which other accounts have objects, too */
};

struct object_faults;

/** 0, or -errno with a line that says what it takes. */
int object_faults_open(struct object_faults **out, pid_t pid, const struct object_lookup_where *where,
                       struct error *e);
void object_faults_close(struct object_faults *f);
/** Waits for faults up to that long, and counts what came. 0, or -ESRCH: the process has ended. */
int object_faults_step(struct object_faults *f, int timeout_ms);
/** Counts the rest. */
void object_faults_finish(struct object_faults *f);

/** Zeros of an account that had none. */
struct object_faults_sum object_faults_of(const struct object_faults *f, uint32_t account);
struct account_faults_rest object_faults_rest(const struct object_faults *f);
/** True: those in system calls were not told. */
bool object_faults_user_alone(const struct object_faults *f);

#endif
