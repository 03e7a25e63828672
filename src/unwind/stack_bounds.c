/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/stack_bounds.h"

#include <stddef.h>

#include "base/sigsafe/atomic.h"
#include "base/sigsafe/syscall.h"

#define PAGE 4096u
/* the kernel keeps 128 MiB below the main stack free of other mappings */
#define MAIN_STACK_REACH   (120ull << 20)
#define THREAD_STACK_MOST  (1ull << 36)
#define DESCRIPTOR_BYTES   4096u /* limit of the search in struct pthread, which has 2304 bytes in glibc 2.36 */
#define FOREIGN_FRAME_MOST (256u << 10)

extern void *__libc_stack_end;

/* The offset of glibc's `stackblock` and `stackblock_size` in the thread descriptor; 0: not found yet. */
static uint32_t stackblock_offset;

/* Returns whether the words at `at` can be stackblock, stackblock_size and guardsize of a stack that holds both sp and
 * the thread descriptor. */
static bool describes_stack(const uintptr_t *at, uintptr_t descriptor, uintptr_t sp, struct stack_bounds *s)
{
    uintptr_t block = at[0], size = at[1], guard = at[2];
    if (!block || block % PAGE || size % PAGE || size > THREAD_STACK_MOST || guard > size)
        return false;
    if (sp < block + guard || sp >= block + size || descriptor < block || descriptor >= block + size)
        return false;
    s->low = block + guard;
    s->high = block + size;
    return true;
}

static bool enter_thread(struct stack_bounds *s, uintptr_t sp)
{
    uintptr_t descriptor = (uintptr_t)__builtin_thread_pointer();
    uint32_t known = load_relaxed(&stackblock_offset);
    if (known)
        return describes_stack((const uintptr_t *)(descriptor + known), descriptor, sp, s);
    uintptr_t page_end = (descriptor + DESCRIPTOR_BYTES) & ~(uintptr_t)(PAGE - 1);
    for (uint32_t offset = 8; descriptor + offset + 24 <= page_end; offset += 8)
        if (describes_stack((const uintptr_t *)(descriptor + offset), descriptor, sp, s)) {
            store_relaxed(&stackblock_offset, offset);
            return true;
        }
    return false;
}

bool stack_enter(struct stack_bounds *s, uintptr_t sp, bool touched, bool sealed)
{
    uintptr_t main_end = ((uintptr_t)__libc_stack_end + PAGE) & ~(uintptr_t)(PAGE - 1);
    s->foreign_end = 0;
    if (sp < main_end && sp >= main_end - MAIN_STACK_REACH) {
        s->low = main_end - MAIN_STACK_REACH;
        s->high = main_end;
        return true;
    }
    if (enter_thread(s, sp))
        return true;
    s->low = sp & ~(uintptr_t)(PAGE - 1);
    if (!touched && (sealed || !sys_can_read((const void *)s->low))) {
        s->low = s->high = 0;
        return false;
    }
    s->high = s->foreign_end = s->low + PAGE;
    return true;
}

bool stack_extend_cold(struct stack_bounds *s, uintptr_t end, bool sealed)
{
    if (sealed || end - s->foreign_end > FOREIGN_FRAME_MOST)
        return false;
    while (s->foreign_end < end) {
        if (!sys_can_read((const void *)s->foreign_end))
            return false;
        s->foreign_end += PAGE;
        s->high = s->foreign_end;
    }
    return true;
}
