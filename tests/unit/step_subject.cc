// SPDX-License-Identifier: BSD-2-Clause
// Exceptions thrown, caught, rethrown, passing frames with cleanups.
#include "step_subject.h"

#include <stdexcept>
#include <string>

#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)
#define NAME(n)     JOIN(n, SUBJECT)

namespace
{
struct Cleanup {
    int *count;
    ~Cleanup()
    {
        ++*count;
    }
};

__attribute__((noinline)) int thrower(int n)
{
    if (n > 2)
        throw std::runtime_error("too deep " + std::to_string(n));
    return n;
}

__attribute__((noinline)) int middle(int n, int *count)
{
    Cleanup cleanup{count};
    int got = thrower(n);
    return got + *count;
}

__attribute__((noinline)) int catcher(int n, int *count)
{
    try {
        return middle(n, count);
    } catch (const std::logic_error &) {
        return -1;
    } catch (const std::exception &e) {
        if (n > 4)
            throw;
        return (int)std::string(e.what()).size();
    }
}
} // namespace

int NAME(subject_cxx_)(int n)
{
    int count = 0, sum = 0;
    for (int i = 0; i < n; i++) {
        try {
            sum += catcher(i, &count);
        } catch (...) {
            sum += 1000;
        }
    }
    return sum + count;
}
