/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Seccomp as programs use it: with fork, in a worker, and those that only ask whether there is such a thing.
 *
 *     guest_seccomp fork
 *     guest_seccomp worker | worker-first BYTES BLOCKS
 *     guest_seccomp ask-prctl | ask-avail | ask-vfork | ask-tsc | ask-nothing BYTES BLOCKS
 *
 * fork: under a filter that knows fork and what malloc needs, and kills on everything else, a child allocates. worker:
 * a forked child enters such a filter, makes blocks and keeps them; its parent made some before, or nobody did. ask: a
 * question that changes nothing here (prctl without a filter, SECCOMP_GET_ACTION_AVAIL, a vfork child that enters
 * strict mode, strict mode refused where rdtsc has been forbidden before), then blocks from many stacks are made. Says
 * what the question answered or how the child ended.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "many_stacks.h"

#define LOAD_NUMBER BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
#define ALLOW(name)                                                                                          \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define ALLOW_MALLOC                                                                                         \
    ALLOW(read), ALLOW(write), ALLOW(exit), ALLOW(exit_group), ALLOW(rt_sigreturn), ALLOW(brk), ALLOW(mmap), \
        ALLOW(munmap), ALLOW(mprotect), ALLOW(madvise), ALLOW(fstat), ALLOW(newfstatat), ALLOW(futex),       \
        ALLOW(getrandom)
#define ALLOW_FORK ALLOW(clone), ALLOW(wait4), ALLOW(set_robust_list), ALLOW(rt_sigprocmask)
#define KILL       BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

static struct sock_filter malloc_only[] = {LOAD_NUMBER, ALLOW_MALLOC, KILL};
static struct sock_filter malloc_and_fork[] = {LOAD_NUMBER, ALLOW_MALLOC, ALLOW_FORK, KILL};
#define LENGTH(array) (sizeof(array) / sizeof(*(array)))

static void *volatile keep;

static void enter(struct sock_filter *code, size_t length)
{
    struct sock_fprog program = {(unsigned short)length, code};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        _exit(3);
}

static void make_and_free(size_t size)
{
    void *volatile p = malloc(size);
    free(p);
}

static int child_status(pid_t pid)
{
    int status = -1;
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        exit(1);
    return status;
}

static void fork_within(void)
{
    make_and_free(1 << 20);
    enter(malloc_and_fork, LENGTH(malloc_and_fork));
    pid_t pid = fork();
    if (pid == 0) {
        make_and_free(64);
        make_and_free(8 << 20);
        _exit(0);
    }
    printf("status %d\n", child_status(pid));
}

static void work_within(size_t size, long blocks)
{
    pid_t pid = fork();
    if (pid == 0) {
        enter(malloc_only, LENGTH(malloc_only));
        for (long i = 0; i < blocks; i++)
            keep = malloc(size);
        _exit(0);
    }
    printf("status %d\npid %d\n", child_status(pid), pid);
}

static long ask(const char *how)
{
    if (!strcmp(how, "ask-prctl"))
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL);
    if (!strcmp(how, "ask-avail")) {
        uint32_t action = SECCOMP_RET_LOG;
        return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action);
    }
    if (!strcmp(how, "ask-vfork")) {
        pid_t pid = vfork();
        if (pid == 0) {
            int refused = prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
            syscall(SYS_exit, refused); /* the only way out of strict mode */
        }
        return child_status(pid);
    }
    if (!strcmp(how, "ask-tsc"))
        return prctl(PR_SET_TSC, PR_TSC_SIGSEGV) ? 1 : syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 1, NULL);
    return 0;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    size_t size = argc > 2 ? (size_t)atol(argv[2]) : 0;
    long blocks = argc > 3 ? atol(argv[3]) : 0;
    if (!strcmp(how, "fork")) {
        fork_within();
    } else if (!strcmp(how, "worker") || !strcmp(how, "worker-first")) {
        if (!strcmp(how, "worker"))
            make_and_free(1 << 20);
        work_within(size, blocks);
    } else if (!strncmp(how, "ask", 3)) {
        make_and_free(4 << 20);
        printf("answer %ld\n", ask(how));
        for (long i = 0; i < blocks; i++)
            keep = make(size, (unsigned)i, 16);
    } else {
        return 2;
    }
    return 0;
}
