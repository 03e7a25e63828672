/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that keeps its frame pointers and allocates in the depth of functions whose frames differ in all that a
 * compiler can make differ: size, saved registers, alignment, arguments on the stack, a size known only at run time, a
 * way out before the frame is made. No two of its stacks are alike.
 *
 *     frame_chain TIMES
 */
#include <alloca.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

uintptr_t frame_chain_end; /* unwind_check.c looks for it */

static uint64_t state = 0x9e3779b97f4a7c15u;

static unsigned draw(unsigned below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)((state >> 32) * below >> 32);
}

static unsigned descend(unsigned depth);

static __attribute__((noinline)) void use(void *p, size_t size)
{
    __asm__ volatile("" : : "r"(p), "r"(size) : "memory");
}

static __attribute__((noinline)) unsigned allocate(unsigned depth)
{
    void *p = draw(2) ? malloc(1 + depth) : draw(2) ? calloc(2, 1 + depth) : realloc(malloc(8), 1 + depth);
    use(p, depth);
    free(p);
    return depth;
}

static __attribute__((noinline)) unsigned small(unsigned depth)
{
    return descend(depth) + 1;
}

static __attribute__((noinline)) unsigned early(unsigned depth)
{
    if (depth % 3)
        return small(depth) * 3;
    unsigned a = descend(depth), b = a ^ depth;
    use(&b, a);
    return allocate(b % 64) + a;
}

static __attribute__((noinline)) unsigned large(unsigned depth)
{
    char text[777];
    memset(text, (int)depth, sizeof(text));
    use(text, sizeof(text));
    return descend(depth) + (unsigned)text[depth % 777];
}

static __attribute__((noinline)) unsigned saving(unsigned depth)
{
    unsigned a = draw(9), b = draw(9), c = draw(9), d = draw(9), e = draw(9), f = descend(depth);
    return allocate(a) * b + c * descend(0) + d * e + f;
}

static __attribute__((noinline)) unsigned aligned(unsigned depth)
{
    char line[128] __attribute__((aligned(64)));
    use(line, sizeof(line));
    return descend(depth) + ((uintptr_t)line % 64 != 0);
}

static __attribute__((noinline)) unsigned growing(unsigned depth)
{
    unsigned size = 1 + draw(500);
    char *p = alloca(size);
    memset(p, 1, size);
    use(p, size);
    return descend(depth) + (unsigned)p[size / 2];
}

static __attribute__((noinline)) unsigned many(unsigned a, unsigned b, unsigned c, unsigned d, unsigned e,
                                               unsigned f, unsigned g, unsigned h, unsigned depth)
{
    return descend(depth) + a * b + c * d + e * f + g * h;
}

static __attribute__((noinline)) unsigned variadic(unsigned depth, ...)
{
    va_list more;
    va_start(more, depth);
    unsigned a = descend(depth) + va_arg(more, unsigned);
    va_end(more);
    return a;
}

static __attribute__((noinline)) unsigned looping(unsigned depth)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < 1 + depth % 2; i++)
        sum += i ? allocate(i) : descend(depth);
    return sum;
}

/* A frame of any kind, and a stack that ends here now and then. */
static __attribute__((noinline)) unsigned descend(unsigned depth)
{
    if (!depth || !draw(8))
        allocate(depth);
    if (!depth)
        return 0;
    depth--;
    switch (draw(9)) {
    case 0:
        return early(depth) + 1;
    case 1:
        return large(depth) + 2;
    case 2:
        return saving(depth) + 3;
    case 3:
        return aligned(depth) + 4;
    case 4:
        return growing(depth) + 5;
    case 5:
        return many(1, 2, 3, 4, 5, 6, 7, 8, depth) + 6;
    case 6:
        return variadic(depth, 7u) + 7;
    case 7:
        return looping(depth) + 8;
    default:
        return small(depth) + 9;
    }
}

/*
 * The frame within begins and ends in the same place, whatever the one around it: what lies where its caller's return
 * address was may be just that address, left over. Only rbp tells that it is not read any more.
 */
static __attribute__((noinline)) unsigned within(unsigned size)
{
    use(alloca(size), size);
    return allocate(size);
}

static __attribute__((noinline)) unsigned around(unsigned size, unsigned both)
{
    use(alloca(size), size);
    unsigned made;
    if (size % 32) {
        __asm__ volatile("# no compiler makes one call");
        made = within(both - size) + 1;
        __asm__ volatile("# of this one" : "+r"(made));
    } else {
        __asm__ volatile("# and of the other:");
        made = within(both - size) + 2;
        __asm__ volatile("# they differ before and after" : "+r"(made));
    }
    return made;
}

int main(int argc, char **argv)
{
    frame_chain_end = (uintptr_t)__builtin_frame_address(0);
    unsigned sum = 0;
    for (int times = argc > 1 ? atoi(argv[1]) : 1; times > 0; times--) {
        descend(draw(200));
        for (unsigned size = 16; size < 1024; size += 16 * (1 + draw(2)))
            sum += around(size, 1024);
    }
    use(&sum, sizeof(sum));
    frame_chain_end = 0;
    return 0;
}
