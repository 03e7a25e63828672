/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BRIEF_H
#define BRIEF_H

/* What brief.c tells of itself, by addresses. */

#include <stdint.h>

struct brief {
    int64_t pid;
    uint64_t time_ns; /* CLOCK_MONOTONIC: when all of it was there */
    uint64_t code, library, heap, stack, anonymous;
};

#endif
