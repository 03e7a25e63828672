/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE 1
/*
 * What a program may do to a library inside it. Built with tags; each case must leave the program as it would be
 * without: it ends with 0, or by what it asked for.
 *
 *     hostile CASE [NUMBER]
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "allium/tag.h"

#define ELEMENTS(x) (sizeof(x) / sizeof(*(x)))

static unsigned long number;

__attribute__((noinline)) static void *small(size_t n)
{
    return malloc(n);
}
__attribute__((noinline)) static void *again(void *p, size_t n)
{
    return realloc(p, n);
}
__attribute__((noinline)) static void *
late(size_t n) /* a place that is reached in the middle of the case, and not before */
{
    return malloc(n);
}
__attribute__((noinline)) static char *late_text(const char *s)
{
    return strdup(s);
}

static void churn(unsigned n)
{
    void *p[16] = {0};
    for (unsigned i = 0; i < n; i++) {
        void **slot = &p[i * 7 % 16];
        if (!*slot)
            *slot = small(1 + i % 200);
        else if (i % 3)
            *slot = again(*slot, 1 + i % 5000);
        else
            free(*slot), *slot = NULL;
    }
    for (unsigned i = 0; i < 16; i++)
        free(p[i]);
}

static void use_late(void)
{
    free(late(10));
    free(late(10000));
    free(late_text("late"));
}

static int plain(void)
{
    churn(1000);
    use_late();
    return 0;
}

/* Memory for malloc() that needs no system call. */
static void reserve_heap(void)
{
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    mallopt(M_MMAP_THRESHOLD, 1 << 25);
    free(malloc(4 << 20));
}

_Noreturn static void leave(int code)
{
    syscall(SYS_exit, code); /* the one thing that strict seccomp lets a process do at its end */
    __builtin_unreachable();
}

static int strict_seccomp(void)
{
    reserve_heap();
    churn(1000);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
        return 3;
    churn(1000);
    use_late();
    leave(0);
}

/* All system calls but those of strict mode, and what pthread_join() and exit() take, kill. */
static int filter_seccomp(bool by_number)
{
    static const int allowed[] = {SYS_write,        SYS_exit,   SYS_exit_group, SYS_futex,
                                  SYS_rt_sigreturn, SYS_munmap, SYS_madvise};
    struct sock_filter code[40];
    unsigned n = 0;
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (unsigned i = 0; i < ELEMENTS(allowed); i++) {
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)allowed[i], 0, 1);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    struct sock_fprog filter = {(unsigned short)n, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return -1;
    return by_number ? (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter)
                     : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

static int filtered(void)
{
    reserve_heap();
    churn(1000);
    if (filter_seccomp(number))
        return 3;
    churn(1000);
    use_late();
    return 0;
}

static pthread_barrier_t barrier;

static void *wait_and_churn(void *arg)
{
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    churn(50);
    use_late();
    return arg;
}

/* A thread that has not allocated before the filter comes. */
static int filtered_thread(void)
{
    pthread_t t;
    mallopt(M_ARENA_MAX, 1);
    reserve_heap();
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&t, NULL, wait_and_churn, NULL);
    pthread_barrier_wait(&barrier);
    int flags = 1; /* SECCOMP_FILTER_FLAG_TSYNC */
    struct sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                                 BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_gettid, 2, 0),
                                 BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 1, 0),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
    struct sock_fprog filter = {ELEMENTS(code), code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter))
        return 3;
    pthread_barrier_wait(&barrier);
    pthread_join(t, NULL);
    churn(1000);
    return 0;
}

static int closed_descriptors(void)
{
    churn(100);
    for (int fd = 0; fd < 1024; fd++)
        close(fd);
    plain();
    for (int i = 0; i < 100; i++) /* ours must be none of the program's */
        if (open("/dev/null", O_RDWR) != i)
            return 3;
    plain();
    pid_t pid = fork();
    if (!pid)
        _exit(plain());
    int status;
    waitpid(pid, &status, 0);
    for (int i = 0; i < 100; i++)
        if (fcntl(i, F_GETFD) != 0)
            return 4;
    return status;
}

static int fork_and_churn(void)
{
    int status = 0;
    pid_t pid = fork();
    if (!pid)
        _exit(plain());
    waitpid(pid, &status, 0);
    return status ? 9 : plain();
}

/* No folder for a child's ledger, no /proc, no devices. */
static int rooted(void)
{
    churn(10);
    if (chroot("/proc/self/task") || chdir("/"))
        return 3;
    return fork_and_churn();
}

static int dropped(void)
{
    churn(10);
    if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
        return 3;
    return fork_and_churn();
}

static int limited(int what)
{
    struct rlimit r = {number, number};
    if (setrlimit(what, &r))
        return 3;
    return fork_and_churn();
}

static int raw_fork(void)
{
    for (int i = 0; i < 20; i++) {
        int status = 0;
        long pid = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0);
        if (!pid)
            syscall(SYS_exit_group, plain());
        waitpid((pid_t)pid, &status, 0);
        if (status)
            return 3;
    }
    return plain();
}

static int vfork_and_allocate(void)
{
    void *volatile p = NULL;
    pid_t pid = vfork();
    if (!pid) {
        p = small(77);
        use_late();
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    free(p);
    return plain();
}

static void *hold(void *arg)
{
    free(small(16));
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return arg;
}

static void *vfork_in_a_new_thread(void *arg)
{
    pid_t pid = vfork();
    if (!pid) {
        for (int i = 0; i < 300000; i++)
            free(small(16));
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    for (int i = 0; i < 300000; i++)
        free(small(16));
    return arg;
}

/* More threads than have words of their own, and vfork children that come to tags before their threads did. */
static int vfork_beside_threads(void)
{
    enum { HOLD = 20, VFORK = 8 };
    pthread_t t[HOLD + VFORK];
    pthread_barrier_init(&barrier, NULL, HOLD + 1);
    for (int i = 0; i < HOLD; i++)
        pthread_create(&t[i], NULL, hold, NULL);
    pthread_barrier_wait(&barrier);
    for (int i = HOLD; i < HOLD + VFORK; i++)
        pthread_create(&t[i], NULL, vfork_in_a_new_thread, NULL);
    for (int i = HOLD; i < HOLD + VFORK; i++)
        pthread_join(t[i], NULL);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < HOLD; i++)
        pthread_join(t[i], NULL);
    printf("%d\n", HOLD + 2 * VFORK * 300000);
    return 0;
}

static void *small_stack(void *arg)
{
    churn(100);
    use_late();
    return arg;
}

static int small_stacks(void)
{
    pthread_attr_t a;
    pthread_t t;
    pthread_attr_init(&a);
    if (pthread_attr_setstacksize(&a, 16384))
        return 3;
    for (int i = 0; i < 20; i++)
        if (pthread_create(&t, &a, small_stack, NULL) || pthread_join(t, NULL))
            return 4;
    return 0;
}

static void *one_of_many(void *arg)
{
    free(again(small(10), 5000));
    pthread_barrier_wait(&barrier);
    free(again(small(10), 5000));
    return arg;
}

static int thousands(void)
{
    pthread_t *t = small(number * sizeof(*t));
    pthread_attr_t a;
    pthread_attr_init(&a);
    pthread_attr_setstacksize(&a, 32768);
    pthread_barrier_init(&barrier, NULL, (unsigned)number);
    for (unsigned long i = 0; i < number; i++)
        if (pthread_create(&t[i], &a, one_of_many, NULL))
            return 3;
    for (unsigned long i = 0; i < number; i++)
        pthread_join(t[i], NULL);
    free(t);
    return 0;
}

/* Descriptors that nobody wrote so. */
static int corrupted(void)
{
    static const struct allium_tag sound = {
        .version = ALLIUM_TAG_VERSION, .state = -1, .counters = ALLIUM_TAG_UNREGISTERED};
    static struct allium_tag bad[17];
    struct allium_tag *good = ALLIUM_TAG("sound", "one");
    int n = 0;
    bad[n] = sound; /* offsets of 0 */
    bad[++n] = sound, bad[n].version = 99;
    bad[++n] = sound, bad[n].code = 0x7ffffff0;
    bad[++n] = sound, bad[n].code = -0x7ffffff0;
    for (int i = n + 1; i < 10; i++) {
        bad[i] = sound;
        bad[i].code = (int)((const char *)(uintptr_t)plain - (const char *)&bad[i].code);
    }
    bad[++n].text = 0x7ffffff0;
    bad[++n].text = -0x7ffffff0;
    bad[++n].control = 0x7ffffff0;
    bad[++n].control = -0x7ffffff0;
    bad[++n].control = 3;
    for (int round = 0; round < 3; round++)
        for (int i = 0; i <= n; i++) {
            void *p = malloc(10);
            allium_account(&bad[i], 5);
            allium_unaccount(&bad[i], 5);
            allium_track(&bad[i], p, 10);
            allium_untrack(p);
            allium_failed(&bad[i]);
            free(allium_realloc_tagged(&bad[i], p, 20));
        }
    allium_account(good, 7);
    return plain();
}

static sigjmp_buf back;

static void jump(int s)
{
    (void)s;
    siglongjmp(back, 1);
}

/* A handler that leaves whatever it interrupts by a jump. malloc() itself would not stand that: only accounts here. */
static int jumping(void)
{
    struct itimerval often = {{0, 200}, {0, 200}}, none = {0};
    struct allium_tag *tag = ALLIUM_TAG("jumping", "one");
    static char objects[1 << 16];
    signal(SIGALRM, jump);
    setitimer(ITIMER_REAL, &often, NULL);
    static volatile int jumps;
    jumps -= 2000;
    if (sigsetjmp(back, 1))
        jumps++;
    while (jumps < 0) {
        allium_account(tag, 3);
        allium_track(tag, objects, 5000);
        allium_untrack(objects);
        allium_track(tag, objects + 16, 10);
        allium_untrack(objects + 16);
    }
    setitimer(ITIMER_REAL, &none, NULL);
    return 0;
}

static volatile sig_atomic_t forked;

static void fork_in_handler(int s)
{
    int error = errno, status = 0;
    (void)s;
    if (forked++ > 200) /* they may take all of the time */
        return;
    pid_t pid = fork();
    if (!pid) {
        struct allium_tag *tag = ALLIUM_TAG("child", "of a handler");
        allium_account(tag, 9);
        _exit(0);
    }
    waitpid(pid, &status, 0);
    if (status)
        _exit(4);
    errno = error;
}

/* Children that are born anywhere in our code: some, however little time the calls take. */
static int forking_handlers(void)
{
    enum { SOME = 20 };
    struct itimerval often = {{0, 1000}, {0, 1000}}, none = {0};
    struct allium_tag *tag = ALLIUM_TAG("parent", "account");
    static char objects[1 << 16];
    signal(SIGALRM, fork_in_handler);
    setitimer(ITIMER_REAL, &often, NULL);
    unsigned long done = 0;
    for (; done < number || forked < SOME; done++) {
        allium_account(tag, 3);
        allium_track(tag, objects + done % 1000 * 16, 5000);
        allium_untrack(objects + done % 1000 * 16);
    }
    setitimer(ITIMER_REAL, &none, NULL);
    printf("%lu\n", done);
    return 0;
}

static int address_space(void)
{
    return limited(RLIMIT_AS);
}
static int file_size(void)
{
    signal(SIGXFSZ, SIG_DFL);
    return limited(RLIMIT_FSIZE);
}
static int descriptors(void)
{
    return limited(RLIMIT_NOFILE);
}

static const struct {
    const char *name;
    int (*run)(void);
} cases[] = {{"plain", plain},
             {"strict seccomp", strict_seccomp},
             {"filter", filtered},
             {"filter thread", filtered_thread},
             {"close", closed_descriptors},
             {"fork", fork_and_churn},
             {"chroot", rooted},
             {"drop", dropped},
             {"as", address_space},
             {"fsize", file_size},
             {"nofile", descriptors},
             {"clone", raw_fork},
             {"vfork", vfork_and_allocate},
             {"vfork thread", vfork_beside_threads},
             {"small stacks", small_stacks},
             {"threads", thousands},
             {"corrupted", corrupted},
             {"jumping", jumping},
             {"fork in handlers", forking_handlers}};

int main(int argc, char **argv)
{
    number = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    for (unsigned i = 0; argc > 1 && i < ELEMENTS(cases); i++)
        if (!strcmp(argv[1], cases[i].name))
            return cases[i].run();
    return 2;
}
