#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`allium sys frag`: against debugfs, an account of /sys and slabinfo of the test's own, and memory that is fragmented on
purpose.
"""
import json
import os
import re
import sqlite3
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import json_schemas
import lib
import page_reader
import tap
from lib import built, check, equal

PAGE = os.sysconf("SC_PAGESIZE")
FILES = 40000
CACHE, SITE = "shmem_inode_cache", "shmem_alloc_inode"
# Of 16 files that were made one after the other one stays: each slab of their inodes keeps one or two.
MAKES_FILES = """
import os, sys, time
names = ["%%s/%%d" %% (sys.argv[1], i) for i in range(%d)]
for name in names:
    os.close(os.open(name, os.O_CREAT | os.O_WRONLY))
for number, name in enumerate(names):
    if number %% 16:
        os.unlink(name)
time.sleep(1)  # inodes are freed after a grace period
""" % FILES
SYSFS = "/sys/kernel/slab/"


def allium(*words, code=0, **how):
    done = tap.run([built("ALLIUM"), *map(str, words)], **how)
    equal(done.returncode, code, "exit code of %s (%s)" % (words, done.stderr.decode()))
    return done


def frag(*words, **how):
    """-> the report"""
    said = allium("sys", "frag", "--json", *words, **how).stdout.decode()
    report = json.loads(said.splitlines()[-1])
    json_schemas.check(report)
    return report


# ---- an account of our own ----


def attributes(text):
    """-> {cache: {attribute: first number}}, {name: folder}, of a recording's text"""
    caches, links = {}, {}
    for line in text.splitlines():
        cache, attribute, value = line.split("\t")
        if attribute == "->":
            links[cache] = value
        elif attribute == "slabs_cpu_partial":
            caches.setdefault(cache, {})[attribute] = int(re.search(r"\((\d+)\)", value).group(1))
        else:
            caches.setdefault(cache, {})[attribute] = int(value.split()[0])
    return caches, links


def sysfs():
    """The same, of this machine."""
    lines = []
    for cache in sorted(os.listdir(SYSFS)):
        if os.path.islink(SYSFS + cache):
            lines.append("%s\t->\t%s" % (cache, os.readlink(SYSFS + cache)))
            continue
        for attribute in ("object_size slab_size objs_per_slab order slabs total_objects objects partial objects_partial "
                          "cpu_slabs slabs_cpu_partial sheaf_capacity").split():
            try:
                with open(SYSFS + cache + "/" + attribute) as file:
                    lines.append("%s\t%s\t%s" % (cache, attribute, file.read().strip()))
            except OSError:
                pass
    return attributes("\n".join(lines))


def parts(a):
    """What a cache's slabs hold, by its attributes."""
    slab = PAGE << a["order"]
    whole, room, used = a["slabs"] * slab, a["total_objects"], a["objects"]
    empty_least = max(0, a["partial"] - a["objects_partial"])
    return {
        "slab_bytes": whole,
        "free_bytes": max(0, room - used) * a["slab_size"],  # the kernel counts one after the other
        "padding_bytes": used * (a["slab_size"] - a["object_size"]),
        "tails_bytes": whole - room * a["slab_size"],
        "objects_bytes": used * a["object_size"],
        "cpu_free_high_bytes": a["cpu_slabs"] * a["objs_per_slab"] * a["slab_size"],
        "cpu_free_low_bytes": a.get("slabs_cpu_partial", 0) * a["slab_size"],
        "partial_slabs": a["partial"],
        "slabs": a["slabs"],
    }, empty_least * slab


def compare_cache(row, a):
    want, shrink_low = parts(a)
    for key, value in want.items():
        equal(row[key], value, "%s of %s" % (key, row["cache"]))
    lost = sum(want[key] for key in ("free_bytes", "padding_bytes", "tails_bytes"))
    equal(row["lost_bytes"], lost, "lost of " + row["cache"])
    check(row["shrink_low_bytes"] <= min(shrink_low, row["shrink_high_bytes"]), row, shrink_low)
    if a["partial"]:
        fill = 100 * a["objects_partial"] / (a["partial"] * a["objs_per_slab"])
        check(abs(row["partial_fill_percent"] - fill) < 1e-9, row, fill)


def unusable(blocks, order):
    pages = sum(n << i for i, n in enumerate(blocks))
    suitable = sum(n << i for i, n in enumerate(blocks) if i >= order)
    return (pages - suitable) * 1000 // pages if pages else 1000


def extfrag(blocks, order):
    total, pages = sum(blocks), sum(n << i for i, n in enumerate(blocks))
    if not total:
        return 0
    return -1000 if any(blocks[order:]) else 1000 - (1000 + pages * 1000 // (1 << order)) // total


def compare_orders(report, buddyinfo):
    for line in buddyinfo.splitlines():
        node, zone, counts = re.fullmatch(r"Node (\d+), zone +(\S+) +([\d ]+)", line).groups()
        blocks = list(map(int, counts.split()))
        rows = [r for r in report["orders"] if r["node"] == int(node) and r["zone"] == zone]
        equal([r["free_blocks"] for r in rows], blocks, "blocks of " + zone)
        for row in rows:
            equal(round(row["unusable_index"] * 1000), unusable(blocks, row["order"]), "unusable index of " + zone)
            equal(round(row["extfrag_index"] * 1000), extfrag(blocks, row["order"]), "extfrag index of " + zone)


# ---- tests ----


def recorded(path, *words):
    allium("sys", "record", "--force", "--quiet", "-o", path, "--buffer", "64M", *words)
    rows = json.loads(allium("sql", "--json", path, "SELECT path, text FROM sys_state ORDER BY taken_ns").stdout)
    return {r["path"]: r["text"] for r in rows["rows"]}  # the latest of each: one that has not changed is not repeated


def recording():
    """Every figure of a recording's files, reckoned once more."""
    with tap.private_dir() as folder:
        path = folder + "/r.allium"
        texts = recorded(path, "--", "sleep", "2")
        report = frag("--from", path)
        early = frag("--from", path + "@1.5s")
        bare = folder + "/bare.allium"
        with open(path, "rb") as file, open(bare, "wb") as copy:
            content = file.read()
            copy.write(content)
        with sqlite3.connect(bare, isolation_level=None) as db:
            db.execute("DROP TABLE sys_frag_sites")
        db.close()
        without = frag("--from", bare)
    check(not re.search(rb"ffff[0-9a-f]{12}", content), "addresses of the kernel in the recording")
    equal(report["malformed_lines"], 0, "lines that were not understood")
    caches, links = attributes(texts["/sys/kernel/slab"])
    names = [line.split()[0] for line in texts["/proc/slabinfo"].splitlines()[2:]]
    equal(sorted(row["cache"] for row in report["caches"]), sorted(names), "caches")
    for row in report["caches"]:
        a = caches[links.get(row["cache"], row["cache"])]
        if a["total_objects"] == a["slabs"] * a["objs_per_slab"]:
            compare_cache(row, a)
    for key in "slab_bytes", "free_bytes", "padding_bytes", "tails_bytes", "lost_bytes", "shrink_high_bytes":
        equal(report["slab"][key], sum(row[key] for row in report["caches"]), "sum of " + key)
    lost = [row["lost_bytes"] for row in report["caches"]]
    equal(lost, sorted(lost, reverse=True), "the order of caches")
    compare_orders(report, texts["/proc/buddyinfo"])
    compare_whole(report, texts)
    compare_types(report, texts["/proc/pagetypeinfo"])
    compare_areas(report, texts["/proc/vmallocinfo"])
    equal((report["source"], early["source"], early["capture"]), ("recording", "recording", None), "source")
    check(early["time_ns"] < report["time_ns"], early["time_ns"], report["time_ns"])
    check(report["sites"] and report["capture"]["pinned_low_bytes"] == 0, report["capture"])
    # Without sites of its own, a recording has those of sys kmem.
    equal(without["capture"]["pinned_high_bytes"], None, "what is pinned")
    for key in "allocated_bytes", "slack_bytes", "live_bytes":
        equal(without["capture"][key], report["capture"][key], key)


def compare_whole(report, texts):
    meminfo = dict(re.findall(r"(\w+): +(\d+) kB", texts["/proc/meminfo"]))
    whole = report["check"]
    equal(whole["meminfo_slab_bytes"], int(meminfo["Slab"]) * 1024, "Slab:")
    equal(sum(whole[key] for key in ("slab_bytes", "large_kmalloc_bytes", "rest_bytes")), whole["meminfo_slab_bytes"],
          "the whole")
    vmstat = dict(line.split() for line in texts["/proc/vmstat"].splitlines())
    if "compact_stall" in vmstat:
        equal(report["compaction"]["stalls"], int(vmstat["compact_stall"]), "compactions")
        equal(report["compaction"]["failed"], int(vmstat["compact_fail"]), "compactions in vain")


def compare_types(report, text):
    names = re.search(r"Number of blocks type +(.*)", text).group(1).split()
    order = int(re.search(r"Page block order: (\d+)", text).group(1))
    for node, zone, counts in re.findall(r"^Node (\d+), zone +(\w+) +([\d ]+)$", text, re.M):
        for name, count in zip(names, map(int, counts.split())):
            rows = [r for r in report["types"] if (r["node"], r["zone"], r["type"]) == (int(node), zone, name)]
            equal([r["page_blocks"] for r in rows] or [0], [count], "page blocks")
            equal([r["page_blocks_bytes"] for r in rows] or [0], [count * PAGE << order], "their size")


def compare_areas(report, text):
    sums, placed = {}, []
    for line in text.splitlines():
        place, size, rest = line.split(None, 2)
        caller = "(freed, not yet purged)" if rest.startswith("unpurged") else rest.split()[0]
        pages = re.search(r" pages=(\d+)", rest)
        one = sums.setdefault(caller, [0, 0, 0])
        one[0] += int(size)
        one[1] += int(pages.group(1)) * PAGE if pages else 0
        one[2] += 1
        if place != "?":
            placed.append(tuple(int(end, 16) for end in place.split("-")))
    rows = {r["caller"]: [r["addresses_bytes"], r["pages_bytes"] or 0, r["areas"]] for r in report["callers"]}
    equal(rows, sums, "callers of vmalloc()")
    placed.sort()
    gaps = [b[0] - a[1] for a, b in zip(placed, placed[1:]) if 0 < b[0] - a[1] < 1 << 30]
    want = (len(gaps), sum(gaps), max(gaps, default=0)) if placed else (None, None, None)
    equal(tuple(report["vmalloc"][key] for key in ("holes", "holes_bytes", "largest_hole_bytes")), want, "holes")


def live():
    """Caches that were the same before and after, unless something came and went in between."""
    agreed, failed = set(), {}
    for _ in range(6):
        before, _ = sysfs()
        report = frag()
        after, links = sysfs()
        for row in report["caches"]:
            name = links.get(row["cache"], row["cache"])
            a = before.get(name)
            if not a or a != after.get(name) or a["total_objects"] != a["slabs"] * a["objs_per_slab"]:
                continue
            try:
                compare_cache(row, a)
                agreed.add(name)
            except lib.Failed as why:
                failed[name] = str(why)
    check(len(agreed) > 50, "only", len(agreed), "caches that did not change")
    # To start a process takes objects of some caches, and gives them back.
    never = {name: why for name, why in failed.items() if name not in agreed}
    check(len(never) <= len(agreed) / 20, "caches that never agreed:", never)
    equal(report["capture"], None, "a capture")
    check(report["check"]["large_kmalloc_bytes"] is None, report["check"])
    check(report["check"]["rest_bytes"] >= -report["check"]["counters_bytes"], report["check"])


def in_debugfs():
    """The kernel's own indices."""
    with tap.private_dir() as folder:
        debugfs = folder + "/debugfs"
        os.mkdir(debugfs)
        script = 'mount -t debugfs none "$0" && exec "$@"'
        env = dict(os.environ, ALLIUM=built("ALLIUM"), PYTHONPATH=os.path.dirname(tap.__file__))
        done = tap.run([*tap.unshare(), "sh", "-c", script, debugfs, sys.executable, "-B", os.path.abspath(__file__),
                        "inside", debugfs], env=env)
        if done.returncode == 77:
            raise lib.Skipped("debugfs has no extfrag")
        equal(done.returncode, 0, done.stderr.decode() + done.stdout.decode())


def indices_of(debugfs, name):
    with open(debugfs + "/extfrag/" + name) as file:
        found = re.findall(r"Node +(\d+), zone +(\S+) +(.*)", file.read())
    return {(int(node), zone, order): value
            for node, zone, values in found for order, value in enumerate(values.split())}


def as_debugfs(index):
    """As the kernel's C has it, for a number of thousandths."""
    sign = -1 if index < 0 else 1
    return "%d.%03d" % (sign * (abs(index) // 1000), sign * (abs(index) % 1000))


def buddyinfo():
    with open("/proc/buddyinfo") as file:
        return file.read()


def inside(debugfs):
    """debugfs has what follows from the free blocks, by the formulas that all reports are compared with; and where it has
    the same before and after, `sys frag` agrees with it."""
    if not os.path.exists(debugfs + "/extfrag"):
        sys.exit(77)
    names = {"unusable_index": unusable, "extfrag_index": extfrag}
    proven, agreed, seen = set(), set(), set()
    for _ in range(10):
        before = {name: indices_of(debugfs, name) for name in names}
        report = frag()
        after = {name: indices_of(debugfs, name) for name in names}
        for row in report["orders"]:
            at = row["node"], row["zone"], row["order"]
            for name in names:
                seen.add((name, at))
                if before[name][at] == after[name][at] == as_debugfs(round(row[name] * 1000)):
                    agreed.add((name, at))
    for _ in range(2000):
        blocks, indices = buddyinfo(), {name: indices_of(debugfs, name) for name in names}
        if blocks != buddyinfo():
            continue
        for node, zone, counts in re.findall(r"Node (\d+), zone +(\S+) +([\d ]+)", blocks):
            counts = list(map(int, counts.split()))
            for order in range(len(counts)):
                for name, index in names.items():
                    at = int(node), zone, order
                    equal(indices[name][at], as_debugfs(index(counts, order)), "%s of %s" % (name, at))
                    proven.add((name, at))
        break
    equal(sorted(seen - proven), [], "free blocks never stood still")
    check(len(seen) >= 2 * 11 and len(agreed) >= 0.7 * len(seen), len(seen), sorted(seen - agreed))


def shrunk():
    """What `shrink` frees lies between the bounds, while nothing else happens to the cache."""
    before, after = 0, 1
    for _ in range(30):
        before = sysfs()[0][CACHE]
        estimate, = [row for row in frag()["caches"] if row["cache"] == CACHE]
        after = sysfs()[0][CACHE]
        if before == after and estimate["slabs"] == before["slabs"]:
            break
        time.sleep(0.2)
    equal(after, before, "the cache does not come to rest")
    before = after["slabs"]
    with open(SYSFS + CACHE + "/shrink", "w") as file:
        file.write("1")
    freed = (before - sysfs()[0][CACHE]["slabs"]) * (estimate["slab_bytes"] // estimate["slabs"])
    check(estimate["shrink_low_bytes"] <= freed <= estimate["shrink_high_bytes"], freed, estimate)


def fragmented():
    """Inodes of tmpfs, of which one of sixteen stays: their cache and the call that makes them lead."""
    with tap.private_dir() as folder, tap.private_dir("/dev/shm") as shm:
        program = [sys.executable, "-S", "-c", MAKES_FILES, shm]
        before = {row["cache"]: row["lost_bytes"] for row in frag()["caches"]}
        report = frag("--buffer", "64M", "--", *program)
        equal(report["capture"]["lost_events"], 0, "losses")
        # What others lost before is this machine's: a page cache that was reclaimed leaves much in buffer_head.
        leader = max(report["caches"], key=lambda row: row["lost_bytes"] - before.get(row["cache"], 0))
        equal(leader["cache"], CACHE, "the cache that has lost most since")
        wanted = FILES * 15 // 16 * 744
        check(leader["free_bytes"] >= 0.9 * wanted and leader["partial_fill_percent"] < 50, leader, wanted)
        site = report["sites"][0]
        check(site["site"].startswith(SITE) and site["cache"] == CACHE, site)
        check(site["pinned_low_bytes"] >= 0.9 * wanted, site, wanted)
        most = leader["free_bytes"] + leader["cpu_free_high_bytes"]
        check(site["pinned_low_bytes"] <= most and site["pinned_low_bytes"] <= site["pinned_high_bytes"], site, most)
        check(FILES // 16 <= site["live_objects"] < FILES // 16 + 500, site)
        for key in "pinned_low_bytes", "pinned_high_bytes", "live_slack_bytes":
            equal(sum(row[key] or 0 for row in report["sites"]), report["capture"][key], "sum of " + key)
        bucket, = [row for row in report["buckets"] if row["cache"] == CACHE]
        equal(bucket["live_slack_bytes"], sum(r["live_slack_bytes"] for r in report["sites"] if r["cache"] == CACHE),
              "slack of the bucket")
        shrunk()
        for name in os.listdir(shm):
            os.unlink(shm + "/" + name)
        tap.wait_until(lambda: [r for r in frag()["caches"] if r["cache"] == CACHE][0]["free_bytes"] < wanted / 2, 20,
                       "the slabs are freed with the last file")
        shrunk()
        # A recording has the same, but for the lower bound.
        path = folder + "/r.allium"
        recorded(path, "--", *program)
        site = frag("--from", path)["sites"][0]
        said = " ".join(allium("sys", "frag", "--from", path).stdout.decode().split())
        check(" of it by objects of %s" % SITE in said, said)
        first = frag("--from", path)["caches"][0]["cache"]
        check(" of it in %s; " % first in said, first, said)
        check(site["site"].startswith(SITE) and site["pinned_low_bytes"] == 0 and
              site["pinned_high_bytes"] >= 0.9 * wanted, site)


def intervals():
    """Counts of compaction are those since the report before."""
    out = allium("sys", "frag", "--json", "--interval", "100ms", "--count", "3").stdout.decode().splitlines()
    equal(len(out), 3, "reports")
    for report in map(json.loads, out):
        json_schemas.check(report)
        check(1e7 < report["interval_ns"] < 1e10, report["interval_ns"])
        check(0 <= report["compaction"]["kcompactd_wakes"] < 100, report["compaction"])
    text = allium("sys", "frag", "--interval", "100ms", "--count", "1", "--top", "1").stdout.decode()
    check("compaction in the last " in text and "more caches" in text, text)


def screen():
    """The answer first, in 80 columns; --top; a page; --columns."""
    with tap.private_dir() as folder:
        page = folder + "/frag.html"
        env = dict(os.environ, COLUMNS="80", LC_ALL="C.UTF-8")
        text = allium("sys", "frag", "--html", page, env=env).stdout.decode()
        check(re.match(r"[\d.]+ [KMG]iB of [\d.]+ [KMG]iB of slabs \([\d.]+ %\) hold no object,\s[\d.]+ [KMG]iB"
                       r"\s+of\s+it\s+in\s+\S+;\s+the\s+largest", text), text)
        labels = [line.split()[0] for line in text.splitlines() if re.match(r"  \w", line)]
        equal(labels, ["slab", "shrink", "internal", "external", "taken", "compaction", "vmalloc", "check"],
              "sentences")
        check(max(map(len, text.splitlines())) <= 80, "a line is too long:", text)
        check(re.search(r"^and \d+ more caches \(--top 0 shows all\)$", text, re.M), text)
        read = page_reader.Page(page)
        read.policy()
        check(b"kmalloc-64" in read.data and b"dentry" in read.data, "no caches in the page")
        check("exists; use --force" in allium("sys", "frag", "--html", page, code=1).stderr.decode(), "it is replaced")
        allium("sys", "frag", "--html", page, "--force")
        narrow = allium("sys", "frag", "--columns", "cache,lost", "--top", "1").stdout.decode()
        check(re.search(r"^CACHE +LOST$", narrow, re.M), narrow)


def ends():
    """Codes, mistakes, and what a user may see."""
    equal(allium("sys", "frag", "--", "sh", "-c", "exit 7", code=7).returncode, 7, "the command's code")
    check("cannot run" in allium("sys", "frag", "--", "/nowhere", code=127).stderr.decode(), "no word of the command")
    for words in (["--from", "x", "--interval", "1s"], ["--from", "x", "--", "true"], ["--buffer", "1M"], ["--force"],
                  ["--interval", "1s", "--", "true"], ["--interval", "1s", "--html", "x"], ["true"], ["--count", "2"],
                  ["--top", "x"]):
        allium("sys", "frag", *words, code=2)
    with tap.private_dir() as folder:
        os.chmod(folder, 0o755)
        allium("sys", "frag", "--from", folder + "/none", code=1)
        sqlite = folder + "/run.allium"
        allium("run", "--quiet", "-o", sqlite, "--", "true")
        check("sys record" in allium("sys", "frag", "--from", sqlite, code=1).stderr.decode(), "no word of sys record")
    with open("/proc/mounts") as file:
        check("tracefs" not in file.read() or os.path.exists(lib.TRACEFS + "/events"), "tracefs stays")


def unprivileged():
    """Who may not read a file sees the rest."""
    with tap.private_dir() as folder:
        program = folder + "/allium"
        os.chmod(folder, 0o755)
        with open(built("ALLIUM"), "rb") as file, open(program, "wb") as copy:
            copy.write(file.read())
        os.chmod(program, 0o755)
        nobody = dict(user=65534, group=65534, extra_groups=[])
        done = subprocess.run([program, "sys", "frag", "--json"], stdout=subprocess.PIPE, cwd="/", check=True, **nobody)
        report = json.loads(done.stdout)
        json_schemas.check(report)
        equal((report["slab"]["lost_bytes"], report["vmalloc"]["areas"]), (None, None), "what is for root")
        check(report["orders"], "no blocks")
        text = subprocess.run([program, "sys", "frag"], stdout=subprocess.PIPE, cwd="/", check=True, **nobody).stdout
        check(b"slabs are not known" in text and b"not known: /proc/slabinfo" in text, text)
        done = subprocess.run([program, "sys", "frag", "--", "true"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              cwd="/", **nobody)
        equal(done.returncode, 3, "exit code: %s" % done.stderr)


if sys.argv[1:2] == ["inside"]:
    inside(sys.argv[2])
    sys.exit(0)

lib.main([
    ("a recording, reckoned once more", recording),
    ("caches of this machine, by /sys", live),
    ("indices are those of debugfs", in_debugfs),
    ("slabs that are half empty on purpose: cache and call lead, and shrink frees what was said", fragmented),
    ("compaction by intervals", intervals),
    ("the screen, and the page", screen),
    ("codes and mistakes", ends),
    ("without privilege", unprivileged),
])
