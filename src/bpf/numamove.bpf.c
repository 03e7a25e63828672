// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* `allium sys numamove`: pages that are migrated, and tasks that are moved between nodes. */
#include "bpf/migrate.bpf.h"
#include "bpf/sys.bpf.h"

#include "bpf/numamove.h"

SYS_TABLE(struct numamove_key, struct numamove_value)

/* By thread. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1024);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(struct numamove_task));
} under_way SEC(".maps");

static const struct numamove_task nothing = {0};

/* Of each CPU its node, set before the programs are loaded. */
const volatile __s16 node_of_cpu[NUMAMOVE_CPUS_MAX] = {0};

static __always_inline struct numamove_task *task_now(void)
{
    __u32 tid = (__u32)bpf_get_current_pid_tgid();
    return bpf_map_lookup_elem(&under_way, &tid);
}

/* The innermost call of the thread; NULL: its begin was not seen. */
static __always_inline struct numamove_call *call_of(struct numamove_task *t)
{
    __u64 level = t ? t->depth : 0;
    if (!level || level > NUMAMOVE_LEVELS)
        return NULL;
    level--;
    barrier_var(level); /* the compiler keeps the mask, which tells the verifier the bounds */
    return &t->call[level & (NUMAMOVE_LEVELS - 1)];
}

static __always_inline void key_now(struct numamove_key *key, __u32 reason,
                                    const struct numamove_owner *owner)
{
    key->reason = reason;
    key->from = key->to = NUMAMOVE_NO_NODE;
    if (config.parts & NUMAMOVE_BY_OWNER)
        key->owner = *owner;
    if (config.parts & NUMAMOVE_BY_PROCESS)
        key->pid = current_ids() >> 32;
    if (config.parts & (NUMAMOVE_BY_PROCESS | NUMAMOVE_BY_COMM))
        comm_now(key->comm);
}

/* A call begins. If it does not find room, it is counted when it ends. */
static __attribute__((noinline)) int begun(int kernel_reason, __u64 list)
{
    __u32 tid = (__u32)bpf_get_current_pid_tgid();
    if (!wanted())
        return 0;
    struct numamove_task *t = bpf_map_lookup_elem(&under_way, &tid);
    if (!t) {
        bpf_map_update_elem(&under_way, &tid, &nothing, BPF_NOEXIST);
        t = bpf_map_lookup_elem(&under_way, &tid);
    }
    if (!t)
        return 0;
    t->depth++;
    struct numamove_call *c = call_of(t);
    if (!c)
        return 0;
    __builtin_memset(c, 0, sizeof(*c));
    c->began_ns = bpf_ktime_get_ns();
    c->list = list;
    c->reason = migrate_reason_of(kernel_reason);
    owner_asked(&c->asked, c->reason);
    return 0;
}

/*
 * The process of a number that a system call was given, if the kernel can be asked for it: in the PID namespace of
 * the current process since 6.14, in the initial one since 6.2. Only programs of tp_btf and fentry may ask. Without it
 * the tool looks for the process, which may have ended by then.
 */
extern struct task_struct *bpf_task_from_vpid(int pid) __weak __ksym;
extern struct task_struct *bpf_task_from_pid(int pid) __weak __ksym;
extern void bpf_task_release(struct task_struct *task) __weak __ksym;

static __always_inline void find_asked(void)
{
    struct numamove_call *c = state.runs ? call_of(task_now()) : NULL;
    struct task_struct *task = NULL;
    if (!c || c->asked.kind != NUMAMOVE_NUMBER)
        return;
    if (bpf_task_from_vpid)
        task = bpf_task_from_vpid((int)c->asked.pid);
    else if (bpf_task_from_pid && !config.pid_namespace)
        task = bpf_task_from_pid((int)c->asked.pid);
    if (!task)
        return;
    owner_of_task(&c->asked, task);
    bpf_task_release(task);
}

/* The pages that were gathered for one row are added to it. */
static __attribute__((noinline)) int write_pages(struct numamove_call *c)
{
    struct row_key row = {0};
    key_now(&row.key, c->reason, &c->owner);
    row.key.from = c->from;
    row.key.to = c->to;
    struct numamove_value *v = row_at(&row);
    if (v) {
        v->pages += c->pages;
        row_done(v);
    }
    c->written += c->pages;
    c->pages = 0;
    c->several = 1;
    return 0;
}

/* The last folio that has moved belongs to the row of those before, or begins the next row. */
static __attribute__((noinline)) int settle_folio(struct numamove_call *c)
{
    struct numamove_folio *f = &c->folio;
    struct numamove_owner *owner = &f->owner;
    const bool told = f->mm && owner->kind != NUMAMOVE_SHARED;
    if (!f->address)
        return 0;
    if (!told && c->asked.kind != NUMAMOVE_NOBODY)
        owner = &c->asked;
    if (c->pages &&
        (c->from != f->from || c->to != f->to ||
         (config.parts & NUMAMOVE_BY_OWNER && (c->owner.kind != owner->kind || c->owner.pid != owner->pid))))
        write_pages(c);
    c->owner = *owner;
    c->from = f->from;
    c->to = f->to;
    c->pages += f->pages;
    f->address = 0;
    return 0;
}

/* A folio has its new place, but no address space has it yet. */
static __always_inline int moved(__u64 to, __u64 from)
{
    struct numamove_call *c = state.runs ? call_of(task_now()) : NULL;
    if (!c)
        return 0;
    settle_folio(c);
    c->folio.address = to;
    c->folio.mm = 0;
    c->folio.owner = (struct numamove_owner){.kind = NUMAMOVE_NOBODY};
    c->folio.pages = folio_pages(to);
    c->folio.from = (__s16)folio_node(from);
    c->folio.to = (__s16)folio_node(to);
    return 0;
}

/* An address space gets the folio back. */
static __always_inline int mapped(__u64 folio, const struct vm_area_struct *vma)
{
    struct numamove_call *c = state.runs ? call_of(task_now()) : NULL;
    if (!c || c->folio.address != folio)
        return 0;
    const struct mm_struct *mm = BPF_CORE_READ(vma, vm_mm);
    if (c->folio.mm) {
        if (c->folio.mm != (__u64)mm)
            c->folio.owner = (struct numamove_owner){.kind = NUMAMOVE_SHARED};
        return 0;
    }
    c->folio.mm = (__u64)mm;
    owner_of_mm(&c->folio.owner, mm);
    return 0;
}

static __always_inline void add_time(struct numamove_value *v, __u64 duration_ns)
{
    v->timed++;
    v->duration_ns += duration_ns;
    if (duration_ns > v->longest_ns)
        v->longest_ns = duration_ns;
    row_measure(v, duration_ns);
}

static __always_inline void add_failures(struct numamove_value *v, const struct numamove_call *c)
{
    const __u64 stayed = pages_that_stayed(c->list);
    v->pinned += (__u32)stayed;
    v->writeback += stayed >> 32;
}

/* Which row a call belongs to: that of its pages, if all of them are in one row. */
static __always_inline void find_row(struct numamove_key *key, struct numamove_call *c,
                                     const struct numamove_told *told)
{
    struct numamove_owner asked = {0};
    if (!c) {
        const __u32 reason = migrate_reason_of(told->reason);
        owner_asked(&asked, reason);
        key_now(key, reason, &asked);
        return;
    }
    settle_folio(c);
    if (c->pages && (c->several || c->pages < told->succeeded))
        write_pages(c);
    key_now(key, c->reason, c->pages ? &c->owner : &c->asked);
    if (c->pages) {
        key->from = c->from;
        key->to = c->to;
    }
}

static __always_inline void forget_if_done(struct numamove_task *t)
{
    __u32 tid = (__u32)bpf_get_current_pid_tgid();
    if (t->depth)
        t->depth--;
    if (!t->depth)
        bpf_map_delete_elem(&under_way, &tid);
}

static __always_inline __u64 rest_of(__u64 all, __u64 part)
{
    return all > part ? all - part : 0;
}

/* A call ends: the last thing that it does is to tell the pages. */
static __attribute__((noinline)) int told(const struct numamove_told *told)
{
    struct numamove_task *t = task_now();
    struct numamove_call *c = call_of(t);
    struct row_key row = {0};
    if (!state.runs || (!t && !wanted()))
        return 0;
    find_row(&row.key, c, told);
    struct numamove_value *v = row_at(&row);
    if (!v)
        return 0;
    v->calls++;
    v->pages += c && c->written ? rest_of(told->succeeded, c->written) : told->succeeded;
    v->failed += told->failed;
    v->huge += told->huge;
    v->huge_failed += told->huge_failed;
    v->split += told->split;
    if (c)
        add_time(v, bpf_ktime_get_ns() - c->began_ns);
    if (c && c->list && told->failed)
        add_failures(v, c);
    row_done(v);
    if (!c)
        count(NUMAMOVE_UNTIMED);
    if (t)
        t->last = row.key;
    return 0;
}

static __always_inline int ended(const struct numamove_told *of)
{
    told(of);
    struct numamove_task *t = state.runs ? task_now() : NULL;
    if (t)
        forget_if_done(t);
    return 0;
}

/* The call returns, after it has told its pages. */
static __always_inline int returned(int result)
{
    struct numamove_task *t = state.runs ? task_now() : NULL;
    if (!t)
        return 0;
    if (result == -KERNEL_NO_MEMORY) {
        struct row_key row = {.key = t->last};
        struct numamove_value *v = row_at(&row);
        if (v) {
            v->no_memory++;
            row_done(v);
        }
    }
    forget_if_done(t);
    return 0;
}

static __always_inline __s16 node_at(int cpu)
{
    __u64 at = (__u32)cpu;
    if (at >= NUMAMOVE_CPUS_MAX)
        return NUMAMOVE_NO_NODE;
    barrier_var(at); /* as above */
    return node_of_cpu[at & (NUMAMOVE_CPUS_MAX - 1)];
}

static __always_inline int task_event(__u32 reason, int from, int to, const struct numamove_owner *owner)
{
    struct row_key row = {0};
    key_now(&row.key, reason, owner);
    row.key.from = (__s16)from;
    row.key.to = (__s16)to;
    struct numamove_value *v = row_at(&row);
    if (v) {
        v->tasks++;
        row_done(v);
    }
    return 0;
}

/* The scheduler does it in the task that it is about. */
static __attribute__((noinline)) int current_event(__u32 reason, int from, int to)
{
    struct numamove_owner owner = {0};
    if (!wanted())
        return 0;
    owner_of_task(&owner, (const void *)bpf_get_current_task());
    return task_event(reason, from, to, &owner);
}

/* The other one of two that are swapped. Returns whether it is wanted. */
static __always_inline int other_event(int from, int to, const struct numamove_owner *owner)
{
    return wanted() ? task_event(NUMAMOVE_TASK_SWAPPED, from, to, owner) : 0;
}

static __always_inline int swapped(int from, int to, const struct task_struct *other)
{
    struct numamove_owner owner = {0};
    current_event(NUMAMOVE_TASK_SWAPPED, from, to);
    if (other) /* always, but the verifier does not know */
        owner_of_task(&owner, other);
    return other_event(to, from, &owner);
}

/* By position. */
static __always_inline int argument_reason(const __u64 *ctx)
{
    __u64 reason;
    /* Each branch has an instruction of its own: otherwise the compiler would compute an address first, which the
     * verifier refuses. */
    if (bpf_core_field_exists(struct trace_event_raw_mm_migrate_pages, large_folio_split))
        asm volatile("%0 = *(u64 *)(%1 + 56)" : "=r"(reason) : "r"(ctx));
    else
        asm volatile("%0 = *(u64 *)(%1 + 48)" : "=r"(reason) : "r"(ctx));
    return (int)reason;
}

#define TOLD(prefix, name, section, then)                                                                    \
    SEC(section "/mm_migrate_pages")                                                                         \
    int BPF_PROG(prefix##_##name, __u64 succeeded, __u64 failed, __u64 huge, __u64 huge_failed, __u64 split) \
    {                                                                                                        \
        struct numamove_told of = {succeeded, failed, huge, huge_failed, split, argument_reason(ctx), 0};    \
        return then(&of);                                                                                    \
    }

#define BY_POSITION(prefix, section)                                                                         \
    TOLD(prefix, end, section, ended)                                                                        \
    TOLD(prefix, told, section, told)                                                                        \
    SEC(section "/sched_move_numa")                                                                          \
    int BPF_PROG(prefix##_move, const struct task_struct *task, int from, int to)                            \
    {                                                                                                        \
        return current_event(NUMAMOVE_TASK_MOVED, node_at(from), node_at(to));                               \
    }                                                                                                        \
    SEC(section "/sched_swap_numa")                                                                          \
    int BPF_PROG(prefix##_swap, const struct task_struct *task, int from, const struct task_struct *other,   \
                 int to)                                                                                     \
    {                                                                                                        \
        return swapped(node_at(from), node_at(to), other);                                                   \
    }                                                                                                        \
    SEC(section "/sched_stick_numa")                                                                         \
    int BPF_PROG(prefix##_stick, const struct task_struct *task, int from, const struct task_struct *other,  \
                 int to)                                                                                     \
    {                                                                                                        \
        return current_event(NUMAMOVE_TASK_STUCK, node_at(from), node_at(to));                               \
    }

BY_POSITION(btf, "tp_btf")
BY_POSITION(raw, "raw_tp")

SEC("tp_btf/mm_migrate_pages_start") int BPF_PROG(btf_begin, int mode, int reason)
{
    begun(reason, 0);
    find_asked();
    return 0;
}

SEC("raw_tp/mm_migrate_pages_start") int BPF_PROG(raw_begin, int mode, int reason)
{
    return begun(reason, 0);
}

/* By name. */
SEC("tp/migrate/mm_migrate_pages_start") int tp_begin(struct trace_event_raw_mm_migrate_pages_start *ctx)
{
    return begun(ctx->reason, 0);
}

SEC("tp/migrate/mm_migrate_pages") int tp_end(struct trace_event_raw_mm_migrate_pages *ctx)
{
    struct numamove_told of = {
        ctx->succeeded, ctx->failed, ctx->thp_succeeded, ctx->thp_failed, ctx->thp_split, ctx->reason, 0};
    return ended(&of);
}

SEC("tp/sched/sched_move_numa") int tp_move(struct trace_event_raw_sched_move_numa *ctx)
{
    return current_event(NUMAMOVE_TASK_MOVED, ctx->src_nid, ctx->dst_nid);
}

/* The other one has a number of the initial PID namespace. */
SEC("tp/sched/sched_swap_numa") int tp_swap(struct trace_event_raw_sched_numa_pair_template *ctx)
{
    struct numamove_owner owner = {0};
    if (!config.pid_namespace) {
        owner.kind = NUMAMOVE_NUMBER;
        owner.pid = (__u32)ctx->dst_tgid;
    }
    current_event(NUMAMOVE_TASK_SWAPPED, ctx->src_nid, ctx->dst_nid);
    return other_event(ctx->dst_nid, ctx->src_nid, &owner);
}

SEC("tp/sched/sched_stick_numa") int tp_stick(struct trace_event_raw_sched_numa_pair_template *ctx)
{
    return current_event(NUMAMOVE_TASK_STUCK, ctx->src_nid, ctx->dst_nid);
}

/* Functions of the kernel. */
SEC("fentry/migrate_pages")
int BPF_PROG(fentry_begin, __u64 from, __u64 get, __u64 put, __u64 data, int mode, int reason)
{
    begun(reason, number_of_pointer((const void *)from));
    find_asked();
    return 0;
}

SEC("fentry/folio_migrate_flags") int BPF_PROG(fentry_moved, __u64 to, __u64 from)
{
    return moved(number_of_pointer((const void *)to), number_of_pointer((const void *)from));
}

SEC("fentry/remove_migration_pte")
int BPF_PROG(fentry_mapped, __u64 folio, const struct vm_area_struct *vma)
{
    return mapped(number_of_pointer((const void *)folio), vma);
}

/* Seven arguments come before the result. */
SEC("fexit/migrate_pages") int fexit_end(const __u64 *ctx)
{
    return returned((int)ctx[7]);
}

/* libbpf has no name for the sixth argument before 1.2. */
static __always_inline int sixth_argument(const struct pt_regs *ctx)
{
#if defined(__TARGET_ARCH_x86)
    return (int)BPF_CORE_READ(ctx, r9);
#else
    return (int)BPF_CORE_READ((const struct user_pt_regs *)ctx, regs[5]);
#endif
}

SEC("kprobe/migrate_pages") int kprobe_begin(struct pt_regs *ctx)
{
    return begun(sixth_argument(ctx), PT_REGS_PARM1_CORE(ctx));
}

SEC("kprobe/folio_migrate_flags") int BPF_KPROBE(kprobe_moved, __u64 to, __u64 from)
{
    return moved(to, from);
}

SEC("kprobe/remove_migration_pte")
int BPF_KPROBE(kprobe_mapped, __u64 folio, const struct vm_area_struct *vma)
{
    return mapped(folio, vma);
}

SEC("kretprobe/migrate_pages") int BPF_KRETPROBE(kretprobe_end, int result)
{
    return returned(result);
}
