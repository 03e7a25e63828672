# SPDX-License-Identifier: BSD-2-Clause
"""Readers of what `allium export` writes that know the formats and nothing of allium. They fail where a rule is broken.
"""
import collections
import gzip
import json

from tap import check, equal

UNITS = ("none", "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes")


def folded_name(name):
    return name.replace(";", ":")


def whole(value, what):
    check(type(value) is int and value >= 0, what, "is", repr(value))
    return value


def exactly(value, required, allowed, what):
    keys = set(value)
    check(set(required) <= keys <= set(required) | set(allowed), what, "has", sorted(keys))


def speedscope_profile(profile, names):
    exactly(profile, ("type", "name", "unit", "startValue", "endValue", "samples", "weights"), (), "a profile")
    equal(profile["type"], "sampled", "type")
    check(profile["unit"] in UNITS, "unit", profile["unit"])
    check(isinstance(profile["name"], str), "name", profile["name"])
    equal(len(profile["weights"]), len(profile["samples"]), "weights of %s" % profile["name"])
    stacks = collections.Counter()
    for sample, weight in zip(profile["samples"], profile["weights"]):
        check(sample and whole(weight, "weight"), "an empty sample")
        check(all(whole(frame, "frame") < len(names) for frame in sample), "a frame beyond the list:", sample)
        stacks[";".join(names[frame] for frame in sample)] += weight
    equal((profile["startValue"], profile["endValue"]), (0, sum(stacks.values())), "values of %s" % profile["name"])
    return stacks


def speedscope(data):
    """
    By the rules of https://www.speedscope.app/file-format-schema.json and by those its importer goes by.
    -> {name of the profile: {"root;...;leaf": weight}}
    """
    file = json.loads(data.decode())  # which must be UTF-8
    exactly(file, ("$schema", "shared", "profiles"), ("name", "exporter", "activeProfileIndex"), "the file")
    equal(file["$schema"], "https://www.speedscope.app/file-format-schema.json", "schema")
    check(file["name"] and file["exporter"].startswith("allium@"), file["name"], file["exporter"])
    exactly(file["shared"], ("frames",), (), "shared")
    frames = file["shared"]["frames"]
    for frame in frames:
        exactly(frame, ("name",), ("file", "line"), "a frame")
        check(isinstance(frame["name"], str) and isinstance(frame.get("file", ""), str), frame)
        check(whole(frame.get("line", 1), "line"), frame)
    equal(len({json.dumps(frame, sort_keys=True) for frame in frames}), len(frames), "different frames")
    check(file["profiles"], "no profile at all")
    check(whole(file["activeProfileIndex"], "activeProfileIndex") < len(file["profiles"]), "no such active profile")
    names = [folded_name(frame["name"]) for frame in frames]
    found = {profile["name"]: speedscope_profile(profile, names) for profile in file["profiles"]}
    equal(len(found), len(file["profiles"]), "different names of profiles")
    return found


class Heaptrack:
    """What heaptrack's reader (accumulatedtracedata.cpp of 1.4.0) makes of a file, in both of its passes."""

    def __init__(self, path):
        with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
            self.lines = file.read().decode().split("\n")
        equal(self.lines.pop(), "", "what follows the last line")
        self.strings, self.ips, self.traces, self.infos = [""], [None], [None], []
        self.command, self.curve, self.rss = None, [], 0
        self.calls = self.temporary = self.live = self.peak = self.now_ms = self.peak_ms = self.last = 0
        self.used = 0  # infos that had an event
        self.stack_calls, self.stack_temporary, self.stack_live = (collections.Counter() for _ in range(3))
        self.stack_peak = {}
        for number, line in enumerate(self.lines, 1):
            check(len(line) > 2 and line[1] == " ", "line", number, "is", repr(line))
            rest = line[2:]
            if line[0] in "sX":
                getattr(self, "read_" + line[0])(rest)
                continue
            check(all(word == "%x" % int(word, 16) for word in rest.split(" ")), "numbers of line", number, repr(line))
            getattr(self, {"+": "allocate", "-": "free"}.get(line[0], "read_" + line[0]))(
                *(int(n, 16) for n in rest.split(" "))
            )
        self.curve.append((self.now_ms, self.live))

    def read_v(self, heaptrack, version):
        equal((heaptrack, version), (0x10400, 3), "versions")

    def read_I(self, page, pages):
        equal((page, pages), (4096, 0), "page size and number")

    def read_X(self, text):
        equal(self.command, None, "command before")
        self.command = text

    def read_s(self, rest):
        size, _, text = rest.partition(" ")
        equal(int(size, 16), len(text.encode()), "size of %r" % text)
        check(text and text not in self.strings[1:] if len(self.strings) < 50 else text, "a string twice:", text)
        self.strings.append(text)

    def read_i(self, address, module, *frames):
        check(frames and len(frames) % 3 == 0, "frames of an address:", frames)
        check(max(module, *frames[0::3], *frames[1::3]) < len(self.strings), "a string beyond the list")
        self.ips.append([self.strings[function] for function in frames[0::3]])

    def read_t(self, ip, parent):
        check(0 < ip < len(self.ips) and parent < len(self.traces), "trace", ip, parent)
        self.traces.append((ip, parent))

    def read_a(self, size, trace):
        check(0 < trace < len(self.traces), "trace", trace)
        self.infos.append((size, trace))

    def read_c(self, ms):
        check(ms >= self.now_ms, "time goes back from", self.now_ms, "to", ms)
        self.curve.append((self.now_ms, self.live))
        self.now_ms = ms

    def read_R(self, pages):
        self.rss = max(self.rss, pages)

    def allocate(self, info):
        check(info <= self.used, "heaptrack_gui takes infos to begin in their order, not", info, "after", self.used)
        self.used = max(self.used, info + 1)
        size, trace = self.infos[info]
        self.last = info
        self.calls += 1
        self.live += size
        self.stack_calls[trace] += 1
        self.stack_live[trace] += size
        if self.live > self.peak:
            self.peak, self.peak_ms, self.stack_peak = self.live, self.now_ms, None
        elif self.stack_peak is None:
            self.stack_peak = +(self.stack_live - collections.Counter({trace: size}))

    def free(self, info):
        size, trace = self.infos[info]
        if self.stack_peak is None:
            self.stack_peak = +self.stack_live
        temporary = self.last == info
        self.last = 0
        self.live -= size
        self.stack_live[trace] -= size
        check(self.stack_live[trace] >= 0, "more is freed than allocated from", self.names(trace))
        self.temporary += temporary
        self.stack_temporary[trace] += temporary

    def names(self, trace):
        names = []
        while trace:
            ip, trace = self.traces[trace]
            names += self.ips[ip]
        return ";".join(folded_name(name) for name in reversed(names))

    def folded(self, counter):
        """{"root;...;leaf": sum} of a counter by trace"""
        found = collections.Counter()
        for trace, value in (self.stack_live if counter is None else counter).items():
            found[self.names(trace)] += value
        return +found

    def live_at(self, ms):
        """What the curve has then: the highest of those of that time."""
        best, before = None, 0
        for time, live in self.curve:
            if time > ms:
                break
            best = live if time < ms or best is None else max(best, live)
        return before if best is None else best
