/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/sigsafe/atomic.h"

extern const char __libc_single_threaded __attribute__((weak));

static const char not_alone;
const char *atomic_alone_flag = &not_alone;

void atomic_find_alone_flag(void)
{
    if (&__libc_single_threaded)
        atomic_alone_flag = &__libc_single_threaded;
}
