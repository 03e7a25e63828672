/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by two units: an inline function and a template, which both of them have a copy of. */
#pragma once
#include <cstdlib>
#include <cstring>

inline char *twin(const char *text)
{
    return strdup(text); // twin
}

template <class T> T *several(size_t n)
{
    return static_cast<T *>(std::malloc(n * sizeof(T))); // several
}

struct holder {
    void *malloc; // a member of that name
    void free(void *)
    {
    }
};

void other_unit();
