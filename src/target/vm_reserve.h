/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TARGET_VM_RESERVE_H
#define TARGET_VM_RESERVE_H

/*
 * Reserves address space of the target. Reserved memory reads as zeros and is not writable, so the kernel counts it
 * neither as data (VmData, RLIMIT_DATA) nor as memory. Parts of it are made writable before the first write to them.
 *
 * This file also keeps the state "sealed", in which the library makes no system call of its own, because a seccomp
 * filter of the program might kill the program.
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
 * Reserves address space that reads as zeros. `wiped`: the kernel wipes it in fork children (MADV_WIPEONFORK). NULL:
 * the program limits its address space, and more than an eighth of the limit would be reserved or too little would be
 * left; or overcommit is strict; or the process is sealed or under seccomp; or the kernel refuses; or there are too
 * many reservations. After a refusal most calls are refused without a check.
 */
void *vm_reserve(uint64_t bytes, bool wiped);
/**
 * Makes the reserved pages of [at, at + bytes) writable for good; some may be writable already. False: the process is
 * sealed or under seccomp, or too little of a limit of the program would be left (headroom_in_limits()), or the kernel
 * refuses. After a refusal most calls are refused without a check.
 */
bool vm_reserve_open(const void *at, uint64_t bytes);
/** A reserved array, of which the first records are writable. */
struct vm_array {
    uint32_t record_bytes, most; /* records at most */
    uint32_t writable;           /* number of writable records; the same in fork children */
};
/**
 * Makes the record `number` writable, with all records before it and some 64 KiB after it. False: `number` is not below
 * a->most, or vm_reserve_open() has returned false.
 */
bool vm_array_reach_cold(struct vm_array *a, const void *records, uint32_t number);

static inline bool vm_array_reach(struct vm_array *a, const void *records, uint32_t number)
{
    return likely(number < load_acquire(&a->writable)) || vm_array_reach_cold(a, records, number);
}

/**
 * Sets the control page whose flag LEDGER_CONTROL_SEALED also forbids system calls; NULL: none. Fork children must
 * inherit the mapping of the page.
 */
void vm_reserve_obey(const struct ledger_control *page);
/**
 * Adds `reasons` (1 or -1) to the number of reasons to be sealed. While this number is not 0, nothing is reserved or
 * made writable.
 */
void vm_reserve_seal(int reasons);
/**
 * Returns whether the number of reasons to be sealed (vm_reserve_seal()) is not 0. If so, not even prctl() may be
 * called to find out whether the process is under seccomp.
 */
bool vm_reserve_is_sealed(void);
/** Returns whether the library may make system calls of its own: not if the process is sealed or under seccomp. */
bool vm_reserve_may_call(void);
/** Unmaps memory that vm_reserve() has returned; `bytes`: its size. */
void vm_reserve_release(void *memory, uint64_t bytes);
/** Returns whether the address is in reserved memory. */
bool vm_reserve_has(uintptr_t address);
/** Returns whether any memory has ever been reserved. */
bool vm_reserve_any(void);

#endif
