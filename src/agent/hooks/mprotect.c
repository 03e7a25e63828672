/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hook of mprotect(2): notes if the program makes a part of a stack inaccessible (see unwind/stack_bounds.h).
 *
 * Runs in: target, when the program calls it. Threads: any, signal handlers included.
 */
#include <errno.h>
#include <sys/mman.h>

#include "agent/hooks/cold.h"
#include "base/sigsafe/syscall.h"
#include "unwind/stack_bounds.h"

EXPORT int mprotect(void *from, size_t bytes, int access)
{
    if (!(access & PROT_READ))
        stack_note_protected(&thread_self.stack, (uintptr_t)from, (uintptr_t)from + bytes);
    long bad = sys_call(SYS_mprotect, from, bytes, access);
    if (likely(!bad))
        return 0;
    errno = (int)-bad;
    return -1;
}
