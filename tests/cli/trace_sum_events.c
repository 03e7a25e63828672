/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes events of its own in four threads, in signal handlers that interrupt these, in a fork child, and after it has
 * entered seccomp; counts them, and prints for each status the number of events and the sum of prices. With the
 * argument "many": events with 6,000 different ids, in one thread. With "steps": for each number N in a line of its
 * input, N events in each of three threads, one after the other, and then a line.
 */
#include <allium/event.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define KINDS(X) X(BOOK, 1) X(TOY, -2)
ALLIUM_EVENT(shop, order_done, ALLIUM_U64(id), ALLIUM_I32(status), ALLIUM_F64(price),
             ALLIUM_ENUM(kind, KINDS), ALLIUM_STR(customer, 60), ALLIUM_F32(weight), ALLIUM_I8(change));

#define STATUSES 10
static uint64_t *counts; /* by status + 5, shared with the child */

/* Prices are multiples of 1/4: their sums are exact in any order. */
static void order(uint64_t id, int status)
{
    allium_emit(shop, order_done, .id = id, .status = status, .price = (double)(id % 100) / 4 - 3,
                .kind = id % 3 ? 1 : -2, .change = (int8_t)(id % 7) - 3, .weight = 0.5f,
                .customer = id % 5 ? "Ann" : "a name that is longer than a key\xc3\xa4\xc3\xa4 has room for");
    __atomic_fetch_add(&counts[status + 5], 1, __ATOMIC_RELAXED);
}

static void *work(void *arg)
{
    for (uint64_t i = 0; i < 20000; i++)
        order(i, (int)(uintptr_t)arg - 2);
    return NULL;
}

static void handler(int sig)
{
    (void)sig;
    order(8, 3);
}

static long steps;

static void *take_steps(void *arg)
{
    for (uint64_t i = 0; i < (uint64_t)steps; i++)
        order(i, (int)(uintptr_t)arg);
    return NULL;
}

static void follow_steps(void)
{
    char line[40];
    pthread_t thread;
    while (fgets(line, sizeof(line), stdin)) {
        steps = atol(line);
        for (uintptr_t i = 0; i < 3; i++) {
            pthread_create(&thread, NULL, take_steps, (void *)i);
            pthread_join(thread, NULL);
        }
        if (write(STDOUT_FILENO, "done\n", 5) != 5)
            _exit(1);
    }
}

/* Calls that the library must not make from now on end the process. */
static void enter_seccomp(void)
{
    static const unsigned refused[] = {SYS_mprotect, SYS_madvise, SYS_mmap,
                                       SYS_openat,   SYS_gettid,  SYS_getpid};
    enum { N = sizeof(refused) / sizeof(*refused) };
    struct sock_filter code[2 * N + 2] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    for (unsigned i = 0; i < N; i++) {
        code[2 * i + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, refused[i], 0, 1);
        code[2 * i + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    }
    code[2 * N + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_fprog program = {2 * N + 2, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        abort();
}

static void say(void)
{
    for (int i = 0; i < STATUSES; i++) {
        char line[80];
        const int n = snprintf(line, sizeof(line), "%d %llu\n", i - 5, (unsigned long long)counts[i]);
        if (counts[i] && write(STDOUT_FILENO, line, (size_t)n) != n)
            _exit(1);
    }
}

int main(int argc, char **argv)
{
    pthread_t threads[4];
    const struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
    counts = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (argc > 1 && !strcmp(argv[1], "many")) {
        for (uint64_t i = 0; i < 12000; i++)
            order(i % 6000, 0);
        say();
        return 0;
    }
    if (argc > 1 && !strcmp(argv[1], "steps")) {
        follow_steps();
        return 0;
    }
    signal(SIGALRM, handler);
    setitimer(ITIMER_REAL, &often, NULL);
    for (uintptr_t i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (struct timespec a_while = {0, 1000000}; !counts[3 + 5];)
        nanosleep(&a_while, NULL);
    setitimer(ITIMER_REAL, &never, NULL);
    if (!fork()) {
        for (uint64_t i = 0; i < 1000; i++)
            order(i, -4);
        raise(SIGKILL);
    }
    wait(NULL);
    const pid_t self = getpid();
    enter_seccomp();
    for (uint64_t i = 0; i < 1000; i++)
        order(i, 4);
    say();
    kill(self, SIGKILL);
}
