// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* `allium sys drsnoop`: tasks that stall in direct reclaim. */
#include "bpf/lru.bpf.h"
#include "bpf/sys.bpf.h"

#include "bpf/drsnoop.h"

/* Reclaims in progress, by thread. A nested reclaim (of a memory cgroup within that of the machine) has an
 * entry of its own. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 16384);
    __uint(key_size, sizeof(__u64));
    __uint(value_size, sizeof(struct drsnoop_event));
} under_way SEC(".maps");

static __always_inline __u64 key_of(__u32 kind)
{
    return (__u64)kind << 32 | (__u32)bpf_get_current_pid_tgid();
}

/*
 * The event does not say which cgroup is at its limit: one that contains the task. Charges for memory of
 * other tasks (of a shared file, for example) are the exception.
 */
static __always_inline void put_full_group(struct drsnoop_event *e)
{
    const struct cgroup_subsys_state *css = (const void *)memcg_full(bpf_get_current_task());
    enum memcg_limit of;
    if (!css)
        return;
    const struct page_counter *c = memcg_counter(css, &of);
    e->limit_pages = BPF_CORE_READ(c, max);
    e->usage_pages = BPF_CORE_READ(c, usage.counter);
    e->limit = of;
    e->memcg = BPF_CORE_READ(css, cgroup, kn, id);
}

/* Upper bound of the number of nodes; set before the programs are loaded. */
const volatile __u32 nodes = 1;
#define NODES_MAX 64u
#define ZONES_MAX 8u

GLOBAL __s64 free_of_node(__u64 pgdat_at)
{
    const struct pglist_data *pgdat = (const void *)pgdat_at;
    const __u64 first = pgdat_at + bpf_core_field_offset(struct pglist_data, node_zones),
                one = bpf_core_enum_value(enum zone_stat_item, NR_FREE_PAGES);
    int zones = BPF_CORE_READ(pgdat, nr_zones);
    __s64 pages = 0;
    for (__u32 i = 0; i < ZONES_MAX && (int)i < zones; i++) {
        const struct zone *z = (const void *)(first + i * bpf_core_type_size(struct zone));
        const atomic_long_t *counter = (const void *)((__u64)z + bpf_core_field_offset(struct zone, vm_stat));
        pages += BPF_CORE_READ(counter + one, counter);
    }
    return pages;
}

/*
 * Free pages of the machine, less what its CPUs have not added up yet. The kernel's sum of them (vm_zone_stat) is a
 * variable that its names need not have; but each memory cgroup leads to all nodes.
 */
GLOBAL __s64 free_pages(void)
{
    const struct cgroup_subsys_state *css = memory_css((const void *)bpf_get_current_task());
    __s64 pages = 0;
    if (!css)
        return -1;
    const struct mem_cgroup *memcg = memcg_of(css);
    for (__u32 i = 0; i < NODES_MAX && i < nodes; i++) {
        const struct mem_cgroup_per_node *of = NULL;
        const void *at = (const void *)memcg + bpf_core_field_offset(memcg->nodeinfo) + i * sizeof(of);
        bpf_probe_read_kernel(&of, sizeof(of), at);
        const struct pglist_data *pgdat = of ? BPF_CORE_READ(of, lruvec.pgdat) : NULL;
        pages += pgdat ? free_of_node((__u64)pgdat) : 0;
    }
    return pages;
}

static __always_inline int begun(void *ctx, __u32 kind, int order, __u32 gfp)
{
    struct drsnoop_event e = {0};
    __u64 key = key_of(kind);
    if (!wanted())
        return 0;
    event_head(&e.head, ctx);
    e.gfp = gfp;
    e.order = (__s16)order;
    e.kind = (__u8)kind;
    e.untold = lru_is_silent();
    e.free_pages = free_pages();
    if (kind == DRSNOOP_MEMCG)
        put_full_group(&e);
    if (bpf_map_update_elem(&under_way, &key, &e, BPF_ANY))
        count(SYS_TABLE_FULL);
    return 0;
}

static __always_inline int ended(__u32 kind, __u64 reclaimed_pages)
{
    __u64 key = key_of(kind);
    if (!runs())
        return 0;
    const struct drsnoop_event *began = bpf_map_lookup_elem(&under_way, &key);
    if (!began) {
        if (wanted())
            count(DRSNOOP_BEGUN_BEFORE);
        return 0;
    }
    struct drsnoop_event *e = event_begin(sizeof(*e));
    if (e) {
        *e = *began;
        e->duration_ns = bpf_ktime_get_ns() - began->head.time_ns;
        e->reclaimed_pages = reclaimed_pages;
        event_end(e);
    }
    bpf_map_delete_elem(&under_way, &key);
    return 0;
}

/* Pages that are looked at belong to each reclaim that the thread is in: what lies within another is part of it. */
static __always_inline int scanned(__u64 pages, __u32 lru)
{
    if (lru_inactive(lru) < 0 || !runs())
        return 0;
    for (__u32 kind = 0; kind < DRSNOOP_KINDS; kind++) {
        __u64 key = key_of(kind);
        struct drsnoop_event *e = bpf_map_lookup_elem(&under_way, &key);
        if (e)
            e->scanned_pages += pages;
    }
    return 0;
}

/* By position: kernels before 7.2. */
#define BEGIN(name, section, kind)                                                                           \
    SEC(section) int BPF_PROG(name, int order, __u32 gfp_flags)                                              \
    {                                                                                                        \
        return begun(ctx, kind, order, gfp_flags);                                                           \
    }
#define END(name, section, kind)                                                                             \
    SEC(section) int BPF_PROG(name, __u64 nr_reclaimed)                                                      \
    {                                                                                                        \
        return ended(kind, nr_reclaimed);                                                                    \
    }

BEGIN(btf_begin, "tp_btf/mm_vmscan_direct_reclaim_begin", DRSNOOP_DIRECT)
END(btf_end, "tp_btf/mm_vmscan_direct_reclaim_end", DRSNOOP_DIRECT)
BEGIN(btf_memcg_begin, "tp_btf/mm_vmscan_memcg_reclaim_begin", DRSNOOP_MEMCG)
END(btf_memcg_end, "tp_btf/mm_vmscan_memcg_reclaim_end", DRSNOOP_MEMCG)
BEGIN(btf_softlimit_begin, "tp_btf/mm_vmscan_memcg_softlimit_reclaim_begin", DRSNOOP_SOFTLIMIT)
END(btf_softlimit_end, "tp_btf/mm_vmscan_memcg_softlimit_reclaim_end", DRSNOOP_SOFTLIMIT)
BEGIN(raw_begin, "raw_tp/mm_vmscan_direct_reclaim_begin", DRSNOOP_DIRECT)
END(raw_end, "raw_tp/mm_vmscan_direct_reclaim_end", DRSNOOP_DIRECT)
BEGIN(raw_memcg_begin, "raw_tp/mm_vmscan_memcg_reclaim_begin", DRSNOOP_MEMCG)
END(raw_memcg_end, "raw_tp/mm_vmscan_memcg_reclaim_end", DRSNOOP_MEMCG)
BEGIN(raw_softlimit_begin, "raw_tp/mm_vmscan_memcg_softlimit_reclaim_begin", DRSNOOP_SOFTLIMIT)
END(raw_softlimit_end, "raw_tp/mm_vmscan_memcg_softlimit_reclaim_end", DRSNOOP_SOFTLIMIT)

#define SCANNED(name, section)                                                                               \
    SEC(section)                                                                                             \
    int BPF_PROG(name, int zone, int order, __u64 requested, __u64 nr_scanned, __u64 skipped, __u64 taken)   \
    {                                                                                                        \
        return scanned(lru_counted(requested, nr_scanned, taken), lru_argument(ctx));                        \
    }
SCANNED(btf_scanned, "tp_btf/mm_vmscan_lru_isolate")
SCANNED(raw_scanned, "raw_tp/mm_vmscan_lru_isolate")

/* By name. */
#define BEGIN_NAMED(name, section, kind)                                                                     \
    SEC(section) int name(struct trace_event_raw_mm_vmscan_direct_reclaim_begin_template *ctx)               \
    {                                                                                                        \
        return begun(ctx, kind, ctx->order, ctx->gfp_flags);                                                 \
    }
#define END_NAMED(name, section, kind)                                                                       \
    SEC(section) int name(struct trace_event_raw_mm_vmscan_direct_reclaim_end_template *ctx)                 \
    {                                                                                                        \
        return ended(kind, ctx->nr_reclaimed);                                                               \
    }

BEGIN_NAMED(tp_begin, "tp/vmscan/mm_vmscan_direct_reclaim_begin", DRSNOOP_DIRECT)
END_NAMED(tp_end, "tp/vmscan/mm_vmscan_direct_reclaim_end", DRSNOOP_DIRECT)
BEGIN_NAMED(tp_memcg_begin, "tp/vmscan/mm_vmscan_memcg_reclaim_begin", DRSNOOP_MEMCG)
END_NAMED(tp_memcg_end, "tp/vmscan/mm_vmscan_memcg_reclaim_end", DRSNOOP_MEMCG)
BEGIN_NAMED(tp_softlimit_begin, "tp/vmscan/mm_vmscan_memcg_softlimit_reclaim_begin", DRSNOOP_SOFTLIMIT)
END_NAMED(tp_softlimit_end, "tp/vmscan/mm_vmscan_memcg_softlimit_reclaim_end", DRSNOOP_SOFTLIMIT)

SEC("tp/vmscan/mm_vmscan_lru_isolate") int tp_scanned(struct trace_event_raw_mm_vmscan_lru_isolate *ctx)
{
    return scanned(lru_counted(ctx->nr_requested, ctx->nr_scanned, ctx->nr_taken), ctx->lru);
}
