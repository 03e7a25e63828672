/* SPDX-License-Identifier: BSD-2-Clause */
#include "chain.h"

typedef void link_fn(const uint16_t *path, unsigned left, void (*end)(void));
static link_fn *const links[256];

/* A comment in the assembler text is enough to keep calls apart, and from becoming tail jumps. */
#define CALL(site)                                                                                           \
    case site:                                                                                               \
        links[*path & 255](path + 1, left - 1, end);                                                         \
        __asm__ volatile("# " #site ::: "memory");                                                           \
        break;

/* What is still needed after the call sits in preserved registers meanwhile: none, one, two or three of them. */
#define LINK(n)                                                                                              \
    static __attribute__((noinline)) void link_##n(const uint16_t *path, unsigned left, void (*end)(void))   \
    {                                                                                                        \
        char room[16 + 0x##n % 13 * 24];                                                                     \
        __asm__ volatile("" ::"r"(room) : "memory");                                                         \
        switch (left ? *path >> 8 & 3 : 4) {                                                                 \
            CALL(0)                                                                                          \
            CALL(1)                                                                                          \
            CALL(2)                                                                                          \
            CALL(3)                                                                                          \
        default:                                                                                             \
            end();                                                                                           \
        }                                                                                                    \
        if (0x##n & 1)                                                                                       \
            __asm__ volatile("" ::"r"(path));                                                                \
        if (0x##n & 2)                                                                                       \
            __asm__ volatile("" ::"r"(end), "r"(left));                                                      \
        __asm__ volatile("" ::"r"(room) : "memory");                                                         \
    }
#define NAME(n) link_##n,

#define ROW(X, h)                                                                                            \
    X(h##0)                                                                                                  \
    X(h##1)                                                                                                  \
    X(h##2)                                                                                                  \
    X(h##3) X(h##4) X(h##5) X(h##6) X(h##7) X(h##8) X(h##9) X(h##a) X(h##b) X(h##c) X(h##d) X(h##e) X(h##f)
#define ALL(X)                                                                                               \
    ROW(X, 0)                                                                                                \
    ROW(X, 1)                                                                                                \
    ROW(X, 2)                                                                                                \
    ROW(X, 3)                                                                                                \
    ROW(X, 4)                                                                                                \
    ROW(X, 5)                                                                                                \
    ROW(X, 6) ROW(X, 7) ROW(X, 8) ROW(X, 9) ROW(X, a) ROW(X, b) ROW(X, c) ROW(X, d) ROW(X, e) ROW(X, f)

ALL(LINK)
static link_fn *const links[256] = {ALL(NAME)};

void CHAIN(const uint16_t *path, unsigned length, void (*end)(void))
{
    links[*path & 255](path + 1, length - 1, end);
    __asm__ volatile("" ::: "memory");
}
