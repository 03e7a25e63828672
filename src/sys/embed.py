#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes C of BPF objects: embed.py OUT.c TOOL,TOOL... NAME.bpf.o... Each object becomes sys_object_NAME, gzipped; the
tools become the table of tools.
"""
import gzip
import os
import sys

source, tools, *objects = sys.argv[1:]
tools = tools.split(",")
with open(source, "w") as out:
    out.write('/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */\n#include "sys/tool.h"\n')
    for name in tools:
        out.write("extern const struct sys_tool sys_%s;\n" % name)
    for path in objects:
        name = os.path.basename(path).split(".")[0]
        with open(path, "rb") as file:
            data = gzip.compress(file.read(), 9, mtime=0)
        out.write("extern const unsigned char sys_object_%s[];\nextern const size_t sys_object_%s_bytes;\n" % (name, name))
        lines = [", ".join(map(str, data[i : i + 24])) for i in range(0, len(data), 24)]
        out.write("const unsigned char sys_object_%s[] = {\n%s\n};\n" % (name, ",\n".join(lines)))
        out.write("const size_t sys_object_%s_bytes = sizeof(sys_object_%s);\n" % (name, name))
    out.write("const struct sys_tool *const sys_tools[] = {%s, NULL};\n" % ", ".join("&sys_" + name for name in tools))
