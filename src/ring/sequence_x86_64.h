/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RING_SEQUENCE_X86_64_H
#define RING_SEQUENCE_X86_64_H

/*
 * Restartable sequences (rseq(2)): code that the kernel leaves by its abort address if the thread is preempted, is
 * moved to another CPU or runs a signal handler before the last instruction. That instruction is one store. So no other
 * code uses the same ring between the beginning of a sequence and its store. An aborted sequence leaves only words
 * behind the head of a ring, which do not count.
 *
 * Runs in: target. Threads: any that is registered, signal handlers included; not in a vfork child, which the kernel
 * unregisters although its memory looks as if it were registered.
 */

#include <stddef.h>
#include <stdint.h>

#include "ring/ring_layout.h"

/* Members of the kernel's struct rseq. libc tells its offset from the thread pointer (__rseq_offset). */
#define SEQUENCE_CPU   "4" /* offset of the CPU's number; above all CPUs if the thread is not registered */
#define SEQUENCE_PLACE "8" /* offset of the address of the sequence that runs */

/* Describes a sequence from label 1 to label 2 to the kernel; label 4, where it goes on after an abort, has libc's
 * signature before it. Label 3 is the description. */
#define SEQUENCE_TABLE(aborted)                                                                              \
    ".pushsection __rseq_cs, \"aw\"\n\t"                                                                     \
    ".balign 32\n"                                                                                           \
    "3:\n\t"                                                                                                 \
    ".long 0, 0\n\t"                                                                                         \
    ".quad 1f, (2f - 1f), 4f\n\t"                                                                            \
    ".popsection\n\t"                                                                                        \
    ".pushsection .text.unlikely, \"ax\"\n\t"                                                                \
    ".byte 0x0f, 0xb9, 0x3d\n\t"                                                                             \
    ".long 0x53053053\n"                                                                                     \
    "4:\n\t"                                                                                                 \
    "jmp %l[" #aborted "]\n\t"                                                                               \
    ".popsection\n\t"

#define SEQUENCE_BEGIN                                                                                       \
    "leaq 3b(%%rip), %%rax\n\t"                                                                              \
    "movq %%rax, %%fs:" SEQUENCE_PLACE "(%[area])\n"                                                         \
    "1:\n\t"

/* SEQUENCE_DONE, or why nothing was written. */
enum sequence_result { SEQUENCE_DONE, SEQUENCE_ABORTED, SEQUENCE_NO_FIT, SEQUENCE_NO_CPU };

/* What a sequence needs of a ring's writer; the offsets are used by name. */
struct sequence_rings {
    ptrdiff_t area;       /* of struct rseq, from the thread pointer */
    uint64_t cpus;        /* number of CPUs that have a ring */
    char *control;        /* struct ring_cpu of the first CPU, 128 bytes each */
    char *data;           /* ring of the first CPU */
    uint64_t ring_bytes;  /* from one ring to the next */
    uint64_t packet_mask; /* words of a packet, less 1 */
    uint64_t ring_mask;   /* words of a ring, less 1 */
    uint64_t stamps;      /* see sequence_put_some() */
    uint64_t *counter;    /* see sequence_put_counted() */
};

/* A sequence that appends an event has these parts. The first: sets ecx to the CPU. */
#define SEQUENCE_ON_CPU                                                                                      \
    "movl %%fs:" SEQUENCE_CPU "(%[area]), %%ecx\n\t"                                                         \
    "cmpq %[cpus], %%rcx\n\t"                                                                                \
    "jae %l[no_cpu]\n\t"

/* The second: sets rdi to this CPU's struct ring_cpu, and rcx to its ring. */
#define SEQUENCE_FIND                                                                                        \
    "movq %%rcx, %%rdi\n\t"                                                                                  \
    "shlq $7, %%rdi\n\t"                                                                                     \
    "addq %[control], %%rdi\n\t"                                                                             \
    "imulq %[ring_bytes], %%rcx\n\t"                                                                         \
    "addq %[data], %%rcx\n\t"

/* The third: sets rsi to the head, and rcx to the place of the event of `words` words. Keeps rax and rdx. */
#define SEQUENCE_RESERVE(words)                                                                              \
    "movq (%%rdi), %%rsi\n\t"                                                                                \
    "movq %%rsi, %%r8\n\t"                                                                                   \
    "andq %[packet_mask], %%r8\n\t"                                                                          \
    "addq " words ", %%r8\n\t"                                                                               \
    "cmpq %[packet_mask], %%r8\n\t"                                                                          \
    "jae %l[no_fit]\n\t"                                                                                     \
    "movq %%rsi, %%r8\n\t"                                                                                   \
    "andq %[ring_mask], %%r8\n\t"                                                                            \
    "leaq (%%rcx,%%r8,8), %%rcx\n\t"

/* Fetches the cache line that the ring reaches 16 lines later: a ring is larger than the CPU's first caches. */
#define SEQUENCE_PREFETCH "prefetchw 1024(%%rcx)\n\t"

/*
 * Reserves room for the event, and sets its first word to the time stamp counter. The place of rdtsc was
 * measured: rdtsc waits for earlier instructions, so it precedes the load of the head, which the previous event has
 * just stored. Placed before the computation of the addresses, it costs more.
 */
#define SEQUENCE_RESERVE_AT_TIME(words)                                                                      \
    "rdtsc\n\t" SEQUENCE_RESERVE(words) SEQUENCE_PREFETCH "shlq $32, %%rdx\n\t"                              \
                                                          "orq %%rdx, %%rax\n\t"                             \
                                                          "movq %%rax, (%%rcx)\n\t"

/* All parts of an event whose first word is the time stamp counter. */
#define SEQUENCE_TIME(words) SEQUENCE_ON_CPU SEQUENCE_FIND SEQUENCE_RESERVE_AT_TIME(words)

/* The same, but reads the time stamp counter only if (head & stamps) is 0. Otherwise the first word is 0. */
#define SEQUENCE_TIME_SOME(words)                                                                            \
    SEQUENCE_ON_CPU SEQUENCE_FIND SEQUENCE_RESERVE(words) "xorl %%eax, %%eax\n\t"                            \
                                                          "testq %%rsi, %[stamps]\n\t"                       \
                                                          "jnz 5f\n\t"                                       \
                                                          "rdtsc\n\t"                                        \
                                                          "shlq $32, %%rdx\n\t"                              \
                                                          "orq %%rdx, %%rax\n"                               \
                                                          "5:\n\t"                                           \
                                                          "movq %%rax, (%%rcx)\n\t" SEQUENCE_PREFETCH

/* The same, but the first word is the next number of the counter that all CPUs share. */
#define SEQUENCE_NUMBER(words)                                                                               \
    SEQUENCE_ON_CPU SEQUENCE_FIND SEQUENCE_RESERVE(words) "movq %[counter], %%rdx\n\t"                       \
                                                          "movl $1, %%eax\n\t"                               \
                                                          "lock xaddq %%rax, (%%rdx)\n\t"                    \
                                                          "incq %%rax\n\t"                                   \
                                                          "movq %%rax, (%%rcx)\n\t" SEQUENCE_PREFETCH

/* The last part: the store of the head makes the event valid. */
#define SEQUENCE_COMMIT                                                                                      \
    "addq %[step], %%rsi\n\t"                                                                                \
    "movq %%rsi, (%%rdi)\n"                                                                                  \
    "2:\n\t"

/* In memory, where they need no register. */
#define SEQUENCE_RINGS(r)                                                                                    \
    [cpus] "m"((r)->cpus), [control] "m"((r)->control), [data] "m"((r)->data),                               \
        [ring_bytes] "m"((r)->ring_bytes), [packet_mask] "m"((r)->packet_mask),                              \
        [ring_mask] "m"((r)->ring_mask), [stamps] "m"((r)->stamps), [counter] "m"((r)->counter)

/* The end of a function that runs a sequence. A sequence that writes nothing jumps to one of the labels. */
#define SEQUENCE_RESULTS                                                                                     \
    return SEQUENCE_DONE;                                                                                    \
    aborted:                                                                                                 \
    return SEQUENCE_ABORTED;                                                                                 \
    no_fit:                                                                                                  \
    return SEQUENCE_NO_FIT;                                                                                  \
    no_cpu:                                                                                                  \
    return SEQUENCE_NO_CPU;

/* The body of a function that appends an event, begun by the macro `time`. */
#define SEQUENCE_PUT_ONE(time, words, stores, ...)                                                           \
    __asm__ goto(SEQUENCE_TABLE(aborted)                                                                     \
                     SEQUENCE_BEGIN time("$" #words) "movq %[what], 8(%%rcx)\n\t"                            \
                                                     "movq %[a], 16(%%rcx)\n\t" stores SEQUENCE_COMMIT       \
                 :                                                                                           \
                 : [area] "r"(area), [step] "m"(steps[(words)-3]), SEQUENCE_RINGS(r), [what] "r"(what),      \
                   __VA_ARGS__                                                                               \
                 : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "memory", "cc"                                   \
                 : aborted, no_fit, no_cpu)
#define SEQUENCE_PUT(time)                                                                                   \
    if (words == 3)                                                                                          \
        SEQUENCE_PUT_ONE(time, 3, "", [a] "r"(a));                                                           \
    else if (words == 4)                                                                                     \
        SEQUENCE_PUT_ONE(time, 4, "movq %[b], 24(%%rcx)\n\t", [a] "r"(a), [b] "r"(b));                       \
    else                                                                                                     \
        SEQUENCE_PUT_ONE(                                                                                    \
            time, 5,                                                                                         \
            "movq %[b], 24(%%rcx)\n\tmovq %[c], 32(%%rcx)\n\t", [a] "r"(a), [b] "r"(b), [c] "r"(c));         \
    SEQUENCE_RESULTS

#ifdef __OPTIMIZE__
/**
 * Appends an event of `words` (3 to 5) words to the ring of this CPU: the time stamp counter, `what`, a, b and c.
 * `area` is what r->area was; all members of *r may become 0 meanwhile: then the result is SEQUENCE_NO_CPU.
 */
static inline __attribute__((always_inline)) enum sequence_result
sequence_put(const struct sequence_rings *r, ptrdiff_t area, const unsigned words, uint64_t what, uint64_t a,
             uint64_t b, uint64_t c)
{
    static const uint64_t steps[] = {RING_COUNT_ONE + 3, RING_COUNT_ONE + 4, RING_COUNT_ONE + 5};
    SEQUENCE_PUT(SEQUENCE_TIME)
}

/**
 * As sequence_put(), but reads the time stamp counter only if (head & r->stamps) is 0, the head being that before the
 * event. Otherwise the event's time is 0.
 */
static inline __attribute__((always_inline)) enum sequence_result
sequence_put_some(const struct sequence_rings *r, ptrdiff_t area, const unsigned words, uint64_t what,
                  uint64_t a, uint64_t b, uint64_t c)
{
    static const uint64_t steps[] = {RING_COUNT_ONE + 3, RING_COUNT_ONE + 4, RING_COUNT_ONE + 5};
    SEQUENCE_PUT(SEQUENCE_TIME_SOME)
}

/**
 * As sequence_put(), but the time is the next number of *r->counter. If a sequence is aborted, no event has its number.
 */
static inline __attribute__((always_inline)) enum sequence_result
sequence_put_counted(const struct sequence_rings *r, ptrdiff_t area, const unsigned words, uint64_t what,
                     uint64_t a, uint64_t b, uint64_t c)
{
    static const uint64_t steps[] = {RING_COUNT_ONE + 3, RING_COUNT_ONE + 4, RING_COUNT_ONE + 5};
    SEQUENCE_PUT(SEQUENCE_NUMBER)
}

/** As sequence_put(), with an event of 6 words: the time stamp counter, `what`, a, b, c and d. */
static inline __attribute__((always_inline)) enum sequence_result
sequence_put_six(const struct sequence_rings *r, ptrdiff_t area, uint64_t what, uint64_t a, uint64_t b,
                 uint64_t c, uint64_t d)
{
    static const uint64_t step = RING_COUNT_ONE + 6;
    __asm__ goto(SEQUENCE_TABLE(aborted)
                     SEQUENCE_BEGIN SEQUENCE_TIME("$6") "movq %[what], 8(%%rcx)\n\t"
                                                        "movq %[a], 16(%%rcx)\n\t"
                                                        "movq %[b], 24(%%rcx)\n\t"
                                                        "movq %[c], 32(%%rcx)\n\t"
                                                        "movq %[d], 40(%%rcx)\n\t" SEQUENCE_COMMIT
                 :
                 : [area] "r"(area), [step] "m"(step),
                   SEQUENCE_RINGS(r), [what] "r"(what), [a] "r"(a), [b] "r"(b), [c] "r"(c), [d] "r"(d)
                 : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "memory", "cc"
                 : aborted, no_fit, no_cpu);
    SEQUENCE_RESULTS
}

/**
 * The same with an event of any number of words, 2 at least: writes the time stamp counter, and event[1] to
 * event[words - 1].
 */
static inline enum sequence_result sequence_append(const struct sequence_rings *r, ptrdiff_t area,
                                                   const uint64_t *event, uint64_t words)
{
    __asm__ goto(SEQUENCE_TABLE(aborted)
                     SEQUENCE_BEGIN SEQUENCE_TIME("%[words]") "movl $1, %%eax\n"
                                                              "5:\n\t"
                                                              "movq (%[event],%%rax,8), %%rdx\n\t"
                                                              "movq %%rdx, (%%rcx,%%rax,8)\n\t"
                                                              "incq %%rax\n\t"
                                                              "cmpq %[words], %%rax\n\t"
                                                              "jb 5b\n\t" SEQUENCE_COMMIT
                 :
                 : [area] "r"(area), [step] "r"(RING_COUNT_ONE + words),
                   SEQUENCE_RINGS(r), [event] "r"(event), [words] "r"(words)
                 : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "memory", "cc"
                 : aborted, no_fit, no_cpu);
    SEQUENCE_RESULTS
}
#else
/* Without optimization the compiler needs a register for each operand in memory, and has too few: all calls take the
 * slow path. */
#define SEQUENCE_NEVER(name)                                                                                 \
    static inline enum sequence_result name(const struct sequence_rings *r, ptrdiff_t area, unsigned words,  \
                                            uint64_t what, uint64_t a, uint64_t b, uint64_t c)               \
    {                                                                                                        \
        (void)r, (void)area, (void)words, (void)what, (void)a, (void)b, (void)c;                             \
        return SEQUENCE_NO_FIT;                                                                              \
    }
SEQUENCE_NEVER(sequence_put)
SEQUENCE_NEVER(sequence_put_some)
SEQUENCE_NEVER(sequence_put_counted)

static inline enum sequence_result sequence_put_six(const struct sequence_rings *r, ptrdiff_t area,
                                                    uint64_t what, uint64_t a, uint64_t b, uint64_t c,
                                                    uint64_t d)
{
    (void)r, (void)area, (void)what, (void)a, (void)b, (void)c, (void)d;
    return SEQUENCE_NO_FIT;
}

static inline enum sequence_result sequence_append(const struct sequence_rings *r, ptrdiff_t area,
                                                   const uint64_t *event, uint64_t words)
{
    (void)r, (void)area, (void)event, (void)words;
    return SEQUENCE_NO_FIT;
}
#endif

/** Returns the number of this thread's CPU; above all CPUs: the thread is not registered. */
static inline uint32_t sequence_cpu(ptrdiff_t area)
{
    uint32_t cpu;
    __asm__ volatile("movl %%fs:" SEQUENCE_CPU "(%1), %0" : "=r"(cpu) : "r"(area));
    return cpu;
}

/**
 * If this thread runs on `cpu` and *head is `before`: copies `words` words from `from` to `to`, and stores `after` in
 * *head. Returns SEQUENCE_NO_FIT if it does not run there, or *head has another value.
 */
static inline enum sequence_result sequence_copy(ptrdiff_t area, uint32_t cpu, uint64_t *head,
                                                 uint64_t before, uint64_t after, void *to, const void *from,
                                                 uint64_t words)
{
    __asm__ goto(SEQUENCE_TABLE(aborted) SEQUENCE_BEGIN "cmpl %[cpu], %%fs:" SEQUENCE_CPU "(%[area])\n\t"
                                                        "jne %l[changed]\n\t"
                                                        "cmpq %[before], (%[head])\n\t"
                                                        "jne %l[changed]\n\t"
                                                        "movq %[to], %%rdi\n\t"
                                                        "movq %[from], %%rsi\n\t"
                                                        "movq %[words], %%rcx\n\t"
                                                        "cld\n\t"
                                                        "rep movsq\n\t"
                                                        "movq %[after], (%[head])\n"
                                                        "2:\n\t"
                 :
                 : [area] "r"(area), [cpu] "r"(cpu), [head] "r"(head), [before] "r"(before),
                   [after] "r"(after), [to] "r"(to), [from] "r"(from), [words] "r"(words)
                 : "rax", "rcx", "rsi", "rdi", "memory", "cc"
                 : aborted, changed);
    return SEQUENCE_DONE;
aborted:
    return SEQUENCE_ABORTED;
changed:
    return SEQUENCE_NO_FIT;
}

/** As sequence_count(). `area` is what r->area was; all members of *r may become 0 meanwhile, see sequence_put(). */
static inline enum sequence_result sequence_count_hot(const struct sequence_rings *r, ptrdiff_t area,
                                                      size_t at)
{
    __asm__ goto(
        SEQUENCE_TABLE(aborted) SEQUENCE_BEGIN "movl %%fs:" SEQUENCE_CPU "(%[area]), %%ecx\n\t"
                                               "cmpq %c[at_cpus](%[r]), %%rcx\n\t"
                                               "jae %l[no_cpu]\n\t"
                                               "shlq $7, %%rcx\n\t"
                                               "addq %c[at_control](%[r]), %%rcx\n\t"
                                               "incq (%%rcx,%[at])\n"
                                               "2:\n\t"
        :
        : [r] "r"(r), [area] "r"(area), [at] "r"(at), [at_cpus] "i"(offsetof(struct sequence_rings, cpus)),
          [at_control] "i"(offsetof(struct sequence_rings, control))
        : "rax", "rcx", "memory", "cc"
        : aborted, no_cpu);
    return SEQUENCE_DONE;
aborted:
    return SEQUENCE_ABORTED;
no_cpu:
    return SEQUENCE_NO_CPU;
}

/** Adds 1 to the word at offset `at` of this CPU's struct ring_cpu. */
static inline enum sequence_result sequence_count(const struct sequence_rings *r, size_t at)
{
    __asm__ goto(SEQUENCE_TABLE(aborted) SEQUENCE_BEGIN "movl %%fs:" SEQUENCE_CPU "(%[area]), %%ecx\n\t"
                                                        "cmpq %[cpus], %%rcx\n\t"
                                                        "jae %l[no_cpu]\n\t"
                                                        "shlq $7, %%rcx\n\t"
                                                        "addq %[control], %%rcx\n\t"
                                                        "incq (%%rcx,%[at])\n"
                                                        "2:\n\t"
                 :
                 : [area] "r"(r->area), [cpus] "r"(r->cpus), [control] "r"(r->control), [at] "r"(at)
                 : "rax", "rcx", "memory", "cc"
                 : aborted, no_cpu);
    return SEQUENCE_DONE;
aborted:
    return SEQUENCE_ABORTED;
no_cpu:
    return SEQUENCE_NO_CPU;
}

#endif
