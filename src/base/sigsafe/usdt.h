/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_SIGSAFE_USDT_H
#define BASE_SIGSAFE_USDT_H

/*
 * Statically defined probes: places where perf, bpftrace, SystemTap or gdb may stop a program and read values.
 *
 * A site is one `nop`; a note beside the code, which is never loaded, names it and says where its values are. Nobody
 * listening, it costs that nop and nothing else, as long as the values are there anyway: what takes them where they lie
 * must not make the compiler compute any. There is no semaphore: to test one would cost more.
 *
 * Not <sys/sdt.h>, for three reasons. The nop must be of one byte: Linux 6.18 makes a call of one of five bytes, which
 * overwrites what lies below the stack pointer, and there is the red zone of a leaf function. It is safe on one byte,
 * where the kernel emulates the instruction. Next, clang takes "nor" to mean memory, and stores what it has in a register.
 * And nothing else is needed of it.
 *
 * The note: an ELF note "stapsdt" of type 3 (https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation) with
 * the addresses of the site, of _.stapsdt.base (by which prelinking is undone) and of the semaphore; then provider, name
 * and arguments, each "SIZE@PLACE" in the assembler's words.
 *
 * Runs in: target. Threads: any.
 * Invariant: a site lies in a function that calls others, so that no red zone is live there (tests/programs/probes.py).
 */

#include <stdint.h>

#if defined(__clang__)
#define USDT_ANYWHERE "nr"
#else
#define USDT_ANYWHERE "nor"
#endif

#define USDT_SITE(provider, name, arguments)                                                                 \
    "990:\tnop\n"                                                                                            \
    "\t.pushsection .note.stapsdt, \"\", \"note\"\n"                                                         \
    "\t.balign 4\n"                                                                                          \
    "\t.4byte 992f - 991f, 994f - 993f, 3\n"                                                                 \
    "991:\t.asciz \"stapsdt\"\n"                                                                             \
    "992:\t.balign 4\n"                                                                                      \
    "993:\t.8byte 990b, _.stapsdt.base, 0\n"                                                                 \
    "\t.asciz \"" provider "\"\n"                                                                            \
    "\t.asciz \"" name "\"\n"                                                                                \
    "\t.asciz \"" arguments "\"\n"                                                                           \
    "994:\t.balign 4\n"                                                                                      \
    "\t.popsection\n"                                                                                        \
    "\t.ifndef _.stapsdt.base\n"                                                                             \
    "\t.pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n"                            \
    "\t.weak _.stapsdt.base\n"                                                                               \
    "\t.hidden _.stapsdt.base\n"                                                                             \
    "_.stapsdt.base:\t.space 1\n"                                                                            \
    "\t.size _.stapsdt.base, 1\n"                                                                            \
    "\t.popsection\n"                                                                                        \
    "\t.endif\n"

/* Every value is a word without a sign. */
#define USDT_VALUE(value) USDT_ANYWHERE((uint64_t)(value))

#if defined(USDT_NONE) /* for bench/probes, to compare with */
#define USDT1(provider, name, a)                ((void)(a))
#define USDT3(provider, name, a, b, c)          ((void)(a), (void)(b), (void)(c))
#define USDT4(provider, name, a, b, c, d)       ((void)(a), (void)(b), (void)(c), (void)(d))
#define USDT6(provider, name, a, b, c, d, e, f) (USDT3(, , a, b, c), USDT3(, , d, e, f))
#else
#define USDT1(provider, name, a) __asm__ volatile(USDT_SITE(provider, name, "8@%0")::USDT_VALUE(a) : "memory")
#define USDT3(provider, name, a, b, c)                                                                       \
    __asm__ volatile(USDT_SITE(provider, name, "8@%0 8@%1 8@%2")::USDT_VALUE(a), USDT_VALUE(b),              \
                     USDT_VALUE(c)                                                                           \
                     : "memory")
#define USDT4(provider, name, a, b, c, d)                                                                    \
    __asm__ volatile(USDT_SITE(provider, name, "8@%0 8@%1 8@%2 8@%3")::USDT_VALUE(a), USDT_VALUE(b),         \
                     USDT_VALUE(c), USDT_VALUE(d)                                                            \
                     : "memory")
#define USDT6(provider, name, a, b, c, d, e, f)                                                              \
    __asm__ volatile(USDT_SITE(provider, name, "8@%0 8@%1 8@%2 8@%3 8@%4 8@%5")::USDT_VALUE(a),              \
                     USDT_VALUE(b), USDT_VALUE(c), USDT_VALUE(d), USDT_VALUE(e), USDT_VALUE(f)               \
                     : "memory")
#endif

#endif
