/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_SIGSAFE_ATOMIC_H
#define BASE_SIGSAFE_ATOMIC_H

/*
 * The atomic operations that the target needs. They are cheap while the process has one thread.
 *
 * Runs in: target. Threads: any, signal handlers included.
 * Invariant: each read-modify-write is one instruction, so that a signal handler never finds it half done. If the
 * process has a second thread, the instruction has the lock prefix. (glibc clears __libc_single_threaded before it
 * creates a thread.)
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/sigsafe/compiler.h"

/* glibc's __libc_single_threaded (2.32 and later) if atomic_find_alone_flag() has found it, else a zero byte. */
extern const char *atomic_alone_flag __attribute__((visibility("hidden")));

#define load_relaxed(p)     __atomic_load_n((p), __ATOMIC_RELAXED)
#define load_acquire(p)     __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define store_relaxed(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define store_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)

/** Finds glibc's __libc_single_threaded. May be called any number of times. */
void atomic_find_alone_flag(void);

static inline bool atomic_alone(void)
{
    return *(const volatile char *)atomic_alone_flag != 0;
}

#if defined(__x86_64__)
/** For several additions in a row: `alone` is the result of one call of atomic_alone(). */
static inline void atomic_add64_known(bool alone, uint64_t *p, uint64_t v)
{
    if (likely(alone))
        __asm__ volatile("addq %1, %0" : "+m"(*p) : "er"(v) : "cc");
    else
        __asm__ volatile("lock addq %1, %0" : "+m"(*p) : "er"(v) : "cc");
}

static inline void atomic_add64(uint64_t *p, uint64_t v)
{
    atomic_add64_known(atomic_alone(), p, v);
}

static inline void atomic_add32(uint32_t *p, uint32_t v)
{
    if (likely(atomic_alone()))
        __asm__ volatile("addl %1, %0" : "+m"(*p) : "er"(v) : "cc");
    else
        __asm__ volatile("lock addl %1, %0" : "+m"(*p) : "er"(v) : "cc");
}

/** Adds `v` to *p, and returns the old value of *p. */
static inline uint64_t atomic_fetch_add64_known(bool alone, uint64_t *p, uint64_t v)
{
    if (likely(alone))
        __asm__ volatile("xaddq %0, %1" : "+r"(v), "+m"(*p) : : "cc", "memory");
    else
        __asm__ volatile("lock xaddq %0, %1" : "+r"(v), "+m"(*p) : : "cc", "memory");
    return v;
}

static inline uint64_t atomic_fetch_add64(uint64_t *p, uint64_t v)
{
    return atomic_fetch_add64_known(atomic_alone(), p, v);
}

/** Stores `to` in *p if *p is `from`. Returns whether *p was `from`. */
static inline bool atomic_swap_if64(uint64_t *p, uint64_t from, uint64_t to)
{
    bool done;
    if (likely(atomic_alone()))
        __asm__ volatile("cmpxchgq %3, %1" : "=@ccz"(done), "+m"(*p), "+a"(from) : "r"(to) : "memory");
    else
        __asm__ volatile("lock cmpxchgq %3, %1" : "=@ccz"(done), "+m"(*p), "+a"(from) : "r"(to) : "memory");
    return done;
}

static inline bool atomic_swap_if8(uint8_t *p, uint8_t from, uint8_t to)
{
    bool done;
    if (likely(atomic_alone()))
        __asm__ volatile("cmpxchgb %3, %1" : "=@ccz"(done), "+m"(*p), "+a"(from) : "q"(to) : "memory");
    else
        __asm__ volatile("lock cmpxchgb %3, %1" : "=@ccz"(done), "+m"(*p), "+a"(from) : "q"(to) : "memory");
    return done;
}
#else
#error "atomic.h: this architecture has no single-instruction updates yet"
#endif

#endif
