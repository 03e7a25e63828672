#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""large_page.py PAGE KIND N DEPTH OUT: a page like PAGE with made data. KIND profile: of a profile of N calls, with
estimates, and of stacks up to DEPTH; table: of N rows. Names, shapes and values come of a fixed seed.
"""
import array
import base64
import json
import random
import re
import sys
import zlib

FUNCTIONS, MODULES = 5000, 40
CHILDREN = 4


class Columns:
    def __init__(self):
        self.data = bytearray()

    def add(self, kind, values):
        self.data += bytes(-len(self.data) % 8)
        at = len(self.data)
        data = array.array({"u32": "I", "f64": "d"}[kind], values).tobytes()
        self.data += data
        return {"kind": kind, "at": at, "bytes": len(data), "n": len(values)}

    def texts(self, texts):
        at = len(self.data)
        data = "".join(text + "\n" for text in texts).encode()
        self.data += data
        return {"kind": "text", "at": at, "bytes": len(data), "n": len(texts)}


def zero(n):
    return {"kind": "zero", "at": 0, "bytes": 0, "n": n}


def tree(nodes, deepest, chance):
    """Depths in the order of a walk: bushy, and one stack as deep as is asked for."""
    depth = [0] + list(range(1, deepest + 1))
    now = 1
    while len(depth) < nodes:
        now = max(1, min(40, now + chance.choice((1, 1, 0, -1, -3))))
        if now > depth[-1] + 1:
            now = depth[-1] + 1
        depth.append(now)
    return depth


def sums(columns, samples, bytes_, seen):
    return {"samples": columns.add("u32", samples), "bytes": columns.add("f64", bytes_),
            "seen": columns.add("f64", seen), "count": columns.add("f64", [s * 1.5 + 3 for s in samples])}


def profile(columns, nodes, deepest):
    chance = random.Random(7)
    names = ["function_%d" % i for i in range(FUNCTIONS)] + ["lib%d.so" % i for i in range(MODULES)]
    depth = tree(nodes, deepest, chance)
    leaves = [i for i in range(1, nodes) if i + 1 == nodes or depth[i + 1] <= depth[i]]
    n = len(leaves)
    samples = [chance.randrange(1, 20) for _ in leaves]
    seen = [float(s * chance.randrange(16, 900)) for s in samples]
    bytes_ = [s * (1 + chance.random()) for s in seen]
    bytes_[0] = sum(bytes_)  # the deep stack: so that it can be seen
    frame = [chance.randrange(FUNCTIONS) for _ in range(nodes)]
    of = sums(columns, samples, bytes_, seen)
    none = {key: zero(n) for key in of}
    row = columns.add("u32", leaves)
    parts = ("samples exact value seen variance grain log_weight next_mean next_variance first_mean first_variance "
             "smallest largest").split()
    empty = {part: zero(0) for part in parts}
    nothing = {"first_mean": 512.0, "first_variance": 262144.0, "next_mean": 512.0, "next_variance": 262144.0}
    return {
        "strings": columns.texts(names),
        "frames": {"function": columns.add("u32", range(FUNCTIONS)),
                   "module": columns.add("u32", [FUNCTIONS + i % MODULES for i in range(FUNCTIONS)]),
                   "file": columns.add("u32", [FUNCTIONS + i % MODULES for i in range(FUNCTIONS)]),
                   "flags": zero(FUNCTIONS)},
        "nodes": {"depth": columns.add("u32", depth), "frame": columns.add("u32", frame), "line": zero(nodes)},
        "row_node": row, "row_site": row, "row_owner": row, "row_line": zero(n), "row_oldest_ns": zero(n),
        "sums_row": zero(0), "nothing": {"bytes": nothing, "count": nothing},
        "metrics": [{"key": key, "total": {a: {"value": sum(bytes_), "low": 0.0, "high": 2 * sum(bytes_)}
                                           for a in ("bytes", "count")}, "bytes": empty, "count": empty}
                    for key in ("live", "peak", "allocated", "temporary")],
        "cells": {"row": columns.add("u32", range(n)), "period_bytes": columns.add("u32", [512] * n),
                  "allocated": of, "freed": none, "peak": of, "temporary": none},
        "images": [{"program": "made", "pid": 1, "ended": False, "signal": 0, "began_ms": 0, "taken_ms": 1,
                    "peak_ms": 0, "peak_bytes": 0}],
    }


def table(columns, n):
    chance = random.Random(7)
    names = ["function_%d" % chance.randrange(1 << 30) for _ in range(n // 2)]
    return {"rows": n, "weight": "live", "columns": [
        {"kind": "text", "key": "site", "label": "site", "is_name": True, "texts": columns.texts(names),
         "of": columns.add("u32", [1 + chance.randrange(len(names)) for _ in range(n)])},
        {"kind": "number", "key": "live", "label": "live", "unit": "bytes",
         "values": columns.add("f64", [float(chance.randrange(1 << 40)) for _ in range(n)])},
        {"kind": "number", "key": "objects", "label": "objects", "unit": "count",
         "values": columns.add("u32", [chance.randrange(1 << 20) for _ in range(n)])},
    ]}


def main():
    page, kind, n, depth, out = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
    columns = Columns()
    made = profile(columns, n, depth) if kind == "profile" else table(columns, n)
    header = json.dumps({"schema": "allium-page", "version": 1, kind: made}).encode()
    head = len(header).to_bytes(4, "little") + header
    data = head + bytes(-len(head) % 8) + bytes(columns.data)
    packed = base64.b64encode(zlib.compress(data, 1)).decode()
    with open(page, encoding="utf-8", newline="") as file:
        text = file.read()
    with open(out, "w", encoding="utf-8", newline="") as file:
        file.write(re.sub('id="data">[^<]*<', lambda _: 'id="data">' + packed + "<", text, count=1))


main()
