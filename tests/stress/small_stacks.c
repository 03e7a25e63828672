/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Allocations on stacks with next to no room: coroutines on 8 KiB (makecontext, and a switch by hand), a thread with
 * the least stack there is, alternate signal stacks. Below each lies a page that may not be touched.
 *
 *     small_stacks HOW COUNT [BYTES]
 *
 * HOW: context, switch, thread, sigaltstack. Says how many blocks of 4321 bytes it made.
 */
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

static void *volatile keep;
static long count, made;

static char *new_stack(size_t bytes)
{
    char *p = mmap(NULL, bytes + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED || mprotect(p, 4096, PROT_NONE))
        exit(1);
    return p + 4096;
}

static __attribute__((noinline)) void make(void)
{
    void *p = malloc(4321);
    keep = p;
    p = realloc(p, 4321);
    free(p);
    made += 2;
}

static ucontext_t outside, inside;

static void run_context(void)
{
    for (long i = 0; i < count; i++) {
        make();
        swapcontext(&inside, &outside);
    }
}

static void with_context(size_t bytes)
{
    getcontext(&inside);
    inside.uc_stack.ss_sp = new_stack(bytes);
    inside.uc_stack.ss_size = bytes;
    inside.uc_link = &outside;
    makecontext(&inside, run_context, 0);
    for (long i = 0; i < count + 1; i++)
        swapcontext(&outside, &inside);
}

/* Saves what a function must keep, leaves the stack pointer in *from and goes on with the one in *to. */
void switch_to(void **from, void **to);
__asm__(".text\n.globl switch_to\n.type switch_to, @function\nswitch_to:\n"
#if defined(__x86_64__)
        "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
        "mov %rsp, (%rdi)\nmov (%rsi), %rsp\n"
        "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n"
#else
        "brk #0\n"
#endif
        ".size switch_to, .-switch_to\n");

static void *main_sp, *routine_sp;

static void run_routine(void)
{
    for (;;) {
        make();
        switch_to(&routine_sp, &main_sp);
    }
}

static void with_switch(size_t bytes)
{
    void **top = (void **)(new_stack(bytes) + bytes);
    *--top = NULL; /* what run_routine would return to */
    *--top = (void *)(uintptr_t)run_routine;
    for (int i = 0; i < 6; i++)
        *--top = (void *)0xdeadbeef; /* rbp among them: no chain of frames to be followed */
    routine_sp = top;
    for (long i = 0; i < count; i++)
        switch_to(&main_sp, &routine_sp);
}

static void *run_thread(void *arg)
{
    for (long i = 0; i < count; i++)
        make();
    return arg;
}

static void with_thread(size_t bytes)
{
    pthread_attr_t attr;
    pthread_t id;
    pthread_attr_init(&attr);
    if (pthread_attr_setstacksize(&attr, bytes) || pthread_create(&id, &attr, run_thread, NULL))
        exit(1);
    pthread_join(id, NULL);
}

static void strike(int sig)
{
    (void)sig;
    make();
}

static void with_sigaltstack(size_t bytes)
{
    stack_t stack = {.ss_sp = new_stack(bytes), .ss_size = bytes};
    struct sigaction act = {.sa_handler = strike, .sa_flags = SA_ONSTACK};
    if (sigaltstack(&stack, NULL) || sigaction(SIGUSR1, &act, NULL))
        exit(1);
    for (long i = 0; i < count; i++)
        raise(SIGUSR1); /* not within malloc */
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    const char *how = argv[1];
    count = atol(argv[2]);
    size_t bytes = argc > 3 ? (size_t)atol(argv[3]) : 8192;
    setvbuf(stdout, NULL, _IONBF, 0);
    if (!strcmp(how, "context"))
        with_context(bytes);
    else if (!strcmp(how, "switch"))
        with_switch(bytes);
    else if (!strcmp(how, "thread"))
        with_thread(bytes);
    else
        with_sigaltstack(bytes);
    printf("made %ld\n", made);
    return 0;
}
