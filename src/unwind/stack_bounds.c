/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/stack_bounds.h"

#include <stddef.h>

#include "base/sigsafe/atomic.h"
#include "base/sigsafe/syscall.h"

#define PAGE 4096u
/* less than the 128 MiB below the end of the main stack that the kernel keeps free of other mappings */
#define MAIN_STACK_REACH   (120ull << 20)
#define THREAD_STACK_MOST  (1ull << 36)
#define DESCRIPTOR_BYTES   4096u /* to search in struct pthread at most, which has 2304 bytes in glibc 2.36 */
#define FOREIGN_FRAME_MOST (256u << 10)

extern void *__libc_stack_end;

/* The offset in bytes of glibc's `stackblock` in the thread descriptor; 0: not found yet. */
static uint32_t stackblock_offset;
/* The program has made a part of the main stack or a thread's stack above the stack pointer inaccessible. */
static bool has_protected;

/* Returns whether the words at `at` can be stackblock, stackblock_size and guardsize of a stack that holds both sp and
 * the thread descriptor. If so, stores the bounds of this stack in *s. */
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

/* If sp lies on the main stack or the calling thread's stack, stores its bounds in *s. False: another stack. */
static bool enter_known(struct stack_bounds *s, uintptr_t sp)
{
    uintptr_t main_end = ((uintptr_t)__libc_stack_end + PAGE) & ~(uintptr_t)(PAGE - 1);
    if (sp >= main_end || sp < main_end - MAIN_STACK_REACH)
        return enter_thread(s, sp);
    s->low = main_end - MAIN_STACK_REACH;
    s->high = main_end;
    return true;
}

bool stack_enter(struct stack_bounds *s, uintptr_t sp, bool touched, bool sealed)
{
    bool known = enter_known(s, sp);
    s->checked_until = 0;
    if (known && likely(!load_relaxed(&has_protected)))
        return true;
    s->checked_until = known ? s->high : STACK_UNKNOWN;
    s->low = sp & ~(uintptr_t)(PAGE - 1);
    if (!touched && (sealed || !sys_can_read((const void *)s->low))) {
        *s = (struct stack_bounds){0};
        return false;
    }
    s->high = s->low + PAGE;
    return true;
}

bool stack_extend_cold(struct stack_bounds *s, uintptr_t from, uintptr_t end, bool sealed)
{
    if (s->checked_until != STACK_UNKNOWN) {
        uintptr_t page = (end - 1) & ~(uintptr_t)(PAGE - 1);
        if (end > s->checked_until || (page != s->low && (sealed || !sys_can_read((const void *)page))))
            return false;
        s->low = page;
        s->high = page + PAGE;
        return true;
    }
    if (sealed || from < s->low || end - s->high > FOREIGN_FRAME_MOST)
        return false;
    for (; s->high < end; s->high += PAGE)
        if (!sys_can_read((const void *)s->high))
            return false;
    return true;
}

void stack_note_protected(struct stack_bounds *s, uintptr_t from, uintptr_t end)
{
    struct stack_bounds own;
    uintptr_t sp = (uintptr_t)__builtin_frame_address(0);
    if (end <= sp || !enter_known(&own, sp) || from >= own.high)
        return;
    store_relaxed(&has_protected, true);
    *s = (struct stack_bounds){0};
}
