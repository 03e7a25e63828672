/* SPDX-License-Identifier: BSD-2-Clause */
/* Parts of mechanisms and sinks, alone, for --explain. Each is what bench_explain.c adds up. */
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/hooks/bench_events.h"
#include "bench/hooks/bench_sum.h"
#include "ring/ring_write.h"

BENCH_LOOP(bare, BENCH_WORK(i))

#define PART(name, text, begin, ...)                                                                         \
    BENCH_LOOP(loop_##name, __VA_ARGS__)                                                                     \
    BENCH_MECHANISM(part_##name) = {text, bare, loop_##name, begin, 1, NULL}

/* ---- registers ---- */

PART(save, "part-save", NULL,
     __asm__ volatile(
         "leaq -128(%%rsp), %%rsp\n\t"
         "push %%rax\n\tpush %%rcx\n\tpush %%rdx\n\tpush %%rsi\n\tpush %%rdi\n\tpush %%r8\n\tpush %%r9\n\t"
         "push %%r10\n\tpush %%r11\n\t"
         "pop %%r11\n\tpop %%r10\n\tpop %%r9\n\tpop %%r8\n\tpop %%rdi\n\tpop %%rsi\n\tpop %%rdx\n\t"
         "pop %%rcx\n\tpop %%rax\n\t"
         "leaq 128(%%rsp), %%rsp"
         :
         :
         : "memory"));

static char vectors[16 * 16] __attribute__((aligned(16)));
#define EACH_XMM(X)    X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define SAVE_XMM(n)    "movups %%xmm" #n ", 16*" #n "(%0)\n\t"
#define RESTORE_XMM(n) "movups 16*" #n "(%0), %%xmm" #n "\n\t"
PART(save_vectors, "part-save-vectors", NULL,
     __asm__ volatile("pushfq\n\t" EACH_XMM(SAVE_XMM) EACH_XMM(RESTORE_XMM) "popfq"
                      :
                      : "r"(vectors)
                      : "memory"));

/* ---- numbers ---- */

static uint64_t number __attribute__((aligned(64)));
static __thread uint64_t own_number __attribute__((tls_model("initial-exec")));
PART(add, "part-add", NULL, store_relaxed(&own_number, own_number + 1));
PART(atomic, "part-atomic", NULL, atomic_add64_known(false, &number, 1));

static const char *begin_sequence(bool on)
{
    (void)on;
    return bench_cpu_begin(1);
}
PART(sequence, "part-sequence", begin_sequence, bench_cpu_hit(NULL, NULL));

static const char *begin_sum(bool on)
{
    (void)on;
    return bench_sum_begin(1);
}
PART(sum_find, "part-sum-find", begin_sum, bench_sum_find());
PART(sum_count, "part-sum-count", begin_sum, bench_sum_count());

/* ---- memory: 4 words in a row, in 4 MiB ---- */

#define COPY_BYTES BENCH_RING_BYTES
static uint64_t *copied;

static const char *begin_copy(bool on)
{
    (void)on;
    copied = mmap(NULL, COPY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    return copied == MAP_FAILED ? "there is no memory for 4 MiB" : NULL;
}
PART(copy, "part-copy", begin_copy, volatile uint64_t *to = &copied[i * 4 % (COPY_BYTES / 8)]; to[0] = i;
     to[1] = i; to[2] = i; to[3] = i);

/* ---- the kernel ---- */

static void ignore_trap(int number_of_signal)
{
    (void)number_of_signal;
}

static const char *begin_trap(bool on)
{
    struct sigaction action = {.sa_handler = ignore_trap, .sa_flags = SA_SIGINFO};
    (void)on;
    return sigaction(SIGTRAP, &action, NULL) ? "the program may not handle SIGTRAP" : NULL;
}
PART(trap, "part-trap", begin_trap, __asm__ volatile("int3" : : : "memory"));

#define WRITE_BYTES 4096u /* as stdio writes them */
static int file = -1;

static const char *begin_write(bool on)
{
    (void)on;
    file = memfd_create("allium-bench", MFD_CLOEXEC);
    return file < 0 ? "there is no memory for a file" : NULL;
}
static char page[WRITE_BYTES];
PART(write, "part-write", begin_write,
     if (pwrite(file, page, sizeof(page), (off_t)(i % 16 * WRITE_BYTES)) < 0) break);

/*
 * To another process and back, by two pipes. The other process does not take the CPU away as soon as it is woken
 * (SCHED_BATCH, see sched(7)): the batch would be dropped.
 */
static int there[2], back[2];

static const char *begin_switches(bool on)
{
    char ball;
    (void)on;
    if (pipe2(there, O_CLOEXEC) || pipe2(back, O_CLOEXEC))
        return "there are no more descriptors: raise `ulimit -n`";
    const pid_t pid = fork();
    if (pid < 0)
        return "there are no more processes: raise `ulimit -u`";
    if (!pid) {
        sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0});
        close(there[1]);
        while (read(there[0], &ball, 1) == 1 && write(back[1], &ball, 1) == 1)
            ;
        _exit(0);
    }
    return NULL;
}
PART(switches, "part-switches", begin_switches, char ball = 0;
     if (write(there[1], &ball, 1) != 1 || read(back[0], &ball, 1) != 1) break);

/* ---- code ---- */

static char line[64];
PART(format, "part-format", NULL,
     snprintf(line, sizeof(line), "%016" PRIxPTR " %016" PRIxPTR "\n", (uintptr_t)i, (uintptr_t)i));
PART(walk, "part-walk", NULL, uint64_t frames[BENCH_FRAMES]; bench_walk(frames, BENCH_FRAMES);
     BENCH_WORK(frames[0]));
