// SPDX-License-Identifier: BSD-2-Clause
// As extension.cc, with operators of its own that put a header before each block, and without anything of libstdc++: so
// dlclose() really unmaps it. OWN_MARK tells two of them apart: each must free what it made itself.
#include <cstddef>
#include <cstdio>
#include <cstdlib>

#ifndef OWN_MARK
#define OWN_MARK 1
#endif

static void *volatile keep;
static int wrong;

void *operator new(std::size_t size)
{
    std::size_t *p = static_cast<std::size_t *>(std::malloc(size + 16));
    *p = OWN_MARK;
    return p + 2;
}

void operator delete(void *p) noexcept
{
    std::size_t *at = static_cast<std::size_t *>(p);
    if (!p)
        return;
    wrong += at[-2] != OWN_MARK;
    std::free(at - 2);
}

void operator delete(void *p, std::size_t) noexcept
{
    operator delete(p);
}

extern "C" int extension_churn(int count)
{
    for (int i = 0; i < count; i++) {
        keep = ::operator new(1000);
        ::operator delete(keep);
    }
    return count + 1000 * wrong;
}

extern "C" int extension_throw(void)
{
    return 'x';
}
