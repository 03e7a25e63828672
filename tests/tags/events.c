/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes events as its first argument says; C and C++. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "events.h"

#include <dlfcn.h>
#include <float.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 4
/* In a ring without a reader there is room for these, and not for FULL. */
#define TICKS    10000
#define FULL     400000
#define CHILDREN 40
#define OF_CHILD 1000

ALLIUM_EVENT(shop, odd, ALLIUM_U32(number));

static unsigned evaluated;

static unsigned char evaluate(void)
{
    evaluated++;
    return 7;
}

static void limits(void)
{
    allium_emit(shop, limits, .u8 = 0, .text = "");
    allium_emit(shop, limits, .u8 = 255, .i8 = 127, .u16 = 65535, .i16 = 32767, .u32 = 4294967295u,
                .i32 = 2147483647, .u64 = 18446744073709551615ul, .i64 = 9223372036854775807l, .f32 = FLT_MAX,
                .f64 = DBL_MAX, .hex = 18446744073709551615ul, .ptr = &evaluated,
                .size = 18446744073709551615ul, .kind = 2147483647, .text = "12345");
    allium_emit(shop, limits, .i8 = -128, .i16 = -32768, .i32 = -2147483647 - 1,
                .i64 = -9223372036854775807l - 1, .f32 = -FLT_MIN, .f64 = 4.9406564584124654e-324,
                .kind = -2147483647 - 1, .text = "123456");
    allium_emit(shop, limits, .f64 = -0.1, .kind = 1, .text = "1234\xc3\xa4");
    allium_emit(shop, limits, .kind = 5, .text = "123\xc3\xa4");
    allium_emit(shop, empty);
    allium_emit(stream, event, .clock = 1, .event = 2, .stream = 3, .string = 4, .variant = 5,
                .timestamp = 6);
    char text[4001];
    memset(text, 'x', 4000);
    text[4000] = '\0';
    allium_emit(shop, large, .head = text, .n = 9, .tail = "end");
    allium_begin(shop, parse, .bytes = 77);
    allium_end(shop, parse);
    allium_log(shop, "%d and %s", 12, "text");
    allium_log(shop, "%s", text);
    allium_log(shop, "%s\xc3\xa4", text + 4000 - 255);
    allium_emit(shop, noisy, .n = evaluate());
    allium_emit(shop, odd, .number = 5);
    other_events();
    printf("%u %lx\n", evaluated, (unsigned long)&evaluated);
}

static void *count(void *arg)
{
    for (unsigned long i = 0; i < TICKS; i++)
        allium_emit(shop, tick, .thread = (unsigned)(unsigned long)arg, .count = i);
    return NULL;
}

static unsigned signals;

static void on_signal(int number)
{
    (void)number;
    allium_emit(shop, noisy, .n = (unsigned char)__atomic_add_fetch(&signals, 1, __ATOMIC_SEQ_CST));
}

/* Threads, a signal in between, and a fork child that does the same. */
static void threads(void)
{
    pthread_t t[THREADS];
    struct sigaction action;
    memset(&action, 0, sizeof(action));
    action.sa_handler = on_signal;
    sigaction(SIGUSR1, &action, NULL);
    for (unsigned long i = 0; i < THREADS; i++)
        pthread_create(&t[i], NULL, count, (void *)i);
    for (int i = 0; i < 200; i++)
        pthread_kill(t[i % THREADS], SIGUSR1);
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    printf("%d %u\n", (int)getpid(), signals);
    fflush(stdout);
}

/* Calls a library, unloads it, and loads it again. */
static void reload(const char *library)
{
    for (int i = 0; i < 3; i++) {
        void *loaded = dlopen(library, RTLD_NOW);
        void (*run)(void);
        void *found = loaded ? dlsym(loaded, "other_events") : NULL;
        if (!found)
            exit(1);
        memcpy(&run, &found, sizeof(run));
        run();
        dlclose(loaded);
    }
}

/* An event for each line that is read, and one in a fork child for "fork". */
static void follow_input(void)
{
    char line[64];
    while (fgets(line, sizeof(line), stdin)) {
        if (!strcmp(line, "fork\n")) {
            pid_t child = fork();
            if (!child)
                continue;
            waitpid(child, NULL, 0);
            return;
        }
        allium_emit(shop, tick, .count = strtoul(line, NULL, 10));
        allium_emit(shop, noisy, .n = evaluate());
        puts("done");
        fflush(stdout);
    }
}

/* Enters seccomp, in which a system call that is not write(), exit() or sigreturn() is fatal, and writes on. With
 * "late" the first event comes behind that. */
static void sealed(bool late)
{
    const unsigned long n = 3 * TICKS;
    unsigned long i = 0;
    for (; i < n && !late; i++)
        allium_emit(shop, tick, .count = i);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
        exit(77);
    for (unsigned long k = 0; k < n; k++, i++)
        allium_emit(shop, tick, .count = i);
    allium_log(shop, "sealed");
    syscall(SYS_exit, 0);
}

/* Lives for longer than a reader waits until it asks whether the program has ended. */
static void slow(void)
{
    for (unsigned long i = 0; i < 4; i++) {
        allium_emit(shop, tick, .count = i);
        usleep(150000);
    }
}

/* Puts the thread, or the child, onto one CPU. */
static void pin(bool last)
{
    cpu_set_t all, one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof(all), &all))
        return;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all) && (last || !CPU_COUNT(&one))) {
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
        }
    sched_setaffinity(0, sizeof(one), &one);
}

static unsigned long children; /* not in a register, which a child would change */

static int be_child(void *arg)
{
    pin(true);
    for (unsigned long i = 0; i < OF_CHILD; i++)
        allium_emit(shop, tick, .thread = 9, .count = children * OF_CHILD + i);
    _exit(arg ? 1 : 0);
}

static void begin_child(void)
{
    be_child(NULL);
}

/* Returns new thread-local storage, as libc makes it for its threads, but for what the kernel is told of. */
static void *new_storage(void)
{
    void *(*make)(void *), *found = dlsym(RTLD_DEFAULT, "_dl_allocate_tls");
    memcpy(&make, &found, sizeof(make));
    void **storage = found ? (void **)make(NULL) : NULL, **own = (void **)__builtin_thread_pointer();
    if (!storage)
        exit(77);
    storage[0] = storage[2] = storage;
    storage[5] = own[5]; /* the guards of stacks and of pointers */
    storage[6] = own[6];
    return storage;
}

/* Makes a child that has the memory of this process, in one of five ways; in four of them its thread-local storage. */
static pid_t make_child(unsigned long way)
{
    static __attribute__((aligned(16))) char stack[64 << 10];
    const unsigned long flags = CLONE_VM | CLONE_VFORK;
    char *top = stack + sizeof(stack) - 16;
    void (*begin)(void) = begin_child;
    memcpy(top, &begin, sizeof(begin)); /* where the child returns to from syscall() */
    unsigned long args[8] = {flags, 0, 0, 0, SIGCHLD, (unsigned long)stack, sizeof(stack) - 16, 0};
    if (way % 5 == 1)
        return clone(be_child, top, (int)flags | SIGCHLD, NULL);
    if (way % 5 == 2)
        return clone(be_child, top, (int)flags | CLONE_SETTLS | SIGCHLD, NULL, NULL, new_storage());
    if (way % 5 == 3)
        return (pid_t)syscall(SYS_clone, flags | SIGCHLD, top, NULL, NULL, 0ul);
    if (way % 5 == 4)
        return (pid_t)syscall(SYS_clone3, args, sizeof(args));
    const pid_t child = vfork();
    if (!child)
        begin_child();
    return child;
}

/* Children write, on another CPU than their parent, where threads of the parent write, too. */
static void *make_children(void *arg)
{
    (void)arg;
    pin(false);
    for (; children < CHILDREN; children++) {
        waitpid(make_child(children), NULL, 0);
        allium_emit(shop, tick, .thread = 8, .count = children);
    }
    return NULL;
}

static void *count_slowly(void *arg)
{
    pin(false);
    for (unsigned long i = 0; i < TICKS; i++) {
        allium_emit(shop, tick, .thread = (unsigned)(unsigned long)arg, .count = i);
        if (i % 100 == 0)
            usleep(20);
    }
    return NULL;
}

static void vforks(void)
{
    pthread_t t[THREADS + 1];
    for (unsigned long i = 0; i <= THREADS; i++)
        pthread_create(&t[i], NULL, i < THREADS ? count_slowly : make_children, (void *)i);
    for (int i = 0; i <= THREADS; i++)
        pthread_join(t[i], NULL);
}

/* Forbids itself to read the time stamp counter, and writes on. */
static void frozen(void)
{
    for (unsigned long i = 0; i < 2 * TICKS; i++) {
        if (i == TICKS && prctl(PR_SET_TSC, PR_TSC_SIGSEGV))
            exit(77);
        allium_emit(shop, tick, .count = i);
    }
}

/* Asks for snapshots: twice at once, and after a second in seccomp. */
static void ask(void)
{
    pin(false); /* in seccomp no memory is made ready for another CPU's events */
    for (unsigned long i = 0; i < 100; i++)
        allium_emit(shop, tick, .count = i);
    ALLIUM_SNAPSHOT("the queue is full/now");
    ALLIUM_SNAPSHOT("again");
    usleep(1300000);
    allium_emit(shop, tick, .count = 7777);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
        exit(77);
    ALLIUM_SNAPSHOT("sealed");
    syscall(SYS_exit, 0);
}

/* Asks for a snapshot before anything else is written, in seccomp. */
static void ask_sealed(void)
{
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
        exit(77);
    ALLIUM_SNAPSHOT("sealed");
    syscall(SYS_exit, 0);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "slow"))
        slow();
    if (!strcmp(what, "limits"))
        limits();
    if (!strcmp(what, "threads"))
        threads();
    if (!strcmp(what, "forks")) {
        const pid_t child = fork();
        threads();
        if (child)
            waitpid(child, NULL, 0);
    }
    for (unsigned long i = 0; !strcmp(what, "full") && i < FULL; i++)
        allium_emit(shop, tick, .count = i);
    if (!strcmp(what, "reload") && argc > 2)
        reload(argv[2]);
    if (!strcmp(what, "sealed") || !strcmp(what, "late"))
        sealed(!strcmp(what, "late"));
    if (!strcmp(what, "vforks"))
        vforks();
    if (!strcmp(what, "frozen"))
        frozen();
    if (!strcmp(what, "ask"))
        ask();
    if (!strcmp(what, "ask sealed"))
        ask_sealed();
    if (!strcmp(what, "input"))
        follow_input();
    if (argc > 2 && !strcmp(argv[argc - 1], "kill"))
        raise(SIGKILL);
    return 0;
}
