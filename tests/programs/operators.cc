// SPDX-License-Identifier: BSD-2-Clause
// Every form of operator new and delete, containers, and a throwing new; prints what must not depend on the agent.
//
//     operators [ROUNDS [no-throw]]
//
// Each round (100) makes and frees 12 blocks of 1000 bytes. A run of no rounds makes everything else that a run makes.
// no-throw leaves the failing requests out, for mimalloc: built as C, its throwing operators abort.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <new>
#include <string>
#include <vector>

struct alignas(64) Wide {
    char bytes[1000];
};

static void *volatile keep;

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? std::atoi(argv[1]) : 100;
    bool failing = argc < 3;
    for (int i = 0; i < rounds; i++) {
        keep = ::operator new(1000);
        ::operator delete(keep);
        keep = ::operator new[](1000);
        ::operator delete[](keep);
        keep = ::operator new(1000, std::nothrow);
        ::operator delete(keep, std::nothrow);
        keep = ::operator new[](1000, std::nothrow);
        ::operator delete[](keep, std::nothrow);
        keep = ::operator new(1000, std::align_val_t(64));
        std::printf("%d", (int)((std::uintptr_t)keep % 64));
        ::operator delete(keep, std::align_val_t(64));
        keep = ::operator new[](1000, std::align_val_t(64));
        ::operator delete[](keep, std::align_val_t(64));
        keep = ::operator new(1000, std::align_val_t(64), std::nothrow);
        ::operator delete(keep, std::align_val_t(64), std::nothrow);
        keep = ::operator new[](1000, std::align_val_t(64), std::nothrow);
        ::operator delete[](keep, std::align_val_t(64), std::nothrow);
        keep = ::operator new(1000);
        ::operator delete(keep, (std::size_t)1000);
        keep = ::operator new[](1000);
        ::operator delete[](keep, (std::size_t)1000);
        keep = ::operator new(1000, std::align_val_t(64));
        ::operator delete(keep, (std::size_t)1000, std::align_val_t(64));
        keep = ::operator new[](1000, std::align_val_t(64));
        ::operator delete[](keep, (std::size_t)1000, std::align_val_t(64));
    }
    std::printf("\n");
    int caught = 0;
    for (int i = 0; failing && i < 50; i++) {
        try {
            keep = ::operator new((std::size_t)1 << 62);
        } catch (const std::bad_alloc &) {
            caught++;
        }
        try {
            keep = ::operator new[]((std::size_t)1 << 62, std::align_val_t(64));
        } catch (const std::bad_alloc &) {
            caught++;
        }
    }
    keep = failing ? ::operator new((std::size_t)1 << 62, std::nothrow) : nullptr;
    std::printf("caught %d, nothrow %s\n", caught, keep ? "ok" : "null");
    std::map<int, std::string> words;
    for (int i = 0; i < 1000; i++)
        words[i] = std::string(100, 'x');
    std::vector<Wide> wide(10);
    std::printf("words %zu, wide %d\n", words.size(), (int)((std::uintptr_t)wide.data() % 64));
    return 0;
}
