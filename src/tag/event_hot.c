/* SPDX-License-Identifier: BSD-2-Clause */
#include "tag/event_hot.h"

#include <sys/mman.h>

#include "allium/event.h"
#include "base/sigsafe/atomic.h"
#include "base/sigsafe/compiler.h"
#include "base/sigsafe/syscall.h"
#include "ring/ring_write.h"
#include "tag/events.h"
#include "tag/tag_internal.h"
#include "target/process_image.h"
#include "wire/control_page.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

/* These functions lie together, each at the beginning of a line of the cache. */
#define HOT __attribute__((section(".text.event"), aligned(64)))

__thread uint64_t event_hot_thread;

/* Zero in a fork child, as is the rest of its page. */
static union {
    struct {
        uint64_t cpus;
        char *control; /* the members of struct sequence_rings */
        char *data;
        uint64_t ring_bytes, packet_mask, ring_mask;
        uint32_t generation; /* of the process; stored last */
        ptrdiff_t thread_at; /* of event_hot_thread, from the thread pointer */
        const uint64_t *trace;
        const bool *clock_is_tsc;
        uint64_t no_trace;
    };
    char page[LEDGER_PAGE_BYTES];
} hot __attribute__((aligned(LEDGER_PAGE_BYTES)));

static bool clock_runs = true;

void event_hot_open(const struct event_hot_rings *rings)
{
    if (sys_failed(sys_call(SYS_madvise, &hot, sizeof(hot), MADV_WIPEONFORK)))
        return;
    hot.cpus = rings->at.cpus;
    hot.control = rings->at.control;
    hot.data = rings->at.data;
    hot.ring_bytes = rings->at.ring_bytes;
    hot.packet_mask = rings->at.packet_mask;
    hot.ring_mask = rings->at.ring_mask;
    hot.thread_at = (const char *)&event_hot_thread - (const char *)__builtin_thread_pointer();
    hot.trace = rings->control ? rings->control : &hot.no_trace;
    hot.clock_is_tsc = rings->clock_is_tsc ? rings->clock_is_tsc : &clock_runs;
    store_release(&hot.generation, process.generation);
}

void event_hot_stop(bool stopped)
{
    store_relaxed(&clock_runs, !stopped);
}

#ifdef __OPTIMIZE__
/*
 * Begins the sequence of an event of `words` words (sequence_x86_64.h), and writes its second word, which has `size`.
 * Sets rcx to the event's place, rsi to the head, rdi to this CPU's struct ring_cpu.
 *
 * If a signal handler forks just before the sequence, the child goes on here and finds hot.cpus to be 0. A signal amid
 * the sequence aborts it. So if hot.cpus is not 0, all of `hot` belongs to this process. The numbers of the event and
 * of the thread are used only if both belong to its generation.
 */
#define BEGIN(words, size)                                                                                   \
    SEQUENCE_TABLE(aborted)                                                                                  \
    SEQUENCE_BEGIN SEQUENCE_ON_CPU "movl %[generation], %%eax\n\t"                                           \
                                   "cmpl %%eax, %c[known_at]+4(%[event])\n\t"                                \
                                   "jne %l[no_cpu]\n\t"                                                      \
                                   "movq %[thread_at], %%rdx\n\t"                                            \
                                   "cmpl %%eax, %%fs:4(%%rdx)\n\t"                                           \
                                   "jne %l[no_cpu]\n\t"                                                      \
                                   "movl %%fs:(%%rdx), %%r9d\n\t"                                            \
                                   "shlq $32, %%r9\n\t"                                                      \
                                   "movzwl %c[known_at](%[event]), %%eax\n\t"                                \
                                   "orq %%rax, %%r9\n\t"                                                     \
                                   "orq " size ", %%r9\n\t"                                                  \
                                   "movq %[trace], %%rax\n\t"                                                \
                                   "testb $8, 7(%%rax)\n\t"                                                  \
                                   "jnz %l[no_cpu]\n\t"                                                      \
                                   "movq %[clock], %%rax\n\t"                                                \
                                   "cmpb $0, (%%rax)\n\t"                                                    \
                                   "je %l[no_cpu]\n\t" SEQUENCE_FIND                                         \
                                   SEQUENCE_RESERVE_AT_TIME(words) "movq %%r9, 8(%%rcx)\n\t"
_Static_assert(LEDGER_CONTROL_TRACE_OFF == UINT64_C(8) << 56, "as the sequence tests it");

/* Ends the sequence. */
#define COMMIT(words)                                                                                        \
    "movl $1, %%eax\n\t"                                                                                     \
    "shlq %[count_at], %%rax\n\t"                                                                            \
    "leaq " words "(%%rsi,%%rax), %%rsi\n\t"                                                                 \
    "movq %%rsi, (%%rdi)\n"                                                                                  \
    "2:\n\t"

#define OPERANDS                                                                                             \
    [area] "r"(area), [event] "r"(event), [known_at] "i"(offsetof(struct allium_event, known)),              \
        [count_at] "i"(RING_POSITION_BITS), [cpus] "m"(hot.cpus), [control] "m"(hot.control),                \
        [data] "m"(hot.data), [ring_bytes] "m"(hot.ring_bytes), [packet_mask] "m"(hot.packet_mask),          \
        [ring_mask] "m"(hot.ring_mask), [generation] "m"(hot.generation), [thread_at] "m"(hot.thread_at),    \
        [trace] "m"(hot.trace), [clock] "m"(hot.clock_is_tsc)

#define SEQUENCE(text, ...)                                                                                  \
    __asm__ goto(text                                                                                        \
                 :                                                                                           \
                 : OPERANDS, __VA_ARGS__                                                                     \
                 : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "memory", "cc"                             \
                 : aborted, no_fit, no_cpu)

#define FIXED(words) BEGIN("$" #words, "$" #words " << 16")

/*
 * Returns the offset of the thread's struct rseq from the thread pointer; 0: the event must take the long way. The
 * offset is kept in the event, and not in `hot`: so the CPU fetches `hot` and the thread's memory at the same time.
 */
static inline ptrdiff_t area_of(const struct allium_event *event)
{
    int16_t area;
    __builtin_memcpy(&area, (const char *)&event->known + 2, sizeof(area));
    return area;
}

static inline __attribute__((always_inline)) enum sequence_result
put(const struct allium_event *event, const unsigned words, uint64_t a, uint64_t b, uint64_t c)
{
    const ptrdiff_t area = area_of(event);
    if (unlikely(!area))
        return SEQUENCE_NO_CPU;
    if (words == 2)
        SEQUENCE(FIXED(2) COMMIT("2"), [a] "r"(a));
    else if (words == 3)
        SEQUENCE(FIXED(3) "movq %[a], 16(%%rcx)\n\t" COMMIT("3"), [a] "r"(a));
    else if (words == 4)
        SEQUENCE(
            FIXED(4) "movq %[a], 16(%%rcx)\n\tmovq %[b], 24(%%rcx)\n\t" COMMIT("4"), [a] "r"(a), [b] "r"(b));
    else
        SEQUENCE(
            FIXED(5) "movq %[a], 16(%%rcx)\n\tmovq %[b], 24(%%rcx)\n\tmovq %[c], 32(%%rcx)\n\t" COMMIT("5"),
            [a] "r"(a), [b] "r"(b), [c] "r"(c));
    SEQUENCE_RESULTS
}

/* As put(), with 3 words or more. `size`: the bits of the event's second word that hold its size and its flags. */
static inline __attribute__((always_inline)) enum sequence_result
append(const struct allium_event *event, const uint64_t *all, uint64_t words, uint64_t size)
{
    const ptrdiff_t area = area_of(event);
    if (unlikely(!area))
        return SEQUENCE_NO_CPU;
    SEQUENCE(BEGIN("%[words]", "%[size]") "movq %[words], %%rax\n"
                                          "5:\n\t"
                                          "movq -8(%[all],%%rax,8), %%rdx\n\t"
                                          "movq %%rdx, -8(%%rcx,%%rax,8)\n\t"
                                          "decq %%rax\n\t"
                                          "cmpq $2, %%rax\n\t"
                                          "ja 5b\n\t"
                                          "addq %[words], %%rsi\n\t" COMMIT(""),
             [all] "r"(all), [words] "r"(words), [size] "r"(size));
    SEQUENCE_RESULTS
}
#else
/* Without optimization the compiler has too few registers for the operands. */
static enum sequence_result put(const struct allium_event *event, unsigned words, uint64_t a, uint64_t b,
                                uint64_t c)
{
    (void)event, (void)words, (void)a, (void)b, (void)c;
    return SEQUENCE_NO_CPU;
}

static enum sequence_result append(const struct allium_event *event, const uint64_t *all, uint64_t words,
                                   uint64_t size)
{
    (void)event, (void)all, (void)words, (void)size;
    return SEQUENCE_NO_CPU;
}
#endif

TAG_EXPORT HOT void allium_event_put_0(struct allium_event *event)
{
    const enum sequence_result done = put(event, 2, 0, 0, 0);
    if (unlikely(done != SEQUENCE_DONE))
        events_put_cold(event, done, 2, 0, 0, 0);
}

TAG_EXPORT HOT void allium_event_put_1(struct allium_event *event, uint64_t a)
{
    const enum sequence_result done = put(event, 3, a, 0, 0);
    if (unlikely(done != SEQUENCE_DONE))
        events_put_cold(event, done, 3, a, 0, 0);
}

TAG_EXPORT HOT void allium_event_put_2(struct allium_event *event, uint64_t a, uint64_t b)
{
    const enum sequence_result done = put(event, 4, a, b, 0);
    if (unlikely(done != SEQUENCE_DONE))
        events_put_cold(event, done, 4, a, b, 0);
}

TAG_EXPORT HOT void allium_event_put_3(struct allium_event *event, uint64_t a, uint64_t b, uint64_t c)
{
    const enum sequence_result done = put(event, 5, a, b, c);
    if (unlikely(done != SEQUENCE_DONE))
        events_put_cold(event, done, 5, a, b, c);
}

TAG_EXPORT HOT void allium_event_write(struct allium_event *event, uint64_t *words, uint32_t n_words,
                                       uint32_t cut)
{
    enum sequence_result done = SEQUENCE_NO_CPU;
    if (n_words == 2) /* of a program whose header has no allium_event_put_0() */
        done = put(event, 2, 0, 0, 0);
    else if (likely(n_words - 3 <= RING_EVENT_WORDS_MAX - 3))
        done = append(event, words, n_words, (n_words | (cut ? RING_FLAG_CUT << RING_SIZE_BITS : 0)) << 16);
    if (unlikely(done != SEQUENCE_DONE))
        events_write_cold(event, done, words, n_words, cut);
}
