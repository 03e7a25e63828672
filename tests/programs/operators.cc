// SPDX-License-Identifier: BSD-2-Clause
// Every form of operator new and delete, containers, and a throwing new; prints what must not depend on the agent.
// Afterwards it says how many allocations of 1000 bytes it made: the agent must have counted exactly those.
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

int main()
{
    for (int i = 0; i < 100; i++) {
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
    for (int i = 0; i < 50; i++) {
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
    keep = ::operator new((std::size_t)1 << 62, std::nothrow);
    std::printf("caught %d, nothrow %s\n", caught, keep ? "ok" : "null");
    std::map<int, std::string> words;
    for (int i = 0; i < 1000; i++)
        words[i] = std::string(100, 'x');
    std::vector<Wide> wide(10);
    std::printf("words %zu, wide %d\n", words.size(), (int)((std::uintptr_t)wide.data() % 64));
    return 0;
}
