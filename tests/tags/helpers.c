/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Helpers of a program's own: what they ask for is charged to their callers. The line of a place ends with what it
 * holds at the end, as NAME: ALLOCATIONS BYTES. C and C++. Built without the library it is the same program.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef ALLIUM_HELPER
#define ALLIUM_HELPER(function)
#define ALLIUM_HELPER_OUTERMOST(function)
#endif

#define NOINLINE __attribute__((noinline))

/* The example of the manual. */
static void *xmalloc(size_t n)
{
    ALLIUM_HELPER(xmalloc);
    void *p = malloc(n);
    if (!p)
        abort();
    return p;
}

static char *xstrdup(const char *s)
{
    ALLIUM_HELPER(xstrdup);
    size_t n = strlen(s) + 1;
    return (char *)memcpy(xmalloc(n), s, n); // inner: 2 10
}

static char *join(const char *a, const char *b)
{
    ALLIUM_HELPER_OUTERMOST(join);
    size_t n = strlen(a), m = strlen(b) + 1;
    char *p = (char *)xmalloc(n + m);
    memcpy(p, a, n);
    memcpy(p + n, b, m);
    return p;
}

__attribute__((format(printf, 1, 2))) static char *print(const char *format, ...)
{
    ALLIUM_HELPER(print);
    char *p = NULL;
    va_list args;
    va_start(args, format);
    if (vasprintf(&p, format, args) < 0)
        abort();
    va_end(args);
    return p;
}

static void *again(void *p, size_t n)
{
    ALLIUM_HELPER(again);
    return realloc(p, n);
}

/* As many as are asked for, by calling itself: each call of itself is a place. */
static NOINLINE void several(int n)
{
    ALLIUM_HELPER(several);
    volatile char *p = (char *)malloc(3);
    *p = 1;
    if (n > 1)
        several(n - 1); // recursion: 4 12
    *p = 2;
}

static jmp_buf out;

static void gives_up(size_t n)
{
    ALLIUM_HELPER(gives_up);
    void *volatile p = malloc(n);
    if (p)
        longjmp(out, 1);
}

/* It calls the helper as the last thing it does: what it jumped from is not known, and it is the place itself. */
NOINLINE void *tail(size_t n);
NOINLINE void *tail(size_t n)
{
    return xmalloc(n + 1); // tail: 2 42
}

static void on_signal(int number)
{
    free(xmalloc((size_t)number)); // handler: 1 10
}

static void *work(void *arg)
{
    for (int i = 0; i < 1000; i++) {
        free(xmalloc(7)); // thread: 3000 21000
        free(malloc(5));  // beside: 3000 15000
    }
    return arg;
}

static void interrupted(void)
{
    ALLIUM_HELPER(interrupted);
    raise(SIGUSR1);
    free(malloc(1));
}

#ifdef __cplusplus
#include <new>
#include <string>
#include <vector>

void *operator new(size_t n)
{
    ALLIUM_HELPER(0);
    void *p = malloc(n);
    if (!p)
        throw std::bad_alloc();
    return p;
}

void operator delete(void *p) noexcept
{
    free(p);
}

void operator delete(void *p, size_t) noexcept
{
    free(p);
}

struct thrower {
    static void *make(size_t n)
    {
        ALLIUM_HELPER(0);
        void *p = malloc(n);
        if (n > 10) {
            free(p);
            throw 1;
        }
        return p;
    }
};

template <class T> static NOINLINE T *one()
{
    return new T(); // new: 2 12
}

static NOINLINE void in_cxx()
{
    try {
        free(thrower::make(9));  // thrown: 2 29
        free(thrower::make(20)); // thrown: -
    } catch (int) {
        free(malloc(6)); // caught: 1 6
    }
    delete one<int>();
    delete one<double>();
}
#else
static void in_cxx(void)
{
}
#endif

int main(void)
{
    pthread_t t[3];
    for (int i = 0; i < 3; i++)
        if (pthread_create(&t[i], NULL, work, NULL))
            abort();
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    void *(*volatile pointer)(size_t) = xmalloc;
    void *p = pointer(100); // pointer: 1 100
    p = again(p, 200);      // again: 1 200
    free(p);
    free(xstrdup("four")), free(xstrdup("five"));
    free(join("ab", "cd"));        // outer: 1 5
    free(print("%d-%s", 12, "x")); // print: 1 5
    several(5);                    // first: 1 3
    if (!setjmp(out))
        gives_up(50); // longjmp: 1 50
    free(malloc(8));  // after: 1 8
    free(tail(20)), free(tail(20));
    signal(SIGUSR1, on_signal);
    interrupted(); // interrupted: 1 1
    in_cxx();
    return 0;
}
