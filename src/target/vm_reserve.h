/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TARGET_VM_RESERVE_H
#define TARGET_VM_RESERVE_H

/*
 * Address space of the target that is reserved whole and written to in few places. What is reserved reads as zeros, and
 * is not writable: so the kernel counts it neither as data (VmData, RLIMIT_DATA) nor as memory. Pieces are made
 * writable before the first write to them.
 *
 * Also: the question whether a system call may be made that the program does not expect.
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included; no lock.
 * Owns: private anonymous memory, until the image ends.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sigsafe/atomic.h"
#include "base/sigsafe/compiler.h"

/**
 * Reserves address space that reads as zeros. `wiped`: it is zeros again in a fork child. Returns NULL if the program
 * limits its address space, and more than an eighth of the limit would be reserved or too little would be left; under
 * seccomp; or where the kernel refuses it.
 */
void *vm_reserve(uint64_t bytes, bool wiped);
/**
 * Makes the pages of [at, at + bytes) writable, for good; they lie in what was reserved. Doing so again does no harm.
 * Returns false under seccomp, or if too little of a limit of the program would be left (headroom_in_limits()). After a
 * refusal the next calls are refused without a look.
 */
bool vm_reserve_open(const void *at, uint64_t bytes);
/** An array that was reserved, of which the first records are writable. */
struct vm_array {
    uint32_t record_bytes, most; /* records at most */
    uint32_t writable;           /* records; stays so in fork children */
};
/**
 * Makes the record with that number writable, and all before it, and some 64 KiB behind it. False as vm_reserve_open().
 */
bool vm_array_reach_cold(struct vm_array *a, const void *records, uint32_t number);

static inline bool vm_array_reach(struct vm_array *a, const void *records, uint32_t number)
{
    return likely(number < load_acquire(&a->writable)) || vm_array_reach_cold(a, records, number);
}

/**
 * Adds to the reasons for which no system call may be made. While there is one, nothing is reserved or made writable.
 */
void vm_reserve_seal(int reasons);
/** There is such a reason: not even a question whether the process is under seccomp is allowed. */
bool vm_reserve_is_sealed(void);
/** A system call may be made that the program does not expect: the process is neither sealed nor under seccomp. */
bool vm_reserve_may_call(void);
/** Gives back what was just reserved. */
void vm_reserve_release(void *memory, uint64_t bytes);
/** Does the address lie in what is reserved? */
bool vm_reserve_has(uintptr_t address);
/** Is anything reserved? */
bool vm_reserve_any(void);

#endif
