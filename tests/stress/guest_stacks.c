/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Blocks of BYTES made where the words above the stack pointer are not what unwind tables say.
 *
 *     guest_stacks HOW BYTES
 *
 * tail: malloc is the first function on a stack that ends with a page which may not be touched. stale: a second,
 * smaller stack lies where a larger one was, whose upper part is unmapped by now. inaccessible, unmapped, impossible: a
 * handler on an alternate stack makes the block, after the stack pointer went wild: into a page that may not be
 * touched, to where nothing is, to what is no address. The handler says that it ran, and ends the program with 42.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE   ((size_t)sysconf(_SC_PAGESIZE))
#define CAUGHT 42

static size_t size;
static void *volatile keep;

/* Calls function(argument) on the stack that ends at top. Its unwind rule knows nothing of that: it counts from rsp. */
void call_on(void *top, void *(*function)(size_t), size_t argument);
void go_wild(void *stack_pointer);
__asm__(".text\n.globl call_on\n.type call_on, @function\ncall_on:\n.cfi_startproc\n"
#if defined(__x86_64__)
        "push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_offset %rbx, -16\n"
        "mov %rsp, %rbx\nmov %rdi, %rsp\nmov %rdx, %rdi\ncall *%rsi\nmov %rbx, %rsp\n"
        "pop %rbx\n.cfi_adjust_cfa_offset -8\nret\n"
#else
        "brk #0\n"
#endif
        ".cfi_endproc\n.size call_on, .-call_on\n"
        ".globl go_wild\n.type go_wild, @function\ngo_wild:\n.cfi_startproc\n"
#if defined(__x86_64__)
        "mov %rdi, %rsp\npush $1\nud2\n"
#else
        "brk #0\n"
#endif
        ".cfi_endproc\n.size go_wild, .-go_wild\n");

static char *pages(size_t count, int protection)
{
    char *p = mmap(NULL, count * PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        exit(1);
    return p;
}

static void tail(void)
{
    char *stack = pages(17, PROT_READ | PROT_WRITE), *top = stack + 16 * PAGE;
    if (mprotect(top, PAGE, PROT_NONE))
        exit(1);
    call_on(top, malloc, size);
}

__attribute__((noinline)) static void *use_little(size_t bytes)
{
    keep = malloc(bytes);
    free(keep);
    return NULL;
}

__attribute__((noinline)) static void *use_much(size_t bytes)
{
    char local[6000];
    __asm__ volatile("" ::"r"(local) : "memory");
    keep = malloc(bytes);
    free(keep);
    __asm__ volatile("" ::"r"(local) : "memory");
    return NULL;
}

static void stale(void)
{
    char *stack = pages(16, PROT_READ | PROT_WRITE);
    call_on(stack + 3 * PAGE, use_much,
            size); /* malloc is called in page 1, and the walk goes on in page 2 */
    if (munmap(stack + 2 * PAGE, 14 * PAGE))
        exit(1);
    call_on(stack + 2 * PAGE, use_little, size);
}

static void caught(int sig)
{
    (void)sig;
    static const char line[] = "caught\n";
    void *volatile p = malloc(size);
    ssize_t n = write(1, line, sizeof(line) - 1);
    free(p);
    _exit(n == sizeof(line) - 1 ? CAUGHT : 1);
}

static void crash(const char *how)
{
    stack_t stack = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
    struct sigaction act = {.sa_handler = caught, .sa_flags = SA_ONSTACK};
    if (!stack.ss_sp || sigaltstack(&stack, NULL) || sigaction(SIGSEGV, &act, NULL) ||
        sigaction(SIGBUS, &act, NULL))
        exit(1);
    char *wild = pages(3, PROT_NONE) + PAGE + PAGE / 2;
    if (!strcmp(how, "unmapped"))
        munmap(wild - PAGE - PAGE / 2, 3 * PAGE);
    if (!strcmp(how, "impossible"))
        wild = (char *)((uintptr_t)1 << 62);
    go_wild(wild);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    const char *how = argv[1];
    size = (size_t)atol(argv[2]);
    if (!strcmp(how, "tail"))
        tail();
    else if (!strcmp(how, "stale"))
        stale();
    else
        crash(how);
    puts("fine");
    return 0;
}
