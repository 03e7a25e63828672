/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The unwinder, instruction by instruction: the trap flag stops the subject before each instruction, the SIGTRAP
 * handler walks its stack through the signal frame. The truth is a list of return addresses kept by the test itself: a
 * call pushes where its return address stands and what it is; an entry is valid as long as the stack pointer is not
 * above it.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <cmocka.h>

#include <dlfcn.h>

#include "step_subject.h"
#include "unwind/module.h"
#include "unwind/walk.h"

#define DEPTH_MAX 200
#define PCS_MAX   (1u << 20)
#define TRAP_FLAG 0x100

struct call {
    uintptr_t slot, returns_to;
};

static struct call calls[DEPTH_MAX];
static unsigned depth;
static uintptr_t pcs[PCS_MAX], last_pc, last_sp;
static uint32_t pcs_used, sealed;
static struct word_cache cache;
static unsigned long steps, differences, rewriting, undescribed;
static char first_difference[2048];

static uint32_t name(void *arg, uint32_t module, uintptr_t pc, bool exact)
{
    (void)arg, (void)module, (void)exact;
    assert_true(pcs_used < PCS_MAX);
    pcs[pcs_used] = pc;
    return pcs_used++;
}

/* Length of the call instruction at pc, 0: it is none. */
static unsigned call_length(const uint8_t *pc)
{
    unsigned prefix = pc[0] == 0x67 || pc[0] == 0x3e || (pc[0] & 0xf0) == 0x40 || pc[0] == 0xf2;
    const uint8_t *op = pc + prefix;
    if (op[0] == 0xe8)
        return prefix + 5;
    if (op[0] != 0xff || (op[1] >> 3 & 7) != 2)
        return 0;
    unsigned mod = op[1] >> 6, rm = op[1] & 7, length = 2 + (mod != 3 && rm == 4);
    if (mod == 1)
        length += 1;
    if (mod == 2 || (mod == 0 && rm == 5) || (mod == 0 && rm == 4 && (op[2] & 7) == 5))
        length += 4;
    return prefix + length;
}

static void follow_calls(uintptr_t sp)
{
    while (depth && calls[depth - 1].slot < sp)
        depth--;
    if (!last_pc)
        return;
    unsigned length = call_length((const uint8_t *)last_pc);
    if (length && sp == last_sp - 8 && depth < DEPTH_MAX)
        calls[depth++] = (struct call){sp, last_pc + length};
}

/* libgcc's search for the unwind information of an address. */
struct dwarf_eh_bases {
    void *tbase, *dbase, *func;
};
const void *_Unwind_Find_FDE(void *pc, struct dwarf_eh_bases *bases);

static void note_difference(uintptr_t pc, const uint32_t *ids, unsigned n, unsigned first, int end)
{
    Dl_info info = {0};
    dladdr((void *)pc, &info);
    if (info.dli_fname && strstr(info.dli_fname, "/libgcc_s.so")) {
        rewriting++;
        return;
    }
    if (!_Unwind_Find_FDE((void *)pc, &(struct dwarf_eh_bases){0})) {
        undescribed++;
        return;
    }
    if (differences++)
        return;
    int at = snprintf(first_difference, sizeof(first_difference), "at %s+%#lx (%s+%#lx), end %d\n",
                      info.dli_sname ? info.dli_sname : "?", pc - (uintptr_t)info.dli_saddr,
                      info.dli_fname ? info.dli_fname : "?", pc - (uintptr_t)info.dli_fbase, end);
    for (unsigned i = 0; i < 8; i++)
        at += snprintf(first_difference + at, sizeof(first_difference) - (size_t)at,
                       "  walked %#lx expected %#lx\n", first + i < n ? pcs[ids[first + i]] : 0,
                       i < depth ? calls[depth - 1 - i].returns_to : 0);
}

static void trapped(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info;
    const ucontext_t *u = context;
    uintptr_t pc = (uintptr_t)u->uc_mcontext.gregs[REG_RIP], sp = (uintptr_t)u->uc_mcontext.gregs[REG_RSP];
    struct walk_start start = {(uintptr_t)__builtin_return_address(0),
                               (uintptr_t)__builtin_frame_address(0) + 16,
                               *(uintptr_t *)__builtin_frame_address(0)};
    struct walker w = {.cache = &cache, .name = name, .sealed = &sealed};
    struct stack_bounds bounds = {0};
    uint32_t ids[DEPTH_MAX + 8];
    enum walk_end end;
    follow_calls(sp);
    unsigned n = walk_stack(&w, &bounds, &start, ids, DEPTH_MAX + 8, &end), first = 0;
    while (first < n && pcs[ids[first]] != pc)
        first++; /* the trampoline */
    first++;
    bool same = first + depth <= n;
    for (unsigned i = 0; i < depth && same; i++)
        same = pcs[ids[first + i]] == calls[depth - 1 - i].returns_to;
    if (!same)
        note_difference(pc, ids, n, first, end);
    steps++;
    last_pc = pc;
    last_sp = sp;
    if (pcs_used > PCS_MAX / 2) {
        word_cache_forget(&cache);
        pcs_used = 0;
    }
}

static void step_through(int (*subject)(int), int n)
{
    depth = 0, last_pc = 0, steps = differences = rewriting = undescribed = 0;
    __asm__ volatile("pushfq\n\torq %0, (%%rsp)\n\tpopfq" ::"i"(TRAP_FLAG) : "cc", "memory");
    volatile int result = subject(n);
    __asm__ volatile("pushfq\n\tandq %0, (%%rsp)\n\tpopfq" ::"i"(~TRAP_FLAG) : "cc", "memory");
    (void)result;
    if (differences)
        fail_msg("%lu of %lu steps differ; first %s", differences, steps, first_difference);
    assert_true(steps > 500);
    /*
     * libgcc's _Unwind_RaiseException, when it has found the handler, writes the handler's registers and address over
     * its own saved ones before it returns into it: for these instructions the stack says where it goes, not whence it
     * came.
     */
    if (rewriting * 50 > steps)
        fail_msg("%lu of %lu steps differ in libgcc", rewriting, steps);
    /*
     * Assembler code of the C library has no unwind information for the padding between two functions: __memcpy_chk of
     * glibc 2.41 falls through it into memcpy.
     */
    if (undescribed > 8)
        fail_msg("%lu of %lu steps are in code without unwind information", undescribed, steps);
}

#define X(level)                                                                                             \
    static void every_step_of_c_code_at_##level##_unwinds(void **state)                                      \
    {                                                                                                        \
        (void)state;                                                                                         \
        step_through(subject_c_##level, 5);                                                                  \
    }                                                                                                        \
    static void every_step_of_exceptions_at_##level##_unwinds(void **state)                                  \
    {                                                                                                        \
        (void)state;                                                                                         \
        step_through(subject_cxx_##level, 7);                                                                \
    }
SUBJECTS(X)
#undef X

static int set_up(void **state)
{
    (void)state;
    struct sigaction sa = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO};
    module_init();
    return sigaction(SIGTRAP, &sa, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define X(level)                                                                                             \
    cmocka_unit_test(every_step_of_c_code_at_##level##_unwinds),                                             \
        cmocka_unit_test(every_step_of_exceptions_at_##level##_unwinds),
        SUBJECTS(X)
#undef X
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
