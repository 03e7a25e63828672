/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A C program that loads and unloads C++ libraries in turns, each with an operator new of its own (a static libstdc++)
 * or with the shared one: `new` in one of them must not depend on another one that was there before.
 *
 *     plugins ROUNDS LIBRARY...
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 0;
    for (int i = 0; i < rounds; i++)
        for (int k = 2; k < argc; k++) {
            void *library = dlopen(argv[k], RTLD_NOW | RTLD_LOCAL);
            if (!library) {
                fprintf(stderr, "%s\n", dlerror());
                return 1;
            }
            int (*churn)(int) = (int (*)(int))dlsym(library, "extension_churn");
            int (*throwing)(void) = (int (*)(void))dlsym(library, "extension_throw");
            printf("%d %d %d %c\n", i, k, churn(10), throwing());
            fflush(stdout);
            dlclose(library);
        }
    return 0;
}
