/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reloads FIRST SECOND: loads the first library with tags, unloads it, loads it again somewhere else, unloads it, and
 * loads the second, which gets the place that the first one had. Prints where each lay. Objects of the first: 3 and 2,
 * of which 1 and 1 are freed, the former when its library is gone; of the second: 4, of which 1 is freed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

typedef void *make_fn(size_t bytes);

static make_fn *make;

static void *load(const char *path)
{
    struct link_map *map;
    void *library = dlopen(path, RTLD_NOW);
    make = library ? (make_fn *)(uintptr_t)dlsym(library, "plugin_make") : NULL;
    if (!make || dlinfo(library, RTLD_DI_LINKMAP, &map))
        exit(1);
    printf("%lx\n", (unsigned long)map->l_addr);
    return library;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    void *library = load(argv[1]), *first = make(100), *page = (void *)((uintptr_t)make & ~(uintptr_t)4095);
    make(200);
    make(300);
    dlclose(library);
    if (mmap(page, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != page)
        return 3; /* it is not gone */
    library = load(argv[1]);
    free(first);
    free(make(1000));
    make(2000);
    dlclose(library);
    munmap(page, 4096);
    load(argv[2]);
    free(make(10));
    make(20);
    make(30);
    make(40);
    fflush(stdout);
    pid_t child = fork(); /* its accounts have the numbers of ours, whatever is there now */
    if (!child) {
        make(7);
        _exit(0);
    }
    printf("%d\n", child);
    return waitpid(child, NULL, 0) != child;
}
