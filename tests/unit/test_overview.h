/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TEST_OVERVIEW_H
#define TEST_OVERVIEW_H

/* What the tests of the machine's texts share: texts that kernels have written. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/read_file.h"

static const char *const versions[] = {"6.1", "6.12", "6.18"};
#define N_VERSIONS (sizeof(versions) / sizeof(*versions))

/** A recorded text, for the caller to free. */
static inline char *recorded(const char *version, const char *name)
{
    struct buf path = BUF_INIT, text = BUF_INIT;
    buf_printf(&path, "%s/%s/%s", RECORDED, version, name);
    assert_int_equal(file_read(buf_str(&path), 1 << 20, &text), 0);
    buf_release(&path);
    return buf_detach(&text);
}

#endif
