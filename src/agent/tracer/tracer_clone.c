/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Children that share the memory of their parent: those of vfork(2), and of clone(2) with CLONE_VM.
 *
 * The kernel aborts no sequences of such a child (rseq(2)). If the child also has the thread-local storage of the
 * thread that has called, it sees there that this thread is registered, and the CPU on which that thread was. So it
 * must not write into a CPU's ring, and does not know it. The functions below mark the storage (TRACER_UNREGISTERED)
 * until the child has executed a program, or ended: until then the calling thread of the parent sleeps. Then the child
 * writes into the ring that threads share, as the thread that has called.
 *
 * posix_spawn(3) makes its child inside libc, and allocates nothing there. A child by a system call that is not made by
 * these functions is not noticed. A child with storage of its own is looked at when it writes its first event.
 */
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/hooks/cold.h"
#include "agent/hooks/resolve.h"
#include "agent/reentry.h"
#include "agent/tracer/tracer.h"
#include "agent/tracer/tracer_life.h"
#include "agent/tracer/tracer_rings.h"
#include "base/sigsafe/syscall.h"

typedef int clone_fn(int (*)(void *), void *, int, void *, pid_t *, void *, pid_t *);
static clone_fn *next_clone;

void tracer_find_next(void)
{
    next_clone = (clone_fn *)resolve_next("clone", NULL);
}

/* Marks the thread's storage. Returns what is to be restored: the child may be killed amid a function of the agent. */
static __attribute__((used)) uint64_t child_begins(void)
{
    uint8_t outside;
    if (tracer_on && process_is_known(&thread_self) && tracer_know_thread() && tracer_rings_made()) {
        outside = ledger_enter(&thread_self);
        tracer_life_thread_begins();
        ledger_exit(&thread_self, outside);
    }
    const uint32_t before = tracer_thread;
    tracer_thread = before | TRACER_UNREGISTERED;
    return (uint64_t)thread_self.reentry_depth << 32 | before;
}

static __attribute__((used)) void child_ended(uint64_t before)
{
    tracer_thread = (uint32_t)before;
    thread_self.reentry_depth = (uint8_t)(before >> 32);
}

static __attribute__((used)) pid_t child_failed(int error)
{
    errno = error;
    return -1;
}

/*
 * The child returns first, and from then on uses the stack below its caller's frame. So the return address and what is
 * to be restored are kept in registers, which the kernel leaves alone. The child jumps: a shadow stack stays as it is.
 */
__attribute__((naked)) EXPORT pid_t tracer_vfork(void) __asm__("vfork");
pid_t tracer_vfork(void)
{
    __asm__("sub $8, %%rsp\n\t"
            "call %P[begins]\n\t"
            "add $8, %%rsp\n\t"
            "mov %%rax, %%rsi\n\t"
            "pop %%rdi\n\t"
            "mov %[number], %%eax\n\t"
            "syscall\n\t"
            "test %%rax, %%rax\n\t"
            "jz 1f\n\t"
            "push %%rdi\n\t"
            "push %%rax\n\t"
            "mov %%rsi, %%rdi\n\t"
            "call %P[ended]\n\t"
            "pop %%rax\n\t"
            "test %%rax, %%rax\n\t"
            "js 2f\n\t"
            "ret\n"
            "1:\n\t"
            "jmp *%%rdi\n"
            "2:\n\t"
            "neg %%eax\n\t"
            "mov %%eax, %%edi\n\t"
            "jmp %P[failed]" ::[number] "i"(SYS_vfork),
            [begins] "i"(child_begins), [ended] "i"(child_ended), [failed] "i"(child_failed));
}

/*
 * Declared without the "..." of clone(2): the arguments are in the same places. Without CLONE_VFORK the thread that
 * calls and the child write with one storage at once: it stays marked.
 */
EXPORT int tracer_clone(int (*run)(void *), void *stack, int flags, void *arg, pid_t *parent_id,
                        void *storage, pid_t *child_id) __asm__("clone");
int tracer_clone(int (*run)(void *), void *stack, int flags, void *arg, pid_t *parent_id, void *storage,
                 pid_t *child_id)
{
    if (unlikely(!next_clone))
        boot_agent();
    if (!(flags & CLONE_VM) || (flags & CLONE_SETTLS))
        return next_clone(run, stack, flags, arg, parent_id, storage, child_id);
    const uint64_t before = child_begins();
    const int id = next_clone(run, stack, flags, arg, parent_id, storage, child_id);
    if (id < 0 || (flags & CLONE_VFORK))
        child_ended(before);
    return id;
}
