/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps so many objects of so many bytes live, and prints the anonymous memory that came with them.
 *
 *     memory OBJECTS BYTES        built with tags and without
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Of /proc/self/status, without malloc(). */
static unsigned long anonymous_kib(void)
{
    static char text[8192];
    int fd = open("/proc/self/status", O_RDONLY);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    close(fd);
    char *at = n > 0 ? strstr(text, "RssAnon:") : NULL;
    if (!at)
        abort();
    return strtoul(at + 8, NULL, 10);
}

__attribute__((noinline)) static void *make(size_t bytes)
{
    return malloc(bytes);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    unsigned long objects = strtoul(argv[1], NULL, 10), bytes = strtoul(argv[2], NULL, 10);
    size_t room = objects * sizeof(void *);
    void **live = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (live == MAP_FAILED)
        return 3;
    unsigned long before = anonymous_kib();
    for (unsigned long i = 0; i < objects; i++) {
        live[i] = make(bytes);
        if (!live[i])
            return 4;
        memset(live[i], 1, bytes);
    }
    printf("%lu\n", (anonymous_kib() - before) * 1024);
    fflush(stdout);
    for (unsigned long i = 0; i < objects / 2; i++)
        free(live[i]);
    return 0;
}
