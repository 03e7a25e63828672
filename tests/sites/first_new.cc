// SPDX-License-Identifier: BSD-2-Clause
// Threads that call each form of operator new for the first time at the same moment: THREADS of them, each form by a
// function.
#include <atomic>
#include <cstdlib>
#include <new>
#include <thread>
#include <vector>

static unsigned threads;
static std::atomic<unsigned> came;

// Spins: what sleeps does not wake at once.
static void meet(unsigned number)
{
    came++;
    while (came < threads * number)
        ;
}

static void *volatile sink;

__attribute__((noinline)) static void by_new()
{
    sink = operator new(10);
}
__attribute__((noinline)) static void by_array()
{
    sink = operator new[](10);
}
__attribute__((noinline)) static void by_nothrow()
{
    sink = operator new(10, std::nothrow);
}
__attribute__((noinline)) static void by_array_nothrow()
{
    sink = operator new[](10, std::nothrow);
}
__attribute__((noinline)) static void by_aligned()
{
    sink = operator new(10, std::align_val_t(64));
}

static void work()
{
    void (*const all[])() = {by_array_nothrow, by_nothrow, by_array, by_aligned, by_new};
    unsigned number = 0;
    for (auto one : all) {
        meet(++number);
        one();
    }
}

int main(int argc, char **argv)
{
    threads = argc > 1 ? (unsigned)atoi(argv[1]) : 2;
    static char room[4096];
    auto *all = new (room) std::thread[threads - 1];
    for (unsigned i = 0; i + 1 < threads; i++)
        all[i] = std::thread(work);
    work();
    for (unsigned i = 0; i + 1 < threads; i++)
        all[i].join();
}
