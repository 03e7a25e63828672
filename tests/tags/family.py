# SPDX-License-Identifier: BSD-2-Clause
"""What <allium/malloc_hooks.h> does to sources that know nothing of it: they compile, and see what they saw without it."""
import itertools
import sys

sys.dont_write_bytecode = True
from building import HOOKS, STRICT, quiet, scratch, tap

C, CXX = ("gcc", "clang"), ("g++", "clang++")
LEVELS = ("-O0", "-O2")

# Sources that compile without the header, as they stand.
ODDITIES = {
    "defines _GNU_SOURCE itself": ("""
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <sys/mman.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
void *larger(void *p);
void *larger(void *p) { return mremap(p, 4096, 8192, MREMAP_MAYMOVE); }
char *(*pointer)(const char *, size_t) = strndup;
""", C, []),
    "has types of its own where the library has some": ("""
typedef char *uint32_t;
typedef long size_t_;
uint32_t text(void);
uint32_t text(void) { return 0; }
""", C + CXX, []),
}


def compiles(what):
    source, compilers, options = ODDITIES[what]

    def test():
        for compiler, level in itertools.product(compilers, LEVELS):
            path = scratch("oddity.cc" if compiler in CXX else "oddity.c", source)
            for hooks in [], HOOKS:
                quiet([compiler, level, *options, *STRICT, *hooks, "-c", path, "-o", path + ".o"])
    return test


tap.main([("a source that " + what, compiles(what)) for what in ODDITIES])
