/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/trace/event_spans.h"

#include <stdlib.h>

#include "base/hash_map.h"
#include "base/vec.h"

/* States of sched_switch in which a thread never takes the CPU again. */
#define DEAD_STATES (16 | 32 | 128)

#define SMALL_BYTES 32u /* of fields: most events have no more */

struct open_span {
    struct span span;
    unsigned char small[SMALL_BYTES], *large; /* the fields are in one of the two */
    /* the event counts as a beginning only if its end follows: the trace may lack the group `begin` */
    bool maybe;
};

struct thread {
    uint64_t image_id; /* of its last event in user space; 0: none yet */
    bool was_off;      /* it has left a CPU */
    struct VEC(struct open_span) stack;
    struct VEC(const struct event_role *) repeated; /* without ends: they begin nothing */
};

struct event_spans {
    struct event_roles *roles;
    struct map by_thread;
    struct VEC(struct thread) threads;
    struct map processes; /* that are traced: the kernel's events name others, too */
    struct open_span ended, off_cpu;
    struct VEC(struct open_span) left; /* of the last change: unfinished ones, with what they own */
    struct VEC(struct span) left_spans;
    struct span_counts counts;
    uint64_t last_ns, taken; /* events */
    size_t begun;            /* the thread in which the last event began a span; SIZE_MAX: it began none */
    bool has_begin;
    pid_t last_process;
    uint32_t last_thread;
    size_t last_thread_at; /* SIZE_MAX: there is none */
};

struct event_spans *event_spans_new(const struct event_class *const *classes, size_t n)
{
    struct event_spans *s = mem_alloc(sizeof(*s));
    s->roles = event_roles_new(classes, n);
    s->last_thread_at = s->begun = SIZE_MAX;
    return s;
}

static void forget(struct open_span *o)
{
    free(o->large);
    o->large = NULL;
}

static void forget_change(struct event_spans *s)
{
    forget(&s->ended);
    forget(&s->off_cpu);
    vec_each (struct open_span, o, &s->left)
        forget(o);
    s->left.len = s->left_spans.len = 0;
}

void event_spans_free(struct event_spans *s)
{
    if (!s)
        return;
    forget_change(s);
    vec_each (struct thread, t, &s->threads) {
        vec_each (struct open_span, o, &t->stack)
            forget(o);
        vec_release(&t->stack);
        vec_release(&t->repeated);
    }
    vec_release(&s->threads);
    vec_release(&s->left);
    vec_release(&s->left_spans);
    map_release(&s->by_thread);
    map_release(&s->processes);
    event_roles_free(s->roles);
    free(s);
}

static struct thread *thread_of(struct event_spans *s, uint32_t id)
{
    bool added = false;
    if (s->last_thread_at == SIZE_MAX || s->last_thread != id)
        s->last_thread_at = map_put_u64(&s->by_thread, id, s->threads.len, &added);
    if (added)
        vec_push(&s->threads);
    s->last_thread = id;
    return &s->threads.at[s->last_thread_at];
}

static bool is_of_program(const struct trace_event *e)
{
    return e->image_id;
}

static bool is_of_kernel(const struct open_span *o)
{
    return o->span.role->kind >= SPAN_FAULT;
}

static void set_fields(struct open_span *o)
{
    o->span.fields = o->large ? o->large : o->small;
}

/* Drops an open span whose end is missing. */
static void drop(struct event_spans *s, struct open_span *o)
{
    if (o->span.role->kind == SPAN_FAULT)
        s->counts.faults_unended++;
    else if (!o->maybe)
        s->counts.unended++;
    forget(o);
}

static void drop_top(struct event_spans *s, struct thread *t)
{
    drop(s, &t->stack.at[--t->stack.len]);
}

/* The thread, or its program, is over: its spans have lasted until then. */
static void leave_all(struct event_spans *s, struct thread *t, uint64_t now_ns)
{
    while (t->stack.len) {
        struct open_span *o = &t->stack.at[--t->stack.len];
        if (o->maybe || o->span.role->kind == SPAN_FAULT) {
            drop(s, o);
            continue;
        }
        o->span.unfinished = true;
        o->span.ended_ns = now_ns < o->span.began_ns ? o->span.began_ns : now_ns;
        *vec_push(&s->left) = *o;
    }
}

/* Sets change->unfinished. Call it when `left` is complete. */
static void show_left(struct event_spans *s, struct span_change *change)
{
    vec_each (struct open_span, o, &s->left) {
        set_fields(o);
        *vec_push(&s->left_spans) = o->span;
    }
    change->unfinished = s->left_spans.at;
    change->n_unfinished = s->left_spans.len;
}

/* ---- parts of a call ---- */

static enum span_part part_of(enum span_kind kind)
{
    return kind == SPAN_FAULT     ? SPAN_PART_FAULTS
           : kind == SPAN_RECLAIM ? SPAN_PART_RECLAIM
           : kind == SPAN_OFF_CPU ? SPAN_PART_OFF_CPU
                                  : SPAN_PARTS;
}

/* The span has ended, with the first `below` of the stack around it. An interval counts if it is in no other one of the
 * same part: as spans nest, that makes the union. */
static void add_part(const struct thread *t, const struct span *ended, size_t below)
{
    const enum span_part part = part_of(ended->role->kind);
    const uint64_t took_ns = ended->ended_ns - ended->began_ns;
    bool same = false, any = false;
    if (part == SPAN_PARTS)
        return;
    for (size_t i = 0; i < below; i++) {
        const enum span_kind around = t->stack.at[i].span.role->kind;
        same = same || part_of(around) == part;
        any = any || part_of(around) != SPAN_PARTS;
    }
    for (size_t i = 0; i < below; i++) {
        struct span *around = &t->stack.at[i].span;
        around->part_ns[part] += around->outermost && !same ? took_ns : 0;
        around->part_ns[SPAN_PART_ANY] += around->outermost && !any ? took_ns : 0;
    }
}

/* ---- beginnings and ends ---- */

/* Calls of the allocator within one are parts of it, and so are calls of a function by itself. */
static bool is_outermost(const struct thread *t, size_t below, const struct event_role *role)
{
    bool is = role->kind == SPAN_CALL || role->kind == SPAN_FUNCTION;
    for (size_t i = 0; i < below && is; i++) {
        const struct event_role *around = t->stack.at[i].span.role;
        is = around->kind != role->kind ||
             (role->kind == SPAN_FUNCTION && strcmp(around->name, role->name) != 0);
    }
    return is;
}

static void begin(struct event_spans *s, struct thread *t, const struct trace_event *e,
                  const struct event_role *role, pid_t pid)
{
    const uint32_t bytes = event_class_bytes(e->class);
    struct open_span *o = vec_push(&t->stack);
    o->large = bytes > SMALL_BYTES ? mem_alloc(bytes) : NULL;
    memcpy(o->large ? o->large : o->small, e->fields, bytes);
    o->maybe = role->needs_begin && !s->has_begin;
    o->span = (struct span){.role = role,
                            .class = e->class,
                            .began_ns = e->time_ns,
                            .image_id = e->image_id,
                            .number = s->taken,
                            .pid = pid,
                            .thread = e->thread,
                            .outermost = is_outermost(t, t->stack.len - 1, role)};
    s->begun = (size_t)(t - s->threads.at);
}

/* Returns the place of the innermost span that the role ends; SIZE_MAX: there is none. */
static size_t find_open(const struct thread *t, const struct event_role *role)
{
    for (size_t i = t->stack.len; i-- > 0;) {
        const struct event_role *r = t->stack.at[i].span.role;
        if (r->kind == role->kind && !strcmp(r->name, role->name))
            return i;
    }
    return SIZE_MAX;
}

/* Takes the span at `at` from the stack. Of the spans above it only those of the program may go on: where a call or the
 * kernel's work ends, all that began within it has ended, even if its event is missing. */
static void take_out(struct event_spans *s, struct thread *t, size_t at, uint64_t now_ns,
                     struct open_span *out)
{
    *out = t->stack.at[at];
    size_t kept = at;
    for (size_t i = at + 1; i < t->stack.len; i++) {
        struct open_span *o = &t->stack.at[i];
        if (out->span.role->kind == SPAN_OWN || o->span.role->kind == SPAN_OWN) {
            out->span.crosses = true;
            t->stack.at[kept++] = *o;
        } else {
            drop(s, o);
        }
    }
    t->stack.len = kept;
    set_fields(out);
    out->span.ended_ns = now_ns < out->span.began_ns ? out->span.began_ns : now_ns;
    add_part(t, &out->span, at);
}

static void end(struct event_spans *s, struct thread *t, const struct trace_event *e,
                const struct event_role *role, struct span_change *change)
{
    const size_t at = find_open(t, role);
    if (at != SIZE_MAX) {
        take_out(s, t, at, e->time_ns, &s->ended);
        change->ended = &s->ended.span;
    } else if (role->kind != SPAN_CALL || s->has_begin || !strcmp(role->name, "realloc")) {
        s->counts.unbegun++;
    }
}

/* A beginning of which the trace has no end. */
static void begin_alone(struct event_spans *s, struct thread *t, const struct trace_event *e,
                        const struct event_role *role)
{
    vec_each (const struct event_role *, r, &t->repeated)
        if (!strcmp((*r)->name, role->name))
            return;
    const size_t at = find_open(t, role);
    if (at == SIZE_MAX) {
        begin(s, t, e, role, e->pid);
        return;
    }
    forget(&t->stack.at[at]);
    memmove(&t->stack.at[at], &t->stack.at[at + 1], (t->stack.len - at - 1) * sizeof(*t->stack.at));
    t->stack.len--;
    *vec_push(&t->repeated) = role;
}

/* ---- threads and processes ---- */

static void switch_thread(struct event_spans *s, const struct trace_event *e, const struct event_role *role,
                          pid_t pid, struct span_change *change)
{
    struct thread *t = thread_of(s, e->thread);
    const bool ends = trace_event_value(e, "state") & DEAD_STATES;
    if (ends) {
        leave_all(s, t, e->time_ns);
        t->image_id = 0;
        t->was_off = false;
    } else if (e->thread && map_get_u64(&s->processes, (uint32_t)pid) != MAP_NONE) {
        while (t->stack.len && t->stack.at[t->stack.len - 1].span.role->kind == SPAN_OFF_CPU)
            drop_top(s, t); /* it took the CPU meanwhile */
        begin(s, t, e, role, pid);
        t->was_off = true;
    }
    t = thread_of(s, (uint32_t)trace_event_value(e, "next_tid"));
    const size_t at = find_open(t, role);
    if (at != SIZE_MAX) {
        take_out(s, t, at, e->time_ns, &s->off_cpu);
        change->off_cpu = &s->off_cpu.span;
    } else if (t->was_off) {
        s->counts.unbegun++;
    }
}

static void know_process(struct event_spans *s, uint64_t pid)
{
    if (pid)
        map_put_u64(&s->processes, pid, 1, NULL);
}

/* Returns the process of an event, and remembers which ones are traced. sched_switch has events of others, too. */
static pid_t take_process(struct event_spans *s, const struct trace_event *e, const struct event_role *role)
{
    if (is_of_program(e)) {
        if (e->pid != s->last_process)
            know_process(s, (uint32_t)e->pid);
        return s->last_process = e->pid;
    }
    const uint64_t pid = trace_event_value(e, "pid");
    know_process(s, trace_event_value(e, "woken_pid"));
    know_process(s, trace_event_value(e, "child_pid"));
    if (role->step != EVENT_STEP_NONE && role->step != EVENT_STEP_SWITCHES)
        know_process(s, pid);
    return (pid_t)pid;
}

/* In user space nothing of the kernel is under way. The first event of another program that the thread executes ends
 * what the one before had begun. */
static void enter_user_space(struct event_spans *s, struct thread *t, const struct trace_event *e,
                             const struct event_role *role)
{
    while (t->stack.len && is_of_kernel(&t->stack.at[t->stack.len - 1]))
        drop_top(s, t);
    if (t->image_id && t->image_id != e->image_id)
        leave_all(s, t, e->time_ns);
    t->image_id = e->image_id;
    if (t->stack.len && t->stack.at[t->stack.len - 1].maybe &&
        (role->step != EVENT_STEP_ENDS || strcmp(role->name, "free")))
        drop_top(s, t);
}

/* Sets what is around an event of the thread. */
static void look_around(const struct thread *t, struct span_change *change)
{
    vec_each (const struct open_span, o, &t->stack) {
        if (o->maybe)
            continue;
        change->depth++;
        if (o->span.role->kind == SPAN_CALL)
            change->within = o->span.role->name;
    }
}

void event_spans_take(struct event_spans *s, const struct trace_event *e, struct span_change *change)
{
    forget_change(s);
    const struct event_role *role = event_roles_of(s->roles, e);
    *change = (struct span_change){.is_instant = role->step == EVENT_STEP_NONE || role->is_alone};
    const pid_t pid = take_process(s, e, role);
    struct thread *t = thread_of(s, e->thread);
    s->last_ns = e->time_ns;
    s->begun = SIZE_MAX;
    s->has_begin = s->has_begin || role->is_begin;
    if (is_of_program(e))
        enter_user_space(s, t, e, role);
    if (role->kind == SPAN_FAULT && role->step == EVENT_STEP_BEGINS)
        while (t->stack.len && t->stack.at[t->stack.len - 1].span.role->kind == SPAN_FAULT)
            drop_top(s, t); /* it failed: a handler of faults does not fault itself */
    if (role->step == EVENT_STEP_ENDS)
        end(s, t, e, role, change);
    look_around(t, change);
    if (role->is_alone)
        begin_alone(s, t, e, role);
    else if (role->step == EVENT_STEP_BEGINS)
        begin(s, t, e, role, pid);
    else if (role->step == EVENT_STEP_SWITCHES)
        switch_thread(s, e, role, pid, change);
    show_left(s, change);
    s->taken++;
}

void event_spans_choose(struct event_spans *s)
{
    struct thread *t = s->begun == SIZE_MAX ? NULL : &s->threads.at[s->begun];
    if (t && t->stack.len && t->stack.at[t->stack.len - 1].span.number + 1 == s->taken)
        t->stack.at[t->stack.len - 1].span.chosen = true;
}

void event_spans_finish(struct event_spans *s, struct span_change *change)
{
    forget_change(s);
    vec_each (struct thread, t, &s->threads)
        leave_all(s, t, s->last_ns);
    *change = (struct span_change){.depth = 0};
    show_left(s, change);
}

struct trace_event event_spans_beginning(const struct span *s, uint64_t offset_ns)
{
    return (struct trace_event){.class = s->class,
                                .domain = s->image_id ? "ust" : "kernel",
                                .image_id = s->image_id,
                                .time_ns = s->began_ns,
                                .realtime_ns = s->began_ns + offset_ns,
                                .pid = s->pid,
                                .thread = s->thread,
                                .fields = s->fields};
}

struct span_counts event_spans_counts(const struct event_spans *s)
{
    return s->counts;
}

bool event_spans_has_begin(const struct event_spans *s)
{
    return s->has_begin;
}
