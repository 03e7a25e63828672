/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef FUZZ_REQUIRE_H
#define FUZZ_REQUIRE_H

/* What the fuzz targets share: how one says that something does not hold. */

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/** Aborts with a line, which libFuzzer takes for a crash, unless it holds. */
static inline __attribute__((format(printf, 2, 3))) void require(bool holds, const char *fmt, ...)
{
    va_list args;
    if (holds)
        return;
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
    abort();
}

#endif
