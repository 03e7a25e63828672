/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * traced WAY N [MORE]: a program whose allocations are traced, and counted by the allocator below (counted_alloc.c).
 * Each image has a slot there; a new one takes the next.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 3
#define STACK   (64u << 10)

static volatile int stop, *slot;
static int cpus;

static void pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu % cpus, &set);
    sched_setaffinity(0, sizeof(set), &set);
}

static void calls(int n)
{
    for (int i = 0; i < n; i++)
        free(malloc(48));
}

static void *write_events(void *arg)
{
    if (arg)
        pin(0);
    while (!stop)
        calls(16);
    return NULL;
}

static pthread_t threads[THREADS];

static void begin_threads(bool pinned)
{
    for (int k = 0; k < THREADS; k++)
        pthread_create(&threads[k], NULL, write_events, pinned ? threads : NULL);
}

static void end_threads(void)
{
    stop = 1;
    for (int k = 0; k < THREADS; k++)
        pthread_join(threads[k], NULL);
}

/* ---- children ---- */

static int next_slot = 1;

/* In a new image. */
static void become(int n)
{
    *slot = n;
}

static void reap(pid_t child)
{
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child || status)
        abort();
}

/* What a child that shares the memory does: on another CPU than the parent's, whose number it sees. */
static int borrowed(void *arg)
{
    pin(1);
    calls(200);
    _exit(arg ? 0 : 1);
}

static char stack[STACK] __attribute__((aligned(64)));

static int nested(void *arg)
{
    const pid_t child = vfork();
    if (!child)
        borrowed(arg);
    calls(100);
    reap(child);
    return borrowed(arg);
}

static void begin_borrowed(void)
{
    borrowed(stack);
}

/* clone(2) by syscall(): the child returns to the function whose address is on its stack. */
static pid_t clone_by_syscall(void)
{
    char *top = stack + STACK - 16;
    void (*begin)(void) = begin_borrowed;
    memcpy(top, &begin, sizeof(begin));
    return (pid_t)syscall(SYS_clone, CLONE_VM | CLONE_VFORK | SIGCHLD, top, NULL, NULL, 0);
}

static void by_vfork(int n)
{
    begin_threads(true);
    pin(0);
    for (int k = 0; k < n; k++) {
        pid_t child = vfork();
        if (!child)
            borrowed(stack);
        reap(child);
        reap(clone(borrowed, stack + STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, stack));
        reap(clone_by_syscall());
        reap(clone(nested, stack + STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, stack));
        calls(200);
    }
    end_threads();
}

static pid_t copy(int k)
{
    return k % 3 == 0   ? fork()
           : k % 3 == 1 ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)
                        : (pid_t)syscall(SYS_fork);
}

static void by_fork(int n)
{
    begin_threads(false);
    for (int k = 0; k < n; k++) {
        const int mine = next_slot++;
        const pid_t child = copy(k);
        if (!child) {
            become(mine);
            calls(500);
            _exit(0);
        }
        reap(child);
        calls(100);
    }
    end_threads();
}

/* ---- signals ---- */

static volatile int forks_left;

static void on_signal(int number)
{
    calls(3);
    (void)number;
}

/* Children come from a handler that interrupts the tracer at any instruction, and go on with what it interrupted. */
static void on_signal_fork(int number)
{
    calls(3);
    if (forks_left <= 0)
        return;
    const int mine = next_slot++;
    forks_left--;
    const pid_t child = fork();
    if (child) {
        reap(child);
        return;
    }
    stop = 1;
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
    become(mine);
    calls(2);
    (void)number;
}

static void storm(void (*handler)(int), int us)
{
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = handler, .sa_flags = SA_RESTART}, NULL);
    setitimer(ITIMER_REAL, &(struct itimerval){{0, us}, {0, us}}, NULL);
}

/* Fork children whose first events come from a storm of signals, while their rings are made. */
static void by_fork_storm(int n)
{
    calls(1);
    for (int k = 0; k < n; k++) {
        const int mine = next_slot++;
        const pid_t child = fork();
        if (!child) {
            become(mine);
            storm(on_signal, 20);
            calls(300);
            storm(SIG_IGN, 0);
            calls(1);
            _exit(0);
        }
        reap(child);
    }
}

static void by_signals(int n)
{
    begin_threads(false);
    storm(on_signal, 40);
    calls(n);
    storm(SIG_IGN, 0);
    end_threads();
}

static void by_forking_handler(int n)
{
    forks_left = n;
    storm(on_signal_fork, 300);
    while (!stop && forks_left)
        calls(10);
    storm(SIG_IGN, 0);
    calls(100);
    _exit(0);
}

/* ---- what else happens to a writer ---- */

static volatile pid_t movable[THREADS];

static void *write_movable(void *arg)
{
    movable[(uintptr_t)arg] = (pid_t)syscall(SYS_gettid);
    return write_events(NULL);
}

static void *move(void *arg)
{
    for (unsigned k = 0; !stop; k++) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(k / THREADS % (unsigned)cpus, &set);
        if (movable[k % THREADS])
            sched_setaffinity(movable[k % THREADS], sizeof(set), &set);
        usleep(20);
    }
    return arg;
}

/* Another thread moves the writers, while children that share the memory write in the other way. */
static void by_moving(int n)
{
    pthread_t mover;
    sigset_t alarm;
    for (uintptr_t k = 0; k < THREADS; k++)
        pthread_create(&threads[k], NULL, write_movable, (void *)k);
    pthread_create(&mover, NULL, move, NULL);
    storm(on_signal, 40);
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm, NULL); /* the others get it, which do not wait for children */
    for (int k = 0; k < n; k++) {
        reap(clone(borrowed, stack + STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, stack));
        calls(200);
    }
    storm(SIG_IGN, 0);
    end_threads();
    pthread_join(mover, NULL);
}

static volatile pid_t victim;

static int write_until_stop(void *arg)
{
    victim = (pid_t)syscall(SYS_getpid);
    while (!stop)
        calls(1);
    _exit(arg ? 0 : 1);
}

/* Stops the child wherever it is, while others go round the ring that they share. */
static void *stop_victim(void *arg)
{
    const int n = *(int *)arg;
    while (!victim)
        usleep(100);
    for (int k = 0; k < n; k++) {
        kill(victim, SIGSTOP);
        for (int i = 0; i < 20; i++)
            calls(100);
        kill(victim, SIGCONT);
        usleep((unsigned)(k * 7 % 50));
    }
    stop = 1;
    return NULL;
}

static void by_stopping(int n)
{
    pthread_t stopper;
    begin_threads(false);
    pthread_create(&stopper, NULL, stop_victim, &n);
    reap(clone(write_until_stop, stack + STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, stack));
    pthread_join(stopper, NULL);
    end_threads();
}

static void by_strict(int n)
{
    calls(1000);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
        _exit(3);
    calls(n);
    syscall(SYS_exit, 0);
}

/* Loads a library, calls it and unloads it, again and again, while threads write. */
static void by_dlclose(int n)
{
    begin_threads(false);
    for (int k = 0; k < n; k++) {
        void *library = dlopen(getenv("TWIN"), RTLD_NOW),
             *found = library ? dlsym(library, "twin_make") : NULL;
        void *(*make)(size_t);
        memcpy(&make, &found, sizeof(make));
        if (!found)
            abort();
        free(make(48));
        dlclose(library);
    }
    end_threads();
}

/* As a debugger does that goes through a program instruction by instruction. */
static void by_steps(int n)
{
    int status;
    calls(1);
    const pid_t child = fork();
    if (!child) {
        become(1);
        calls(1); /* makes its rings */
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) || raise(SIGSTOP))
            _exit(1);
        calls(n);
        _exit(0);
    }
    while (waitpid(child, &status, 0) == child && WIFSTOPPED(status))
        if (ptrace(PTRACE_SINGLESTEP, child, NULL, NULL))
            abort();
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        abort();
}

/* Writes to standard output the times of CLOCK_MONOTONIC before and after each of its allocations. */
static void by_clock(int n)
{
    const size_t bytes = (size_t)n * 2 * sizeof(uint64_t);
    uint64_t *times =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    for (int k = 0; k < n; k++) {
        struct timespec before, after;
        clock_gettime(CLOCK_MONOTONIC, &before);
        void *volatile p = malloc(47);
        clock_gettime(CLOCK_MONOTONIC, &after);
        free(p);
        times[2 * k] = (uint64_t)before.tv_sec * 1000000000 + (uint64_t)before.tv_nsec;
        times[2 * k + 1] = (uint64_t)after.tv_sec * 1000000000 + (uint64_t)after.tv_nsec;
        if (k % 1000 == 0)
            usleep(1000);
    }
    for (size_t done = 0; done < bytes;) {
        const ssize_t wrote = write(1, (char *)times + done, bytes - done);
        if (wrote <= 0)
            _exit(1);
        done += (size_t)wrote;
    }
}

/* Until it is killed. */
static void forever(int n)
{
    begin_threads(false);
    if (n)
        storm(on_signal, 100);
    if (write(1, "x", 1) != 1)
        _exit(1);
    for (;;)
        calls(100);
}

static void plain(int n)
{
    calls(n);
}

/* The file GROUP takes a child into another cgroup, before the child's first event. */
static void by_group(int n)
{
    const char *file = getenv("GROUP");
    calls(n);
    const pid_t child = fork();
    if (!child) {
        const int fd = open(file, O_WRONLY);
        become(next_slot);
        if (write(fd, "0", 1) != 1)
            _exit(1);
        calls(n);
        _exit(0);
    }
    reap(child);
}

static void by_threads(int n)
{
    begin_threads(false);
    calls(n);
    end_threads();
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(int);
    } ways[] = {
        {"plain", plain},        {"threads", by_threads},       {"vfork", by_vfork},
        {"fork", by_fork},       {"signals", by_signals},       {"forking_handler", by_forking_handler},
        {"moving", by_moving},   {"stopping", by_stopping},     {"strict", by_strict},
        {"forever", forever},    {"clock", by_clock},           {"steps", by_steps},
        {"dlclose", by_dlclose}, {"fork_storm", by_fork_storm}, {"group", by_group}};
    slot = dlsym(RTLD_DEFAULT, "counted_slot");
    cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
    for (unsigned k = 0; argc > 2 && k < sizeof(ways) / sizeof(*ways); k++)
        if (!strcmp(ways[k].name, argv[1])) {
            ways[k].run(atoi(argv[2]));
            return 0;
        }
    return 2;
}
