#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes C of the page's scripts and style: embed_page.py OUT.c page.js page.css events.js. See page_asset.h."""
import base64
import hashlib
import sys

with open(sys.argv[1], "w") as out:
    out.write('/* SPDX-License-Identifier: BSD-2-Clause */\n#include "view/page/page_asset.h"\n')
    for name, path in zip(("script", "style", "events"), sys.argv[2:]):
        with open(path, "rb") as file:
            data = file.read()
        lines = [", ".join(map(str, data[i : i + 24])) for i in range(0, len(data), 24)]
        out.write("const char page_%s[] = {\n%s\n};\n" % (name, ",\n".join(lines)))
        out.write("const size_t page_%s_bytes = sizeof(page_%s);\n" % (name, name))
        digest = base64.b64encode(hashlib.sha256(data).digest()).decode()
        out.write('const char page_%s_hash[] = "sha256-%s";\n' % (name, digest))
