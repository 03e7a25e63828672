// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* `allium sys mmapsnoop`: who maps memory, and how. */
#include "bpf/call.bpf.h"
#include "bpf/process_mapping.bpf.h"
#include "bpf/sys.bpf.h"

#include "bpf/mmapsnoop.h"

SYS_TABLE(struct mmapsnoop_key, struct mmapsnoop_sum)

/* By process: the start of the last one that has ended. Several of its threads may each see that all have ended. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, CALL_THREADS);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(__u64));
} ended_processes SEC(".maps");

static __always_inline bool is_first_to_tell(const struct task_struct *task)
{
    const __u32 slot = (__u32)task->tgid % CALL_THREADS;
    const __u64 began_ns = BPF_CORE_READ(task, group_leader, start_time);
    __u64 *last = bpf_map_lookup_elem(&ended_processes, &slot);
    return last && __sync_lock_test_and_set(last, began_ns) != began_ns;
}

/* Bits 1 << enum mmapsnoop_call: the calls to report. */
const volatile __u32 asked = ~0u;

enum { MAP_ANONYMOUS_BIT = 0x20, MREMAP_DONTUNMAP_BIT = 0x4 };
#define PAGES_OF(bytes) (((bytes) + PAGE - 1) & ~(__u64)(PAGE - 1))

#define NUMBER(name, number) NR_##name = number,
enum { MMAPSNOOP_CALLS(NUMBER) };

/* Returns the enum mmapsnoop_call of a system call number; MMAPSNOOP_KINDS: the tool does not follow it. */
static __always_inline __u32 kind_of_number(__s64 number)
{
    switch (number) {
#define CASE(name, nr)                                                                                       \
    case nr:                                                                                                 \
        return MMAPSNOOP_##name;
        MMAPSNOOP_CALLS(CASE)
    default:
        return MMAPSNOOP_KINDS;
    }
}

/* The same calls have other numbers in 32-bit programs. ipc(), by which old ones call shmat(), is not among these. */
static __always_inline bool is_number_of_32_bits(__s64 number)
{
    switch (number) {
    case 45: /* brk */
        return asked >> MMAPSNOOP_brk & 1;
    case 90 ... 91:   /* mmap, munmap */
    case 125:         /* mprotect */
    case 150 ... 153: /* mlock, munlock, mlockall, munlockall */
    case 163:         /* mremap */
    case 192:         /* mmap2 */
    case 219:         /* madvise */
    case 257:         /* remap_file_pages */
    case 376:         /* mlock2 */
    case 380:         /* pkey_mprotect */
    case 397 ... 398: /* shmat, shmdt */
    case 440:         /* process_madvise */
    case 462:         /* mseal */
        return true;
    default:
        return false;
    }
}

/* Returns the call if it passes the filters, else MMAPSNOOP_KINDS. Counts calls of 32-bit programs at their exit. */
static __always_inline __u32 wanted_call(__s64 number, bool ends)
{
    const __u32 which = kind_of_number(number);
    if (UNLIKELY(call_is_of_32_bits())) {
        if (ends && is_number_of_32_bits(number) && wanted())
            count(CALL_OF_32_BITS);
        return MMAPSNOOP_KINDS;
    }
    return which < MMAPSNOOP_KINDS && asked >> which & 1 && wanted() ? which : MMAPSNOOP_KINDS;
}

static __always_inline int enters(const struct call *call, __u32 which)
{
    struct call_begun *c = call_enter(call->number);
    const struct mm_struct *mm = bpf_get_current_task_btf()->mm;
    if (!c || !mm)
        return 0;
    c->kept[0] = mm->total_vm;
    c->kept[1] = mm->brk;
    if (which == MMAPSNOOP_munmap || which == MMAPSNOOP_shmdt) {
        struct process_mapping m = {0};
        c->kept[1] = mapping_at(&m, call->arg[0]);
        __builtin_memcpy(&c->kept[2], &m, sizeof(m));
    }
    return 0;
}

/*
 * By how much the address space has grown or shrunk: the kernel's own number before and after, as mappings may be
 * replaced and holes unmapped. Other threads may map memory in the meantime: if there are any, by the arguments.
 */
static __always_inline void put_growth(struct mmapsnoop_change *c, __u64 pages_before, __u64 mapped,
                                       __u64 unmapped)
{
    const struct mm_struct *mm = bpf_get_current_task_btf()->mm;
    if (!mm)
        return;
    if (bpf_get_current_task_btf()->signal->nr_threads == 1) {
        const __s64 grown = (__s64)(mm->total_vm - pages_before) * PAGE;
        if (grown > (__s64)mapped)
            mapped = grown; /* huge pages are larger than what was asked for */
        unmapped = mapped - grown;
    }
    c->mapped_bytes = mapped;
    c->unmapped_bytes = unmapped;
}

static __always_inline bool failed(const struct mmapsnoop_change *c)
{
    return c->result < 0 && c->result > -4096;
}

static __always_inline void put_mmap(struct mmapsnoop_change *c, const struct call *call, __u64 pages_before)
{
    c->prot = (__u32)call->arg[2];
    c->flags = (__u32)call->arg[3];
    c->fd = c->flags & MAP_ANONYMOUS_BIT ? -1 : (__s32)call->arg[4];
    c->offset = c->flags & MAP_ANONYMOUS_BIT ? 0 : call->arg[5];
    if (!failed(c)) {
        c->address = c->result;
        mapping_at(&c->mapping, c->address);
        put_growth(c, pages_before, PAGES_OF(c->bytes), 0);
        return;
    }
    const struct file *file = call_file(c->fd);
    c->mapping.class = c->flags & MAP_ANONYMOUS_BIT ? MAPPING_ANONYMOUS : file ? MAPPING_FILE : MAPPING_OTHER;
    if (file)
        mapping_set_file(&c->mapping, file);
}

static __always_inline void put_mremap(struct mmapsnoop_change *c, const struct call *call,
                                       __u64 pages_before)
{
    c->old_address = call->arg[0];
    c->old_bytes = call->arg[1];
    c->bytes = call->arg[2];
    c->flags = (__u32)call->arg[3];
    c->address = failed(c) ? call->arg[0] : (__u64)c->result;
    mapping_at(&c->mapping, c->address);
    const __u64 now = PAGES_OF(c->bytes);
    const __u64 before = c->flags & MREMAP_DONTUNMAP_BIT ? 0 : PAGES_OF(c->old_bytes);
    if (!failed(c))
        put_growth(c, pages_before, now > before ? now - before : 0, before > now ? before - now : 0);
}

/* brk() returns the end of the heap; when it fails, the old one and no error. */
static __always_inline void put_brk(struct mmapsnoop_change *c, const struct call *call,
                                    const struct call_begun *begun)
{
    const __u64 before = begun->kept[1], now = c->result;
    c->address = call->arg[0];
    c->old_address = before;
    c->bytes = 0;
    c->mapping.class = MAPPING_HEAP;
    if (failed(c))
        return;     /* the process is being killed, or a filter denies the call */
    if (c->address) /* brk(0) asks for the end of the heap */
        c->bytes = c->address > before ? c->address - before : before - c->address;
    if (c->address && now != c->address)
        c->result = -KERNEL_ENOMEM;
    if (now > before)
        c->mapped_bytes = PAGES_OF(now) - PAGES_OF(before);
    else
        c->unmapped_bytes = PAGES_OF(before) - PAGES_OF(now);
}

static __always_inline void put_shmat(struct mmapsnoop_change *c, const struct call *call, __u64 pages_before)
{
    c->fd = (__s32)call->arg[0];
    c->address = call->arg[1];
    c->bytes = 0;
    c->flags = (__u32)call->arg[2];
    c->mapping.class = MAPPING_SHARED;
    if (failed(c))
        return;
    c->address = c->result;
    c->bytes = mapping_at(&c->mapping, c->address);
    put_growth(c, pages_before, c->bytes, 0);
}

/* The mapping was looked up at the entry. */
static __always_inline void put_unmapped(struct mmapsnoop_change *c, const struct call_begun *begun)
{
    if (begun->began_ns)
        __builtin_memcpy(&c->mapping, &begun->kept[2], sizeof(c->mapping));
    else /* a filter has denied the call: the mapping is still there */
        mapping_at(&c->mapping, c->address);
    if (!failed(c))
        put_growth(c, begun->kept[0], 0, c->call == MMAPSNOOP_munmap ? PAGES_OF(c->bytes) : begun->kept[1]);
}

/* A call on an existing mapping, with a protection, advice or flags. */
static __always_inline void put_range(struct mmapsnoop_change *c, const struct call *call)
{
    if (c->call == MMAPSNOOP_mprotect || c->call == MMAPSNOOP_pkey_mprotect)
        c->prot = (__u32)call->arg[2];
    if (c->call == MMAPSNOOP_madvise || c->call == MMAPSNOOP_mlock2)
        c->flags = (__u32)call->arg[2];
    if (c->call == MMAPSNOOP_remap_file_pages) {
        c->flags = (__u32)call->arg[4];
        c->offset = call->arg[3] * PAGE;
    }
    mapping_at(&c->mapping, c->address);
}

static __always_inline void put_call(struct mmapsnoop_change *c, const struct call *call,
                                     const struct call_begun *begun)
{
    c->address = call->arg[0];
    c->bytes = call->arg[1];
    const __u64 pages_before = begun->kept[0];
    switch (c->call) {
    case MMAPSNOOP_mmap:
        put_mmap(c, call, pages_before);
        break;
    case MMAPSNOOP_mremap:
        put_mremap(c, call, pages_before);
        break;
    case MMAPSNOOP_brk:
        put_brk(c, call, begun);
        break;
    case MMAPSNOOP_shmat:
        put_shmat(c, call, pages_before);
        break;
    case MMAPSNOOP_shmdt:
        c->bytes = 0;
        put_unmapped(c, begun);
        break;
    case MMAPSNOOP_munmap:
        put_unmapped(c, begun);
        break;
    case MMAPSNOOP_mlockall:
    case MMAPSNOOP_munlockall:
        c->flags = c->call == MMAPSNOOP_mlockall ? (__u32)call->arg[0] : 0;
        c->address = c->bytes = 0;
        c->mapping.class = MAPPING_OTHER;
        break;
    case MMAPSNOOP_process_madvise: /* a pidfd names the process; the result is the bytes done */
        c->fd = (__s32)call->arg[0];
        c->flags = (__u32)call->arg[3];
        c->address = 0;
        c->bytes = failed(c) ? 0 : c->result;
        c->mapping.class = MAPPING_UNKNOWN;
        break;
    default:
        put_range(c, call);
    }
}

static __always_inline void put_key(struct mmapsnoop_key *key, void *ctx, const struct mmapsnoop_change *c)
{
    if (config.parts & MMAPSNOOP_BY_PROCESS)
        key->pid = current_ids() >> 32;
    if (config.parts & (MMAPSNOOP_BY_PROCESS | MMAPSNOOP_BY_COMM))
        comm_now(key->comm);
    if (config.parts & MMAPSNOOP_BY_CALL)
        key->call = c->call;
    if (config.parts & MMAPSNOOP_BY_FILE) {
        key->mapping = c->mapping;
        if (c->mapping.device)
            key->mapping.class = MAPPING_FILE; /* a row for each file, whether it is shared or not */
    }
    if (config.parts & MMAPSNOOP_BY_STACK) {
        key->kernel_stack = kernel_stack_now(ctx);
        key->user_stack = user_stack_now(ctx);
    }
}

static __always_inline int sum_up(void *ctx, const struct mmapsnoop_change *c, __u64 duration_ns)
{
    struct row_key row = {0};
    put_key(&row.key, ctx, c);
    struct mmapsnoop_sum *sum = row_at(&row);
    if (!sum)
        return 0;
    sum->calls++;
    sum->failed += failed(c);
    if (c->call <
        MMAPSNOOP_exec) { /* what a process has before its first call, and at its end, is no change */
        sum->mapped_bytes += c->mapped_bytes;
        sum->unmapped_bytes += c->unmapped_bytes;
        sum->duration_ns += duration_ns;
        if (duration_ns)
            row_measure(sum, duration_ns);
    }
    if (config.parts & MMAPSNOOP_BY_STACK)
        sum->time_ns = bpf_ktime_get_ns();
    row_done(sum);
    return 0;
}

/* A function of its own: together with its caller it would need more stack than a program has. */
static __attribute__((noinline)) int report(void *ctx, const struct mmapsnoop_change *c, __u64 duration_ns)
{
    if (config.parts & MMAPSNOOP_IN_ROWS)
        return sum_up(ctx, c, duration_ns);
    struct mmapsnoop_event *e = event_begin(sizeof(*e));
    if (!e)
        return 0;
    event_head(&e->head, ctx);
    e->duration_ns = duration_ns;
    e->change = *c;
    event_end(e);
    return 0;
}

static __always_inline int exits(void *ctx, const struct call *call, __u32 which, __s64 result)
{
    struct mmapsnoop_change c = {.call = which, .result = result, .fd = -1};
    struct call_begun *begun = call_exit(call->number);
    if (!begun)
        return 0;
    if (!begun->began_ns && !failed(&c)) {
        count(CALL_BEGUN_BEFORE);
        return 0;
    }
    /* If a seccomp filter denies a call, the kernel reports only its exit. */
    const __u64 duration_ns = begun->began_ns ? bpf_ktime_get_ns() - begun->began_ns : 0;
    put_call(&c, call, begun);
    call_done(begun);
    return report(ctx, &c, duration_ns);
}

/* The new program's address space. */
static __always_inline int executed(void *ctx)
{
    const struct mm_struct *mm = bpf_get_current_task_btf()->mm;
    struct mmapsnoop_change c = {.call = MMAPSNOOP_exec, .fd = -1};
    if (!(asked >> MMAPSNOOP_exec & 1) || !mm || !wanted())
        return 0;
    const struct file *file = BPF_CORE_READ(mm, exe_file);
    c.mapped_bytes = mm->total_vm * PAGE;
    c.mapping.class = file ? MAPPING_FILE : MAPPING_OTHER;
    if (file)
        mapping_set_file(&c.mapping, file);
    return report(ctx, &c, 0);
}

/* Before 6.16 the address space is gone already: its size is not known. That of a vfork child is its parent's. */
static __always_inline int ended(void *ctx)
{
    const struct task_struct *task = bpf_get_current_task_btf();
    struct mmapsnoop_change c = {.call = MMAPSNOOP_exit, .fd = -1};
    if (!(asked >> MMAPSNOOP_exit & 1) || task->flags & KERNEL_PF_KTHREAD ||
        BPF_CORE_READ(task, signal, live.counter) || !wanted() || !is_first_to_tell(task))
        return 0;
    const struct mm_struct *mm = task->mm;
    if (mm && !task->vfork_done)
        c.unmapped_bytes = mm->total_vm * PAGE;
    c.mapping.class = MAPPING_OTHER;
    return report(ctx, &c, 0);
}

#define PROGRAMS(way, section, registers)                                                                    \
    SEC(section "sys_enter") int BPF_PROG(way##_enter, struct pt_regs *regs, __s64 id)                       \
    {                                                                                                        \
        const __u32 which = wanted_call(id, false);                                                          \
        if (which == MMAPSNOOP_KINDS)                                                                        \
            return 0;                                                                                        \
        const struct call call = registers(regs);                                                            \
        return enters(&call, which);                                                                         \
    }                                                                                                        \
    SEC(section "sys_exit") int BPF_PROG(way##_exit, struct pt_regs *regs, __s64 ret)                        \
    {                                                                                                        \
        const __u32 which = wanted_call(registers##_number(regs), true);                                     \
        if (which == MMAPSNOOP_KINDS)                                                                        \
            return 0;                                                                                        \
        const struct call call = registers(regs);                                                            \
        return exits(ctx, &call, which, ret);                                                                \
    }                                                                                                        \
    SEC(section "sched_process_exec") int BPF_PROG(way##_exec)                                               \
    {                                                                                                        \
        return executed(ctx);                                                                                \
    }                                                                                                        \
    SEC(section "sched_process_exit") int BPF_PROG(way##_ended)                                              \
    {                                                                                                        \
        return ended(ctx);                                                                                   \
    }
PROGRAMS(btf, "tp_btf/", call_of)
PROGRAMS(raw, "raw_tp/", call_read)
