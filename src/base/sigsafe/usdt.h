/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_SIGSAFE_USDT_H
#define BASE_SIGSAFE_USDT_H

/*
 * Statically defined probes: places at which perf, bpftrace, SystemTap or gdb can stop a program and read values.
 *
 * A site is one `nop`. An ELF note, which is not loaded, has the name of the site, and the registers or memory that
 * hold its values. If no tool is attached, a site costs only the nop, provided that the code has computed the values
 * anyway. There is no semaphore, because a test of it would cost more than the nop.
 *
 * <sys/sdt.h> is not used, for three reasons. First, the nop must have one byte: Linux 6.18 replaces a nop of five
 * bytes by a call, which overwrites memory below the stack pointer, the red zone of a leaf function; a nop of one byte
 * is emulated, which is safe. Second, for the constraint "nor", clang always chooses memory, so it stores values that
 * it has in registers. Third, nothing else of that header is needed.
 *
 * The note: an ELF note "stapsdt" of type 3 (https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation) with
 * the addresses of the site, of _.stapsdt.base (by which prelinking is undone) and of the semaphore; then provider,
 * name and arguments, each "SIZE@PLACE" in the assembler's words.
 *
 * Runs in: target. Threads: any.
 * Invariant: a site is in a function that calls others, so that it has no red zone (tests/programs/probes.py).
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

/* Each value is an unsigned word. */
#define USDT_VALUE(value) USDT_ANYWHERE((uint64_t)(value))

#if defined(USDT_NONE) /* for the comparison in bench/probes */
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
