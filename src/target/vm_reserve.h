/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TARGET_VM_RESERVE_H
#define TARGET_VM_RESERVE_H

/*
 * Address space of the target that is reserved whole and touched in few places.
 *
 * Runs in: target, cold paths. Threads: any.
 * Owns: private anonymous memory, until the image ends.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Zeros; again in fork children if `wiped`. NULL: more than an eighth of what the program is limited to would be ours, or it is under seccomp. */
void *vm_reserve(uint64_t bytes, bool wiped);
/** Adds to the reasons for which no system call may be made; while there are any, nothing is reserved. */
void vm_reserve_seal(int reasons);
/** There is one: not even whether the process is under seccomp may be asked. */
bool vm_reserve_is_sealed(void);
/** A system call may be made that the program does not expect: the process is not sealed, and not under seccomp. */
bool vm_reserve_may_call(void);
/** Gives back what was just reserved. */
void vm_reserve_release(void *memory, uint64_t bytes);
/** Is the address in it? Anything at all? */
bool vm_reserve_has(uintptr_t address);
bool vm_reserve_any(void);

#endif
