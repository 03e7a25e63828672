// SPDX-License-Identifier: BSD-2-Clause
// A library that a C program loads late and privately, with operators new and delete: what extension modules are.
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

extern "C" int extension_churn(int count);
extern "C" int extension_throw(void);
extern "C" void *extension_new(std::size_t size);

static void *volatile keep;

/** Makes and frees `count` blocks of 1000 bytes, and an array form of each. */
extern "C" int extension_churn(int count)
{
    for (int i = 0; i < count; i++) {
        keep = ::operator new(1000);
        ::operator delete(keep);
        keep = new char[1000];
        delete[] static_cast<char *>(keep);
    }
    return count;
}

extern "C" int extension_throw(void)
{
    try {
        std::vector<std::string> v(10, std::string(100, 'x'));
        throw std::runtime_error(v.at(3));
    } catch (const std::exception &e) {
        return e.what()[0];
    }
}

extern "C" void *extension_new(std::size_t size)
{
    return ::operator new(size);
}
