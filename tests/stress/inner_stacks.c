/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Allocates blocks of BYTES on a coroutine stack that lies inside the stack of a thread; then the thread itself
 * allocates, when the coroutine stack is not accessible any more.
 *
 *     inner_stacks STACK HOW BYTES
 *
 * STACK: main, thread. HOW: what happens to the coroutine stack after each use: protected (PROT_NONE), unmapped,
 * replaced (by pages of an empty file, which raise SIGBUS), overwritten; or half of it: upper, lower (PROT_NONE;
 * another coroutine uses the half that is left). The outermost frame of a coroutine has an undefined return address.
 * handler: the stack is the alternate one of a signal handler instead, whose frame has the rbp of the interrupted
 * function, and is protected then. guarded: the page above the coroutine stack is PROT_NONE while the stack is in use,
 * and the unwind rule of the coroutine's outermost frame is wrong: it leads to a caller's frame in that page. torn: the
 * same, but the rule reads the address of the caller's frame from a word that lies across the end of that page.
 *
 * Prints the number of blocks.
 */
#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE   4096u
#define STACK  (32u * PAGE)
#define ROUNDS 20
#define DEPTH  24 /* enough places to allocate from for each walk cache of the thread */

static size_t size;
static unsigned long made;
static void *volatile keep;

/*
 * All call function() on the stack that ends at `top`. The unwind rule of call_on() says that it has no caller; the
 * rule of call_on_wrongly() takes no notice of the other stack. The rules of the last two read the address of the
 * caller's frame at at_frame_address, as after a function has realigned its stack; the last one has an unusual form.
 */
void call_on(void *top, void (*function)(void));
void call_on_wrongly(void *top, void (*function)(void));
void call_on_torn(void *top, void (*function)(void), char *at_frame_address);
void call_on_torn_oddly(void *top, void (*function)(void), char *at_frame_address);
#if defined(__x86_64__)
#define SWITCH_STACKS                                                                                        \
    "push %rbx\n.cfi_adjust_cfa_offset 8\n"                                                                  \
    "mov %rsp, %rbx\nmov %rdi, %rsp\ncall *%rsi\nmov %rbx, %rsp\n"                                           \
    "pop %rbx\n.cfi_adjust_cfa_offset -8\nret\n"
#define SWITCH_STACKS_AND_RBP                                                                                \
    "push %rbx\npush %rbp\nlea 8(%rdx), %rbp\nmov %rsp, %rbx\nmov %rdi, %rsp\ncall *%rsi\n"                  \
    "mov %rbx, %rsp\npop %rbp\npop %rbx\nret\n"
#else
#define SWITCH_STACKS         "brk #0\n"
#define SWITCH_STACKS_AND_RBP "brk #0\n"
#endif
/* caller's rbp = *rbp */
#define RBP_AT_RBP ".cfi_escape 0x10, 6, 2, 0x76, 0\n"
__asm__(
    ".text\n.globl call_on\n.type call_on, @function\ncall_on:\n.cfi_startproc\n.cfi_undefined "
    "rip\n" SWITCH_STACKS ".cfi_endproc\n.size call_on, .-call_on\n"
    ".globl call_on_wrongly\n.type call_on_wrongly, "
    "@function\ncall_on_wrongly:\n.cfi_startproc\n" SWITCH_STACKS
    ".cfi_endproc\n.size call_on_wrongly, .-call_on_wrongly\n"
    ".globl call_on_torn\n.type call_on_torn, @function\ncall_on_torn:\n.cfi_startproc\n"
    ".cfi_escape 0x0f, 3, 0x76, 0x78, 6\n" RBP_AT_RBP SWITCH_STACKS_AND_RBP /* CFA = *(rbp - 8) */
    ".cfi_endproc\n.size call_on_torn, .-call_on_torn\n"
    ".globl call_on_torn_oddly\n.type call_on_torn_oddly, @function\ncall_on_torn_oddly:\n.cfi_startproc\n"
    ".cfi_escape 0x0f, 4, 0x76, 0x78, 6, 0x96\n" RBP_AT_RBP SWITCH_STACKS_AND_RBP /* and a no-op */
    ".cfi_endproc\n.size call_on_torn_oddly, .-call_on_torn_oddly\n");

static __attribute__((noinline)) void make(int depth)
{
    char room[40 * 8];
    __asm__ volatile("" ::"r"(room) : "memory");
    keep = malloc(size);
    free(keep);
    made++;
    if (depth)
        make(depth - 1);
    __asm__ volatile("" ::"r"(room) : "memory");
}

static void routine(void)
{
    make(DEPTH);
}

static void give_back(char *stack)
{
    if (mmap(stack, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
        MAP_FAILED)
        exit(1);
}

/* Takes the coroutine stack away. */
static void take(char *stack, const char *how)
{
    static int empty_file = -1;
    if (!strcmp(how, "protected") && mprotect(stack, STACK, PROT_NONE))
        exit(1);
    if (!strcmp(how, "unmapped") && munmap(stack, STACK))
        exit(1);
    if (!strcmp(how, "upper") && mprotect(stack + STACK / 2, STACK / 2, PROT_NONE))
        exit(1);
    if (!strcmp(how, "lower") && mprotect(stack, STACK / 2, PROT_NONE))
        exit(1);
    if (!strcmp(how, "overwritten"))
        memset(stack, 0x5a, STACK);
    if (strcmp(how, "replaced") != 0)
        return;
    if (empty_file < 0)
        empty_file = memfd_create("empty", MFD_CLOEXEC);
    if (mmap(stack, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, empty_file, 0) == MAP_FAILED)
        exit(1);
}

static void strike(int sig)
{
    (void)sig;
    make(DEPTH);
}

/* Leaves rbp alone, so that the rbp of its caller is in the signal's frame only. */
static __attribute__((noinline)) void strike_or_make(char *stack, int which, long thread)
{
    if (which) {
        take(stack, "protected");
        make(DEPTH);
        return;
    }
#if defined(__x86_64__)
    long result = SYS_tkill;
    __asm__ volatile("syscall" : "+a"(result) : "D"(thread), "S"(SIGUSR1) : "rcx", "r11", "memory");
#endif
}

/* Its frame is found by rbp. */
static __attribute__((noinline)) void interrupted(char *stack, size_t bytes)
{
    volatile char *room = alloca(bytes);
    room[0] = 0;
    long thread = syscall(SYS_gettid);
    for (volatile int which = 0; which < 2; which++) /* one call, of one return address */
        strike_or_make(stack, which, thread);
    __asm__ volatile("" ::"r"(room) : "memory");
}

static void use_handler(char *stack)
{
    stack_t alternate = {.ss_sp = stack, .ss_size = STACK}, none = {.ss_flags = SS_DISABLE};
    struct sigaction act = {.sa_handler = strike, .sa_flags = SA_ONSTACK};
    if (sigaction(SIGUSR1, &act, NULL))
        exit(1);
    for (int i = 0; i < ROUNDS; i++) {
        if (sigaltstack(&alternate, NULL))
            exit(1);
        interrupted(stack, size);
        if (sigaltstack(&none, NULL))
            exit(1);
        give_back(stack);
    }
}

static void protect_page(char *page, int how)
{
    if (mprotect(page, PAGE, how))
        exit(1);
}

/* Calls routine() on the stack, by an unwind rule that leads into the page above it, which is PROT_NONE meanwhile. */
static void use_below_guard(char *stack, int round, bool is_torn)
{
    char *guard = stack + STACK, *torn = guard + PAGE - 4;
    protect_page(guard, PROT_NONE);
    /* A later mprotect() that does not concern this stack must not end the checks of its pages. */
    if (!mprotect((void *)(1ull << 47), PAGE, PROT_NONE))
        exit(1);
    if (!is_torn)
        call_on_wrongly(guard, routine);
    else if (round % 2)
        call_on_torn_oddly(guard, routine, torn);
    else
        call_on_torn(guard, routine, torn);
    protect_page(guard, PROT_READ | PROT_WRITE);
}

static void *use(void *how)
{
    char room[STACK + 2 * PAGE], *stack = (char *)(((uintptr_t)room + PAGE - 1) & ~(uintptr_t)(PAGE - 1));
    if (!strcmp(how, "handler")) {
        use_handler(stack);
        return NULL;
    }
    for (int i = 0; i < ROUNDS; i++) {
        if (!strcmp(how, "guarded") || !strcmp(how, "torn"))
            use_below_guard(stack, i, !strcmp(how, "torn"));
        else
            call_on(stack + STACK, routine);
        take(stack, how);
        make(DEPTH);
        if (!strcmp(how, "upper"))
            call_on(stack + STACK / 2, routine);
        if (!strcmp(how, "lower"))
            call_on(stack + STACK, routine);
        make(DEPTH);
        give_back(stack);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t id;
    if (argc < 4)
        return 2;
    size = (size_t)atol(argv[3]);
    if (!strcmp(argv[1], "main"))
        use(argv[2]);
    else if (pthread_create(&id, NULL, use, argv[2]) || pthread_join(id, NULL))
        return 1;
    printf("made %lu\n", made);
    return 0;
}
