/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TARGET_VM_RESERVE_H
#define TARGET_VM_RESERVE_H

/*
 * Reserves address space of the target. Reserved memory reads as zeros and is not writable, so the kernel counts it
 * neither as data (VmData, RLIMIT_DATA) nor as memory. Pieces are made writable before the first write to them.
 *
 * This file also has the state "sealed": no system call may be made that the program does not expect.
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included; no lock.
 * Owns: private anonymous memory, until the image ends.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sigsafe/atomic.h"
#include "base/sigsafe/compiler.h"
#include "wire/control_page.h"

/**
 * Reserves address space that reads as zeros. `wiped`: the kernel makes it zeros again in a fork child. NULL: the
 * program limits its address space, and more than an eighth of the limit would be reserved or too little would be
 * left; or the process is under seccomp; or the kernel refuses.
 */
void *vm_reserve(uint64_t bytes, bool wiped);
/**
 * Makes the pages of [at, at + bytes), which were reserved, writable for good. Doing so again does no harm. False:
 * the process is under seccomp, or too little of a limit of the program would be left (headroom_in_limits()). After a
 * refusal the next calls are refused without a check.
 */
bool vm_reserve_open(const void *at, uint64_t bytes);
/** A reserved array, of which the first records are writable. */
struct vm_array {
    uint32_t record_bytes, most; /* records at most */
    uint32_t writable;           /* records; stays so in fork children */
};
/**
 * Makes the record with that number writable, with all records before it and some 64 KiB after it. False: see
 * vm_reserve_open().
 */
bool vm_array_reach_cold(struct vm_array *a, const void *records, uint32_t number);

static inline bool vm_array_reach(struct vm_array *a, const void *records, uint32_t number)
{
    return likely(number < load_acquire(&a->writable)) || vm_array_reach_cold(a, records, number);
}

/** The control page that says whether the process is sealed, from now on; NULL: none. Fork children map it, too. */
void vm_reserve_obey(const struct ledger_control *page);
/**
 * Adds `reasons` (1 or -1) to the reasons to be sealed: no system call may be made. While there is one, nothing is
 * reserved or made writable.
 */
void vm_reserve_seal(int reasons);
/** Is there a reason to be sealed? Then not even prctl() may be called to ask about seccomp. */
bool vm_reserve_is_sealed(void);
/**
 * May a system call be made that the program does not expect? Only if the process is neither sealed nor under
 * seccomp.
 */
bool vm_reserve_may_call(void);
/** Gives reserved memory back to the kernel. */
void vm_reserve_release(void *memory, uint64_t bytes);
/** Is the address in reserved memory? */
bool vm_reserve_has(uintptr_t address);
/** Has anything been reserved? */
bool vm_reserve_any(void);

#endif
