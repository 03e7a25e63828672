/* SPDX-License-Identifier: BSD-2-Clause */
#include "own_tool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <zlib.h>

#include <cmocka.h>

unsigned char own_tool_object[1 << 20];
size_t own_tool_object_bytes;

void own_tool_load(const char *path)
{
    static unsigned char plain[sizeof(own_tool_object)];
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    z_stream z = {.next_in = plain, .avail_in = (uInt)fread(plain, 1, sizeof(plain), f)};
    fclose(f);
    z.next_out = own_tool_object;
    z.avail_out = sizeof(own_tool_object);
    assert_int_equal(deflateInit2(&z, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    own_tool_object_bytes = z.total_out;
    deflateEnd(&z);
}

struct sys_session *own_tool_open(const struct sys_tool *tool, pid_t pid, struct sys_settings settings)
{
    struct error e = {0};
    struct sys_session *s;
    settings.config.filters = SYS_FILTER_TGID;
    settings.config.tgid = (uint32_t)pid;
    if (sys_open(&s, tool, &settings, &e))
        fail_msg("%s", e.text);
    return s;
}
