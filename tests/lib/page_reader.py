# SPDX-License-Identifier: BSD-2-Clause
"""Pages of `allium export --html`: their data, read as src/view/page/page_blob.h says, and what a browser makes of them.
"""
import array
import base64
import hashlib
import html
import json
import re
import struct
import urllib.parse
import zlib

import tap
from tap import check, equal

POLICY = ("default-src 'none'; script-src %s; style-src 'sha256-%s'; base-uri 'none'; form-action 'none'")


def between(text, begin, end):
    found = text.split(begin)
    equal(len(found), 2, "places with " + begin)
    return found[1].split(end)[0]


def sha256(text):
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


class Page:
    """header: the JSON; the rest by name."""

    def __init__(self, path):
        with open(path, encoding="utf-8", newline="") as file:
            self.text = file.read()
        packed = between(self.text, '<script type="text/plain" id="data">', "</script>")
        self.data = zlib.decompress(base64.b64decode(packed, validate=True))
        length, = struct.unpack_from("<I", self.data)
        self.header = json.loads(self.data[4:4 + length])
        equal((self.header["schema"], self.header["version"]), ("allium-page", 1), "schema")
        self.columns = (4 + length + 7) // 8 * 8
        self.known = {}  # columns by their place
        self.find(self.header)

    def find(self, at):
        """Reads all columns of numbers, which others may be the same as."""
        if isinstance(at, dict) and at.get("kind") in ("u32", "f64") and "at" in at:
            self.column(at)
        elif isinstance(at, (dict, list)):
            for part in at.values() if isinstance(at, dict) else at:
                self.find(part)

    def column(self, c):
        if c["kind"] == "zero":
            return [0] * c["n"]
        begin = self.columns + c["at"]
        data = self.data[begin:begin + c["bytes"]]
        if c["kind"] == "text":
            texts = data.decode("utf-8").split("\n")
            equal((len(texts), texts[-1]), (c["n"] + 1, ""), "texts")
            return texts[:-1]
        if c["kind"] == "same":  # the column that begins there; whole numbers are stored in four bytes
            return self.known[c["at"]]
        numbers = self.known[c["at"]] = array.array("I" if c["kind"] == "u32" else "d", data).tolist()
        return numbers

    def policy(self):
        """The page may run its own scripts, and use its own style, and nothing else."""
        style = between(self.text, "<style>", "</style>")
        scripts = [script.split("</script>")[0] for script in self.text.split("<script>")[1:]]
        equal(len(scripts), 2 if "events" in self.header else 1, "scripts")
        hashes = " ".join("'sha256-%s'" % sha256(script) for script in scripts[::-1])
        said = between(self.text, '<meta http-equiv="Content-Security-Policy" content="', '"')
        equal(said, POLICY % (hashes, sha256(style)), "policy")

    def values(self, metric, amount):
        """By row: estimates, of cells as src/model/profile/estimate.c makes them, and of rows that have their own."""
        p = self.header["profile"]
        values = [0] * p["row_node"]["n"]
        if "cells" in p:
            cells = p["cells"]
            kind = {"live": "allocated", "requested": "allocated", "slack": "allocated"}.get(metric, metric)
            sums = {key: self.column(c) for key, c in cells[kind].items()}
            if metric == "live":
                for key, c in cells["freed"].items():
                    sums[key] = [max(a - b, 0) for a, b in zip(sums[key], self.column(c))]
            if metric in ("requested", "slack"):  # of the kernel: what was seen is what was requested
                slack = [a - b for a, b in zip(sums["bytes"], sums["seen"])]
                sums["bytes"] = slack if metric == "slack" else sums["seen"]
            for i, (row, period) in enumerate(zip(self.column(cells["row"]), self.column(cells["period_bytes"]))):
                if period <= 1:
                    values[row] += sums["samples" if amount == "count" else "bytes"][i]
                elif sums["samples"][i]:
                    least, most = ("samples", "count") if amount == "count" else ("seen", "bytes")
                    values[row] += max(sums[least][i], sums[most][i])
        own, = [m[amount]["value"] for m in p["metrics"] if m["key"] == metric]
        own = self.column(own)
        for row, value in zip(self.column(p["sums_row"]) if "sums_row" in p else range(len(own)), own):
            values[row] += value
        return values

    def stacks(self, metric, amount="bytes"):
        """{"root;...;leaf": value}, without those of 0."""
        p = self.header["profile"]
        strings = self.column(p["strings"])
        functions = self.column(p["frames"]["function"])
        frames, depths = self.column(p["nodes"]["frame"]), self.column(p["nodes"]["depth"])
        path, names = [], []
        for frame, depth in zip(frames, depths):
            del path[max(depth - 1, 0):]
            if depth:
                check(depth == len(path) + 1, "a node without a parent")
                path.append(strings[functions[frame]])
            names.append(";".join(name.replace(";", ":") for name in path))
        sums = {}
        for node, value in zip(self.column(p["row_node"]), self.values(metric, amount)):
            if value:
                sums[names[node]] = sums.get(names[node], 0) + value
        return sums


class Shown:
    """The page in a browser, as it stands when its scripts have run. `state`: of the address, {"view": "flame"}."""

    def __init__(self, place, path, **state):
        url = "file://%s#%s" % (urllib.parse.quote(place.path(path)), urllib.parse.urlencode(state, doseq=True))
        done = tap.run([
            "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--enable-logging=stderr",
            "--user-data-dir=" + place.path("chromium"), "--virtual-time-budget=20000", "--dump-dom", url
        ], env=dict(place.env, HOME=place.folder))
        equal(done.returncode, 0, "code of the browser: " + done.stderr.decode()[-500:])
        self.dom = done.stdout.decode()
        said = [line for line in done.stderr.decode().splitlines() if "CONSOLE" in line]
        equal(said, [], "what the page's console says")
        check('data-ready="1"' in self.dom, "the page did not get ready:", self.dom[:2000])

    def details(self):
        """-> (name, value, low, high) of what is selected"""
        found = re.search(r'<div class="details" [^>]*data-value="([^"]+)" data-low="([^"]+)" data-high="([^"]+)"><b>(.*?)</b>',
                          self.dom)
        check(found, "nothing is selected:", self.dom[-1000:])
        return (html.unescape(found.group(4)), *map(float, found.groups()[:3]))

    def found(self):
        """-> (value, low, high) of all that the search has found"""
        found = re.search(r'<span class="found"[^>]* data-value="([^"]+)" data-low="([^"]+)" data-high="([^"]+)"', self.dom)
        check(found, "nothing is found:", self.dom[-1000:])
        return tuple(map(float, found.groups()))

    def rows(self):
        """Texts of the cells of each row of the table that is made."""
        found = re.findall(r'<div class="tr[^"]*" role="row"[^>]*>(.*?)</div>', self.dom)
        cells = re.compile(r'<(?:span|button)(?: [^>]*)?>([^<]*)</')
        return [[html.unescape(text) for text in cells.findall(row)] for row in found]
