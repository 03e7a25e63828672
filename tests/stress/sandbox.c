/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Enters strict seccomp, or a filter that kills on nearly everything, and allocates from a heap that has grown before.
 *
 *     sandbox HOW BLOCKS STACKS
 *
 * HOW: strict, filter (prctl), filter-syscall (the seccomp system call), raw (the same by an instruction, past libc;
 * the filter allows prctl, too), none. Prints how many blocks it made afterwards, from STACKS different stacks.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "many_stacks.h"

#define SIZE 96

#define ALLOW(name)                                                                                          \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static long raw_seccomp(struct sock_fprog *program)
{
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"(SYS_seccomp), "D"(SECCOMP_SET_MODE_FILTER), "S"(0), "d"(program)
                     : "rcx", "r11", "memory");
    return result;
}

static void enter(const char *how)
{
    static struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(read),
        ALLOW(write),
        ALLOW(exit),
        ALLOW(exit_group),
        ALLOW(rt_sigreturn),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS), /* raw: it is allowed */
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {sizeof(code) / sizeof(*code), code};
    int bad = 0;
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (!strcmp(how, "strict"))
        bad = prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    else if (!strcmp(how, "filter"))
        bad = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
    else if (!strcmp(how, "filter-syscall"))
        bad = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
    else if (!strcmp(how, "raw")) {
        code[sizeof(code) / sizeof(*code) - 2].k = SECCOMP_RET_ALLOW;
        bad = (int)raw_seccomp(&program);
    }
    if (bad)
        _exit(3);
}

int main(int argc, char **argv)
{
    char line[64];
    if (argc < 4)
        return 2;
    long blocks = atol(argv[2]), stacks = atol(argv[3]);
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    size_t room = (size_t)blocks * (SIZE + 32) + (8u << 20);
    void *volatile heap = malloc(room); /* from brk, and it stays */
    if (!heap)
        return 1;
    memset(heap, 1, room);
    void **block = (void **)heap;
    block = malloc((size_t)blocks * sizeof(*block));
    if (!block)
        return 1;
    free(heap);
    enter(argv[1]);
    for (long i = 0; i < blocks; i++)
        block[i] = make(SIZE, (unsigned)(i % stacks), 14);
    for (long i = 0; i < blocks; i += 2)
        free(block[i]);
    int n = snprintf(line, sizeof(line), "made %ld\nfreed %ld\n", blocks, (blocks + 1) / 2);
    if (write(1, line, (size_t)n) != n)
        syscall(SYS_exit, 1);
    syscall(SYS_exit, 0); /* the only way out of strict mode */
    return 1;
}
