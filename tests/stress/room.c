/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * After its first second, makes blocks of 1 MiB that stay live, from many stacks, without a system call of its own.
 *
 *     room HOW BLOCKS STACKS
 *
 * HOW: marked: getsid() is called before and after. confined: a seccomp filter is entered by an instruction, past libc,
 * that kills on all but clock_nanosleep, write, exit and exit_group. observed: the same, and another second passes
 * before the blocks. Prints how many blocks it made.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "many_stacks.h"

#define SIZE       (1u << 20)
#define STEP       (256u << 20)
#define STEPS_MOST 1024
#define DEPTH      11

#define ALLOW(name)                                                                                          \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static struct sock_filter filter[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    ALLOW(clock_nanosleep),
    ALLOW(write),
    ALLOW(exit),
    ALLOW(exit_group),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};

static void enter(void)
{
    struct sock_fprog program = {sizeof(filter) / sizeof(*filter), filter};
    long result;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        exit(3);
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"(SYS_seccomp), "D"(SECCOMP_SET_MODE_FILTER), "S"(0), "d"(&program)
                     : "rcx", "r11", "memory");
    if (result)
        exit(3);
}

/* Heap for all blocks, so that malloc() makes no system call for them. It is hardly touched. */
static void grow_heap(size_t bytes)
{
    static void *piece[STEPS_MOST];
    size_t n = bytes / STEP + 1;
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, -1);
    for (size_t i = 0; i < n && i < STEPS_MOST; i++)
        piece[i] = malloc(STEP);
    for (size_t i = 0; i < n && i < STEPS_MOST; i++)
        free(piece[i]);
}

static void sleep_for_a_second(void)
{
    struct timespec left = {.tv_sec = 1, .tv_nsec = 100000000};
    while (nanosleep(&left, &left))
        ;
}

int main(int argc, char **argv)
{
    char line[64];
    if (argc < 4)
        return 2;
    long blocks = atol(argv[2]), stacks = atol(argv[3]), made = 0;
    void **block = calloc((size_t)blocks, sizeof(*block));
    if (!block)
        return 1;
    grow_heap((size_t)blocks * (SIZE + 64));
    sleep_for_a_second();
    bool marked = !strcmp(argv[1], "marked");
    if (marked)
        syscall(SYS_getsid, 0);
    else
        enter();
    if (!strcmp(argv[1], "observed"))
        sleep_for_a_second();
    for (long i = 0; i < blocks; i++) {
        block[i] = make(SIZE, (unsigned)(i % stacks), DEPTH);
        made += block[i] != NULL;
    }
    for (long i = 0; i < blocks; i += 8) {
        free(block[i]);
        block[i] = make(SIZE, (unsigned)(i % stacks), DEPTH);
    }
    if (marked)
        syscall(SYS_getsid, 0);
    int n = snprintf(line, sizeof(line), "made %ld\n", made);
    if (write(1, line, (size_t)n) != n)
        _exit(1);
    syscall(SYS_exit_group, 0);
    return 1;
}
