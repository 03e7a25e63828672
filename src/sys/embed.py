#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes C of BPF objects: embed.py OUT.c NAME.bpf.o... Each becomes sys_object_NAME, gzipped; and the table of tools, of
which those behind "--" are none.
"""
import gzip
import os
import sys

source, *objects = sys.argv[1:]
names = [os.path.basename(path).split(".")[0] for path in objects]
tools = names[: names.index("--")] if "--" in names else names
with open(source, "w") as out:
    out.write('/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */\n#include "sys/tool.h"\n')
    for name, path in zip(names, objects):
        if path == "--":
            continue
        with open(path, "rb") as file:
            data = gzip.compress(file.read(), 9, mtime=0)
        if name in tools:
            out.write("SYS_OBJECT_OF(%s);\n" % name)
        else:
            out.write("extern const unsigned char sys_object_%s[];\nextern const size_t sys_object_%s_bytes;\n" % (name, name))
        lines = [", ".join(map(str, data[i : i + 24])) for i in range(0, len(data), 24)]
        out.write("const unsigned char sys_object_%s[] = {\n%s\n};\n" % (name, ",\n".join(lines)))
        out.write("const size_t sys_object_%s_bytes = sizeof(sys_object_%s);\n" % (name, name))
    out.write("const struct sys_tool *const sys_tools[] = {%s, NULL};\n" % ", ".join("&sys_" + name for name in tools))
