/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program whose stack changes between two allocations in all ways that a memory of the last walk could miss: frames
 * of a size known only at run time, recursion to another depth, longjmp over frames, contexts whose stacks lie
 * elsewhere and in a frame of main(), a signal handler on a stack of its own, and a library in whose place another one
 * is loaded, with the same addresses and other frames.
 *
 *     stack_changes TIMES LIBRARY OTHER_LIBRARY      exits with 3 if the other library lies at another address
 */
#include <alloca.h>
#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define STACK_BYTES (64 << 10)
#define NOINLINE    __attribute__((noinline))

static uint64_t state = 0x9e3779b97f4a7c15u;
static jmp_buf out;
static ucontext_t outside, contexts[2];
static char elsewhere[STACK_BYTES] __attribute__((aligned(4096)));
static void *plugin;
static void (*in_plugin)(void (*)(void));

static unsigned draw(unsigned below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)((state >> 32) * below >> 32);
}

static NOINLINE void use(void *p)
{
    __asm__ volatile("" : : "r"(p) : "memory");
}

static NOINLINE void allocate(void)
{
    void *p = malloc(1 + draw(99));
    use(p);
    free(p);
}

static NOINLINE void recurse(unsigned depth, void (*last)(void))
{
    char room[8];
    use(room);
    if (depth)
        recurse(depth - 1, last);
    else
        last();
    if (!draw(4))
        allocate();
    use(room);
}

static NOINLINE void grow(void (*last)(void))
{
    char *room = alloca(16 * (1 + draw(40)));
    use(room);
    recurse(draw(3), last);
    use(room);
}

static NOINLINE void leave(void)
{
    allocate();
    longjmp(out, 1);
}

static NOINLINE void jump(void)
{
    if (!setjmp(out))
        recurse(draw(12), leave);
    allocate();
}

/* Goes on where it was left, or begins anew. */
static void run_context(unsigned which)
{
    for (;;) {
        recurse(draw(9), allocate);
        swapcontext(&contexts[which], &outside);
        grow(allocate);
    }
}

static NOINLINE void change_context(void)
{
    swapcontext(&outside, &contexts[draw(2)]);
    allocate();
}

static void on_signal(int number)
{
    (void)number;
    recurse(draw(9), allocate);
}

static NOINLINE void interrupt(void)
{
    raise(SIGUSR1);
    allocate();
}

static NOINLINE void call_plugin(void)
{
    in_plugin(allocate);
}

/* Returns whether the library lies where the one before lay. */
static int exchange(const char *library)
{
    void (*before)(void (*)(void)) = in_plugin;
    if (plugin)
        dlclose(plugin);
    plugin = dlopen(library, RTLD_NOW);
    in_plugin = plugin ? (void (*)(void (*)(void)))dlsym(plugin, "call") : NULL;
    return in_plugin && (!before || before == in_plugin);
}

static void begin_context(unsigned which, void *stack)
{
    getcontext(&contexts[which]);
    contexts[which].uc_stack.ss_sp = stack;
    contexts[which].uc_stack.ss_size = STACK_BYTES;
    makecontext(&contexts[which], (void (*)(void))run_context, 1, which);
}

int main(int argc, char **argv)
{
    static void (*const changes[])(void) = {allocate, jump, change_context, interrupt, call_plugin};
    static char handler_stack[STACK_BYTES];
    char within[STACK_BYTES] __attribute__((aligned(16)));
    if (argc < 4)
        return 2;
    sigaltstack(&(stack_t){.ss_sp = handler_stack, .ss_size = sizeof(handler_stack)}, NULL);
    sigaction(SIGUSR1, &(struct sigaction){.sa_handler = on_signal, .sa_flags = SA_ONSTACK}, NULL);
    begin_context(0, elsewhere);
    begin_context(1, within);
    for (int n = atoi(argv[1]); n > 0; n--) {
        if (n % 16 == 0 && !exchange(argv[2 + n / 16 % 2]))
            return 3;
        void (*change)(void) = changes[draw(in_plugin ? 5 : 4)];
        if (draw(2))
            recurse(draw(20), change);
        else
            grow(change);
    }
    return 0;
}
