// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* `allium sys faults`: page faults, by the code that has them or by place. */
#include "bpf/sys.bpf.h"

#include "bpf/fault_class.bpf.h"
#include "bpf/fault_pages.bpf.h"
#include "bpf/faults.h"

/* Bits of enum faults_mark: the requested marks. A fault must have all its marks among them. */
const volatile __u32 only = ~0u;

SYS_TABLE(struct faults_key, struct faults_value)

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, FAULTS_THREADS);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(struct faults_begun));
} begun SEC(".maps");

/* By process. When it is full, the entry that has not changed for longest is replaced. */
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 16384);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(struct faults_resident));
} resident SEC(".maps");

struct fault {
    __u64 address, ip;
    __u64 ended_ns;           /* 0: how long it took is not asked for */
    __u32 kind, mode, access; /* enum faults_mark */
    bool ended;
    struct process_mapping in;
};

static __always_inline bool in_user_mode(unsigned long cs)
{
    return cs & 3;
}

static __always_inline void key_now(struct faults_key *key, void *ctx, const struct fault *f)
{
    if (config.parts & FAULTS_BY_PROCESS)
        key->pid = current_ids() >> 32;
    if (config.parts & (FAULTS_BY_PROCESS | FAULTS_BY_COMM))
        comm_now(key->comm);
    if (config.parts & FAULTS_BY_PLACE) {
        key->place = f->ip;
        key->in_kernel = f->mode != FAULTS_USER;
    }
    if (config.parts & FAULTS_BY_STACK) {
        key->kernel_stack = kernel_stack_now(ctx);
        key->user_stack = user_stack_now(ctx);
    }
    if (config.parts & FAULTS_BY_FILE)
        key->file = f->in;
}

static __always_inline void mark(struct faults_value *v, __u32 which)
{
    if (which < FAULTS_MARKS)
        v->marked[which]++;
}

/* How the thread's fault began is looked up as late as this, since the verifier follows each case to the end. */
static __always_inline void measure(struct faults_value *v, __u64 ended_ns)
{
    __u32 tid = (__u32)bpf_get_current_pid_tgid(), slot = tid % FAULTS_THREADS;
    const struct faults_begun *b = bpf_map_lookup_elem(&begun, &slot);
    if (b && b->tid == tid && b->time_ns)
        row_measure(v, ended_ns - b->time_ns);
}

static __always_inline int account(void *ctx, struct fault *f)
{
    struct row_key row = {0};
    const __u32 class = FAULTS_CLASS + f->in.class % MAPPING_CLASSES; /* as the verifier wants it */
    __u32 marks = 1u << f->kind | 1u << f->mode | 1u << (f->access & 31) | 1u << (class & 31);
    if ((marks & only) != marks)
        return 0;
    key_now(&row.key, ctx, f);
    struct faults_value *v = row_at(&row);
    if (!v)
        return 0;
    mark(v, f->kind);
    mark(v, f->mode);
    mark(v, f->access);
    mark(v, class);
    if (f->ended)
        reading_ends(v, &f->in);
    if (f->ended_ns)
        measure(v, f->ended_ns);
    if (config.parts & (FAULTS_BY_PLACE | FAULTS_BY_STACK))
        v->time_ns = bpf_ktime_get_ns();
    row_done(v);
    return 0;
}

static __always_inline __u32 access_of(__u64 error_code)
{
    return error_code & X86_FAULT_FETCH   ? FAULTS_EXECUTE
           : error_code & X86_FAULT_WRITE ? FAULTS_WRITE
                                          : FAULTS_READ;
}

/* Its end, with the mapping as an argument; counted as mm_account_fault() does it. */
#define VALUE(name) bpf_core_enum_value(enum vm_fault_reason, name)
#define FLAG(name)  bpf_core_enum_value(enum fault_flag, name)
SEC("fexit/handle_mm_fault")
int BPF_PROG(exit_fault, struct vm_area_struct *vma, unsigned long address, unsigned int flags,
             struct pt_regs *regs, unsigned int ret)
{
    const __u32 failed = VALUE(VM_FAULT_OOM) | VALUE(VM_FAULT_SIGBUS) | VALUE(VM_FAULT_HWPOISON) |
                         VALUE(VM_FAULT_HWPOISON_LARGE) | VALUE(VM_FAULT_SIGSEGV) | VALUE(VM_FAULT_FALLBACK);
    struct fault f = {.address = address, .ended = true};
    if (ret & (failed | VALUE(VM_FAULT_RETRY)) || !wanted()) /* it failed, or will be tried again */
        return 0;
    f.kind = ret & VALUE(VM_FAULT_MAJOR) || flags & FLAG(FAULT_FLAG_TRIED) ? FAULTS_MAJOR : FAULTS_MINOR;
    f.access = flags & FLAG(FAULT_FLAG_INSTRUCTION) ? FAULTS_EXECUTE
               : flags & FLAG(FAULT_FLAG_WRITE)     ? FAULTS_WRITE
                                                    : FAULTS_READ;
    f.mode = !regs ? FAULTS_ASKED : in_user_mode(regs->cs) ? FAULTS_USER : FAULTS_KERNEL;
    f.ip = regs ? regs->ip : 0;
    if (config.histograms && regs)
        f.ended_ns = bpf_ktime_get_ns();
    describe_mapping(&f.in, vma, vma->vm_mm, vma->vm_start, vma->vm_end);
    return account(ctx, &f);
}

SEC("fentry/handle_mm_fault")
int BPF_PROG(enter_fault, struct vm_area_struct *vma, unsigned long address, unsigned int flags)
{
    reading_begins_in(vma, address, flags);
    return 0;
}

SEC("raw_tp/mm_filemap_add_to_page_cache") int BPF_PROG(add_pages, const struct folio *folio)
{
    reading_adds(folio);
    return 0;
}

/* Its end, as the kernel counts it: what the access was is known from its beginning, and since when it is under way. */
static __always_inline int begins(__u64 address, __u64 error_code)
{
    __u32 tid = (__u32)bpf_get_current_pid_tgid(), slot = tid % FAULTS_THREADS;
    struct faults_begun *b = bpf_map_lookup_elem(&begun, &slot);
    if (b) {
        b->tid = tid;
        b->access = access_of(error_code);
        if (config.histograms)
            b->time_ns = bpf_ktime_get_ns();
    }
    reading_begins(address);
    return 0;
}

SEC("raw_tp/page_fault_user") int BPF_PROG(begin_user, __u64 address, void *regs, __u64 error_code)
{
    return begins(address, error_code);
}

SEC("raw_tp/page_fault_kernel") int BPF_PROG(begin_kernel, __u64 address, void *regs, __u64 error_code)
{
    return is_only_tried(true) ? 0 : begins(address, error_code);
}

static __always_inline int ended(struct perf_context *ctx, __u32 kind)
{
    struct fault f = {.kind = kind, .address = ctx->address, .ip = ctx->ip, .ended = true};
    __u32 tid = (__u32)bpf_get_current_pid_tgid(), slot = tid % FAULTS_THREADS;
    if (!wanted())
        return 0;
    const struct faults_begun *b = bpf_map_lookup_elem(&begun, &slot);
    f.mode = in_user_mode(ctx->cs) ? FAULTS_USER : FAULTS_KERNEL;
    f.access = b && b->tid == tid ? b->access : FAULTS_ACCESS_UNKNOWN;
    if (config.histograms)
        f.ended_ns = bpf_ktime_get_ns();
    classify(&f.in, f.address);
    return account(ctx, &f);
}

SEC("perf_event") int perf_minor(struct perf_context *ctx)
{
    return ended(ctx, FAULTS_MINOR);
}

SEC("perf_event") int perf_major(struct perf_context *ctx)
{
    return ended(ctx, FAULTS_MAJOR);
}

/* Its beginning alone. */
static __always_inline int began(void *ctx, __u32 mode, __u64 address, __u64 ip, __u64 error_code)
{
    struct fault f = {.address = address, .ip = ip, .kind = FAULTS_MINOR, .mode = mode};
    if ((__s64)address < 0 || is_only_tried(mode == FAULTS_KERNEL) || !wanted()) /* the kernel's own memory */
        return 0;
    f.access = access_of(error_code);
    classify(&f.in, f.address);
    return account(ctx, &f);
}

#define BEGAN(name, section, mode)                                                                           \
    SEC(section) int BPF_PROG(name, __u64 address, struct pt_regs *regs, __u64 error_code)                   \
    {                                                                                                        \
        return began(ctx, mode, address, BPF_CORE_READ(regs, ip), error_code);                               \
    }

BEGAN(btf_user, "tp_btf/page_fault_user", FAULTS_USER)
BEGAN(btf_kernel, "tp_btf/page_fault_kernel", FAULTS_KERNEL)
BEGAN(raw_user, "raw_tp/page_fault_user", FAULTS_USER)
BEGAN(raw_kernel, "raw_tp/page_fault_kernel", FAULTS_KERNEL)

#define BEGAN_NAMED(name, section, mode)                                                                     \
    SEC(section) int name(struct trace_event_raw_exceptions *ctx)                                            \
    {                                                                                                        \
        if (!bpf_core_type_exists(struct trace_event_raw_exceptions)) {                                      \
            struct trace_event_raw_x86_exceptions *old = (void *)ctx;                                        \
            return began(ctx, mode, old->address, old->ip, old->error_code);                                 \
        }                                                                                                    \
        return began(ctx, mode, ctx->address, ctx->ip, ctx->error_code);                                     \
    }

BEGAN_NAMED(tp_user, "tp/exceptions/page_fault_user", FAULTS_USER)
BEGAN_NAMED(tp_kernel, "tp/exceptions/page_fault_kernel", FAULTS_KERNEL)

/* With --growth. Only changes that a process makes itself: it is known then, and its end does not look like
 * shrinking. */
static __always_inline struct faults_resident *resident_of(__u32 pid)
{
    const struct task_struct *task = (const void *)bpf_get_current_task();
    struct faults_resident *r = bpf_map_lookup_elem(&resident, &pid);
    __u64 began_ns = BPF_CORE_READ(task, group_leader, start_time);
    if (r && r->began_ns == began_ns)
        return r;
    struct faults_resident first = {.began_ns = began_ns};
    bpf_map_update_elem(&resident, &pid, &first, BPF_ANY);
    return bpf_map_lookup_elem(&resident, &pid);
}

SEC("tp/kmem/rss_stat") int tp_resident(struct trace_event_raw_rss_stat *ctx)
{
    __u32 member = ctx->member;
    if (!ctx->curr || member > 3 || !wanted())
        return 0;
    struct faults_resident *r = resident_of(current_ids() >> 32);
    if (!r)
        return 0;
    if (r->mm_id && r->mm_id != ctx->mm_id) { /* it has executed another program */
        r->seen = 0;
        r->fresh = 1;
    }
    r->mm_id = ctx->mm_id;
    comm_now(r->comm);
    r->bytes[member] = ctx->size;
    r->seen |= 1u << member;
    return 0;
}
