#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Each tool of `allium sys` by a BTF like that of Linux 5.15: of this kernel's, what came later is taken away, and what had
another name or other arguments then has those. Programs load, attach, and say what they cannot show without it. (Structs
whose layout differed cannot be had so: a program would read the wrong bytes.)
"""
import contextlib
import re
import struct
import sys

sys.dont_write_bytecode = True
import anytool
import lib
from anytool import sys_
from lib import Failed, check, equal, tap

GONE = "not_in_5_15"
# (struct, enum or function, its member, value or argument, the name in 5.15)
PARTS = (
    ("mm_struct", "mm_mt", GONE),  # 6.1
    ("mm_struct", "mm_lock_seq", GONE),  # 6.4
    ("cgroup", "ancestors", "ancestor_ids"),  # 6.1, before numbers: see ids()
    ("kernfs_node", "__parent", "parent"),  # 6.15
    ("bpf_func_id", "BPF_FUNC_loop", GONE),  # 5.17
    ("bpf_func_id", "BPF_FUNC_map_lookup_percpu_elem", GONE),  # 5.19
    ("__traceiter_kmem_cache_alloc", "s", "bytes_req"),  # 6.1
    ("__traceiter_kmem_cache_free", "s", "name"),  # 6.1
    ("__traceiter_mark_victim", "task", "pid"),  # 6.10
)
TYPES = ("trace_event_raw_mm_vmscan_write_folio", "lru_gen_folio", "maple_tree", "maple_node")  # 6.1 and later
# What a tool says that it cannot show.
LACKS = {"faults": "which memory it was (heap, stack, file and so on): this requires Linux 6.1"}
REFUSED = {"ffaults": "cannot see mappings; before Linux 6.1 no method can"}
KINDS = {1: 4, 3: 12, 14: 4, 17: 4}  # bytes behind a type of one length
EACH = {4: 12, 5: 12, 6: 8, 13: 8, 15: 12, 19: 12}  # for each of its parts
FUNC, NAMED_PARTS = 12, (4, 5, 6, 13, 19)


class Btf:
    """The kernel's own, in which names are changed."""

    def __init__(self):
        with open("/sys/kernel/btf/vmlinux", "rb") as file:
            self.bytes = bytearray(file.read())
        header, type_at, type_bytes, text_at, self.text_bytes = struct.unpack_from("<IIIII", self.bytes, 4)
        self.texts = header + text_at
        equal(self.texts + self.text_bytes, len(self.bytes), "bytes, of which the names are the last")
        self.at, self.by_name = [None], {}
        place = header + type_at
        while place < header + type_at + type_bytes:
            kind, parts = self.info(place)
            self.by_name.setdefault(self.name(place), []).append(len(self.at))
            self.at.append(place)
            place += 12 + KINDS.get(kind, 0) + EACH.get(kind, 0) * parts

    def number(self, place):
        return struct.unpack_from("<I", self.bytes, place)[0]

    def info(self, place):
        info = self.number(place + 4)
        return info >> 24 & 31, info & 0xffff

    def name(self, place):
        begin = self.texts + self.number(place)
        return self.bytes[begin:self.bytes.index(0, begin)].decode()

    def rename(self, place, name):
        self.bytes += name.encode() + b"\0"
        struct.pack_into("<I", self.bytes, place, self.text_bytes)
        self.text_bytes += len(name) + 1
        struct.pack_into("<I", self.bytes, 20, self.text_bytes)

    def parts(self, place):
        """The places of the names of a type's members, those of unnamed structs in it, too; of its values or arguments."""
        kind, parts = self.info(place)
        if kind == FUNC:
            return self.parts(self.at[self.number(place + 8)])
        found = [place + 12 + EACH[kind] * part for part in range(parts)] if kind in NAMED_PARTS else []
        unnamed = [self.at[self.number(part + 4)] for part in found if kind in (4, 5) and not self.number(part)]
        return found + [part for inner in unnamed for part in self.parts(inner)]

    def change(self, owner, part, name):
        """-> how many had the name."""
        found = [place for type_ in self.by_name.get(owner, ()) for place in self.parts(self.at[type_])
                 if self.name(place) == part]
        for place in found:
            self.rename(place, name)
        return len(found)

    def ids(self):
        """The elements of ancestor_ids are numbers."""
        place, = [place for type_ in self.by_name["cgroup"] for place in self.parts(self.at[type_])
                  if self.name(place) == "ancestor_ids"]
        struct.pack_into("<I", self.bytes, self.at[self.number(place + 4)] + 12, self.by_name["u64"][0])

    def remove(self, owner):
        for type_ in self.by_name.get(owner, ()):
            self.rename(self.at[type_], owner + "_" + GONE)


@contextlib.contextmanager
def older(*planted):
    """What a command begins with that sees such a kernel."""
    btf = Btf()
    changed = {part for owner, part, name in (*PARTS, *planted) if btf.change(owner, part, name)}
    check(changed >= {"mm_mt", "ancestors", "s", "BPF_FUNC_loop"}, "changed:", changed)
    btf.ids()
    for owner in TYPES:
        btf.remove(owner)
    with tap.private_dir() as folder:
        with open(folder + "/btf", "wb") as file:
            file.write(btf.bytes)
        yield [
            "unshare", "-m", "sh", "-c", "mount --bind %s/btf /sys/kernel/btf/vmlinux && "
            '{ test -e %s/events || mount -t tracefs tracefs %s; } && exec "$@"' % (folder, lib.TRACEFS, lib.TRACEFS), "sh"
        ]


def ready(t, *before):
    """(the way to attach, what it cannot show): it runs for a moment, and ends well."""
    done = tap.run([*before, *sys_(t.name, "--json", *t.one_report_after("200ms"))])
    equal(done.returncode, 0, "exit code (%s)" % done.stderr.decode())
    anytool.parse(done.stdout)
    said = done.stderr.decode().splitlines()[0].partition(" using ")[2]
    return said.partition(",")[0], said.partition(", which cannot show ")[2]


def loads(t):
    """Each way to attach that works with the kernel's own BTF does, unless an argument has another name then."""
    with older() as before:
        if t.name in REFUSED:
            done = tap.run([*before, *sys_(t.name, "--duration", "20ms")])
            equal((done.returncode, done.stderr.count(b"\n")), (3, 1), "code, lines")
            return check(REFUSED[t.name] in done.stderr.decode(), done.stderr)
        method, lacks = ready(t, *before)
        check(method in t.methods, method)
        check(LACKS.get(t.name, "") in lacks, "it cannot show", lacks)
        for other in t.methods:
            command = lib.with_tracefs(sys_(t.name, "--attach", other, "--duration", "20ms"))
            if tap.run(command).returncode:
                continue
            done = tap.run([*before, *sys_(t.name, "--attach", other, "--duration", "20ms")])
            said = done.stderr.decode()
            check(done.returncode == 0 or re.search(r": argument \d of \w+ is \w+ here, not", said), other, said)


def counts(name, what, by, *commands):
    """The figures are those of the kernel's own BTF, at the same events."""
    with older() as before, lib.maker() as m:
        options = ("-p", str(m.pid), "--by", by, "--json", "--interval", "1h")
        both = [anytool.subprocess.Popen([*start, *sys_(name, *options)], stdin=anytool.subprocess.DEVNULL,
                                         stdout=anytool.subprocess.PIPE, stderr=anytool.subprocess.PIPE)
                for start in (before, ["env"])]
        for process in both:
            check(b": ready: " in process.stderr.readline(), "not ready")
        m.do(*commands)
        sums = []
        for process in both:
            process.send_signal(lib.signal.SIGINT)
            out, errors = process.communicate(timeout=tap.TIMEOUT)
            equal(process.returncode, 0, errors)
            rows, lost = anytool.parse(out)
            lib.excuse(lost["missed_events"])
            sums.append(sum(row[what] for row in rows))
    check(sums[1] >= 1000, sums)
    equal(*sums, "%s by the older BTF and by the kernel's own" % what)


def is_noticed():
    """The check sees a tool that takes a member without which it cannot do."""
    about = anytool.About("drsnoop")
    with older(("kernfs_node", "id", GONE)) as before:
        try:
            ready(about, *before)
        except Failed as why:
            return check("failed to resolve CO-RE relocation" in str(why), why)
    raise Failed("drsnoop loads without the ids of cgroups")


TESTS = [("%s: it loads by a BTF like that of 5.15" % about, lambda about=about: loads(about))
         for about in anytool.all_about()]
TESTS += [
    ("faults counts as by the kernel's own BTF", lambda: counts("faults", "faults", "process", "touch 2000")),
    ("kmem counts as by the kernel's own BTF", lambda: counts("kmem", "allocations", "process", "files 1000")),
    ("kpages counts as by the kernel's own BTF", lambda: counts("kpages", "allocations", "process", "touch 2000")),
    ("what is missing is noticed", is_noticed),
]
lib.main(TESTS)
