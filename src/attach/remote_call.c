/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/remote_call.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <ucontext.h>

#include "attach/safe_point.h"
#include "base/mem.h"
#include "base/sigsafe/clock_ns.h"

#define RED_ZONE     128u
#define XSTATE_ALIGN 64u
/* The kernel's marks of a frame with extended registers (asm/sigcontext.h, asm/ucontext.h). */
#define FX_SOFTWARE_OFFSET 464u
#define XSTATE_MAGIC1      0x46505853u
#define XSTATE_MAGIC2      0x46505845u
#define FRAME_FLAGS        (1u | 2u | 4u) /* UC_FP_XSTATE, UC_SIGCONTEXT_SS, UC_STRICT_RESTORE_SS */
#define STACK_STAYS        3 /* no valid value: rt_sigreturn() leaves the alternate signal stack unchanged */
#define XSTATE_MOST        (64u << 10)
#define LOCK_MOST_MS       20u
#define SYSCALL_BYTES      2

/* As the kernel lays it out. The mask is one word here, though libc's type is longer. */
struct frame {
    uint64_t returns_to;
    uint64_t flags, link;
    stack_t stack;
    struct {
        uint64_t r8, r9, r10, r11, r12, r13, r14, r15, di, si, bp, bx, dx, ax, cx, sp, ip, flags;
        uint16_t cs, gs, fs, ss;
        uint64_t error, trap, old_mask, cr2, floating, reserved[8];
    } machine;
    uint64_t mask;
    siginfo_t info;
};

struct software_bytes {
    uint32_t magic1, extended_bytes;
    uint64_t features;
    uint32_t xstate_bytes, padding[7];
};

/* What is restored. */
struct saved {
    struct user_regs_struct regs;
    uint64_t mask;
    unsigned char *xstate;
    size_t xstate_bytes;
};

/* Finds the code that a signal handler returns to: mov $SYS_rt_sigreturn,%rax; syscall. */
static uint64_t find_restorer(const struct target *t)
{
    static const unsigned char code[] = {0x48, 0xc7, 0xc0, SYS_rt_sigreturn, 0, 0, 0, 0x0f, 0x05};
    const struct target_module *libc = target_module(t, "libc.so.");
    if (!libc)
        return 0;
    vec_each (const struct probe_code, c, &libc->elf.codes)
        for (const unsigned char *at = c->bytes;
             (at = memmem(at, c->high - c->low - (size_t)(at - c->bytes), code, sizeof(code))); at++)
            return libc->bias + c->low + (uint64_t)(at - c->bytes);
    return 0;
}

static bool save(pid_t tid, const struct stopped_thread *thread, struct saved *s)
{
    *s = (struct saved){.regs = thread->regs, .xstate = mem_alloc(XSTATE_MOST)};
    struct iovec v = {s->xstate, XSTATE_MOST};
    if (ptrace(PTRACE_GETREGSET, tid, NT_X86_XSTATE, &v) < 0 ||
        ptrace(PTRACE_GETSIGMASK, tid, sizeof(s->mask), &s->mask) < 0)
        return false;
    s->xstate_bytes = v.iov_len;
    return true;
}

static bool restore(pid_t tid, const struct saved *s)
{
    struct iovec v = {s->xstate, s->xstate_bytes};
    const bool done = ptrace(PTRACE_SETREGSET, tid, NT_X86_XSTATE, &v) == 0;
    return ptrace(PTRACE_SETSIGMASK, tid, sizeof(s->mask), &s->mask) == 0 &&
           ptrace(PTRACE_SETREGS, tid, 0, &s->regs) == 0 && done;
}

/* The system call that the thread was in begins again, or ends, as the kernel would have it. */
static void resume_call(struct frame *f, const struct user_regs_struct *r)
{
    if ((int64_t)r->orig_rax < 0)
        return;
    switch (-(int64_t)r->rax) {
    case 512: /* ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND */
    case 513:
    case 514:
        f->machine.ax = r->orig_rax;
        f->machine.ip -= 2;
        break;
    case 516: /* ERESTART_RESTARTBLOCK, which rt_sigreturn() drops */
        f->machine.ax = (uint64_t)-EINTR;
        break;
    default:
        break;
    }
}

static void fill_frame(struct frame *f, const struct saved *s, uint64_t restorer, uint64_t xstate)
{
    const struct user_regs_struct *r = &s->regs;
    *f = (struct frame){.returns_to = restorer, .flags = FRAME_FLAGS, .mask = s->mask};
    f->stack.ss_flags = STACK_STAYS;
    f->machine = (__typeof__(f->machine)){
        .r8 = r->r8,
        .r9 = r->r9,
        .r10 = r->r10,
        .r11 = r->r11,
        .r12 = r->r12,
        .r13 = r->r13,
        .r14 = r->r14,
        .r15 = r->r15,
        .di = r->rdi,
        .si = r->rsi,
        .bp = r->rbp,
        .bx = r->rbx,
        .dx = r->rdx,
        .ax = r->rax,
        .cx = r->rcx,
        .sp = r->rsp,
        .ip = r->rip,
        .flags = r->eflags,
        .cs = (uint16_t)r->cs,
        .ss = (uint16_t)r->ss,
        .old_mask = s->mask,
        .floating = xstate,
    };
    resume_call(f, r);
}

/* Writes frame, registers and text below the thread's stack. Returns the new stack pointer; 0: there is no room. */
static uint64_t push_frame(const struct target *t, const struct saved *s, uint64_t restorer, const char *text,
                           uint64_t *text_at)
{
    const uint32_t magic2 = XSTATE_MAGIC2;
    uint64_t features;
    struct frame f;
    const uint64_t xstate =
        (s->regs.rsp - RED_ZONE - s->xstate_bytes - sizeof(magic2)) & ~(uint64_t)(XSTATE_ALIGN - 1);
    const size_t text_bytes = text ? strlen(text) + 1 : 0;
    *text_at = xstate - text_bytes;
    const uint64_t at = ((*text_at - sizeof(f)) & ~15ull) - 8; /* as behind a call */
    if (s->xstate_bytes < FX_SOFTWARE_OFFSET + sizeof(struct software_bytes) + sizeof(features))
        return 0;
    fill_frame(&f, s, restorer, xstate);
    memcpy(&features, s->xstate + FX_SOFTWARE_OFFSET, sizeof(features)); /* ptrace has them there */
    const struct software_bytes software = {.magic1 = XSTATE_MAGIC1,
                                            .extended_bytes = (uint32_t)(s->xstate_bytes + sizeof(magic2)),
                                            .features = features,
                                            .xstate_bytes = (uint32_t)s->xstate_bytes};
    const bool done = target_write(t, xstate, s->xstate, s->xstate_bytes) &&
                      target_write(t, xstate + FX_SOFTWARE_OFFSET, &software, sizeof(software)) &&
                      target_write(t, xstate + s->xstate_bytes, &magic2, sizeof(magic2)) &&
                      target_write(t, *text_at, text, text_bytes) && target_write(t, at, &f, sizeof(f));
    return done ? at : 0;
}

struct running {
    const struct target *t;
    struct stopped_thread *thread;
    uint64_t frame_end; /* the stack pointer when it is about to restore itself */
    bool only_waited;   /* it has made no system call but futex() */
};

/*
 * Runs the thread until it is about to restore itself. Returns 0; -EAGAIN: the deadline has passed, and it runs;
 * -EFAULT: it has stopped by a fault; -ESRCH.
 */
static int run(struct running *c, uint64_t deadline_ns)
{
    const pid_t tid = c->thread->tid;
    struct user_regs_struct r;
    int status, signal = 0;
    for (;;) {
        if (ptrace(PTRACE_SYSCALL, tid, 0, signal) < 0)
            return -ESRCH;
        const int stops = stop_wait_any(tid, deadline_ns, &status);
        if (stops <= 0)
            return stops ? -EAGAIN : -ESRCH;
        signal = 0;
        if (WSTOPSIG(status) != (SIGTRAP | 0x80)) {
            if (status >> 16 != PTRACE_EVENT_STOP)
                signal = WSTOPSIG(status);
            if (signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE)
                return -EFAULT;
            continue;
        }
        if (ptrace(PTRACE_GETREGS, tid, 0, &r) < 0)
            return -ESRCH;
        if (r.orig_rax == SYS_rt_sigreturn && r.rsp == c->frame_end)
            return 0;
        c->only_waited &= r.orig_rax == SYS_futex;
    }
}

/*
 * Stops the thread, which is about to restore itself by a system call, where its registers can be set: in front of that
 * call, which it makes if the tool is killed now.
 */
static bool stop_in_front(pid_t tid)
{
    struct user_regs_struct r;
    if (ptrace(PTRACE_GETREGS, tid, 0, &r) < 0)
        return false;
    r.orig_rax = (uint64_t)-1;
    r.rax = SYS_rt_sigreturn;
    r.rip -= SYSCALL_BYTES;
    return ptrace(PTRACE_SETREGS, tid, 0, &r) == 0 && ptrace(PTRACE_INTERRUPT, tid, 0, 0) == 0 &&
           ptrace(PTRACE_CONT, tid, 0, 0) == 0 && stop_wait(tid);
}

/*
 * Stops the running thread. Returns 1: it waits for the first mutex on its way, the loader's, and holds none; 0: it may
 * hold one; -ESRCH.
 */
static int waits_for_loader(const struct running *c)
{
    struct stopped_thread now = {.tid = c->thread->tid};
    if (ptrace(PTRACE_INTERRUPT, now.tid, 0, 0) < 0 || !stop_wait(now.tid) ||
        ptrace(PTRACE_GETREGS, now.tid, 0, &now.regs) < 0)
        return -ESRCH;
    const char *function = safe_point_function(c->t, &now);
    return c->only_waited && now.regs.orig_rax == SYS_futex && function &&
           !strcmp(function, "pthread_mutex_lock");
}

/* Returns as call_function(), without a line; whatever it returns, the thread is stopped, or has ended. */
static int run_and_restore(struct running *c, const struct saved *s, unsigned timeout_ms)
{
    const uint64_t began = clock_ns(CLOCK_MONOTONIC);
    const pid_t tid = c->thread->tid;
    int bad = run(c, began + LOCK_MOST_MS * 1000000ull);
    if (bad == -EAGAIN) {
        const int waits = waits_for_loader(c);
        if (waits == 1)
            return restore(tid, s) ? -EAGAIN : -ESRCH;
        bad = waits < 0 ? waits : run(c, began + timeout_ms * 1000000ull);
    }
    if (bad == -EAGAIN) {
        c->thread->is_away = true;
        return ptrace(PTRACE_INTERRUPT, tid, 0, 0) < 0 || !stop_wait(tid) ? -ESRCH : -ETIMEDOUT;
    }
    if (!bad && !stop_in_front(tid))
        bad = -ESRCH;
    return bad == -ESRCH || !restore(tid, s) ? -ESRCH : bad;
}

static bool begin_call(pid_t tid, const struct saved *s, const struct call *c, uint64_t stack, uint64_t text)
{
    /* The thread's own faults stay possible: blocked, they would end the process. */
    const uint64_t mask =
        ~(1ull << (SIGSEGV - 1) | 1ull << (SIGBUS - 1) | 1ull << (SIGILL - 1) | 1ull << (SIGFPE - 1));
    struct user_regs_struct r = s->regs;
    r.rip = c->function;
    r.rsp = stack;
    r.rax = 0;
    r.orig_rax = (uint64_t)-1;
    r.eflags &= ~(uint64_t)(1u << 10 | 1u << 8); /* direction, trap */
    r.rdi = c->text ? text : c->arguments[0];
    r.rsi = c->arguments[1];
    /* In this order: from the first on, the thread restores its mask by itself. */
    return ptrace(PTRACE_SETREGS, tid, 0, &r) == 0 &&
           ptrace(PTRACE_SETSIGMASK, tid, sizeof(mask), &mask) == 0;
}

int call_function(const struct target *t, struct stopped_thread *thread, const struct call *c,
                  struct error *e)
{
    const pid_t tid = thread->tid;
    const uint64_t restorer = find_restorer(t);
    struct saved s = {.xstate = NULL};
    struct running running = {.t = t, .thread = thread, .only_waited = true};
    uint64_t text = 0, stack = 0;
    int bad = -EIO;
    if (restorer && save(tid, thread, &s) && (stack = push_frame(t, &s, restorer, c->text, &text))) {
        running.frame_end = stack + sizeof(uint64_t);
        bad = begin_call(tid, &s, c, stack, text) ? run_and_restore(&running, &s, c->timeout_ms) : -ESRCH;
    }
    free(s.xstate);
    switch (-bad) {
    case 0:
        return 0;
    case EIO:
        return error_set(e, EIO, "cannot prepare a call in thread %d", (int)tid);
    case EAGAIN:
        return error_set(e, EAGAIN, "another thread holds the lock of the loader");
    case ETIMEDOUT:
        return error_set(e, ETIMEDOUT, "thread %d loads the library for longer than %u ms: try again later",
                         (int)tid, c->timeout_ms);
    case EFAULT:
        return error_set(e, EFAULT, "thread %d faulted in the call", (int)tid);
    default:
        return error_set(e, ESRCH, "thread %d has ended", (int)tid);
    }
}
