// SPDX-License-Identifier: BSD-2-Clause
// A program with templates and the standard library. Lines end with what they ask for, NAME: CALLS BYTES, when
// optimized.
#include <allium/operator_new.hh>

#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

struct alignas(64) wide {
    char bytes[64];
};

template <class T> struct chain {
    T value;
    std::unique_ptr<chain<T>> next;
};

template <class T> static __attribute__((noinline)) std::unique_ptr<chain<T>> link(int n)
{
    std::unique_ptr<chain<T>> first;
    for (int i = 0; i < n; i++) {
        std::unique_ptr<chain<T>> one(new chain<T>{T(), std::move(first)}); // link: 11 176
        first = std::move(one);
    }
    return first;
}

static __attribute__((noinline)) std::size_t fill(std::vector<int> &v, std::size_t n)
{
    v.reserve(n); // reserve: 2 1200
    return v.capacity();
}

int main()
{
    std::vector<int> a, b;
    std::size_t sum = fill(a, 100) + fill(b, 200);
    auto chars = link<char>(5);
    auto doubles = link<double>(6);
    double *volatile many = new double[30];         // array: 1 240
    wide *volatile w = new wide;                    // aligned: 1 64
    char *volatile plain = new (std::nothrow) char; // nothrow: 1 1
    bool refused = false;
    try {
        volatile std::size_t huge = static_cast<std::size_t>(-1) / 4;
        char *volatile none = new char[huge]; // fails: 0 0
        delete[] none;
    } catch (const std::bad_alloc &) {
        refused = true;
    }
    std::map<std::string, std::unordered_map<int, std::string>> m;
    for (int i = 0; i < 1000; i++)
        m[std::to_string(i % 50) + " is a key that is not short"][i] = std::string(100, 'x');
    for (auto &each : m)
        sum += each.second.size();
    void *raw = std::malloc(33); // malloc: 1 33
    std::free(raw);
    delete[] many;
    delete w;
    delete plain;
    return sum != 1300 || !refused;
}
