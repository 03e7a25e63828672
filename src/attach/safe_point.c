/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/safe_point.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "base/mem.h"
#include "collect/unwind/stack_dump.h"

#define FRAMES_MAX          512u
#define ROOM_BYTES          (64u << 10) /* for a frame with all registers, and dlopen() */
#define RSEQ_SECTION_OFFSET 8u          /* in struct rseq: the section that the thread is in */
#define DUMP_BYTES          (32u * STACK_DUMP_PAGE_BYTES)

/* A frame, and in which library. */
enum place { PLACE_OTHER, PLACE_LIBC, PLACE_LOADER, PLACE_ALLOCATOR };

/* Functions that only wait in a system call. */
static bool only_waits(const char *name)
{
    static const char *const names[] = {
        "poll",
        "ppoll",
        "select",
        "pselect",
        "epoll_wait",
        "epoll_pwait",
        "nanosleep",
        "clock_nanosleep",
        "usleep",
        "sleep",
        "pause",
        "read",
        "recv",
        "recvfrom",
        "recvmsg",
        "accept",
        "accept4",
        "wait",
        "wait4",
        "waitpid",
        "waitid",
        "sem_wait",
        "sem_timedwait",
        "sem_clockwait",
        "pthread_cond_wait",
        "pthread_cond_timedwait",
        "pthread_cond_clockwait",
        "pthread_join",
        "pthread_timedjoin_np",
        "pthread_clockjoin_np",
        "sigsuspend",
        "sigwait",
        "sigwaitinfo",
        "sigtimedwait",
        "__poll",
        "__select",
        "__read",
        "__nanosleep",
        "__libc_pause",
    };
    for (size_t i = 0; name && i < sizeof(names) / sizeof(names[0]); i++)
        if (!strcmp(name, names[i]))
            return true;
    return false;
}

static enum place place_of(const struct space_mapping *m)
{
    const char *base = m && m->file ? strrchr(m->file->path, '/') : NULL;
    if (!base)
        return PLACE_OTHER;
    if (!strncmp(base, "/ld-", 4) || !strncmp(base, "/ld.so", 6))
        return PLACE_LOADER;
    if (!strncmp(base, "/libc.so.", 9) || !strncmp(base, "/libc-", 6) || !strncmp(base, "/libpthread", 11))
        return PLACE_LIBC;
    return strstr(base, "malloc") || strstr(base, "allium-agent") ? PLACE_ALLOCATOR : PLACE_OTHER;
}

static struct stack_dump_code find(void *arg, uint64_t pc)
{
    const struct target *t = arg;
    const struct space_mapping *m = target_mapping(t, pc);
    const struct target_module *file = m && m->protection & PROT_EXEC ? target_module_of(t, m) : NULL;
    struct stack_dump_code code = {file ? file->rules : NULL, 0};
    if (code.file && !dso_address(code.file, pc - m->start + m->page_offset, &code.address))
        code.file = NULL;
    return code;
}

/* Registers by their DWARF numbers. */
static void set_registers(struct stack_dump *c, const struct user_regs_struct *r)
{
    const uint64_t values[] = {r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi, r->rbp, r->rsp, r->r8,
                               r->r9,  r->r10, r->r11, r->r12, r->r13, r->r14, r->r15, r->rip};
    _Static_assert(sizeof(values) <= sizeof(c->regs), "registers");
    memcpy(c->regs, values, sizeof(values));
}

/* The exported function of the C library that contains the address; NULL: none. */
static const char *function_at(const struct target *t, uint64_t pc)
{
    const struct target_module *libc = target_module(t, "libc.so.");
    return libc ? target_function_at(libc, pc) : NULL;
}

/* How many of the innermost frames are in the C library. */
static size_t count_leaf(const struct target *t, const struct stack_dump_frame *f, size_t n)
{
    size_t leaf = 0;
    while (leaf < n && place_of(target_mapping(t, f[leaf].pc)) == PLACE_LIBC)
        leaf++;
    return leaf;
}

/* Judges the frames, the innermost first. */
static const char *judge(const struct target *t, const struct stack_dump_frame *f, size_t n, bool waits)
{
    static char text[128];
    const size_t leaf = count_leaf(t, f, n);
    size_t outer = n;
    if (leaf == n)
        return "in code of the C library alone";
    while (outer > leaf && place_of(target_mapping(t, f[outer - 1].pc)) == PLACE_LIBC)
        outer--;
    if (outer == n && n > 1) /* behind main() is _start(), of the program */
        while (outer > leaf + 1 && place_of(target_mapping(t, f[outer - 2].pc)) == PLACE_LIBC)
            outer--;
    if (leaf) {
        const char *name = function_at(t, f[leaf - 1].pc);
        if (!waits || !only_waits(name)) {
            snprintf(text, sizeof(text), "in %s()", name ? name : "the C library");
            return text;
        }
    }
    for (size_t i = leaf; i < n; i++) {
        const enum place place = place_of(target_mapping(t, f[i].pc));
        if (place == PLACE_LOADER)
            return "in the loader";
        if (place == PLACE_ALLOCATOR)
            return "in the allocator";
        if (place == PLACE_LIBC && i < outer)
            return "called by the C library";
    }
    return NULL;
}

/* The frames of a thread, the innermost first. */
struct stack {
    struct stack_dump_frame frames[FRAMES_MAX];
    size_t n;
    enum stack_dump_end end;
};

static void walk(const struct target *t, const struct stopped_thread *thread, struct stack *out)
{
    const struct user_regs_struct *r = &thread->regs;
    const struct space_mapping *stack = target_mapping(t, r->rsp);
    const size_t most = DUMP_BYTES - STACK_DUMP_PAGE_BYTES;
    struct stack_dump c = {.arguments = 0};
    out->n = 0;
    out->end = STACK_DUMP_CUT;
    if (!stack)
        return;
    const size_t bytes = stack->end - r->rsp < most ? stack->end - r->rsp : most;
    unsigned char *copy = mem_alloc(bytes);
    set_registers(&c, r);
    c.run[0] = (struct stack_dump_run){.from = r->rsp, .bytes = bytes, .data = copy};
    if (target_read(t, r->rsp, copy, bytes))
        out->n = stack_dump_walk(&c, find, (void *)t, out->frames, FRAMES_MAX, &out->end);
    free(copy);
}

const char *safe_point_function(const struct target *t, const struct stopped_thread *thread)
{
    static struct stack s;
    walk(t, thread, &s);
    const size_t leaf = count_leaf(t, s.frames, s.n);
    return leaf ? function_at(t, s.frames[leaf - 1].pc) : NULL;
}

/* The kernel aborts a restartable sequence when it moves the thread, but not when a call takes it away. */
static bool is_in_sequence(const struct target *t, const struct stopped_thread *thread)
{
    struct __ptrace_rseq_configuration area;
    struct {
        uint32_t version, flags;
        uint64_t start, bytes, abort;
    } section;
    uint64_t at = 0;
    return ptrace(PTRACE_GET_RSEQ_CONFIGURATION, thread->tid, sizeof(area), &area) > 0 &&
           area.rseq_abi_pointer &&
           target_read(t, area.rseq_abi_pointer + RSEQ_SECTION_OFFSET, &at, sizeof(at)) && at &&
           target_read(t, at, &section, sizeof(section)) && thread->regs.rip - section.start < section.bytes;
}

/* A coroutine's stack may be small, with other data below it: only the stacks of threads are known to be large. */
static bool has_room(const struct target *t, const struct stopped_thread *thread)
{
    const uint64_t sp = thread->regs.rsp, thread_data = thread->regs.fs_base;
    const struct space_mapping *stack = target_mapping(t, sp);
    if (!stack)
        return false;
    if (thread->tid == t->pid && stack->kind == MAPPING_STACK)
        return true;
    return sp - stack->start >= ROOM_BYTES && thread_data > sp && thread_data < stack->end;
}

const char *safe_point_refuse(const struct target *t, const struct stopped_thread *thread)
{
    static const unsigned char syscall_code[2] = {0x0f, 0x05};
    static struct stack s;
    unsigned char before[2] = {0};
    if (!has_room(t, thread))
        return "on a stack of its own";
    if (is_in_sequence(t, thread))
        return "in a restartable sequence";
    walk(t, thread, &s);
    if (s.end != STACK_DUMP_WHOLE)
        return "with a stack that cannot be followed";
    for (size_t i = 1; i < s.n; i++)
        if (s.frames[i].exact)
            return "in a signal handler";
    return judge(t, s.frames, s.n,
                 target_read(t, thread->regs.rip - 2, before, 2) && !memcmp(before, syscall_code, 2));
}
