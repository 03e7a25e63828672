/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that open streams of popen(3) and close them, each at its own pace. Exits with 1 if one did not say what it
 * should. Before that one is closed by a way of its own. What is freed is gone at once: each block has pages of its
 * own, so that who looks at a stream that was closed crashes.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define THREADS 4
#define HEAD    4096

void *malloc(size_t size)
{
    char *p = mmap(NULL, HEAD + size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    *(size_t *)p = size;
    return p + HEAD;
}

static size_t size_of(const void *p)
{
    return *(const size_t *)((const char *)p - HEAD);
}

void free(void *p)
{
    if (p)
        munmap((char *)p - HEAD, HEAD + size_of(p));
}

void *calloc(size_t n, size_t size)
{
    return malloc(n * size); /* of the kernel, and so zero; nobody here asks for more than there is */
}

void *realloc(void *p, size_t size)
{
    char *q = malloc(size);
    if (p && q)
        memcpy(q, p, size_of(p) < size ? size_of(p) : size);
    free(p);
    return q;
}

static int times;

static void *open_and_close(void *arg)
{
    (void)arg;
    for (int i = 0; i < times; i++) {
        char said[16] = "";
        FILE *from = popen("echo said", "r");
        if (!from || fscanf(from, "%15s", said) != 1 || pclose(from) != 0)
            exit(1);
    }
    return NULL;
}

/* Another name of fclose in libc, which nobody hooks. */
int _IO_fclose(FILE *file);

int main(int argc, char **argv)
{
    FILE *unseen = popen("exit 0", "r");
    if (!unseen || _IO_fclose(unseen))
        return 3;
    if (mmap((char *)unseen - HEAD, 2 * HEAD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
             -1, 0) == MAP_FAILED) /* nothing else is where it was */
        return 4;
    FILE *to = popen("exit 0", "w"); /* the shell's end has the number that the closed stream had */
    if (!to || pclose(to))
        return 5;
    pthread_t threads[THREADS];
    times = argc > 1 ? atoi(argv[1]) : 1;
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, open_and_close, NULL))
            return 2;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
