/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Enters seccomp, with a filter that kills for what the library would like to ask, then starts threads.
 *
 *     sealed prctl|syscall     prints its pid
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define THREADS 20
#define KILL(nr)                                                                                             \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
#define NUMBER_AT offsetof(struct seccomp_data, nr)

static __attribute__((noinline)) void *freed_here(size_t bytes)
{
    return malloc(bytes);
}

static __attribute__((noinline)) void *kept_here(size_t bytes)
{
    return malloc(bytes);
}

static void *work(void *arg)
{
    for (int i = 0; i < 10; i++) {
        free(freed_here(10));
        if (!kept_here(20))
            abort();
    }
    return arg;
}

int main(int argc, char **argv)
{
    struct sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, NUMBER_AT),
                                   KILL(SYS_gettid),
                                   KILL(SYS_prctl),
                                   KILL(SYS_tgkill),
                                   KILL(SYS_openat),
                                   KILL(SYS_readlinkat),
                                   KILL(SYS_statfs),
                                   BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {sizeof(filter) / sizeof(*filter), filter};
    pthread_t t;
    work(NULL);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (argc > 1 && argv[1][0] == 'p' ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)
                                      : (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program))
        return 3;
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&t, NULL, work, NULL) || pthread_join(t, NULL))
            return 4;
    printf("%d\n", (int)getpid());
    return 0;
}
