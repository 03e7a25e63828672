#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes C of the script for other machines: embed_script.py OUT.c pack.sh. See import_script.h."""
import sys

with open(sys.argv[2], "rb") as file:
    data = file.read() + b"\0"
with open(sys.argv[1], "w") as out:
    out.write('/* SPDX-License-Identifier: BSD-2-Clause */\n#include "cli/sys/import/import_script.h"\n')
    lines = [", ".join(map(str, data[i:i + 24])) for i in range(0, len(data), 24)]
    out.write("const char import_script[] = {\n%s\n};\n" % ",\n".join(lines))
