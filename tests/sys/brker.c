/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Moves the end of its heap in known ways when it reads a line, and says what it did, as it knows it from the results
 * of its own calls: "CALLS QUERIES FAILED GROWN SHRUNK". Then it waits until its input ends.
 * `brker steps`: each way once. `brker random N`: many. `brker old N`: calls of 32 bits.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
    long calls, queries, failed, grown, shrunk;
} did;
static uint64_t end;

/* Not by the C library: its brk() asks first, and its code has no frame pointers. Whoever calls this has one. */
static inline uint64_t brk_to(uint64_t to)
{
    uint64_t result = SYS_brk;
    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"(to), "r"(__builtin_frame_address(0))
                     : "rcx", "r11", "memory");
    return result;
}

__attribute__((noinline)) static uint64_t move(uint64_t to)
{
    const uint64_t now = brk_to(to);
    did.calls++;
    did.queries += !to;
    did.failed += to && now != to;
    did.grown += to && now > end ? (long)(now - end) : 0;
    did.shrunk += to && now < end ? (long)(end - now) : 0;
    end = now;
    return now;
}

__attribute__((noinline)) static void asks(void)
{
    for (int i = 0; i < 3; i++)
        move(0);
}

__attribute__((noinline)) static void grows(void)
{
    move(end + 100000);
    move(end + 1); /* in the page that is there already */
    move(end + (4 << 20));
    move(end); /* stays where it is */
}

__attribute__((noinline)) static void shrinks(void)
{
    move(end - 50000);
    move(end - 3);
}

/* Too far, below its beginning, and beyond a limit. */
__attribute__((noinline)) static void fails(void)
{
    struct rlimit before, low;
    move(end + (1ul << 46));
    move(4096);
    getrlimit(RLIMIT_DATA, &before);
    low = (struct rlimit){4096, before.rlim_max};
    setrlimit(RLIMIT_DATA, &low);
    move(end + (1 << 20));
    setrlimit(RLIMIT_DATA, &before);
}

static void many(long n)
{
    const uint64_t base = end;
    for (long i = 0; i < n; i++)
        move(rand() % 8 ? base + (uint64_t)(rand() % (1 << 22)) : rand() % 2 ? 0 : base + (1ul << 46));
}

/* brk(0) as 32-bit programs call it. */
static void old(long n)
{
    for (long i = 0; i < n; i++) {
        long result = 45;
        __asm__ volatile("int $0x80" : "+a"(result) : "b"(0) : "memory", "r8", "r9", "r10", "r11");
    }
}

static void say(void)
{
    char text[256];
    const int n = snprintf(text, sizeof(text), "%ld %ld %ld %ld %ld\n", did.calls, did.queries, did.failed,
                           did.grown, did.shrunk);
    if (write(1, text, (size_t)n) != n)
        abort();
}

int main(int argc, char **argv)
{
    char line[8];
    const char *what = argc > 1 ? argv[1] : "";
    const long n = argc > 2 ? atol(argv[2]) : 0;
    end = brk_to(0);
    if (write(1, "\n", 1) != 1 || read(0, line, sizeof(line)) < 1)
        return 1;
    if (!strcmp(what, "steps"))
        asks(), grows(), shrinks(), fails();
    else if (!strcmp(what, "random"))
        many(n);
    else if (!strcmp(what, "old"))
        old(n);
    say();
    return read(0, line, sizeof(line)) < 0;
}
