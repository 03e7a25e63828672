/* SPDX-License-Identifier: BSD-2-Clause */
/* Places that have the same code, each called as often as the comment that its line ends with says. */
#include <stdio.h>
#include <stdlib.h>

void *first(size_t n);
void *second(size_t n);
void *branches(int which, size_t n);
void *cases(int which, size_t n);

void *first(size_t n)
{
    return malloc(n); // 1
}

void *second(size_t n)
{
    return malloc(n); // 2
}

__attribute__((noinline)) void *branches(int which, size_t n)
{
    void *p;
    if (which) {
        p = malloc(n); // 3
    } else {
        putchar('b');
        p = malloc(n); // 4
    }
    return p;
}

__attribute__((noinline)) void *cases(int which, size_t n)
{
    switch (which) {
    case 0:
        putchar('c');
        return malloc(n); // 5
    case 1:
        putchar('d');
        return malloc(n); // 6
    default:
        return NULL;
    }
}

int main(void)
{
    void *(*volatile one)(size_t) = first, *(*volatile two)(size_t) = second;
    for (size_t i = 0; i < 1; i++)
        free(one(10));
    for (size_t i = 0; i < 2; i++)
        free(two(10));
    for (size_t i = 0; i < 7; i++)
        free(branches(i < 3, 10));
    for (size_t i = 0; i < 11; i++)
        free(cases(i >= 5, 10));
    return 0;
}
