/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_SYS_BPF_H
#define BPF_SYS_BPF_H

/*
 * What every tool's programs begin with: is this event wanted, whose is it, its stacks, a row of the table, a record in
 * the ring. A tool's file includes it once.
 *
 * Nothing is lost in silence: what a map or a ring has no room for is counted where that is found. Not looked at is
 * what cannot fail, or is seen by what comes next:
 *   - reads of the kernel's own memory (BPF_CORE_READ(), bpf_probe_read_kernel(), _str()): its structs, reached by
 *     their pointers under RCU, are there. One that has ended meanwhile, and whose page has gone, reads as 0, or as "";
 *   - bpf_map_update_elem() where what it has put there is looked up next;
 *   - bpf_map_delete_elem(), which fails where there is nothing, and bpf_get_current_comm(), which does where there is
 *     no task;
 *   - an update of an LRU map: another entry gives way.
 *
 * Runs in: the kernel, in whatever context the event happens: interrupts and the allocator itself included.
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
 * A function that is not static: the verifier looks at it once, by itself, and not at each place that it is called from
 * with all that may be known there. What takes long to look at, as loops do, is one. It takes and returns numbers: what
 * a pointer points to is not known within.
 */
#define GLOBAL __attribute__((noinline))

/* What the verifier knows of a pointer is lost on the way through memory. */
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

static __always_inline void count(__u32 what)
{
    __u64 *n = bpf_map_lookup_elem(&counts, &what);
    if (n)
        __sync_fetch_and_add(n, 1); /* an interrupt's program may count the same */
}

/*
 * Is it the cgroup with this id, which is so many levels from the root, or below it? A function of its own: in a loop
 * the compiler looks up the member that this kernel does not have before it knows that nobody will read it.
 */
static __attribute__((noinline)) bool cgroup_below(const struct cgroup *group, __u32 level, __u64 id)
{
    if (BPF_CORE_READ(group, level) < (int)level)
        return false;
    /* By hand: an index that is no constant cannot be looked up in the kernel's BTF. */
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
                            : BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id);
}

GLOBAL __u64 cgroup_now(void)
{
    return cgroup_of((const void *)bpf_get_current_task());
}

/* Is the task in the cgroup of the filter, or below it? */
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
 * Attaching one program after the other takes a tenth of a second, and so does detaching: without this allocations
 * would be counted for longer than frees.
 */
static __always_inline bool runs(void)
{
    return LIKELY(state.runs);
}

/* A process's number as allium's PID namespace has it; 0: it is not in there, nor in one below it. */
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

/* The current process << 32 | thread, as whoever started allium would call them: the kernel's helper numbers them as
 * the initial PID namespace does, which in a container are nobody's numbers, or another's. */
static __always_inline __u64 current_ids(void)
{
    return config.pid_namespace ? ids_in_namespace() : bpf_get_current_pid_tgid();
}

/* A task's process, by the same numbers; 0: allium sees none. */
static __always_inline __u32 process_of(const struct task_struct *task)
{
    return config.pid_namespace ? number_in_namespace(BPF_CORE_READ(task, group_leader, thread_pid))
                                : (__u32)BPF_CORE_READ(task, tgid);
}

/* Is it the task that had this number when allium started? */
static __always_inline bool began_at(const struct task_struct *task, __u64 ticks)
{
    __u64 began_ns = BPF_CORE_READ(task, start_boottime) + config.boottime_offset_ns;
    return !ticks || began_ns / SYS_TICK_NS == ticks;
}

/* Is what happens now, in the current task, asked for? */
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
        bpf_get_current_comm(comm, sizeof(comm));
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
    bpf_get_current_comm(t->comm, sizeof(t->comm));
}

/*
 * The ring. The reader sleeps until the first record, then lets some gather: to wake it for each would cost ten times
 * what writing does. It says in state.reader how it waits, looks once more at the ring, and only then does; the
 * addition below, which is a full barrier, stands between our record's place in the ring and our look at that word.
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

/* The position of the highest bit that is set; there is no instruction for it. */
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

/* What is live, by its address: objects that are followed until they are freed, if follow_live says so. */
#define SYS_LIVE(value_type)                                                                                 \
    const volatile bool follow_live = false;                                                                 \
    struct {                                                                                                 \
        __uint(type, BPF_MAP_TYPE_HASH);                                                                     \
        __uint(max_entries, 1);                                                                              \
        __uint(key_size, sizeof(__u64));                                                                     \
        __uint(value_size, sizeof(value_type));                                                              \
    } live SEC(".maps");

#endif
