/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that asks through wrappers, and knows its figures. It holds 100 blocks of 10,000 bytes from load_table()
 * and 200 of 1,000 from keep_names(), both through xmalloc(); 60 of 500 from leaf(), which walk() reaches by 1, 2 and 3
 * calls of itself; it frees 50 blocks of 20,000 at once in format().
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *volatile held[400];
static int n_held;

static void *xmalloc(size_t bytes)
{
    void *p = malloc(bytes);
    if (!p)
        _exit(1);
    return p;
}

static char *xstrdup(const char *text, size_t room)
{
    char *copy = xmalloc(room);
    memset(copy, 0, room);
    return strncat(copy, text, room - 1);
}

static void load_table(void)
{
    for (int i = 0; i < 100; i++)
        held[n_held++] = xmalloc(10000);
}

static void keep_names(void)
{
    for (int i = 0; i < 200; i++)
        held[n_held++] = xstrdup("name", 1000);
}

static void leaf(void)
{
    for (int i = 0; i < 20; i++)
        held[n_held++] = malloc(500);
}

static void walk(int depth)
{
    if (depth > 1)
        walk(depth - 1);
    else
        leaf();
    held[0] = held[0]; /* so that no call is the last thing done */
}

static void format(void)
{
    for (int i = 0; i < 50; i++) {
        void *volatile p = xmalloc(20000);
        free(p);
    }
}

int main(void)
{
    char c;
    load_table();
    keep_names();
    for (int depth = 1; depth <= 3; depth++)
        walk(depth);
    format();
    if (write(1, "ready\n", 6) != 6)
        return 1;
    while (read(0, &c, 1) > 0)
        ;
    return 0;
}
