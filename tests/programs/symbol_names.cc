// SPDX-License-Identifier: BSD-2-Clause

// Names that need demangling. test_symbol.c asks for the names of the marked places.

#define MARK(name) __asm__ volatile(".globl mark_" #name "\nmark_" #name ": nop")
#define CALLED     __attribute__((noipa))

namespace shop
{

template <class T> struct Box {
    T value;
    CALLED explicit Box(T v) : value(v)
    {
        MARK(constructor);
    }
    template <class U> CALLED U as(U scale) const
    {
        MARK(template);
        return static_cast<U>(value) * scale;
    }
    CALLED operator bool() const
    {
        MARK(conversion);
        return value != T();
    }
};

CALLED Box<int> operator+(const Box<int> &a, const Box<int> &b)
{
    MARK(operator);
    return Box<int>(a.value + b.value);
}

namespace
{
CALLED int hidden(int x)
{
    MARK(hidden);
    return x * 7;
}
} // namespace

} // namespace shop

static inline __attribute__((always_inline)) int through_lambda(int x)
{
    auto twice = [](int y) __attribute__((always_inline))
    {
        MARK(lambda);
        return y * 2;
    };
    return twice(x);
}

int main(int argc, char **)
{
    shop::Box<int> a(argc);
    shop::Box<int> sum = a + a;
    return static_cast<int>(sum.as<double>(2.0)) + (sum ? 1 : 0) + shop::hidden(argc) + through_lambda(argc);
}
