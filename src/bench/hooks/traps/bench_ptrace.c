/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A breakpoint that another process serves: a tracer, as gdb and strace are. The tracer is a child of vfork(), which
 * shares the memory of this program, so that the sinks' counts are those of all other mechanisms. vfork() lends it the
 * stack and the thread-local memory of a thread that does nothing else, and sleeps until the tracer ends.
 */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sigsafe/syscall.h"
#include "bench/hooks/bench_mechanism.h"

#define RSEQ_SIGNATURE 0x53053053u /* of glibc, on x86 */
#define RSEQ_LEAST     32u         /* bytes of an area, before features were added to it */
#define NOT_PERMITTED                                                                                        \
    "one process may not trace another here: leave the debugger, set kernel.yama.ptrace_scope to 0 or 1, "   \
    "or give the container SYS_PTRACE"

/* libc's registration for restartable sequences (2.35 and later). */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

extern const uintptr_t bench_ptrace_labels[1] __attribute__((visibility("hidden")));

BENCH_BARE(bare)

static BENCH_CODE uint64_t work_traced(uint64_t x)
{
    __asm__ volatile("1: nop\n\t"
                     ".pushsection .data.rel.ro, \"aw\"\n\t"
                     ".balign 8\n"
                     "bench_ptrace_labels: .quad 1b\n\t"
                     ".popsection"
                     :
                     :
                     : "memory");
    BENCH_WORK(x);
    return x;
}
BENCH_LOOP(loop_traced, work_traced(i))

/* A further breakpoint: at the end of a batch, the tracer does what the threads do otherwise. */
__asm__(".text\n"
        ".globl bench_ptrace_leave\n.hidden bench_ptrace_leave\n"
        ".type bench_ptrace_leave, @function\n"
        "bench_ptrace_leave:\n\t"
        "int3\n\t"
        "ret\n"
        ".size bench_ptrace_leave, . - bench_ptrace_leave\n");
void bench_ptrace_leave(void) __attribute__((visibility("hidden")));

/* ---- the tracer ---- */

enum state { STARTING, PERMITTED, TRACING, NOT_TRACING, NO_SEQUENCES };
static uint32_t state;
static uint32_t tracer_id, lender_id; /* the tracer's process, and the thread that lends it the stack */
static struct {
    pid_t *ids;
    size_t n;
} threads; /* to be traced */

static long trace(long request, long tid, const void *address, const void *data)
{
    return sys_call(SYS_ptrace, request, tid, address, data);
}

/*
 * The kernel does not restart sequences of a child that shares its parent's memory, unless the child registers. The
 * area is that of the lender, which the kernel leaves alone while that thread sleeps.
 */
static bool register_sequences(void)
{
    if (!&__rseq_size || !__rseq_size)
        return true;
    const char *area = (const char *)__builtin_thread_pointer() + __rseq_offset;
    const uint32_t bytes = __rseq_size > RSEQ_LEAST ? __rseq_size : RSEQ_LEAST;
    return !sys_call(SYS_rseq, area, bytes, 0, RSEQ_SIGNATURE);
}

/* The threads go on running. If the tracer ends, the kernel ends them. */
static bool trace_threads(void)
{
    for (size_t i = 0; i < threads.n; i++)
        if (trace(PTRACE_SEIZE, threads.ids[i], NULL, (const void *)PTRACE_O_EXITKILL))
            return false;
    return true;
}

/* The thread has executed a breakpoint. A tracer reads its registers, and its memory by a system call. */
static void serve(pid_t tid)
{
    struct user_regs_struct registers;
    uintptr_t caller = 0;
    if (trace(PTRACE_GETREGS, tid, NULL, &registers))
        return;
    if (registers.rip == (uintptr_t)bench_ptrace_leave + 1) {
        if (bench_sink_in_use->leave)
            bench_sink_in_use->leave();
        return;
    }
    trace(PTRACE_PEEKDATA, tid, (const void *)(uintptr_t)registers.rsp, &caller);
    bench_hook((void *)(uintptr_t)registers.rip, (void *)caller);
}

/* Lets a thread go on after it has stopped with this status. */
static void resume(pid_t tid, int status)
{
    const int signal = WSTOPSIG(status), event = status >> 16;
    if (event == PTRACE_EVENT_STOP && signal != SIGTRAP)
        trace(PTRACE_LISTEN, tid, NULL, NULL); /* until SIGCONT */
    else
        trace(PTRACE_CONT, tid, NULL, (const void *)(long)(event || signal == SIGTRAP ? 0 : signal));
}

/* Nothing here may be in use by other threads but the sink: the memory is theirs as well. */
static _Noreturn void be_tracer(void)
{
    int status;
    sys_call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
    for (int fd = 0; fd < 2; fd++)
        sys_call(SYS_close, fd); /* the conversation with the tool */
    store_release(&tracer_id, (uint32_t)sys_call(SYS_getpid, 0));
    while (load_acquire(&state) == STARTING)
        sys_call(SYS_sched_yield, 0);
    const bool has_sequences = register_sequences(), traces = has_sequences && trace_threads();
    store_release(&state, traces ? TRACING : has_sequences ? NOT_TRACING : NO_SEQUENCES);
    for (long tid; traces && (tid = sys_call(SYS_wait4, -1, &status, __WALL, 0)) > 0;) {
        if (!WIFSTOPPED(status))
            continue;
        if (WSTOPSIG(status) == SIGTRAP && !(status >> 16))
            serve((pid_t)tid);
        resume((pid_t)tid, status);
    }
    _exit(0);
}

static void *lend(void *arg)
{
    store_relaxed(&lender_id, (uint32_t)sys_call(SYS_gettid, 0));
    if (!vfork())
        be_tracer();
    return arg;
}

/* ---- the program ---- */

static bool list_threads(void)
{
    DIR *d = opendir("/proc/self/task");
    if (!d)
        return false;
    for (const struct dirent *it; (it = readdir(d));) {
        const pid_t tid = atoi(it->d_name);
        pid_t *more = tid && tid != (pid_t)load_relaxed(&lender_id)
                          ? realloc(threads.ids, (threads.n + 1) * sizeof(*more))
                          : NULL;
        if (!more)
            continue;
        threads.ids = more;
        threads.ids[threads.n++] = tid;
    }
    closedir(d);
    return threads.n != 0;
}

static const char *start_tracer(void)
{
    pthread_t lender;
    if (pthread_create(&lender, NULL, lend, NULL) || pthread_detach(lender))
        return "cannot start a thread for the tracer: raise `ulimit -u`";
    while (!load_acquire(&tracer_id))
        sched_yield();
    prctl(PR_SET_PTRACER, load_relaxed(&tracer_id)); /* Yama: a process may not trace its parent unasked */
    if (!list_threads())
        return "/proc is not mounted: mount it";
    store_release(&state, PERMITTED);
    while (load_acquire(&state) == PERMITTED)
        sched_yield();
    return load_relaxed(&state) == TRACING ? NULL
           : load_relaxed(&state) == NOT_TRACING
               ? NOT_PERMITTED
               : "the kernel registers no tracer for restartable sequences: "
                 "it takes Linux 4.18, and no seccomp filter of rseq()";
}

static const char *begin(bool on)
{
    static const uint8_t int3 = 0xcc;
    if (!on)
        return NULL;
    const char *why = start_tracer();
    if (why)
        return why;
    return bench_patch((void *)bench_ptrace_labels[0], &int3, 1) ? NULL : BENCH_NO_PATCH;
}
BENCH_MECHANISM(ptrace) = {"ptrace", bare, loop_traced, begin, 1, NULL, .leave = bench_ptrace_leave};
