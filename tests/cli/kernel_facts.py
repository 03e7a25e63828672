# SPDX-License-Identifier: BSD-2-Clause
"""What is read of the kernel itself, against what other programs, or the kernel in other words, say of it."""
import bisect
import collections
import contextlib
import ctypes
import glob
import os
import random
import re
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import tap
from tap import built, check, equal

CLONE_NEWNS = 0x20000
CODE = "tTwW"
ENDS = ("_etext", "_einittext")
UNKNOWN, NO_LIMIT = 2**64 - 2, 2**64 - 1
TRACING = "/sys/kernel/tracing"


def facts(*words, text=""):
    return tap.succeed([built("TEST_CLI") + "/kernel_facts", *words], input=text.encode()).stdout.decode()


class Symbols:
    """kernel_facts symbols, which stays: ask() it for an address."""

    def __enter__(self):
        self.process = subprocess.Popen([built("TEST_CLI") + "/kernel_facts", "symbols"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        equal(self.process.stdout.readline(), "ready\n", "its first line")
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(tap.TIMEOUT)
        self.process.stdout.close()
        self.process.stderr.close()

    def ask(self, address):
        """[name, function, module, offset, gone], or None."""
        self.process.stdin.write("%x\n" % address)
        self.process.stdin.flush()
        words = self.process.stdout.readline().split()
        return None if words == ["-"] else words


# ---- symbols ----


def sorted_kallsyms():
    """[(address, {(name, module)})] in order, as sort(1) has it; an end, or data, is an empty set."""
    places = []
    # sort(1) itself would read it in pieces, each of which takes the kernel longer
    with open("/proc/kallsyms") as names:
        text = tap.succeed(
            ["sort", "-s", "-k1,1"], input=names.read().encode(), env=dict(os.environ, LC_ALL="C")
        ).stdout.decode()
    for line in text.splitlines():
        words = line.split()
        address, module = int(words[0], 16), words[3].strip("[]") if len(words) > 3 else "-"
        if not places or places[-1][0] != address:
            places.append((address, set()))
        if words[1] in CODE and words[2] not in ENDS:
            places[-1][1].add((words[2], module))
    return [place for place in places if place[0] >= 1 << 63]


def symbols_as_sorted():
    places = sorted_kallsyms()
    check(len(places) > 10000, len(places), "addresses in kallsyms: it takes root")
    starts = [address for address, _ in places]
    chosen = random.Random(7)
    asked = [chosen.choice(starts) for _ in range(1000)]
    asked += [
        chosen.randrange(starts[0], starts[bisect.bisect_right(starts, starts[0] + (32 << 20)) - 1])
        for _ in range(1000)
    ]
    found = 0
    with Symbols() as symbols:
        for address in asked:
            at = bisect.bisect_right(starts, address) - 1
            names, have = places[at][1], symbols.ask(address)
            if any(module in ("bpf",) or module.startswith("__builtin") for _, module in names):
                continue  # may have gone meanwhile
            if have is None:
                check(not names, "no symbol at %x, which is in one of" % address, names)
                continue
            check((have[0], have[2]) in names, "%x is %s, and not one of" % (address, have), names)
            equal(int(have[3]), address - starts[at], "offset of %x" % address)
            found += 1
    check(found > 1000, "only", found, "of 2000 addresses have a symbol")


def addresses_as_kallsyms():
    """What the kernel says when it is asked for a name is what it lists."""
    listed = collections.defaultdict(set)
    with open("/proc/kallsyms") as file:
        for words in map(str.split, file):
            if len(words) == 3 and words[1] in "tT" and len(words[2]) < 64:
                listed[words[2]].add(int(words[0], 16))
    names = random.Random(11).sample(
        sorted(name for name, places in listed.items() if len(places) == 1 and 0 not in places), 100)
    names += ["no_such_name", "x" * 63, "x" * 64]
    told = [int(line, 16) for line in facts("lookup", text="\n".join(names)).split()]
    equal(told, [min(listed.get(name, {0})) for name in names], "addresses of %s" % names)


def aliases_as_awk():
    """Where a global function and a local one share a place, no local one is chosen, marks of the build apart."""
    lines = tap.succeed([
        "awk", "$2 ~ /[TtWw]/ && NF == 3 && $3 !~ /^(__pfx_|__cfi_|__pi_|__traceiter_|__probestub_|[.$])|"
        "(_start|_end|_begin)$|^_[se]?i?n?i?t?text$/ { print $1, $2, $3 }", "/proc/kallsyms"
    ]).stdout.decode()
    kinds = {}
    for line in lines.splitlines():
        address, kind, name = line.split()
        kinds.setdefault(address, {})[name] = kind
    mixed = {
        address: names
        for address, names in kinds.items() if {kind.isupper()
                                                for kind in names.values()} == {True, False}
    }
    check(len(mixed) > 5, "only", len(mixed), "places with global and local names")
    with Symbols() as symbols:
        for address, names in mixed.items():
            have = symbols.ask(int(address, 16))
            check(have and names[have[0]].isupper(), address, "is", have, "of", names)


def bpf_symbols():
    """The names of [bpf] entries of kallsyms, and their places."""
    lines = [line.split() for line in open("/proc/kallsyms") if line.endswith("[bpf]\n")]
    return {words[2]: int(words[0], 16) for words in lines}


def programs_of(pid):
    """Names of the BPF programs that a process has, by their tags: others come and go, too."""
    texts = []
    for path in glob.glob("/proc/%d/fdinfo/*" % pid):
        with contextlib.suppress(OSError):
            texts.append(read(path))
    tags = re.findall(r"^prog_tag:\s*(\w+)", "".join(texts), re.M)
    return {name for name in bpf_symbols() if any(tag in name for tag in tags)}


def programs_that_come_and_go():
    with Symbols() as symbols:
        tracer = subprocess.Popen(["bpftrace", "-e", "interval:s:600 { @ = count(); }"], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
        try:
            name = min(tap.wait_until(lambda: programs_of(tracer.pid), 60, "a BPF program of bpftrace"))
            place = bpf_symbols()[name] + 4
            check(name.startswith("bpf_prog_"), name)
            # Somebody else's program may have been there before: then it takes a second until that is noticed.
            tap.wait_until(lambda: symbols.ask(place) and symbols.ask(place)[0] == name, 60,
                           "the symbol of a new program")
            equal(symbols.ask(place), [name, name, "bpf", "4", "0"], "a program that is there")
        finally:
            tap.stop(tracer, signal.SIGKILL)
        tap.wait_until(lambda: name not in bpf_symbols(), 60, "the program is gone")
        other = tap.wait_until(
            lambda: (lambda s: s and s[4] == "1" and s or s and s[0] != name and s)(symbols.ask(place)), 60,
            "that it is gone is noticed")
        check(other[0] == name or other[0] in bpf_symbols(), "another name than it had:", other)


# ---- tracing ----


@contextlib.contextmanager
def tracing():
    """A trace buffer of our own. Tracefs is mounted for us alone: from here on this process has its own mounts."""
    libc = ctypes.CDLL(None, use_errno=True)
    check(libc.unshare(CLONE_NEWNS) == 0, "unshare:", os.strerror(ctypes.get_errno()))
    tap.succeed(["mount", "--make-rprivate", "/"])
    if not os.path.isdir(TRACING + "/instances"):
        tap.succeed(["mount", "-t", "tracefs", "tracefs", TRACING])
    folder = "%s/instances/allium-test-%d" % (TRACING, os.getpid())
    os.mkdir(folder)
    try:
        yield folder
    finally:
        write(folder + "/tracing_on", "0")
        write(folder + "/events/enable", "0")
        os.rmdir(folder)


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def read(path):
    with open(path, errors="replace") as file:
        return file.read()


def flags_as_traced():
    with tracing() as folder:
        write(folder + "/buffer_size_kb", "4096")
        for event in "kmem/kmalloc", "kmem/kmem_cache_alloc", "kmem/mm_page_alloc":
            write("%s/events/%s/enable" % (folder, event), "1")
        tap.succeed(["sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do ls -lR /sys/kernel/debug /proc/self >/dev/null; done; "
                     "dd if=/dev/zero of=/dev/shm/allium-test-$$ bs=1M count=8; rm /dev/shm/allium-test-$$"])
        write(folder + "/tracing_on", "0")
        texts = re.findall(r" gfp_flags=(\S+)", read(folder + "/trace"))
        write(folder + "/trace_options", "fields")  # the same events, as numbers
        raw = re.findall(r" gfp_flags=0x([0-9a-f]+)", read(folder + "/trace"))
        check(len(texts) > 1000 and len(raw) == len(texts), len(texts), "events and", len(raw), "raw ones")
        pairs = dict(zip(raw, texts))
        check(len(pairs) > 5, "only these flags:", pairs)
        source, *names = facts("words", text="\n".join(pairs)).splitlines()
        equal(source[0], "2", "the source of the names: the format of an event")
        equal(dict(zip(pairs, names)), pairs, "names of flags")


def words_without_tracefs():
    """Of BTF alone: the same words; and of neither, none."""
    flags = ["0", "cc0", "dc0", "400cc0", "2800", "1000000000"]
    command = [built("TEST_CLI") + "/kernel_facts", "words"]
    hide = "mount --make-rprivate / && umount -a -l -t tracefs,debugfs; exec \"$@\""
    done = tap.succeed(["unshare", "-m", "sh", "-c", hide, "sh", *command],
                       input="\n".join(flags).encode()).stdout.decode()
    source, *names = done.splitlines()
    equal(source.split()[1:4], ["unmovable", "movable", "reclaimable"], "migrate types")
    has_bits = "___GFP_ZERO_BIT" in tap.succeed(["bpftool", "btf", "dump", "file",
                                                 "/sys/kernel/btf/vmlinux"]).stdout.decode()
    if has_bits:
        equal(source[0], "1", "the source: BTF")
        equal(names,
              ["none", "GFP_KERNEL", "GFP_KERNEL|__GFP_ZERO", "GFP_KERNEL_ACCOUNT", "GFP_NOWAIT", "0x1000000000"],
              "names")
    else:
        equal(source[0], "0", "the source: none")
        equal(names, ["none"] + ["0x" + word for word in flags[1:]], "names")


# ---- cgroups ----


def mounts_of(kind, word=""):
    for line in open("/proc/self/mountinfo"):
        before, behind = line.split(" - ")
        if behind.split()[0] == kind and word in behind.split()[2].split(","):
            yield before.split()[4]


def hierarchies():
    """[(number as kernel_facts has it, mount)]: whichever this machine has; at least one."""
    found = [(0, path) for path in list(mounts_of("cgroup2", "rw"))[:1]]
    found += [(1, path) for path in list(mounts_of("cgroup", "memory"))[:1]]
    check(found, "neither version of cgroups is mounted")
    return found


@contextlib.contextmanager
def cgroup(mount, *names):
    """Folders one in the other, gone afterwards; yields the innermost."""
    made = []
    try:
        for name in names:
            made.append("/".join([made[-1] if made else mount, name]))
            os.mkdir(made[-1])
        yield made[-1]
    finally:
        for path in reversed(made):
            remove_soon(path)


def remove_soon(path):
    """A group whose process has just ended is busy for a moment."""
    def removed():
        try:
            os.rmdir(path)
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True
    tap.wait_until(removed, 30, "rmdir " + path)


def ids_as_traced():
    """The kernel's own words for what was made: cgroup:cgroup_mkdir tells cgroup_id(), level and path."""
    outer = "allium-test-%d" % os.getpid()
    with tracing() as folder:
        write(folder + "/events/cgroup/cgroup_mkdir/enable", "1")
        for number, mount in hierarchies():
            with cgroup(mount, outer, "in ner", "deep") as path:
                events = re.findall(r"cgroup_mkdir: root=\d+ id=(\d+) level=(\d+) path=(/%s.*)" % outer,
                                    read(folder + "/trace"))
                equal(len(events), 3, "groups made in " + mount)
                for id_, level, below in events:
                    below = below.rstrip()
                    for name in (mount + below, below, below[1:], mount + below + "/"):
                        if name != mount + below and number == 1 and os.path.isdir(hierarchies()[0][1] + below):
                            continue
                        equal(facts("cgroup", name).replace("in ner", "in_ner").split()[:4],
                              [str(number), id_, level, below.replace("in ner", "in_ner")], "cgroup " + name)
                    equal(facts("paths", text="%d %s\n" % (number, id_)), below + "\n", "path of id " + id_)
            write(folder + "/trace", "")


def paths_are_found_later():
    with subprocess.Popen([built("TEST_CLI") + "/kernel_facts", "paths"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as paths:
        def ask(number, id_):
            paths.stdin.write("%d %d\n" % (number, id_))
            paths.stdin.flush()
            return paths.stdout.readline().rstrip("\n")
        for number, mount in hierarchies():
            name = "allium-test-later-%d" % os.getpid()
            equal(ask(number, os.stat(mount).st_ino), "/", "path of the mount")
            with cgroup(mount, name) as path:
                id_ = os.stat(path).st_ino
                tap.wait_until(lambda: ask(number, id_) == "/" + name, 30, "the path of a new group")
            time.sleep(1.1)
            equal(ask(number, 2**60 + 1), "-", "an id that is none")  # walks once more
            equal(ask(number, id_), "/" + name, "the path of a group that is gone")
        paths.stdin.close()


def other_paths_are_refused():
    def refused(path):
        done = tap.run([built("TEST_CLI") + "/kernel_facts", "cgroup", path])
        equal((done.returncode, done.stdout), (1, b""), "what it says of " + path)
        lines = done.stderr.decode().splitlines()
        equal(len(lines), 1, "lines")
        return lines[0]
    check("does not exist" in refused("/allium-test/absent"), refused("/allium-test/absent"))
    check("not a cgroup" in refused("/tmp"), refused("/tmp"))
    check("does not exist" in refused("../../../tmp"), refused("../../../tmp"))
    for controllers in "cpu", "pids", "name=systemd":
        for mount in list(mounts_of("cgroup", controllers))[:1]:
            if mount not in mounts_of("cgroup", "memory"):
                check("a cgroup of " in refused(mount) and controllers in refused(mount), refused(mount))


def depth_in_a_namespace():
    """In a cgroup namespace its root is at a depth that nobody tells; the id is the same."""
    for number, mount in hierarchies():
        with cgroup(mount, "allium-test-ns-%d" % os.getpid(), "inner") as path:
            outside = facts("cgroup", path).split()
            enter = "echo $$ >%s/cgroup.procs; exec unshare -C \"$@\"" % os.path.dirname(path)
            done = tap.succeed(["sh", "-c", enter, "sh", built("TEST_CLI") + "/kernel_facts", "cgroup", path])
            inside = done.stdout.decode().split()
            equal(inside[:2], outside[:2], "hierarchy and id")
            equal((outside[2], inside[2]), ("2", "-1"), "level outside and inside")


def memory_as_set():
    for number, mount in hierarchies():
        with cgroup(mount, "allium-test-mem-%d" % os.getpid()) as path:
            have = [int(word) for word in facts("cgroup", path).split()[4:]]
            if number == 0 and not os.path.exists(path + "/memory.current"):
                equal(have, [UNKNOWN] * 3, "memory of a group without the controller")
                continue
            equal(have[1], NO_LIMIT, "limit of a new group")
            write(path + ("/memory.max" if number == 0 else "/memory.limit_in_bytes"), str(64 << 20))
            holder = subprocess.Popen([
                "sh", "-c",
                "echo $$ >%s/cgroup.procs; exec python3 -c 'a = bytearray(%d); print(1, flush=True); input()'" %
                (path, 20 << 20)
            ], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            try:
                equal(holder.stdout.readline(), b"1\n", "what the holder says")
                usage, limit, peak = (int(word) for word in facts("cgroup", path).split()[4:])
            finally:
                holder.kill()
                holder.wait()
                holder.stdin.close()
                holder.stdout.close()
            equal(limit, 64 << 20, "limit")
            check(20 << 20 <= usage <= 64 << 20, "usage", usage, "of a group that holds 20 MiB")
            check(peak == UNKNOWN or usage <= peak <= 64 << 20, "peak", peak)


# ---- slab ----


def caches():
    """Names, sizes and aliases; not how many objects there are now."""
    rows = [line.split() for line in facts("slab").splitlines()]
    return [[row[0], ""] + row[2:] for row in rows]


def caches_of_others():
    return [tap.succeed(words).stdout.decode() for words in
            (["vmstat", "-m", "-n"], ["find", "/sys/kernel/slab", "-type", "l", "-printf", "%f %l\\n"])]


def slab_as_others():
    """vmstat -m has the sizes, find the links. Caches come and go: while they do it looks again."""
    def steady():
        before, seen, after = caches(), caches_of_others(), caches()
        return before == after and (before, seen)
    rows, (vmstat, found) = tap.wait_until(steady, 60, "caches that stay as they are for a look")
    sizes = {row[0]: int(row[2]) for row in rows}
    others = {line.split()[0]: int(line.split()[3])
              for line in vmstat.splitlines()[1:] if len(line.split()) == 5}
    check(len(others) > 50, len(others), "caches")
    equal({name[:24]: size
           for name, size in sizes.items()}, {name[:24]: size
                                              for name, size in others.items()}, "sizes")
    links = {}
    for line in found.splitlines():
        name, unique = line.rsplit(" ", 1)
        links.setdefault(unique, set()).add(name)
    merged = sorted(sorted(names) for names in links.values() if names & set(sizes))
    equal(
        sorted(
            sorted([row[0]] + row[4:]) for row in rows if links and any(row[0] in names for names in links.values())),
        merged, "names of merged caches")
    for row in rows:
        if os.path.isdir("/sys/kernel/slab/" + row[0]):
            equal(row[3], read("/sys/kernel/slab/%s/object_size" % row[0]).strip(), "size of an object of " + row[0])


if os.geteuid() != 0:
    print("1..0 # SKIP the kernel tells its facts to root alone")
    sys.exit(0)
tap.main([
    ("symbols are where sort(1) finds them", symbols_as_sorted),
    ("a place with several names has a global one", aliases_as_awk),
    ("the kernel is asked for a name, and gives the address that it lists", addresses_as_kallsyms),
    ("a BPF program is found when it came, and after it went", programs_that_come_and_go),
    ("flags have the names that traces have", flags_as_traced),
    ("flags have the same names without tracefs", words_without_tracefs),
    ("a cgroup's id, level and path are the kernel's", ids_as_traced),
    ("a cgroup that is new is found, one that is gone is remembered", paths_are_found_later),
    ("what is no cgroup of memory is refused in a line", other_paths_are_refused),
    ("in a cgroup namespace no level is told", depth_in_a_namespace),
    ("memory of a cgroup is what was set and held", memory_as_set),
    ("slab caches are as vmstat and find have them", slab_as_others),
])
