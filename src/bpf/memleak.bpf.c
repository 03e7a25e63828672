// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * `allium sys memleak` for processes: programs of uprobes on the functions of an allocator. Each probe belongs to one
 * process, whose number is in its cookie.
 *
 * Of functions that call each other the outermost one counts. While a thread is in one, `calls` has its stack pointer:
 * a call from below it is an inner one, and a call from above shows that the former was left without a return
 * (longjmp).
 */
#include "bpf/sys.bpf.h"

#include "bpf/iter.bpf.h"
#include "bpf/memleak.h"

/* Mean bytes between samples; 1: every object is followed. */
const volatile __u64 period = 1;
const volatile __u32 log_table[MEMLEAK_LOG_STEPS + 1] = {0};
const volatile bool follow_children = false;
const volatile bool follow_filters = false;

__u32 images = 0; /* numbers given so far */

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, MEMLEAK_PROCESSES);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(struct memleak_process));
} processes SEC(".maps");

/* From processes with probes to their numbers. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, MEMLEAK_PROCESSES);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(__u32));
} numbers SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1);
    __uint(key_size, sizeof(struct memleak_address));
    __uint(value_size, sizeof(struct memleak_object));
} live SEC(".maps");

/* A thread's call of the allocator. */
struct call {
    __u64 sp; /* 0: it is in none */
    __u64 bytes;
    __u64 stored; /* where the result will be; 0: it is returned */
    __u64 old;    /* the object to replace */
    __u64 behind; /* where a function that may throw returns to; 0: another function */
    struct memleak_object had;
    __u32 sampled, had_old;
    __u64 reaches; /* MEMLEAK_REACHES */
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 16384);
    __uint(key_size, sizeof(__u64));
    __uint(value_size, sizeof(struct call));
} calls SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(struct memleak_cpu));
} cpus SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 1 << 16);
} notices SEC(".maps");

#define NO_PROCESS   0xffffffffu /* a child that shares its parent's memory until it executes a program */
#define NESTED_BYTES (1u << 20)  /* of stack: so far apart, two calls have nothing to do with each other */
#define RETURN_BYTES 8u          /* of stack, which a return takes */
#define DRAWS_MOST   4u

static __always_inline struct memleak_cpu *this_cpu(void)
{
    __u32 zero = 0;
    return bpf_map_lookup_elem(&cpus, &zero);
}

/* The process of a probe, if its events count. */
static __always_inline struct memleak_process *process_of_probe(__u64 cookie)
{
    __u32 number = cookie >> 32;
    struct memleak_process *p = bpf_map_lookup_elem(&processes, &number);
    return p && p->counts && (runs() || p->counts == MEMLEAK_PRICED) ? p : NULL;
}

#define ARGUMENTS 8u /* of which six are in registers; a power of two */

/* The verifier allows no address of a register that is chosen when the program runs, so all are copied. */
static __always_inline void read_arguments(const struct pt_regs *regs, __u64 to[static ARGUMENTS])
{
    to[0] = regs->di;
    to[1] = regs->si;
    to[2] = regs->dx;
    to[3] = regs->cx;
    to[4] = regs->r8;
    to[5] = regs->r9;
    to[6] = to[7] = 0;
}

/*
 * Read in one place: of several reads the compiler would share the address, which the verifier does not allow
 * either.
 */
static __always_inline __u64 stack_pointer(const struct pt_regs *regs)
{
    __u64 sp = regs->sp;
    barrier_var(sp);
    return sp;
}

static __always_inline __u64 argument(const __u64 arguments[static ARGUMENTS], __u32 number)
{
    return arguments[number & (ARGUMENTS - 1)];
}

#define ADDRESSES (1ull << 47)

/* A size that is larger than the address space is one that no allocator can give, whatever it is. */
static __always_inline __u64 requested_bytes(const __u64 arguments[static ARGUMENTS], __u32 cookie)
{
    const __u64 size = argument(arguments, MEMLEAK_SIZE(cookie));
    if (MEMLEAK_TIMES(cookie) == MEMLEAK_NO_ARGUMENT)
        return size;
    const __u64 times = argument(arguments, MEMLEAK_TIMES(cookie));
    return times && size > ADDRESSES / times ? ADDRESSES : size * times;
}

/* Returns ceil(E), where E has an exponential distribution whose mean is the period. */
static __attribute__((noinline)) __u64 draw_gap(void)
{
    const __u64 random = (__u64)bpf_get_prandom_u32() + 1; /* 1 ... 2^32 */
    const __u32 power = log2_of(random);
    const __u64 rest = (random << (32 - power)) & 0xffffffffu; /* of random / 2^power - 1, with 32 bits */
    const __u32 step = rest >> 24 & (MEMLEAK_LOG_STEPS - 1);
    const __u64 low = log_table[step], high = log_table[step + 1];
    const __u64 fraction = low + ((high - low) * (rest & 0xffffff) >> 24);
    /* -log2(random / 2^32) */
    const __u64 log2 = ((__u64)(32 - power) << MEMLEAK_LOG_BITS) - fraction;
    const __u64 ln = log2 * 11629080 >> MEMLEAK_LOG_BITS; /* times ln 2, of 24 bits */
    return (ln * period >> MEMLEAK_LOG_BITS) + 1;         /* ln is below 2^29, and the period below 2^31 */
}

/*
 * Returns whether a request of so many bytes is sampled: with the chance 1 - exp(-bytes / period), independent of all
 * others. What is left of a gap when an object is sampled has no meaning: the next gap begins behind the object.
 */
static __always_inline bool is_due(struct memleak_cpu *cpu, __u64 bytes)
{
    if (period == 1)
        return true;
    const __s64 amount = bytes > 1ull << 62 ? 1ll << 62 : (__s64)bytes;
    const __s64 left = cpu->left - amount;
    if (LIKELY(left > 0)) {
        cpu->left = left;
        return false;
    }
    cpu->left = (__s64)draw_gap();
    return true;
}

static __always_inline __u64 return_address(__u64 sp)
{
    __u64 address = 0;
    bpf_probe_read_user(&address, sizeof(address), (const void *)sp);
    return address;
}

/*
 * A thread that is in the allocator already calls it again from there. A call that an exception has ended is over: its
 * return address has been overwritten, or will be.
 */
static __always_inline bool is_inner(const struct call *c, __u64 sp)
{
    if (LIKELY(!c || !c->sp || sp >= c->sp || c->sp - sp >= NESTED_BYTES))
        return false;
    return !c->behind || return_address(c->sp) == c->behind;
}

static __always_inline void take_old(struct call *c, const struct memleak_address *key)
{
    const struct memleak_object *had = bpf_map_lookup_elem(&live, key);
    if (!had)
        return;
    c->had = *had;
    /* Of two threads that replace one object, one has it. */
    c->had_old = !bpf_map_delete_elem(&live, key);
}

/* Returns the thread's entry; NULL: no room, which is counted. */
static __always_inline struct call *call_of_thread(__u64 id)
{
    static const struct call none = {0};
    struct call *c = bpf_map_lookup_elem(&calls, &id);
    if (c)
        return c;
    bpf_map_update_elem(&calls, &id, &none, BPF_ANY);
    c = bpf_map_lookup_elem(&calls, &id);
    if (!c)
        count(MEMLEAK_CALLS_FULL);
    return c;
}

/* The call begins. Returns whether its end has to be known. */
static __always_inline bool call_begins(struct pt_regs *regs)
{
    const __u64 cookie = bpf_get_attach_cookie(regs), id = bpf_get_current_pid_tgid(),
                sp = stack_pointer(regs);
    struct memleak_process *p = process_of_probe(cookie);
    struct memleak_cpu *cpu = this_cpu();
    __u64 arguments[ARGUMENTS];
    if (!p || !cpu)
        return false;
    read_arguments(regs, arguments);
    const __u32 what = (__u32)cookie;
    cpu->calls[MEMLEAK_PLACE(what)]++;
    const __u64 bytes = requested_bytes(arguments, what);
    const struct memleak_address old = {
        .address = MEMLEAK_OLD(what) == MEMLEAK_NO_ARGUMENT ? 0 : argument(arguments, MEMLEAK_OLD(what)),
        .image = p->image};
    bool skips = period != 1 && p->is_flat && !(what & MEMLEAK_REACHES);
    struct call *outer = skips && p->reaches ? bpf_map_lookup_elem(&calls, &id) : NULL;
    if (outer && outer->sp) {
        if (is_inner(outer, sp)) {
            count(MEMLEAK_NESTED);
            return false;
        }
        if (outer->sp == sp)
            skips = false; /* the other one has jumped here at its end: this call takes its place */
        else
            outer->sp = 0; /* it was left without a return */
    }
    const bool sampled = skips && is_due(cpu, bytes);
    if (skips && !sampled && !(old.address && bpf_map_lookup_elem(&live, &old)))
        return false;
    struct call *c = call_of_thread(id);
    if (!c)
        return false;
    if (!skips)
        p->calls++;
    if (is_inner(c, sp)) {
        p->nested += !c->reaches;
        count(MEMLEAK_NESTED);
        return false;
    }
    c->sp = sp;
    c->bytes = bytes;
    c->stored = what & MEMLEAK_RESULT_STORED ? arguments[0] : 0;
    c->old = old.address;
    c->had_old = 0;
    c->behind = what & MEMLEAK_THROWS ? return_address(sp) : 0;
    if (c->old)
        take_old(c, &old);
    c->reaches = what & MEMLEAK_REACHES;
    c->sampled = skips ? sampled : is_due(cpu, bytes);
    return !(what & MEMLEAK_THROWS);
}

static __always_inline void put(const struct memleak_process *p, __u64 address,
                                const struct memleak_object *object)
{
    const struct memleak_address key = {.address = address, .image = p->image};
    long error = bpf_map_update_elem(&live, &key, object, BPF_NOEXIST);
    if (UNLIKELY(error == -KERNEL_EEXIST)) {
        count(MEMLEAK_REUSED);
        error = bpf_map_update_elem(&live, &key, object, BPF_ANY);
    }
    if (UNLIKELY(error))
        count(SYS_LIVE_FULL);
}

/* The call has returned. `result`: 0 if it failed. */
static __always_inline void end_call(struct pt_regs *regs, const struct memleak_process *p,
                                     const struct call *c, __u64 result)
{
    if (p->counts == MEMLEAK_PRICED)
        return;
    /* realloc(p, 0) frees: a result of 0 is no failure then. */
    if (!result && c->bytes) {
        if (c->had_old)
            put(p, c->old, &c->had);
        return;
    }
    if (c->old && !c->had_old && period == 1)
        count(MEMLEAK_FREED_BEFORE);
    if (!result)
        return;
    if (!c->sampled)
        return;
    const struct memleak_object object = {.bytes = c->bytes,
                                          .time_ns = bpf_ktime_get_ns(),
                                          .site = c->behind ? c->behind : regs->ip,
                                          .stack = user_stack_now(regs),
                                          .pid = current_ids() >> 32};
    put(p, result, &object);
}

/* `below`: bytes of the stack that the return has taken already. */
static __always_inline void call_ends(struct pt_regs *regs, __u32 below)
{
    const __u64 cookie = bpf_get_attach_cookie(regs), id = bpf_get_current_pid_tgid(),
                sp = stack_pointer(regs);
    const struct memleak_process *p = process_of_probe(cookie);
    struct memleak_cpu *cpu = this_cpu();
    if (!p || !cpu)
        return;
    cpu->returns++;
    struct call *c = bpf_map_lookup_elem(&calls, &id);
    if (!c || c->sp + below != sp)
        return;
    __u64 result = regs->ax;
    if (c->stored) {
        const bool failed = (__u32)result != 0;
        result = 0;
        if (!failed && bpf_probe_read_user(&result, sizeof(result), (const void *)c->stored))
            count(MEMLEAK_UNREAD);
    }
    end_call(regs, p, c, result);
    c->sp = 0;
}

/* One program for both ends: the kernel notes the return only of calls whose end has to be known (since 6.13). */
extern bool bpf_session_is_return(void) __ksym __weak;

SEC("uprobe") int memleak_session(struct pt_regs *regs)
{
    if (!bpf_session_is_return())
        return !call_begins(regs);
    call_ends(regs, RETURN_BYTES);
    return 0;
}

SEC("uprobe") int memleak_enters(struct pt_regs *regs)
{
    call_begins(regs);
    return 0;
}

SEC("uretprobe") int memleak_returns(struct pt_regs *regs)
{
    call_ends(regs, RETURN_BYTES);
    return 0;
}

/* At an instruction that returns. */
SEC("uprobe") int memleak_leaves(struct pt_regs *regs)
{
    call_ends(regs, 0);
    return 0;
}

SEC("uprobe") int memleak_frees(struct pt_regs *regs)
{
    const __u64 cookie = bpf_get_attach_cookie(regs), id = bpf_get_current_pid_tgid(),
                sp = stack_pointer(regs);
    const struct memleak_process *p = process_of_probe(cookie);
    struct memleak_cpu *cpu = this_cpu();
    __u64 arguments[ARGUMENTS];
    if (!p || !cpu)
        return 0;
    read_arguments(regs, arguments);
    cpu->frees[MEMLEAK_PLACE((__u32)cookie)]++;
    const struct memleak_address key = {.address = argument(arguments, MEMLEAK_OLD((__u32)cookie)),
                                        .image = p->image};
    if (!key.address || p->counts == MEMLEAK_PRICED)
        return 0;
    if (period != 1) { /* most were not sampled: looking costs less than trying to delete */
        if (bpf_map_lookup_elem(&live, &key))
            bpf_map_delete_elem(&live, &key);
        return 0;
    }
    const bool was_live = !bpf_map_delete_elem(&live, &key);
    /*
     * operator delete may call free(), and realloc() frees the object that it has copied, which was taken at the entry.
     */
    const bool again = cpu->freed == key.address;
    cpu->freed = was_live ? key.address : 0;
    if (!was_live && !again)
        count(is_inner(bpf_map_lookup_elem(&calls, &id), sp) ? MEMLEAK_NESTED : MEMLEAK_FREED_BEFORE);
    return 0;
}

/* ---- processes ---- */

/* As wanted(), of a task that may be another one than the current one. */
static __always_inline bool fits(const struct task_struct *task)
{
    if (config.filters & SYS_FILTER_UID && BPF_CORE_READ(task, real_cred, uid.val) != config.uid)
        return false;
    if (config.filters & SYS_FILTER_COMM) {
        char comm[SYS_COMM_BYTES] __attribute__((aligned(8))) = {0};
        bpf_probe_read_kernel_str(comm, sizeof(comm), task->comm);
        if (!same_comm(comm))
            return false;
    }
    return !(config.filters & (SYS_FILTER_CGROUP | SYS_FILTER_CGROUP_V1)) || in_cgroup(task);
}

/* Writes the processes that fit the filters now. */
SEC("iter/task") int memleak_lists(struct bpf_iter__task *ctx)
{
    const struct task_struct *task = ctx->task;
    if (!task || BPF_CORE_READ(task, pid) != BPF_CORE_READ(task, tgid) || !BPF_CORE_READ(task, mm))
        return 0;
    __u32 pid = process_of(task);
    if (pid && pid != config.own_tgid && fits(task))
        bpf_seq_write(ctx->meta->seq, &pid, sizeof(pid));
    return 0;
}

static __always_inline void notify(__u32 event, __u32 pid, __u32 process, __u32 image)
{
    struct memleak_notice n = {.event = event, .pid = pid, .process = process, .image = image};
    comm_now(n.comm);
    if (bpf_ringbuf_output(&notices, (void *)&n, sizeof(n), BPF_RB_FORCE_WAKEUP))
        count(MEMLEAK_NOTICES_LOST);
}

/* The loader has loaded or unloaded a library, and tells debuggers by calling this function. */
SEC("uprobe") int memleak_loads(struct pt_regs *regs)
{
    const __u64 cookie = bpf_get_attach_cookie(regs);
    if (process_of_probe(cookie))
        notify(MEMLEAK_LOADED, current_ids() >> 32, cookie >> 32, 0);
    return 0;
}

SEC("raw_tp/sched_process_exec") int BPF_PROG(memleak_execs, struct task_struct *task)
{
    const __u32 pid = current_ids() >> 32;
    const __u32 *number = bpf_map_lookup_elem(&numbers, &pid);
    struct memleak_process *p = number ? bpf_map_lookup_elem(&processes, number) : NULL;
    if (!pid)
        return 0;
    if (p) {
        const __u32 was = p->counts ? p->image : 0;
        p->image = __sync_fetch_and_add(&images, 1) + 1;
        p->is_flat = 0; /* it may have another allocator */
        p->calls = p->nested = 0;
        p->counts = 1;
        notify(MEMLEAK_EXECUTED, pid, *number, was);
        return 0;
    }
    if (number)
        bpf_map_delete_elem(&numbers, &pid);
    if (number || (follow_filters && wanted()))
        notify(MEMLEAK_APPEARED, pid, 0, 0);
    return 0;
}

SEC("raw_tp/sched_process_fork")
int BPF_PROG(memleak_forks, struct task_struct *parent, struct task_struct *child)
{
    const __u32 pid = process_of(child), parent_pid = current_ids() >> 32, none = NO_PROCESS;
    if (!pid || BPF_CORE_READ(child, pid) != BPF_CORE_READ(child, tgid))
        return 0;
    const bool of_ours = follow_children && bpf_map_lookup_elem(&numbers, &parent_pid);
    if (!of_ours && !(follow_filters && wanted()))
        return 0;
    if (BPF_CORE_READ(child, mm) == BPF_CORE_READ(parent, mm))
        bpf_map_update_elem(&numbers, &pid, &none, BPF_ANY);
    else
        notify(of_ours ? MEMLEAK_FORKED : MEMLEAK_APPEARED, pid, 0, 0);
    return 0;
}

SEC("raw_tp/sched_process_exit") int BPF_PROG(memleak_exits, struct task_struct *task)
{
    const __u64 id = bpf_get_current_pid_tgid();
    const __u32 pid = current_ids() >> 32;
    bpf_map_delete_elem(&calls, &id);
    const __u32 *number = bpf_map_lookup_elem(&numbers, &pid);
    if (!number || BPF_CORE_READ(task, signal, live.counter))
        return 0;
    if (*number != NO_PROCESS)
        notify(MEMLEAK_ENDED, pid, *number, 0);
    bpf_map_delete_elem(&numbers, &pid);
    return 0;
}
