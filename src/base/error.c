/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

int error_set(struct error *e, int code, const char *fmt, ...)
{
    if (e) {
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(e->text, sizeof(e->text), fmt, ap);
        va_end(ap);
    }
    return -code;
}
