/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/session.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/sigsafe/clock_ns.h"
#include "base/sigsafe/compiler.h"
#include "collect/kernel/cgroup_mounts.h"
#include "sys/attach.h"
#include "sys/bpf_object.h"
#include "sys/event_filter.h"
#include "sys/event_ring.h"
#include "sys/live_objects.h"
#include "sys/resolver.h"
#include "sys/sampled_rows.h"
#include "sys/stack_samples.h"

#define MEET_NS        100000000u /* so long at most the start waits for it; the rest is done while we wait */
#define MEET_URGENT_NS 1000000000u /* ... where nothing can be done later */
#define BACKLOG_PART   4u          /* of the ring: then the reader is woken */

const char *sys_option(const struct sys_session *s, const char *name)
{
    for (int i = 0; s->settings.options && s->tool->options[i].name; i++)
        if (!strcmp(s->tool->options[i].name, name))
            return s->settings.options[i];
    return NULL;
}

/* Is the memory controller left to version 1 here? */
bool sys_memory_is_v1(void)
{
    struct mounts m = {0};
    mounts_read(&m);
    bool found = cgroup_mount_of(&m, CGROUP_V1_MEMORY) != NULL;
    mounts_release(&m);
    return found;
}

/* A row may be on each CPU; the more there are, the fewer are on all. */
static uint32_t rows_default(void)
{
    const int known = libbpf_num_possible_cpus();
    const uint32_t cpus = known > 0 ? (uint32_t)known : 1;
    const uint32_t few = SYS_ROWS_DEFAULT * (cpus < SYS_ROWS_CPUS ? cpus : SYS_ROWS_CPUS);
    const uint32_t many = SYS_ROWS_LEAST * cpus;
    return few > many ? few : many;
}

static uint32_t power_of_two(uint32_t least)
{
    uint32_t power = 1;
    while (power < least && power < 1u << 31)
        power *= 2;
    return power;
}

static void fill_settings(struct sys_session *s, const struct sys_settings *settings)
{
    struct sys_settings *set = &s->settings;
    *set = *settings;
    set->part = set->part ? set->part : s->tool->parts;
    set->rows_max = set->rows_max ? set->rows_max : rows_default();
    set->stacks_max = set->stacks_max ? set->stacks_max : SYS_STACKS_DEFAULT;
    set->config.stack_slots = set->config.stacks ? power_of_two(set->stacks_max) : 1;
    set->ring_bytes = set->ring_bytes ? set->ring_bytes : s->tool->ring_bytes ? s->tool->ring_bytes : 4096;
    set->sample_ring_bytes = set->sample_ring_bytes ? set->sample_ring_bytes : SYS_SAMPLE_RING_BYTES;
    set->config.parts = set->part ? set->part->bits : 0;
    set->config.urgent = s->tool->urgent;
    set->config.cgroups = set->part && s->tool->container && set->part->columns >> s->tool->container & 1;
    set->config.backlog_bytes = set->ring_bytes / BACKLOG_PART;
    set->config.cgroup_v1 = set->config.filters & SYS_FILTER_CGROUP_V1 ||
                            (!(set->config.filters & SYS_FILTER_CGROUP) && sys_memory_is_v1());
}

/* Tests must fail when a record is missing: they say which one is to be. */
static uint64_t lose_from_environment(void)
{
    const char *text = getenv("ALLIUM_SYS_LOSE");
    return text ? strtoull(text, NULL, 10) : 0;
}

bool sys_loses(struct sys_session *s)
{
    return unlikely(s->lose) && !--s->lose;
}

/* Before anything is counted: what is mapped from then on is known, and of whom may end before it is asked for. */
static void begin_names(struct sys_session *s, const struct sys_settings *asked)
{
    const bool one = asked->config.filters & SYS_FILTER_TGID;
    s->names = resolver_new(&(struct resolver_wanted){
        .spaces = (s->settings.part && s->settings.part->spaces) || asked->config.stacks & SYS_STACK_USER,
        .vmlinux = asked->vmlinux,
        .finder = asked->finder,
        .helpers = asked->helpers,
        .lines = asked->lines});
    s->met = one || s->tool->urgent;
    if (one)
        resolver_know(s->names, (int)asked->config.tgid);
    else if (resolver_meet(s->names, s->tool->urgent ? MEET_URGENT_NS : MEET_NS))
        s->met = true;
}

int sys_open(struct sys_session **out, const struct sys_tool *tool, const struct sys_settings *settings,
             struct error *e)
{
    struct sys_session *s = mem_alloc(sizeof(*s));
    *out = NULL;
    *s = (struct sys_session){.tool = tool, .ring_fd = -1, .poll_fd = -1, .waits_fd = -1};
    fill_settings(s, settings);
    s->lose = lose_from_environment();
    int error = event_filter_fill(&s->settings.config, e);
    if (error) {
        sys_close(s);
        return error;
    }
    begin_names(s, settings);
    error = attach_by_best_method(s, e);
    if (!error)
        error = bpf_object_share(s, e);
    if (!error)
        error = stack_samples_open(s, e);
    if (!error)
        error = event_ring_open(s, e);
    if (!error && tool->begin)
        error = tool->begin(s, e);
    if (error) {
        sys_close(s);
        return error;
    }
    resolver_drain(s->names); /* attaching took long enough to fill the band where much is mapped */
    s->since_ns = clock_ns(CLOCK_MONOTONIC);
    __atomic_store_n(&s->state->runs, 1, __ATOMIC_SEQ_CST);
    if (tool->counting)
        tool->counting(s);
    *out = s;
    return 0;
}

void sys_stop(struct sys_session *s)
{
    if (s->state) {
        const bool ran = __atomic_exchange_n(&s->state->runs, 0, __ATOMIC_SEQ_CST);
        s->until_ns = clock_ns(CLOCK_MONOTONIC);
        if (ran && s->tool->counting)
            s->tool->counting(s);
    }
    vec_each (struct bpf_link *, link, &s->links)
        bpf_link__destroy(*link);
    vec_release(&s->links);
}

void sys_close(struct sys_session *s)
{
    if (!s)
        return;
    sys_stop(s);
    event_ring_close(s);
    if (s->waits_fd >= 0)
        close(s->waits_fd);
    stack_samples_close(s);
    sampled_rows_free(s->sampled);
    live_objects_free(s->live);
    bpf_object_close(s);
    vec_each (struct sys_refusal, r, &s->refused)
        free(r->why);
    vec_release(&s->refused);
    if (s->tool->release)
        s->tool->release(s);
    resolver_free(s->names);
    buf_release(&s->lacks);
    buf_release(&s->says);
    free(s);
}

/* The kernel does not run a program for what interrupts it on the same CPU, and counts that (since 5.12). */
static uint64_t missed(const struct sys_session *s)
{
    struct bpf_program *p;
    uint64_t sum = 0;
    bpf_object__for_each_program(p, s->object)
    {
        struct bpf_prog_info info = {0};
        uint32_t bytes = sizeof(info);
        if (bpf_program__fd(p) >= 0 && !bpf_obj_get_info_by_fd(bpf_program__fd(p), &info, &bytes))
            sum += info.recursion_misses;
    }
    return sum;
}

void sys_read_counts(struct sys_session *s)
{
    int fd = sys_map(s, "counts"), cpus = libbpf_num_possible_cpus();
    uint64_t *each = mem_alloc((size_t)(cpus > 0 ? cpus : 1) * sizeof(*each));
    for (uint32_t i = 0; i < SYS_COUNTS; i++) {
        uint64_t sum = 0;
        if (!bpf_map_lookup_elem(fd, &i, each))
            for (int c = 0; c < cpus; c++)
                sum += each[c];
        s->counted[i] = sum;
    }
    s->counted[SYS_MISSED] = missed(s);
    s->counted[SYS_MAPS_LOST] = resolver_lost(s->names);
    s->counted[SYS_NAMELESS] = resolver_nameless(s->names);
    s->counted[SYS_UNTRUSTED] = resolver_untrusted(s->names);
    if (s->samples)
        s->counted[SYS_STACKS_FULL] += stack_samples_counted(s)->no_room;
    free(each);
    if (s->tool->count_rest)
        s->tool->count_rest(s);
}
