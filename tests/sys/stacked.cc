/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stacked: touches pages for the first time from a known place of its stack, without frame pointers; then says "done"
 * and waits there. A line on stdin: "plain DEPTH", "signal DEPTH" (in a handler on a stack of its own), "thread DEPTH".
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

#define PAGES 1000

static volatile char *pages;
static volatile int sink;
static int depth;
static char signal_stack[65536];

extern "C" {
__attribute__((noinline)) void touch_pages(void)
{
#pragma GCC unroll 1 /* one instruction touches all pages */
    for (int i = 0; i < PAGES; i++)
        pages[i * 4096] = 1;
    sink = sink + 1;
}

__attribute__((noinline)) void wait_here(void)
{
    if (write(1, "done\n", 5) == 5)
        pause();
    sink = sink + 1;
}

__attribute__((noinline)) size_t go_down(int left, std::string words)
{
    size_t length = words.size();
    if (left)
        length += go_down(left - 1, words + "x");
    else {
        touch_pages();
        wait_here();
    }
    sink = sink + 1;
    return length;
}

__attribute__((noinline)) void on_signal(int)
{
    touch_pages();
    wait_here();
    sink = sink + 1;
}

__attribute__((noinline)) void raise_below(int left)
{
    if (left)
        raise_below(left - 1);
    else
        raise(SIGUSR1);
    sink = sink + 1;
}

void *in_thread(void *)
{
    go_down(depth, "");
    return nullptr;
}
}

int main()
{
    char what[32];
    pages = (volatile char *)mmap(nullptr, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                                  -1, 0);
    madvise((void *)pages, PAGES * 4096, MADV_NOHUGEPAGE);
    stack_t other = {};
    other.ss_sp = signal_stack;
    other.ss_size = sizeof(signal_stack);
    sigaltstack(&other, nullptr);
    struct sigaction action = {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &action, nullptr);
    if (write(1, "ready\n", 6) != 6 || scanf("%31s %d", what, &depth) != 2)
        return 1;
    if (!strcmp(what, "signal")) {
        raise_below(depth);
    } else if (!strcmp(what, "thread")) {
        pthread_t thread;
        pthread_create(&thread, nullptr, in_thread, nullptr);
        pthread_join(thread, nullptr);
    } else {
        go_down(depth, "");
    }
    return 0;
}
