// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * `allium sys oomkill`: what triggered an OOM kill, which process died, and why. Everything is read at the
 * moment of the kill, in the kernel, under its oom_lock: one kill is in progress at a time, so the data needs
 * no copy for each CPU.
 */
#include "bpf/memcg.bpf.h"
#include "bpf/mm.bpf.h"
#include "bpf/oomkill.h"
#include "bpf/oomkill_walk.bpf.h"

/*
 * What the kernel knows about a kill before it has marked the victim; by the thread that requested memory.
 * One is in progress at a time, but the kernel may miss a probe at a function's end, and then its entry
 * stays.
 */
struct request {
    const struct mem_cgroup *memcg;
    const struct task_struct *chosen;
    __u64 total_pages;
    __u32 gfp;
    __s32 order;
    __u32 scope; /* enum oomkill_scope */
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 64);
    __uint(key_size, sizeof(__u64));
    __uint(value_size, sizeof(struct request));
} requests SEC(".maps");

/* The process to which a thread sent the kernel's own SIGKILL last. */
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 1024);
    __uint(key_size, sizeof(__u64));
    __uint(value_size, sizeof(__u64));
} killed SEC(".maps");

/* The event in preparation. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(struct oomkill_event));
} drafts SEC(".maps");

/* Where the load averages are; 0: the kernel's names do not have its variables. Set before the programs are loaded. */
const volatile __u64 avenrun_at = 0;

static __always_inline __u32 scope_of(const struct oom_control *oc)
{
    enum oom_constraint c = BPF_CORE_READ(oc, constraint);
    if (BPF_CORE_READ(oc, memcg) || c == bpf_core_enum_value(enum oom_constraint, CONSTRAINT_MEMCG))
        return OOMKILL_MEMCG;
    if (c == bpf_core_enum_value(enum oom_constraint, CONSTRAINT_CPUSET))
        return OOMKILL_CPUSET;
    return c == bpf_core_enum_value(enum oom_constraint, CONSTRAINT_MEMORY_POLICY) ? OOMKILL_MEMPOLICY
                                                                                   : OOMKILL_GLOBAL;
}

static __always_inline int request_begins(const struct oom_control *oc)
{
    __u64 thread = bpf_get_current_pid_tgid();
    struct request r = {.memcg = BPF_CORE_READ(oc, memcg),
                        .chosen = BPF_CORE_READ(oc, chosen),
                        .total_pages = BPF_CORE_READ(oc, totalpages),
                        .gfp = BPF_CORE_READ(oc, gfp_mask),
                        .order = BPF_CORE_READ(oc, order),
                        .scope = scope_of(oc)};
    if (bpf_map_update_elem(&requests, &thread, &r, BPF_ANY))
        count(OOMKILL_REQUESTS_FULL);
    return 0;
}

static __always_inline int request_ends(void)
{
    __u64 thread = bpf_get_current_pid_tgid();
    bpf_map_delete_elem(&requests, &thread);
    return 0;
}

/* The path of a cgroup of the draft's: the victim's, or the one that is full. */
GLOBAL int put_path(__u64 css_at, __u32 victims)
{
    __u32 zero = 0;
    const struct cgroup_subsys_state *css = (const void *)css_at;
    struct oomkill_event *e = bpf_map_lookup_elem(&drafts, &zero);
    if (!e)
        return 0;
    struct oomkill_path *path = victims ? &e->victim_cgroup : &e->memcg;
    const struct kernfs_node *node = BPF_CORE_READ(css, cgroup, kn), *parent;
    for (__u32 i = 0; i < OOMKILL_LEVELS; i++) {
        parent = node ? kernfs_parent(node) : NULL;
        if (!parent)
            return 0;
        bpf_probe_read_kernel_str(path->name[i], OOMKILL_NAME_BYTES, BPF_CORE_READ(node, name));
        path->levels = i + 1;
        node = parent;
    }
    path->cut = node && kernfs_parent(node);
    return 0;
}

static __always_inline void put_memcg(struct oomkill_event *e, const struct cgroup_subsys_state *css)
{
    enum memcg_limit of;
    const struct page_counter *c = memcg_counter(css, &of);
    __u64 max = BPF_CORE_READ(c, max);
    e->scope = OOMKILL_MEMCG;
    e->limit = of;
    e->limit_pages = max < MEMCG_UNLIMITED ? max : OOMKILL_NO_LIMIT;
    e->usage_pages = BPF_CORE_READ(c, usage.counter);
    e->memcg_id = BPF_CORE_READ(css, cgroup, kn, id);
    put_path((__u64)css, false);
}

/* The memory cgroup for whose limit the kernel kills, where nobody tells; NULL: the machine was short, or a part of
 * it. */
static __always_inline const struct cgroup_subsys_state *full_group(const struct task_struct *victim)
{
    const struct cgroup_subsys_state *css = (const void *)memcg_full(number_of_pointer(victim));
    enum memcg_limit of;
    return css && (memcg_is_locked(css) || counter_is_full(memcg_counter(css, &of))) ? css : NULL;
}

static __always_inline void put_scope(struct oomkill_event *e, const struct task_struct *victim,
                                      const struct request *r)
{
    const struct cgroup_subsys_state *css = NULL;
    e->scope = OOMKILL_GLOBAL;
    if (r) {
        e->exact = 1;
        e->scope = (__u8)r->scope;
        e->order = r->order;
        e->gfp = r->gfp;
        e->total_pages = r->total_pages;
        css = r->memcg ? &r->memcg->css : NULL;
    } else if (victim) {
        css = full_group(victim);
    }
    if (css)
        put_memcg(e, css);
}

static __always_inline void put_memory(struct oomkill_memory *m, const struct mm_struct *mm)
{
    m->anon_pages = mm_exact(mm, MM_ANONPAGES);
    m->file_pages = mm_exact(mm, MM_FILEPAGES);
    m->shmem_pages = mm_exact(mm, MM_SHMEMPAGES);
    m->swap_pages = mm_exact(mm, MM_SWAPENTS);
}

/* What the process is called in its own PID namespace, which has the largest level; 0: in the initial one. */
static __always_inline __u32 inner_number(const struct task_struct *task)
{
    const struct pid *pid = BPF_CORE_READ(task, group_leader, thread_pid);
    struct upid number = {0};
    __u32 level = pid ? BPF_CORE_READ(pid, level) : 0;
    if (level && level < PID_NAMESPACES_MAX)
        bpf_core_read(&number, sizeof(number), &pid->numbers[level]);
    return (__u32)number.nr;
}

static __attribute__((noinline)) int put_victim(struct oomkill_event *e, const struct task_struct *victim,
                                                const struct mm_struct *mm)
{
    const struct cgroup_subsys_state *css = memory_css(victim);
    e->victim_pid = process_of(victim);
    e->victim_inner_pid = inner_number(victim);
    e->victim_uid = BPF_CORE_READ(victim, real_cred, uid.val);
    BPF_CORE_READ_STR_INTO(&e->victim_comm, victim, comm);
    e->oom_score_adj = BPF_CORE_READ(victim, signal, oom_score_adj);
    put_memory(&e->memory, mm);
    e->approximate = !mm_is_exact();
    e->page_table_bytes = BPF_CORE_READ(mm, pgtables_bytes.counter);
    e->total_vm_pages = BPF_CORE_READ(mm, total_vm);
    put_path((__u64)css, true);
    return 0;
}

/* The victim got the kernel's SIGKILL from this thread just before it was marked; else it was ending by itself. */
static __always_inline __u8 outcome_of(const struct task_struct *victim)
{
    __u64 thread = bpf_get_current_pid_tgid();
    const __u64 *last = bpf_map_lookup_elem(&killed, &thread);
    __u8 outcome = last && *last == (__u64)victim ? OOMKILL_KILLED : OOMKILL_EXITING;
    bpf_map_delete_elem(&killed, &thread);
    return outcome;
}

static __always_inline void put_largest(struct oomkill_event *e, const struct mm_struct *mm)
{
    struct walk *w = walk_all(mm, e->scope == OOMKILL_MEMCG ? e->memcg_id : 0);
    if (!w)
        return;
    bpf_probe_read_kernel(e->largest, sizeof(e->largest), w->largest);
    e->n_largest = w->n_largest;
    e->processes = w->processes;
    e->sharing = w->sharing > 1 ? w->sharing - 1 : 0;
    e->walk_cut = w->cut;
    if (w->cut)
        count(OOMKILL_WALK_CUT);
}

static __always_inline void put_loads(struct oomkill_event *e)
{
    unsigned long loads[3];
    if (!avenrun_at || bpf_probe_read_kernel(loads, sizeof(loads), (const void *)avenrun_at))
        return;
    for (int i = 0; i < 3; i++)
        e->loads[i] = loads[i];
    e->loads_known = 1;
}

static __always_inline int marked(void *ctx, const struct task_struct *victim, __u32 pid)
{
    __u32 zero = 0;
    __u64 thread = bpf_get_current_pid_tgid();
    struct oomkill_event *e = bpf_map_lookup_elem(&drafts, &zero), *out;
    const struct request *r = bpf_map_lookup_elem(&requests, &thread);
    if (!e || !wanted())
        return 0;
    bpf_probe_read_kernel(e, sizeof(*e), NULL); /* which cannot be read: all becomes 0 */
    event_head(&e->head, ctx);
    cpu_offsets_find();
    if (!victim)
        victim = walk_find(pid, r ? r->chosen : NULL);
    e->victim_pid = config.pid_namespace ? 0 : pid;
    put_scope(e, victim, r);
    if (victim) {
        e->victim_requested = (__u32)BPF_CORE_READ(victim, tgid) == bpf_get_current_pid_tgid() >> 32;
        const struct mm_struct *mm = BPF_CORE_READ(victim, signal, oom_mm);
        put_victim(e, victim, mm);
        put_largest(e, mm);
        e->outcome = outcome_of(victim);
    } else {
        count(OOMKILL_UNKNOWN_VICTIM);
    }
    put_loads(e);
    out = event_begin(sizeof(*out));
    if (out) {
        bpf_probe_read_kernel(out, sizeof(*out), e);
        event_end(out);
    }
    return 0;
}

static __always_inline int signalled(int sig, __u64 info, const struct task_struct *task)
{
    __u64 thread = bpf_get_current_pid_tgid(), whom = (__u64)task;
    if (sig == 9 && info == 1) /* SIGKILL, SEND_SIG_PRIV: from the kernel itself */
        bpf_map_update_elem(&killed, &thread, &whom, BPF_ANY);
    return 0;
}

SEC("fentry/oom_kill_process") int BPF_PROG(fentry_begins, const struct oom_control *oc)
{
    return request_begins(oc);
}

SEC("fexit/oom_kill_process") int fexit_ends(void *ctx)
{
    return request_ends();
}

SEC("kprobe/oom_kill_process") int BPF_KPROBE(kprobe_begins, const struct oom_control *oc)
{
    return request_begins(oc);
}

SEC("kretprobe/oom_kill_process") int kretprobe_ends(void *ctx)
{
    return request_ends();
}

SEC("tp_btf/mark_victim") int BPF_PROG(btf_marked, const struct task_struct *task)
{
    return marked(ctx, task, 0);
}

SEC("raw_tp/mark_victim") int BPF_PROG(raw_marked, const struct task_struct *task)
{
    return marked(ctx, task, 0);
}

/* Before 6.8 the event has nothing but the thread's number. */
SEC("raw_tp/mark_victim") int BPF_PROG(raw_marked_pid, int pid)
{
    return marked(ctx, NULL, (__u32)pid);
}

SEC("tp_btf/signal_generate")
int BPF_PROG(btf_signalled, int sig, __u64 info, const struct task_struct *task)
{
    return signalled(sig, info, task);
}

SEC("raw_tp/signal_generate")
int BPF_PROG(raw_signalled, int sig, __u64 info, const struct task_struct *task)
{
    return signalled(sig, info, task);
}
