// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* `allium sys vmscan`: the cost of reclaim. */
#include "bpf/lru.bpf.h"
#include "bpf/sys.bpf.h"

#include "bpf/vmscan.h"

SYS_TABLE(struct vmscan_key, struct vmscan_value)

/* By thread. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 16384);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(struct vmscan_task));
} under_way SEC(".maps");

static const struct vmscan_task nothing = {0};

static __always_inline struct vmscan_task *task_now(void)
{
    __u32 tid = (__u32)bpf_get_current_pid_tgid();
    return bpf_map_lookup_elem(&under_way, &tid);
}

static __always_inline struct vmscan_task *task_make(void)
{
    __u32 tid = (__u32)bpf_get_current_pid_tgid();
    struct vmscan_task *t = bpf_map_lookup_elem(&under_way, &tid);
    if (t)
        return t;
    bpf_map_update_elem(&under_way, &tid, &nothing, BPF_NOEXIST);
    t = bpf_map_lookup_elem(&under_way, &tid);
    if (!t)
        count(SYS_TABLE_FULL);
    return t;
}

static __always_inline void forget_if_done(const struct vmscan_task *t)
{
    __u32 tid = (__u32)bpf_get_current_pid_tgid();
    __u64 any = 0;
    for (int i = 0; i < VMSCAN_PHASES; i++)
        any |= t->began_ns[i];
    if (!any)
        bpf_map_delete_elem(&under_way, &tid);
}

/* The innermost phase before `limit` that the thread is in; VMSCAN_NONE. One of kswapd's that began before we did is
 * known by the thread. */
static __always_inline __u32 phase_below(const struct vmscan_task *t, __u32 limit)
{
    __u32 phase = VMSCAN_NONE;
    for (__u32 i = 0; t && i < VMSCAN_SLAB; i++)
        if (i < limit && t->began_ns[i])
            phase = i;
    if (phase != VMSCAN_NONE || limit == VMSCAN_KSWAPD)
        return phase;
    const struct task_struct *task = (const void *)bpf_get_current_task();
    return BPF_CORE_READ(task, flags) & KERNEL_PF_KSWAPD ? VMSCAN_KSWAPD : VMSCAN_NONE;
}

/* Busy until row_done(). */
static __always_inline struct vmscan_value *row_of(__u32 phase, __u32 within, __u64 shrinker)
{
    struct row_key row = {.key = {.phase = phase, .within = within}};
    if (config.parts & VMSCAN_BY_SHRINKER)
        row.key.shrinker = shrinker;
    if (config.parts & VMSCAN_BY_PROCESS)
        row.key.pid = current_ids() >> 32;
    if (config.parts & (VMSCAN_BY_PROCESS | VMSCAN_BY_COMM))
        comm_now(row.key.comm);
    struct vmscan_value *v = row_at(&row);
    if (v && lru_is_silent())
        v->untold++;
    return v;
}

/* The row that pages go to which are looked at now. */
static __attribute__((noinline)) struct vmscan_value *row_of_pages(void)
{
    struct vmscan_task *t = task_now();
    __u32 phase = phase_below(t, VMSCAN_SLAB);
    if (phase == VMSCAN_NONE)
        return row_of(VMSCAN_OTHER, VMSCAN_NONE, 0);
    if (t && t->began_ns[VMSCAN_KSWAPD])
        t->step_ns = bpf_ktime_get_ns();
    return row_of(phase, phase_below(t, phase), 0);
}

static __always_inline void add_time(struct vmscan_value *v, __u64 duration_ns)
{
    v->times++;
    v->duration_ns += duration_ns;
    if (duration_ns > v->longest_ns)
        v->longest_ns = duration_ns;
    row_measure(v, duration_ns);
}

static __always_inline struct vmscan_task *begun(__u32 phase)
{
    struct vmscan_task *t = wanted() ? task_make() : NULL;
    if (t)
        t->began_ns[phase] = bpf_ktime_get_ns();
    return t;
}

static __attribute__((noinline)) int ended(__u32 phase)
{
    struct vmscan_task *t = task_now();
    if (phase >= VMSCAN_SLAB || !state.runs)
        return 0;
    if (!t || !t->began_ns[phase]) {
        if (wanted())
            count(VMSCAN_BEGUN_BEFORE);
        return 0;
    }
    struct vmscan_value *v = row_of(phase, phase_below(t, phase), 0);
    if (v) {
        add_time(v, bpf_ktime_get_ns() - t->began_ns[phase]);
        row_done(v);
    }
    if (lru_is_silent())
        count(VMSCAN_UNTOLD);
    t->began_ns[phase] = 0;
    forget_if_done(t);
    return 0;
}

/*
 * kswapd says that it wakes and that it goes to sleep, but not that it naps up to 100 ms before that, to see whether it
 * is wanted again. A run lasts until the last thing that it was seen to do.
 */
static __always_inline void end_run(struct vmscan_task *t)
{
    struct vmscan_value *v = row_of(VMSCAN_KSWAPD, VMSCAN_NONE, 0);
    __u64 began = t->began_ns[VMSCAN_KSWAPD];
    if (v) {
        add_time(v, t->step_ns > began ? t->step_ns - began : 0);
        row_done(v);
    }
    if (lru_is_silent())
        count(VMSCAN_UNTOLD);
    t->began_ns[VMSCAN_KSWAPD] = 0;
}

static __always_inline int kswapd_wakes(void)
{
    struct vmscan_task *t = wanted() ? task_make() : NULL;
    if (!t)
        return 0;
    if (t->began_ns[VMSCAN_KSWAPD])
        end_run(t);
    t->began_ns[VMSCAN_KSWAPD] = bpf_ktime_get_ns();
    return 0;
}

static __always_inline int kswapd_sleeps(void)
{
    struct vmscan_task *t = task_now();
    if (!state.runs)
        return 0;
    if (t && t->began_ns[VMSCAN_KSWAPD]) {
        end_run(t);
        forget_if_done(t);
    } else if (wanted()) {
        count(VMSCAN_BEGUN_BEFORE);
    }
    return 0;
}

static __always_inline int kswapd_woken(void)
{
    struct vmscan_value *v = wanted() ? row_of(VMSCAN_WAKEUP, VMSCAN_NONE, 0) : NULL;
    if (v) {
        v->times++;
        row_done(v);
    }
    return 0;
}

static __always_inline int slab_begun(__u64 shrinker, __u64 objects)
{
    struct vmscan_task *t = begun(VMSCAN_SLAB);
    if (t) {
        t->shrinker = shrinker;
        t->objects = objects;
    }
    return 0;
}

static __always_inline int slab_ended(__u64 left, __u64 freed)
{
    struct vmscan_task *t = task_now();
    if (!state.runs)
        return 0;
    if (!t || !t->began_ns[VMSCAN_SLAB]) {
        if (wanted())
            count(VMSCAN_BEGUN_BEFORE);
        return 0;
    }
    __u64 now = bpf_ktime_get_ns();
    struct vmscan_value *v = row_of(VMSCAN_SLAB, phase_below(t, VMSCAN_SLAB), t->shrinker);
    if (v) {
        add_time(v, now - t->began_ns[VMSCAN_SLAB]);
        v->objects_scanned += t->objects - left;
        v->objects_freed += freed;
        row_done(v);
    }
    t->step_ns = now;
    t->began_ns[VMSCAN_SLAB] = 0;
    forget_if_done(t);
    return 0;
}

static __always_inline int scanned(__u64 pages, __u32 lru)
{
    int list = lru_inactive(lru);
    struct vmscan_value *v = list >= 0 && wanted() ? row_of_pages() : NULL;
    if (!v)
        return 0;
    if (list)
        v->scanned[1] += pages;
    else
        v->scanned[0] += pages;
    row_done(v);
    return 0;
}

struct shrunk {
    __u64 reclaimed, dirty, writeback, activated;
    bool file;
};

static __always_inline int shrunk(const struct shrunk *s)
{
    struct vmscan_value *v = wanted() ? row_of_pages() : NULL;
    if (!v)
        return 0;
    if (s->file)
        v->reclaimed[1] += s->reclaimed;
    else
        v->reclaimed[0] += s->reclaimed;
    v->dirty += s->dirty;
    v->writeback += s->writeback;
    v->activated += s->activated;
    row_done(v);
    return 0;
}

static __always_inline int written(void)
{
    struct vmscan_value *v = wanted() ? row_of_pages() : NULL;
    if (v) {
        v->written++;
        row_done(v);
    }
    return 0;
}

/* Those of which nothing is asked but that they happen: the same for all methods. */
#define HAPPENS(name, event, what)                                                                           \
    SEC("tp_btf/" #event) int btf_##name(void *ctx)                                                          \
    {                                                                                                        \
        what;                                                                                                \
        return 0;                                                                                            \
    }                                                                                                        \
    SEC("raw_tp/" #event) int raw_##name(void *ctx)                                                          \
    {                                                                                                        \
        what;                                                                                                \
        return 0;                                                                                            \
    }                                                                                                        \
    SEC("tp/vmscan/" #event) int tp_##name(void *ctx)                                                        \
    {                                                                                                        \
        what;                                                                                                \
        return 0;                                                                                            \
    }

HAPPENS(direct_begin, mm_vmscan_direct_reclaim_begin, begun(VMSCAN_DIRECT))
HAPPENS(direct_end, mm_vmscan_direct_reclaim_end, ended(VMSCAN_DIRECT))
HAPPENS(memcg_begin, mm_vmscan_memcg_reclaim_begin, begun(VMSCAN_MEMCG))
HAPPENS(memcg_end, mm_vmscan_memcg_reclaim_end, ended(VMSCAN_MEMCG))
HAPPENS(softlimit_begin, mm_vmscan_memcg_softlimit_reclaim_begin, begun(VMSCAN_SOFTLIMIT))
HAPPENS(softlimit_end, mm_vmscan_memcg_softlimit_reclaim_end, ended(VMSCAN_SOFTLIMIT))
HAPPENS(node_begin, mm_vmscan_node_reclaim_begin, begun(VMSCAN_NODE))
HAPPENS(node_end, mm_vmscan_node_reclaim_end, ended(VMSCAN_NODE))
HAPPENS(wake, mm_vmscan_kswapd_wake, kswapd_wakes())
HAPPENS(sleep, mm_vmscan_kswapd_sleep, kswapd_sleeps())
HAPPENS(wakeup, mm_vmscan_wakeup_kswapd, kswapd_woken())
HAPPENS(write_folio, mm_vmscan_write_folio, written())
HAPPENS(writepage, mm_vmscan_writepage, written()) /* before 6.16 */

/* By position. */
#define SLAB_START(name, section)                                                                            \
    SEC(section)                                                                                             \
    int BPF_PROG(name, const struct shrinker *shr, void *sc, long pending, __u64 cache_items, __u64 delta,   \
                 __u64 total_scan)                                                                           \
    {                                                                                                        \
        return slab_begun((__u64)BPF_CORE_READ(shr, scan_objects), total_scan);                              \
    }
#define SLAB_END(name, section)                                                                              \
    SEC(section)                                                                                             \
    int BPF_PROG(name, const struct shrinker *shr, int nid, int freed, long unused_scan, long new_scan,      \
                 __u64 total_scan)                                                                           \
    {                                                                                                        \
        return slab_ended(total_scan, freed);                                                                \
    }
#define ISOLATE(name, section)                                                                               \
    SEC(section)                                                                                             \
    int BPF_PROG(name, int zone, int order, __u64 requested, __u64 nr_scanned, __u64 skipped, __u64 taken)   \
    {                                                                                                        \
        return scanned(lru_counted(requested, nr_scanned, taken), lru_argument(ctx));                        \
    }
#define SHRINK(name, section)                                                                                \
    SEC(section)                                                                                             \
    int BPF_PROG(name, int nid, __u64 nr_scanned, __u64 nr_reclaimed, const struct reclaim_stat *stat,       \
                 int priority, int file)                                                                     \
    {                                                                                                        \
        struct shrunk s = {nr_reclaimed, BPF_CORE_READ(stat, nr_dirty),                                      \
                           BPF_CORE_READ(stat, nr_writeback) + BPF_CORE_READ(stat, nr_immediate),            \
                           BPF_CORE_READ(stat, nr_activate[0]) + BPF_CORE_READ(stat, nr_activate[1]),        \
                           file != 0};                                                                       \
        return shrunk(&s);                                                                                   \
    }

SLAB_START(btf_slab_start, "tp_btf/mm_shrink_slab_start")
SLAB_START(raw_slab_start, "raw_tp/mm_shrink_slab_start")
SLAB_END(btf_slab_end, "tp_btf/mm_shrink_slab_end")
SLAB_END(raw_slab_end, "raw_tp/mm_shrink_slab_end")
ISOLATE(btf_isolate, "tp_btf/mm_vmscan_lru_isolate")
ISOLATE(raw_isolate, "raw_tp/mm_vmscan_lru_isolate")
SHRINK(btf_shrink, "tp_btf/mm_vmscan_lru_shrink_inactive")
SHRINK(raw_shrink, "raw_tp/mm_vmscan_lru_shrink_inactive")

/* By name. */
SEC("tp/vmscan/mm_shrink_slab_start") int tp_slab_start(struct trace_event_raw_mm_shrink_slab_start *ctx)
{
    return slab_begun((__u64)ctx->shrink, ctx->total_scan);
}

SEC("tp/vmscan/mm_shrink_slab_end") int tp_slab_end(struct trace_event_raw_mm_shrink_slab_end *ctx)
{
    return slab_ended(ctx->total_scan, ctx->retval);
}

SEC("tp/vmscan/mm_vmscan_lru_isolate") int tp_isolate(struct trace_event_raw_mm_vmscan_lru_isolate *ctx)
{
    return scanned(lru_counted(ctx->nr_requested, ctx->nr_scanned, ctx->nr_taken), ctx->lru);
}

SEC("tp/vmscan/mm_vmscan_lru_shrink_inactive")
int tp_shrink(struct trace_event_raw_mm_vmscan_lru_shrink_inactive *ctx)
{
    struct shrunk s = {ctx->nr_reclaimed, ctx->nr_dirty, ctx->nr_writeback + ctx->nr_immediate,
                       ctx->nr_activate0 + ctx->nr_activate1,
                       (ctx->reclaim_flags & KERNEL_RECLAIM_WB_FILE) != 0};
    return shrunk(&s);
}
