/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TARGET_VM_RESERVE_H
#define TARGET_VM_RESERVE_H

/*
 * Reserves address space of the target. Reserved memory reads as zeros and is not writable, so the kernel counts it
 * neither as data (VmData, RLIMIT_DATA) nor as memory. Parts of it are made writable before the first write to them.
 *
 * This file also keeps the state "sealed", in which we make no system call of our own, because a seccomp filter of the
 * program might kill it.
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
 * Reserves address space that reads as zeros. `wiped`: the kernel also wipes it in fork children (MADV_WIPEONFORK).
 * NULL: the program limits its address space, and more than an eighth of the limit would be reserved or too little
 * would be left; or overcommit is strict; or the process is sealed or under seccomp; or the kernel refuses.
 */
void *vm_reserve(uint64_t bytes, bool wiped);
/**
 * Makes the reserved pages of [at, at + bytes) writable for good; some may be writable already. False: the process is
 * sealed or under seccomp, or too little of a limit of the program would be left (headroom_in_limits()). After a
 * refusal most calls are refused without a check.
 */
bool vm_reserve_open(const void *at, uint64_t bytes);
/** A reserved array, of which the first records are writable. */
struct vm_array {
    uint32_t record_bytes, most; /* records at most */
    uint32_t writable;           /* records; fork children inherit it */
};
/**
 * Makes the record `number` writable, with all records before it and some 64 KiB after it. False: see
 * vm_reserve_open().
 */
bool vm_array_reach_cold(struct vm_array *a, const void *records, uint32_t number);

static inline bool vm_array_reach(struct vm_array *a, const void *records, uint32_t number)
{
    return likely(number < load_acquire(&a->writable)) || vm_array_reach_cold(a, records, number);
}

/** Sets the control page whose word has the bit "sealed"; NULL: none. The page is mapped in fork children, too. */
void vm_reserve_obey(const struct ledger_control *page);
/**
 * Adds `reasons` (1 or -1) to the number of reasons to be sealed. While it is not 0, nothing is reserved or made
 * writable.
 */
void vm_reserve_seal(int reasons);
/**
 * Is the number of reasons to be sealed (vm_reserve_seal()) not 0? Then not even prctl() may be called to find out
 * whether the process is under seccomp.
 */
bool vm_reserve_is_sealed(void);
/** May we make a system call of our own? Not if the process is sealed or under seccomp. */
bool vm_reserve_may_call(void);
/** Gives reserved memory back to the kernel. */
void vm_reserve_release(void *memory, uint64_t bytes);
/** Is the address in reserved memory? */
bool vm_reserve_has(uintptr_t address);
/** Has anything been reserved? */
bool vm_reserve_any(void);

#endif
