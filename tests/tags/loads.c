/* SPDX-License-Identifier: BSD-2-Clause */
/* Loads a library with tags, unloads it, and frees one of the three objects that it made. */
#include <dlfcn.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    void *(*make)(size_t) = library ? (void *(*)(size_t))dlsym(library, "plugin_make") : NULL;
    if (!make)
        return 1;
    void *first = make(100);
    make(200);
    make(300);
    if (dlclose(library))
        return 1;
    free(first);
    free(malloc(50));
    return 0;
}
