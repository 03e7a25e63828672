// SPDX-License-Identifier: BSD-2-Clause
// Functions that allocate through wrappers, and wrappers of wrappers; each a number of times and bytes of its own. C or
// C++.
#include <stdlib.h>
#include <string.h>
#ifdef __cplusplus
#include <map>
#include <string>
#include <vector>
#endif

#define APART __attribute__((noinline, noclone))

static void *volatile kept;
static void *volatile made[64];
static int n_made;

static APART void *keep(void *p)
{
    kept = p;
    made[n_made++] = p;
    return p;
}

APART void *xmalloc(size_t n)
{
    void *p = malloc(n);
    if (!p)
        abort();
    return p;
}

APART char *xstrdup(const char *text)
{
    size_t n = strlen(text) + 1;
    char *copy = (char *)xmalloc(n);
    memcpy(copy, text, n);
    return copy;
}

APART void *xrealloc(void *old, size_t n)
{
    void *p = realloc(old, n);
    if (!p)
        abort();
    return p;
}

/* Named on the command line, or not at all. */
APART void *take_three(size_t n)
{
    char *p = (char *)xmalloc(n * 3);
    p[0] = 0;
    return p;
}

/* A frame of unknown size: the stack pointer alone does not lead out of it. */
APART void *xcalloc(size_t n, size_t each)
{
    char *room = (char *)__builtin_alloca(n * each + 8);
    memset(room, 0, n * each + 8);
    kept = room;
    void *p = calloc(n, each);
    kept = p;
    return p;
}

static APART void asks_thrice(void)
{
    for (int i = 0; i < 3; i++)
        keep(xmalloc(100));
}

static APART void asks_here_and_there(void)
{
    keep(xmalloc(7));
    keep(xmalloc(8));
    keep(malloc(9));
}

static APART void copies(void)
{
    for (int i = 0; i < 5; i++)
        keep(xstrdup("four"));
}

static APART void grows(void)
{
    void *p = NULL;
    for (size_t i = 1; i <= 4; i++)
        p = xrealloc(p, i * 1000);
    keep(p);
}

static APART void counts(void)
{
    keep(xcalloc(4, 25));
}

static APART void takes(void)
{
    keep(take_three(10));
    keep(take_three(20));
}

static APART void drops(void)
{
    while (n_made)
        free(made[--n_made]);
}

#ifdef __cplusplus
template <typename T> struct pool {
    APART T *take(size_t n)
    {
        return (T *)keep(malloc(n * sizeof(T)));
    }
};

static APART void takes_of_pool(void)
{
    pool<int> p;
    for (int i = 0; i < 6; i++)
        p.take(10);
}

static APART void fills(void)
{
    std::vector<long> v;
    for (int i = 0; i < 9; i++) // 1, 2, 4, 8, 16
        v.push_back(i);
    kept = v.data();
}

static APART void maps(void)
{
    std::map<int, int> m;
    for (int i = 0; i < 11; i++)
        m[i] = i;
    kept = &m[0];
}

static APART void writes(void)
{
    std::string s(100, 'x');
    s += std::string(40, 'y');
    kept = &s[0];
}
#endif

int main(void)
{
    asks_thrice();
    asks_here_and_there();
    copies();
    grows();
    counts();
    takes();
#ifdef __cplusplus
    takes_of_pool();
    fills();
    maps();
    writes();
#endif
    drops();
    return 0;
}
