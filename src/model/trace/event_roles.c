/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/trace/event_roles.h"

#include <stdlib.h>

#include "base/hash_map.h"
#include "base/vec.h"

/* Allium's own events, and those of the kernel. */
static const struct known_role {
    const char *event;
    struct event_role role;
} known[] = {
    {"allium:malloc_begin", {EVENT_STEP_BEGINS, SPAN_CALL, "malloc", .is_begin = true}},
    {"allium:malloc", {EVENT_STEP_ENDS, SPAN_CALL, "malloc"}},
    {"allium:calloc_begin", {EVENT_STEP_BEGINS, SPAN_CALL, "calloc", .is_begin = true}},
    {"allium:calloc", {EVENT_STEP_ENDS, SPAN_CALL, "calloc"}},
    {"allium:memalign_begin", {EVENT_STEP_BEGINS, SPAN_CALL, "memalign", .is_begin = true}},
    {"allium:memalign", {EVENT_STEP_ENDS, SPAN_CALL, "memalign"}},
    {"allium:realloc_begin", {EVENT_STEP_BEGINS, SPAN_CALL, "realloc"}},
    {"allium:realloc_end", {EVENT_STEP_ENDS, SPAN_CALL, "realloc"}},
    {"allium:free", {EVENT_STEP_BEGINS, SPAN_CALL, "free", .needs_begin = true}},
    {"allium:free_end", {EVENT_STEP_ENDS, SPAN_CALL, "free", .is_begin = true}},
    {"kernel:page_fault_begin", {EVENT_STEP_BEGINS, SPAN_FAULT, "page_fault"}},
    {"kernel:page_fault_end", {EVENT_STEP_ENDS, SPAN_FAULT, "page_fault"}},
    {"kernel:reclaim_begin", {EVENT_STEP_BEGINS, SPAN_RECLAIM, "reclaim"}},
    {"kernel:reclaim_end", {EVENT_STEP_ENDS, SPAN_RECLAIM, "reclaim"}},
    {"kernel:map_begin", {EVENT_STEP_BEGINS, SPAN_MAPS, "maps"}},
    {"kernel:brk", {EVENT_STEP_ENDS, SPAN_MAPS, "maps"}},
    {"kernel:mmap", {EVENT_STEP_ENDS, SPAN_MAPS, "maps"}},
    {"kernel:munmap", {EVENT_STEP_ENDS, SPAN_MAPS, "maps"}},
    {"kernel:mremap", {EVENT_STEP_ENDS, SPAN_MAPS, "maps"}},
    {"kernel:madvise", {EVENT_STEP_ENDS, SPAN_MAPS, "maps"}},
    {"kernel:mprotect", {EVENT_STEP_ENDS, SPAN_MAPS, "maps"}},
    {"kernel:sched_switch", {EVENT_STEP_SWITCHES, SPAN_OFF_CPU, "off_cpu"}},
};
#define N_KNOWN (sizeof(known) / sizeof(*known))

#define RECENT 64u

struct event_roles {
    struct map begins, ends; /* names of spans of the program that some class begins, or ends */
    struct map by_class;
    struct VEC(struct event_role *) roles; /* each stays where it is */
    struct VEC(char *) names;
    struct {
        const struct event_class *class;
        const struct event_role *role;
    } recent[RECENT]; /* each class at the place of its hash */
};

static const char *const steps[] = {"_begin", "_end"};

/* Returns the length of the name before `step`; 0: it does not end so. */
static size_t stem_of(const char *name, int step)
{
    const size_t len = strlen(name), suffix = strlen(steps[step]);
    return len > suffix && !strcmp(name + len - suffix, steps[step]) ? len - suffix : 0;
}

struct event_roles *event_roles_new(const struct event_class *const *classes, size_t n)
{
    struct event_roles *r = mem_alloc(sizeof(*r));
    for (size_t i = 0; i < n; i++)
        for (int step = 0; step < 2; step++) {
            const size_t stem = stem_of(classes[i]->name, step);
            if (stem && map_get(step ? &r->ends : &r->begins, classes[i]->name, stem) == MAP_NONE) {
                map_put(step ? &r->ends : &r->begins, classes[i]->name, stem, r->names.len, NULL);
                *vec_push(&r->names) = mem_strndup(classes[i]->name, stem);
            }
        }
    return r;
}

void event_roles_free(struct event_roles *r)
{
    if (!r)
        return;
    vec_each (char *, name, &r->names)
        free(*name);
    vec_each (struct event_role *, role, &r->roles)
        free(*role);
    vec_release(&r->names);
    vec_release(&r->roles);
    map_release(&r->begins);
    map_release(&r->ends);
    map_release(&r->by_class);
    free(r);
}

static struct event_role find_role(const struct event_roles *r, const struct trace_event *e)
{
    const char *name = e->class->name;
    const bool in_kernel = !strcmp(e->domain, "kernel"),
               is_function = in_kernel && !strncmp(name, "function:", 9);
    const bool of_kernel = in_kernel && !is_function;
    if (of_kernel || !strncmp(name, "allium:", 7)) {
        for (size_t i = 0; i < N_KNOWN; i++)
            if (!strcmp(known[i].event, name) && of_kernel == !strncmp(name, "kernel:", 7))
                return known[i].role;
        return (struct event_role){EVENT_STEP_NONE};
    }
    for (int step = 0; step < 2; step++) {
        const size_t stem = stem_of(name, step);
        const size_t at = stem ? map_get(&r->begins, name, stem) : MAP_NONE;
        const bool has_end = stem && map_get(&r->ends, name, stem) != MAP_NONE;
        if (at != MAP_NONE && (has_end || (!step && !in_kernel)))
            return (struct event_role){step ? EVENT_STEP_ENDS : EVENT_STEP_BEGINS,
                                       is_function ? SPAN_FUNCTION : SPAN_OWN, r->names.at[at],
                                       .is_alone = !has_end};
    }
    return (struct event_role){EVENT_STEP_NONE};
}

static const struct event_role *look_up(struct event_roles *r, const struct trace_event *e)
{
    bool added;
    const size_t at = map_put_u64(&r->by_class, (uintptr_t)e->class, r->roles.len, &added);
    if (added) {
        struct event_role *role = mem_alloc(sizeof(*role));
        *role = find_role(r, e);
        *vec_push(&r->roles) = role;
    }
    return r->roles.at[at];
}

const struct event_role *event_roles_of(struct event_roles *r, const struct trace_event *e)
{
    const size_t at = (uintptr_t)e->class / sizeof(*e->class) % RECENT;
    if (r->recent[at].class != e->class) {
        r->recent[at].class = e->class;
        r->recent[at].role = look_up(r, e);
    }
    return r->recent[at].role;
}
