/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/tools/kernel_events.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>

#include "base/mem.h"
#include "bpf/kernel_events.h"
#include "collect/trace/kernel_event_classes.h"
#include "sys/attach.h"
#include "sys/attach_methods.h"
#include "sys/bpf_object.h"
#include "sys/event_filter.h"
#include "sys/kernel_symbol_address.h"
#include "sys/privileges.h"
#include "sys/probe/probe_attach.h"
#include "sys/probe/probe_price.h"
#include "sys/resolver.h"
#include "sys/session.h"
#include "sys/tools/traced_processes.h"

#define ALL_RINGS_MAX (256ull << 20)
#define COUNTS        "ALLIUM_KERNEL_COUNTS" /* for tests: the programs count events apart */

SYS_OBJECT_OF(kernel_events);

/* What a group needs: programs, and the arguments that they take by position. */
struct needed {
    uint32_t group; /* enum kernel_event_group_bit; 0: always */
    struct sys_attachment attachment;
};

static const struct needed needed[] = {
    {0, {"follow_fork", "sched_process_fork", "parent,child"}},
    {KERNEL_GROUP_faults, {"fault_begins_user", "page_fault_user", "address,regs,error_code"}},
    {KERNEL_GROUP_faults, {"fault_begins_kernel", "page_fault_kernel", "address,regs,error_code"}},
    {KERNEL_GROUP_faults, {"fault_ends_minor", .software_event = PERF_COUNT_SW_PAGE_FAULTS_MIN}},
    {KERNEL_GROUP_faults, {"fault_ends_major", .software_event = PERF_COUNT_SW_PAGE_FAULTS_MAJ}},
    {KERNEL_GROUP_sched, {"on_switch", "sched_switch", "preempt,prev,next,prev_state"}},
    {KERNEL_GROUP_sched, {"on_wakeup", "sched_wakeup", "p"}},
    {KERNEL_GROUP_sched, {"on_fork", "sched_process_fork", "parent,child"}},
    {KERNEL_GROUP_sched, {"on_exec", "sched_process_exec", "p"}},
    {KERNEL_GROUP_sched, {"on_exit", "sched_process_exit", "p"}},
    {KERNEL_GROUP_kmem, {"on_kmalloc", "kmalloc", "call_site,ptr,bytes_req,bytes_alloc,gfp_flags"}},
    {KERNEL_GROUP_kmem, {"on_kfree", "kfree", "call_site,ptr"}},
    {KERNEL_GROUP_kmem, {"on_cache_alloc", "kmem_cache_alloc", "call_site,ptr,s,gfp_flags"}},
    {KERNEL_GROUP_kmem, {"on_cache_free", "kmem_cache_free", "call_site,ptr,s"}},
    {KERNEL_GROUP_pages, {"on_page_alloc", "mm_page_alloc", "page,order,gfp_flags,migratetype"}},
    {KERNEL_GROUP_pages, {"on_page_free", "mm_page_free", "page,order"}},
    {KERNEL_GROUP_maps, {"call_begins", "sys_enter", "regs,id"}},
    {KERNEL_GROUP_maps, {"call_ends", "sys_exit", "regs,ret"}},
    {KERNEL_GROUP_rss, {"on_rss", "rss_stat", "mm,member"}},
    {KERNEL_GROUP_reclaim, {"direct_begins", "mm_vmscan_direct_reclaim_begin", "order,gfp_flags"}},
    {KERNEL_GROUP_reclaim, {"direct_ends", "mm_vmscan_direct_reclaim_end", "nr_reclaimed"}},
    {KERNEL_GROUP_reclaim, {"cgroup_begins", "mm_vmscan_memcg_reclaim_begin", "order,gfp_flags"}},
    {KERNEL_GROUP_reclaim, {"cgroup_ends", "mm_vmscan_memcg_reclaim_end", "nr_reclaimed"}},
    {KERNEL_GROUP_oom, {"on_victim", "mark_victim", "task"}},
};
#define N_NEEDED (sizeof(needed) / sizeof(needed[0]))

/* What functions need; probes_attach() attaches them. */
static const struct sys_attachment probes_needed[] = {
    {"probe_enters", .by_hand = true},
    {"probe_returns", .by_hand = true},
    {"probe_static", .by_hand = true},
};
#define N_PROBES (sizeof(probes_needed) / sizeof(probes_needed[0]))

struct kernel_events {
    struct kernel_rings rings;
    struct sys_tool tool;
    struct sys_attach_method methods[2];
    struct sys_attachment attachments[N_NEEDED + N_PROBES + 1];
    struct sys_session *session;
    bool wants_frames;
    char *array;
    const struct probe_list *probes;
    struct probe_prices prices;
};

/* Up to Linux 6.18 the kernel does not preempt a program of a tracepoint. Later ones are taken for kernels that do. */
static bool programs_are_preemptible(void)
{
    struct utsname u;
    unsigned major, minor;
    return uname(&u) || sscanf(u.release, "%u.%u", &major, &minor) != 2 || major > 6 ||
           (major == 6 && minor > 18);
}

/* Before loading: the array's size, and where what lies in it. */
static int ready(struct sys_session *s, struct error *e)
{
    const struct kernel_rings *r = &((const struct kernel_events *)s->own)->rings;
    struct kernel_ring_shape *shape = sys_variable(s, "shape", sizeof(*shape));
    struct bpf_map *map = bpf_object__find_map_by_name(s->object, "rings");
    uint64_t *vmemmap = sys_variable(s, "vmemmap_base_at", sizeof(*vmemmap));
    bool *counts = sys_variable(s, "counts_wanted", sizeof(*counts));
    uint32_t *cpus = sys_variable(s, "possible_cpus", sizeof(*cpus));
    if (!shape || !map || !cpus || !counts || !vmemmap || bpf_map__set_value_size(map, (uint32_t)r->bytes))
        return error_set(e, EIO, "its BPF programs are damaged in this allium: install it again");
    *vmemmap =
        ((const struct kernel_events *)s->own)->wants_frames ? kernel_symbol_address("vmemmap_base") : 0;
    *cpus = r->cpus;
    *counts = getenv(COUNTS) != NULL;
    *shape = (struct kernel_ring_shape){.cpus = r->cpus,
                                        .overwrites = r->overwrites,
                                        .packet_bytes = r->packet_bytes,
                                        .ring_bytes = r->ring_bytes,
                                        .read_at = r->read_at,
                                        .data_at = r->data_at,
                                        .preemptible = programs_are_preemptible()};
    return probes_ready(s, ((const struct kernel_events *)s->own)->probes, e);
}

/* Maps the array, with zeros behind it, where a reader looks for the ring that threads share. */
static int map_array(struct kernel_events *k, struct error *e)
{
    const struct kernel_rings *r = &k->rings;
    char *at = mmap(NULL, r->mapped_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return error_set(e, errno, "cannot map the kernel's rings: %s", strerror(errno));
    k->array = at;
    if (mmap(at, r->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, sys_map(k->session, "rings"), 0) ==
        MAP_FAILED)
        return error_set(e, errno, "cannot map the kernel's rings: %s", strerror(errno));
    kernel_rings_begin(r, at);
    return 0;
}

static int begin_writers(struct kernel_events *k, struct error *e)
{
    const uint32_t zero = 0;
    const uint64_t first = ring_first_head(k->rings.ring_bytes);
    struct kernel_ring_writer *each = mem_array(k->rings.cpus, sizeof(*each));
    for (uint32_t cpu = 0; cpu < k->rings.cpus; cpu++)
        each[cpu] = (struct kernel_ring_writer){.reserved = first, .position = first};
    const int bad = bpf_map_update_elem(sys_map(k->session, "ring_writers"), &zero, each, BPF_ANY);
    free(each);
    return bad ? error_set(e, -bad, "cannot prepare the kernel's rings: %s", strerror(-bad)) : 0;
}

/* Measures with the rings as they will be, and leaves them as if nothing had happened. */
static int measure_prices(struct kernel_events *k, struct error *e)
{
    if (!k->probes)
        return 0;
    __atomic_store_n(&k->session->state->runs, 1, __ATOMIC_SEQ_CST);
    const int bad = probe_prices_measure(k->session, k->probes, &k->prices, e);
    __atomic_store_n(&k->session->state->runs, 0, __ATOMIC_SEQ_CST);
    rows_wait_for_programs(k->session, sys_map(k->session, "ring_writers"));
    memset(k->array, 0, k->rings.data_at);
    kernel_rings_begin(&k->rings, k->array);
    return bad ? bad : begin_writers(k, e);
}

int kernel_events_check(struct error *e)
{
    struct buf missing = BUF_INIT;
    privileges_missing(&missing);
    const int bad = missing.len
                        ? error_set(e, EPERM,
                                    "events of the kernel and of functions take %s: run allium as root "
                                    "(sudo), or without --kernel and --function",
                                    buf_str(&missing))
                        : 0;
    buf_release(&missing);
    return bad;
}

/* Instead, before 6.10. */
static const struct sys_attachment old_victim = {"on_victim_number", "mark_victim", "pid"};

static void fill(struct kernel_events *k, const struct kernel_events_options *o)
{
    struct sys_attachment *next = k->attachments;
    struct btf *kernel = o->groups & KERNEL_GROUP_oom ? btf__load_vmlinux_btf() : NULL;
    struct buf why = BUF_INIT;
    const bool is_old =
        kernel && attach_method_arguments_fit(kernel, "mark_victim", old_victim.arguments, &why);
    k->methods[0] = (struct sys_attach_method){.name = "raw_tp", .attach = next};
    for (size_t i = 0; i < N_NEEDED; i++)
        if (!needed[i].group || needed[i].group & o->groups)
            *next++ = is_old && needed[i].group == KERNEL_GROUP_oom ? old_victim : needed[i].attachment;
    for (size_t i = 0; o->probes && i < N_PROBES; i++)
        *next++ = probes_needed[i];
    buf_release(&why);
    btf__free(kernel);
    k->tool = (struct sys_tool){.name = "kernel_events",
                                .called = o->groups ? "--kernel" : "--function",
                                .methods = k->methods,
                                .ready = ready,
                                SYS_OBJECT(kernel_events)};
    k->session = mem_alloc(sizeof(*k->session));
    *k->session =
        (struct sys_session){.tool = &k->tool, .ring_fd = -1, .poll_fd = -1, .waits_fd = -1, .own = k};
    k->session->settings.config.stack_slots = 1;
    k->session->settings.ring_bytes = 4096;
    k->session->names = resolver_new(&(struct resolver_wanted){.spaces = false});
}

static uint64_t ring_bytes(uint64_t asked, uint32_t cpus)
{
    uint64_t bytes = 4ull * RING_PACKET_BYTES_MIN;
    while (bytes * 2 <= asked && bytes * 2 * 2 * cpus <= ALL_RINGS_MAX)
        bytes *= 2;
    return bytes;
}

int kernel_events_open(struct kernel_events **out, const struct kernel_events_options *o, struct error *e)
{
    const int found = libbpf_num_possible_cpus();
    const uint32_t cpus = found > 0 ? (uint32_t)found : 1;
    int bad = kernel_events_check(e);
    if (bad)
        return bad;
    struct kernel_events *k = mem_alloc(sizeof(*k));
    kernel_rings_plan(&k->rings, cpus, ring_bytes(o->ring_bytes, cpus), o->overwrites);
    k->wants_frames = o->groups & KERNEL_GROUP_pages;
    k->probes = o->probes;
    fill(k, o);
    struct sys_session *s = k->session;
    bad = event_filter_fill(&s->settings.config, e);
    if (!bad)
        bad = attach_by_best_method(s, e);
    if (!bad)
        bad = bpf_object_share(s, e);
    if (!bad)
        bad = map_array(k, e);
    if (!bad)
        bad = begin_writers(k, e);
    if (!bad)
        bad = measure_prices(k, e);
    if (!bad)
        bad = probes_attach(s, k->probes, e);
    if (!bad)
        bad = o->pid ? traced_processes_add(s, o->pid, e) : traced_processes_await(s, e);
    if (bad) {
        kernel_events_close(k);
        return bad;
    }
    __atomic_store_n(&s->state->runs, 1, __ATOMIC_SEQ_CST);
    *out = k;
    return 0;
}

void kernel_events_price(const struct kernel_events *k, struct buf *b)
{
    probe_prices_print(&k->prices, k->probes, b);
}

void *kernel_events_array(struct kernel_events *k)
{
    return k->array;
}

const struct kernel_rings *kernel_events_rings(const struct kernel_events *k)
{
    return &k->rings;
}

void kernel_events_stop(struct kernel_events *k)
{
    __atomic_store_n(&k->session->state->runs, 0, __ATOMIC_SEQ_CST);
    rows_wait_for_programs(k->session, sys_map(k->session, "ring_writers"));
    sys_read_counts(k->session); /* while they are attached: the kernel counts by program */
    sys_stop(k->session);
}

uint64_t kernel_events_missed(struct kernel_events *k)
{
    return k->session->counted[SYS_MISSED];
}

uint64_t kernel_events_counted(struct kernel_events *k)
{
    return k->session->counted[KERNEL_EVENTS_WANTED];
}

void kernel_events_close(struct kernel_events *k)
{
    if (!k)
        return;
    sys_close(k->session);
    if (k->array)
        munmap(k->array, k->rings.mapped_bytes);
    free(k);
}
