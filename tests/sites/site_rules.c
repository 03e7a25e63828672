/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls what it is told to, line by line, and says when it is done: "WAY COUNT BYTES", "load PATH", "fork", "end". */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))

static void *volatile last;

APART static void foo(size_t bytes)
{
    last = malloc(bytes);
    free(last);
    __asm__ volatile("" ::: "memory");
}

APART static void bar(size_t bytes)
{
    last = malloc(bytes);
    free(last);
    __asm__ volatile("" ::: "memory");
}

APART static void late(size_t bytes)
{
    last = realloc(NULL, bytes);
    free(last);
    __asm__ volatile("" ::: "memory");
}

/* What the wrapper's callers have. */
APART static void *xmalloc(size_t bytes)
{
    void *p = malloc(bytes);
    __asm__ volatile("" ::: "memory");
    return p;
}

APART static void wrapped(size_t bytes)
{
    last = xmalloc(bytes);
    free(last);
    __asm__ volatile("" ::: "memory");
}

APART static void by_one(void (*what)(size_t), unsigned n, size_t bytes)
{
    while (n--)
        what(bytes);
    __asm__ volatile("" ::: "memory");
}

APART static void by_two(void (*what)(size_t), unsigned n, size_t bytes)
{
    while (n--)
        what(bytes);
    __asm__ volatile("" ::: "memory");
}

static void (*loaded)(size_t);

static void load(const char *path)
{
    void *library = dlopen(path, RTLD_NOW);
    void *symbol = library ? dlsym(library, "plug") : NULL;
    memcpy(&loaded, &symbol, sizeof(loaded));
    if (!symbol)
        exit(2);
}

static void fork_here(void)
{
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (child && (waitpid(child, &status, 0) != child || status))
        exit(3);
    if (child)
        puts("back");
    else
        printf("%d\n", (int)getpid());
    fflush(stdout);
}

static void call(const char *way, const char *what, unsigned n, size_t bytes)
{
    static const struct {
        const char *name;
        void (*function)(size_t);
    } known[] = {{"foo", foo}, {"bar", bar}, {"late", late}, {"wrapped", wrapped}};
    void (*function)(size_t) = loaded;
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (!strcmp(known[i].name, what))
            function = known[i].function;
    (strcmp(way, "one") ? by_two : by_one)(function, n, bytes);
}

int main(void)
{
    char line[4096], way[16], what[16];
    unsigned n;
    size_t bytes;
    printf("%d\n", (int)getpid());
    fflush(stdout);
    /* Not by the standard library, which allocates. */
    for (size_t at = 0; read(STDIN_FILENO, line + at, 1) == 1; at++) {
        if (line[at] != '\n')
            continue;
        line[at] = '\0';
        at = (size_t)-1;
        if (!strcmp(line, "end"))
            return 0;
        if (!strcmp(line, "fork")) {
            fork_here();
            continue;
        }
        if (!strncmp(line, "load ", 5))
            load(line + 5);
        else if (sscanf(line, "%15s %15s %u %zu", way, what, &n, &bytes) == 4)
            call(way, what, n, bytes);
        puts("done");
        fflush(stdout);
    }
    return 0;
}
