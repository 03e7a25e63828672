/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_SYS_BPF_H
#define BPF_SYS_BPF_H

/*
 * The common part of all tools' programs: whether an event is wanted, its process, its stacks, a row of the
 * table, a record in the ring. A tool's file includes it once.
 *
 * Nothing is lost silently: when a map or a ring has no room, that is counted on the spot. Results are not
 * checked where the call cannot fail, or where the next step notices it:
 *   - reads of the kernel's own memory (BPF_CORE_READ(), bpf_probe_read_kernel(), _str()): its structs, reached by
 *     their pointers under RCU, exist. A struct that was freed meanwhile, with its page, reads as 0 or "";
 *   - bpf_map_update_elem(), if the new entry is looked up next;
 *   - bpf_map_delete_elem(), which fails only if there is no entry, and bpf_get_current_comm(), which fails only
 *     without a task;
 *   - an update of an LRU map: another entry is replaced.
 * The error of bpf_map_update_elem() and bpf_map_delete_elem() is an int: before 6.4 the upper half of what a program
 * is given is 0, so that no negative number equals it.
 *
 * Runs in: the kernel, in the context of the event, including interrupts and the allocator itself.
 */

#ifndef __BPF__
#define __BPF__
#endif
#include "bpf/kernel.h"
#include "bpf/sys.h"

#include <bpf/bpf_helpers.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/*
 * A function that is not static: the verifier checks it once, by itself, and not at each call with everything
 * known there. Code that takes long to verify, such as loops, is put into one. It takes and returns numbers:
 * inside, nothing is known about what a pointer points to.
 */
#define GLOBAL __attribute__((noinline))

/* The verifier forgets what it knows of a pointer when it goes through memory. */
static __always_inline __u64 number_of_pointer(const void *pointer)
{
    __u64 number = 0;
    bpf_probe_read_kernel(&number, sizeof(number), &pointer);
    return number;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile struct sys_config config = {0};
struct sys_state state = {0};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, SYS_COUNTS);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(__u64));
} counts SEC(".maps");

#include "bpf/cgroup_rmdir.bpf.h"
#include "bpf/read.bpf.h"

static __always_inline void count_many(__u32 what, __u64 more)
{
    __u64 *n = bpf_map_lookup_elem(&counts, &what);
    if (n)
        __sync_fetch_and_add(n, more); /* a program in an interrupt may count the same */
}

static __always_inline void count(__u32 what)
{
    count_many(what, 1);
}

/*
 * Returns whether the cgroup has this id, with its level below the root, or lies below that cgroup. It is a
 * function of its own: in a loop the compiler would read the member that this kernel lacks before it knows
 * that nobody needs it.
 */
static __attribute__((noinline)) bool cgroup_below(const struct cgroup *group, __u32 level, __u64 id)
{
    if (BPF_CORE_READ(group, level) < (int)level)
        return false;
    /* By hand: an index that is not a constant cannot be relocated with the kernel's BTF. */
    const void *at = (const void *)group + level * sizeof(__u64);
    __u64 have = 0;
    if (bpf_core_field_exists(group->ancestors)) {
        const struct cgroup *ancestor = NULL;
        bpf_probe_read_kernel(&ancestor, sizeof(ancestor), at + bpf_core_field_offset(group->ancestors));
        have = BPF_CORE_READ(ancestor, kn, id);
    } else {
        const struct cgroup___before_6_1 *old = (const void *)group;
        bpf_probe_read_kernel(&have, sizeof(have), at + bpf_core_field_offset(old->ancestor_ids));
    }
    return have == id;
}

/* A task's state in the memory controller, of whichever hierarchy has it. */
static __always_inline const struct cgroup_subsys_state *memory_css(const struct task_struct *task)
{
    const __u32 memory = bpf_core_enum_value(enum cgroup_subsys_id___memory, memory_cgrp_id);
    const struct css_set *set = BPF_CORE_READ(task, cgroups);
    const struct cgroup_subsys_state *css = NULL;
    bpf_core_read(&css, sizeof(css), &set->subsys[memory & 15]);
    return css;
}

static __always_inline __u64 cgroup_of(const struct task_struct *task)
{
    return config.cgroup_v1 ? BPF_CORE_READ(memory_css(task), cgroup, kn, id)
                            : KERNEL_READ(task_struct, task, cgroups, dfl_cgrp, kn, id);
}

GLOBAL __u64 cgroup_now(void)
{
    return cgroup_of((const void *)bpf_get_current_task());
}

/* Returns whether the task is in the filter's cgroup, or below it. */
static __always_inline bool in_cgroup(const struct task_struct *task)
{
    const struct cgroup *group = config.filters & SYS_FILTER_CGROUP_V1
                                     ? BPF_CORE_READ(memory_css(task), cgroup)
                                     : BPF_CORE_READ(task, cgroups, dfl_cgrp);
    return cgroup_below(group, config.cgroup_level, config.cgroup_id);
}

static __always_inline bool same_comm(const char *a)
{
    const volatile __u64 *want = (const volatile __u64 *)config.comm;
    const __u64 *have = (const __u64 *)a;
    return have[0] == want[0] && have[1] == want[1];
}

/*
 * Attaching one program after the other takes a tenth of a second, and so does detaching. Without this flag
 * allocations would be counted for longer than frees.
 */
static __always_inline bool runs(void)
{
    return LIKELY(state.runs);
}

/* Returns a process's pid in allium's PID namespace; 0: it is neither in it nor below it. */
static __always_inline __u32 number_in_namespace(const struct pid *pid)
{
    __u32 level = BPF_CORE_READ(pid, level);
    for (__u32 i = 0; i < PID_NAMESPACES_MAX && i <= level; i++) {
        struct upid number = {0};
        bpf_core_read(&number, sizeof(number), &pid->numbers[level - i]);
        if (BPF_CORE_READ(number.ns, ns.inum) == config.pid_namespace)
            return (__u32)number.nr;
    }
    return 0;
}

static __attribute__((noinline)) __u64 ids_in_namespace(void)
{
    const struct task_struct *task = (const void *)bpf_get_current_task();
    __u64 tgid = number_in_namespace(BPF_CORE_READ(task, group_leader, thread_pid));
    return tgid << 32 | number_in_namespace(BPF_CORE_READ(task, thread_pid));
}

/*
 * Returns the current process << 32 | thread, in the PID namespace of the user who started allium. The
 * kernel's helper uses the initial PID namespace; in a container its numbers mean nothing, or another
 * process.
 */
static __always_inline __u64 current_ids(void)
{
    return config.pid_namespace ? ids_in_namespace() : bpf_get_current_pid_tgid();
}

/* Returns a task's process in the same namespace; 0: it is not visible to allium. */
static __always_inline __u32 process_of(const struct task_struct *task)
{
    return config.pid_namespace ? number_in_namespace(BPF_CORE_READ(task, group_leader, thread_pid))
                                : (__u32)BPF_CORE_READ(task, tgid);
}

/* Returns whether it is the task that had this number when allium started. */
static __always_inline bool began_at(const struct task_struct *task, __u64 ticks)
{
    __u64 began_ns = BPF_CORE_READ(task, start_boottime) + config.boottime_offset_ns;
    return !ticks || began_ns / SYS_TICK_NS == ticks;
}

/* The current task's name. Since 5.17 the kernel fills what is behind it with zeros, so that it can be compared. */
static __always_inline void comm_now(char *comm)
{
    if (config.casts) {
        const __u64 *from = (const __u64 *)CAST_TO(task_struct, (const void *)bpf_get_current_task())->comm;
        __u64 *to = (__u64 *)comm;
        to[0] = from[0];
        to[1] = from[1];
    } else {
        bpf_get_current_comm(comm, SYS_COMM_BYTES);
    }
}

/* Returns whether the present event, in the current task, is wanted. */
static __always_inline bool wanted(void)
{
    if (!runs())
        return false;
    __u64 id = current_ids();
    if (config.own_tgid && UNLIKELY(id >> 32 == config.own_tgid)) {
        count(SYS_OWN);
        return false;
    }
    const struct task_struct *task = (const void *)bpf_get_current_task();
    if (config.filters & SYS_FILTER_TGID &&
        (id >> 32 != config.tgid || !began_at(BPF_CORE_READ(task, group_leader), config.tgid_began)))
        return false;
    if (config.filters & SYS_FILTER_TID && ((__u32)id != config.tid || !began_at(task, config.tid_began)))
        return false;
    if (config.filters & SYS_FILTER_UID && (__u32)bpf_get_current_uid_gid() != config.uid)
        return false;
    if (config.filters & SYS_FILTER_COMM) {
        char comm[SYS_COMM_BYTES] __attribute__((aligned(8))) = {0};
        comm_now(comm);
        if (!same_comm(comm))
            return false;
    }
    if (config.filters & (SYS_FILTER_CGROUP | SYS_FILTER_CGROUP_V1) && !in_cgroup(task))
        return false;
    return true;
}

static __always_inline void describe_task(struct sys_task *t)
{
    __u64 id = current_ids();
    t->pid = id >> 32;
    t->tid = (__u32)id;
    t->uid = (__u32)bpf_get_current_uid_gid();
    t->reserved = 0;
    t->cgroup = cgroup_of((const void *)bpf_get_current_task());
    comm_now(t->comm);
}

/*
 * The ring. The reader sleeps until the first record, then waits for more: a wakeup for each would cost ten
 * times as much as writing the record. The reader first stores in state.reader how it is going to wait, then
 * checks the ring once more, and only then waits. The addition below is a full barrier between our record's
 * place in the ring and our read of that word.
 */
struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 1 << 20);
} ring SEC(".maps");

static __always_inline __u64 wake_flags(void *of, __u64 backlog_bytes)
{
    if (config.urgent)
        return BPF_RB_FORCE_WAKEUP;
    __u32 reader = __sync_fetch_and_add(&state.reader, 0);
    if (LIKELY(reader == SYS_READER_BUSY))
        return BPF_RB_NO_WAKEUP;
    if (reader == SYS_READER_DOZES && bpf_ringbuf_query(of, BPF_RB_AVAIL_DATA) < backlog_bytes)
        return BPF_RB_NO_WAKEUP;
    return __sync_val_compare_and_swap(&state.reader, reader, SYS_READER_BUSY) == reader ? BPF_RB_FORCE_WAKEUP
                                                                                         : BPF_RB_NO_WAKEUP;
}

/* Room for an event of `bytes`, a constant; NULL: the ring is full, which is counted. */
static __always_inline void *event_begin(__u64 bytes)
{
    void *e = bpf_ringbuf_reserve(&ring, bytes, 0);
    if (UNLIKELY(!e))
        count(SYS_RING_FULL);
    return e;
}

static __always_inline void event_end(void *e)
{
    bpf_ringbuf_submit(e, wake_flags(&ring, config.backlog_bytes));
}

#define PAGE 4096u

#include "bpf/sample.bpf.h"
#include "bpf/stack.bpf.h"

static __always_inline int kernel_stack_now(void *ctx)
{
    return config.stacks & SYS_STACK_KERNEL ? stack_now(ctx, 0) : SYS_NO_STACK;
}

static __always_inline int user_stack_now(void *ctx)
{
    if (!(config.stacks & SYS_STACK_USER))
        return SYS_NO_STACK;
    return config.sample ? sample_now() : stack_now(ctx, BPF_F_USER_STACK);
}

static __always_inline void event_head(struct sys_event *e, void *ctx)
{
    e->time_ns = bpf_ktime_get_ns();
    describe_task(&e->task);
    e->kernel_stack = kernel_stack_now(ctx);
    e->user_stack = user_stack_now(ctx);
}

/* Returns the position of the highest bit that is set; there is no instruction for it. */
GLOBAL __u32 log2_of(__u64 value)
{
    __u32 slot = 0;
    for (int bits = 32; bits; bits >>= 1)
        if (value >> bits) {
            value >>= bits;
            slot += bits;
        }
    return slot;
}

static __always_inline void histogram_add(struct sys_histogram *h, __u64 value)
{
    __u32 slot = log2_of(value);
    if (slot >= SYS_SLOTS)
        slot = SYS_SLOTS - 1;
    h->slots[slot]++;
}

/*
 * Rows: two tables, of which one is written to. The reader makes the other one the active one, waits until no program
 * runs that began before, and then has all to itself. Each CPU has rows of its own, as its number is a part of the key:
 * a row takes room for the CPUs that it happened on, where a table with values for each CPU takes it for all that there
 * may be.
 *
 * On one CPU an interrupt can come while a program adds to a row, and another program of ours run in it, for an event
 * of the same key (of the same one the kernel counts a miss). What it added would be lost when the first one goes on
 * with the sum that it had read. So a row is busy from row_at() to row_done(), and whoever finds it busy takes one of
 * its level: the reader adds them all. Plain loads and stores do, as who interrupts is through before the other goes
 * on; an atomic addition costs 5 ns, and there are three in an event.
 *
 * What a row costs that nobody asked for: its histogram, and whose cgroup it is, have no room in the table then. The
 * cgroup is looked up once for each row, as it takes longer than the rest of an event.
 */
#define SYS_TABLE(key_type, value_type)                                                                                \
    struct row_key {                                                                                                   \
        __u32 cpu, level; /* of how many programs that were interrupted on it in this row */                           \
        key_type key;                                                                                                  \
    };                                                                                                                 \
    struct row {                                                                                                       \
        value_type value;                                                                                              \
        struct sys_row_tail tail;                                                                                      \
    };                                                                                                                 \
    _Static_assert(sizeof(value_type) % 8 == 0, "the tail lies where the tool looks for it");                          \
    struct {                                                                                                           \
        __uint(type, BPF_MAP_TYPE_HASH);                                                                               \
        __uint(max_entries, 10240);                                                                                    \
        __uint(key_size, sizeof(struct row_key));                                                                      \
        __uint(value_size, sizeof(struct row));                                                                        \
    } table_0 SEC(".maps"), table_1 SEC(".maps");                                                                      \
    static const struct row row_zero = {0};                                                                            \
                                                                                                                       \
    /* A new row, or one that is not busy. */                                                                          \
    static __attribute__((noinline)) struct row *row_new(struct row_key *key)                                          \
    {                                                                                                                  \
        struct row *r = NULL;                                                                                          \
        bool active = state.active;                                                                                    \
        void *table = active ? (void *)&table_1 : (void *)&table_0;                                                    \
        state.has_rows[active] = 1;                                                                                    \
        for (__u32 level = 0; level < SYS_ROW_LEVELS; level++) {                                                       \
            key->level = level;                                                                                        \
            bpf_map_update_elem(table, key, &row_zero, BPF_NOEXIST);                                                   \
            r = bpf_map_lookup_elem(table, key);                                                                       \
            if (!r || !r->tail.busy)                                                                                   \
                break;                                                                                                 \
        }                                                                                                              \
        if (!r || r->tail.busy) {                                                                                      \
            count(SYS_TABLE_FULL);                                                                                     \
            return NULL;                                                                                               \
        }                                                                                                              \
        if (config.cgroups)                                                                                            \
            r->tail.cgroup = cgroup_now();                                                                             \
        return r;                                                                                                      \
    }                                                                                                                  \
                                                                                                                       \
    /* This CPU's row, until row_done(); NULL: no room, which is counted. A call for each table: those are inlined. */ \
    static __always_inline value_type *row_at(struct row_key *key)                                                     \
    {                                                                                                                  \
        struct row *r;                                                                                                 \
        key->cpu = bpf_get_smp_processor_id();                                                                         \
        if (state.active) {                                                                                            \
            r = bpf_map_lookup_elem(&table_1, key);                                                                    \
            barrier();                                                                                                 \
        } else {                                                                                                       \
            r = bpf_map_lookup_elem(&table_0, key);                                                                    \
        }                                                                                                              \
        if (UNLIKELY(!r || r->tail.busy))                                                                              \
            r = row_new(key);                                                                                          \
        if (!r)                                                                                                        \
            return NULL;                                                                                               \
        r->tail.busy = 1;                                                                                              \
        barrier();                                                                                                     \
        return &r->value;                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static __always_inline void row_done(value_type *v)                                                                \
    {                                                                                                                  \
        barrier();                                                                                                     \
        ((struct row *)v)->tail.busy = 0; /* the value is its beginning */                                             \
    }                                                                                                                  \
                                                                                                                       \
    /* With --hist: one more of this much, in what the tool measures. */                                               \
    static __attribute__((unused)) __always_inline void row_measure(value_type *v, __u64 much)                         \
    {                                                                                                                  \
        if (config.histograms)                                                                                         \
            histogram_add(&((struct row *)v)->tail.histogram, much);                                                   \
    }

/* Live objects, by address: they are followed until they are freed, if follow_live is set. */
#define SYS_LIVE(value_type)                                                                                 \
    const volatile bool follow_live = false;                                                                 \
    struct {                                                                                                 \
        __uint(type, BPF_MAP_TYPE_HASH);                                                                     \
        __uint(max_entries, 1);                                                                              \
        __uint(key_size, sizeof(__u64));                                                                     \
        __uint(value_size, sizeof(value_type));                                                              \
    } live SEC(".maps");

#endif
