# SPDX-License-Identifier: BSD-2-Clause
"""`allium sys import` of what the kernel notes of its live memory: alloc_traces and page_owner, as kernels printed them;
against sums of the same texts, made here.
"""
import collections
import glob
import json
import os
import re
import shutil
import sys

sys.dont_write_bytecode = True
import lib
import tap
from lib import built, check, equal

RECORDED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "unit", "recorded")
PAGES = RECORDED + "/page_owner-6.12"
BLOCK = re.compile(r"(?:(\d+) times, .*\n)?Page allocated via order (\d+), mask 0x[0-9a-f]+\((.*)\), pid (\d+), tgid (\d+) "
                   r"\((.*)\), ts (\d+) ns\nPFN \S+ type (\S+) ")


def allium(*words, code=0, **how):
    done = tap.run([built("ALLIUM"), *map(str, words)], **how)
    equal(done.returncode, code, "exit code of %s (%s)" % (words, done.stderr.decode()))
    return done


def rows(path, query):
    return [tuple(row.values()) for row in json.loads(allium("sql", "--json", path, query).stdout)["rows"]]


def read(path):
    with open(path) as file:
        return file.read()


def traces(folder, name, size_of):
    """-> {(cache, call): [objects, bytes, requested bytes]}"""
    sums = collections.defaultdict(lambda: [0, 0, 0])
    for path in glob.glob(folder + "/*/" + name):
        cache = path.split("/")[-2]
        for n, site, rest in re.findall(r"^ *(\d+) (\S+(?: \[\S+\])?)(.*)$", read(path), re.M):
            waste = re.search(r"waste=(\d+)", rest)
            of = sums[cache, re.sub(r"/0x[0-9a-f]+", "", site)]
            size = int(n) * size_of(cache)
            for i, value in enumerate((int(n), size, size - int(waste.group(1)) if waste else size)):
                of[i] += value
    return dict(sums)


def sized(folder):
    """Sizes as the files say; of a kmalloc cache, the file and the name say the same."""
    def size(cache):
        path = "%s/%s/object_size" % (folder, cache)
        return int(read(path)) if os.path.exists(path) else 0
    return size


def slab_folder():
    """A folder of caches: tables, report and page have the sums of the files."""
    for kernel in "6.1", "6.12":
        folder = RECORDED + "/slab_traces-" + kernel
        want = traces(folder, "alloc_traces", sized(folder))
        with tap.private_dir() as where:
            path = where + "/a.allium"
            said = allium("sys", "import", folder, "-o", path).stderr.decode()
            total = [sum(of[i] for of in want.values()) for i in range(3)]
            check("{:,} objects of ".format(total[0]) in said, said)
            unsized = sum(of[0] for of in want.values() if not of[1])
            check(("%d objects of unknown size count" % unsized in said) == (unsized > 0), said)
            equal("not understood" in said or "without a stack" in said, False, said)
            # A helper's allocations are its callers', so calls are compared in the table of the files.
            got = rows(path, "SELECT cache, call_site, sum(objects), coalesce(sum(live_bytes), 0), "
                       "coalesce(sum(live_bytes) - sum(waste_bytes), 0) FROM sys_slab_traces GROUP BY 1, 2")
            equal(sorted(got), sorted((*key, *of) for key, of in want.items()), "calls of " + kernel)
            equal(rows(path, "SELECT sum(live_objects), sum(live_bytes), sum(requested_bytes) FROM sys_kmem"),
                  [tuple(total)], "all calls")
            equal(rows(path, "SELECT count(*) FROM sys_kmem WHERE live_bytes IS NULL") != [(0,)], unsized > 0,
                  "bytes that are not known have no figure")
            live = json.loads(allium("report", path, "--json").stdout)["total"]
            equal((live["live_bytes"], live["live_objects"]), (total[1], total[0]), "the report's total")
            freed = traces(folder, "free_traces", lambda _: 0)
            equal(rows(path, "SELECT sum(objects) FROM sys_slab_freed"), [(sum(of[0] for of in freed.values()),)],
                  "places of which it is known who freed them")
            text = allium("sql", path, "SELECT * FROM sys_slab_traces", "--json").stdout.decode()
            equal(re.findall(r"\b(?:0x)?ffff[0-9a-f]{12}\b", text), [], "addresses")
            check("[brd]" in text, "functions of modules")
            allium("export", path, "--html", "-o", where + "/page.html")
        shown = allium("sys", "kmem", "--from", folder, "--by", "cache", "--json").stdout
        by_cache = {row["cache"]: row["live_objects"] for row in map(json.loads, shown.splitlines())
                    if "live_objects" in row}
        equal(by_cache, {cache: sum(of[0] for (c, _), of in want.items() if c == cache) for cache, _ in want},
              "objects of caches")


def slab_states():
    """Sizes and ages from --state; one file alone; only what was freed; what is no such file."""
    folder = RECORDED + "/slab_traces-6.1"
    with tap.private_dir() as where:
        path, state = where + "/a.allium", where + "/state"
        os.makedirs(state + "/sys/kernel/slab/filp")
        os.makedirs(state + "/proc/sys/kernel")
        os.makedirs(state + "/boot")
        for name, text in (("sys/kernel/slab/filp/object_size", "232\n"), ("proc/sys/kernel/osrelease", "6.1-x\n"),
                           ("boot/config-6.1-x", "CONFIG_X=y\nCONFIG_HZ=250\n")):
            with open(state + "/" + name, "w") as file:
                file.write(text)
        want = traces(folder, "alloc_traces", lambda cache: {"filp": 232, "kmalloc-16": 16, "kmalloc-8k": 8192}[cache])
        allium("sys", "import", folder, "--state", state, "-o", path)
        equal(rows(path, "SELECT sum(live_bytes) FROM sys_kmem"), [(sum(of[1] for of in want.values()),)], "bytes")
        oldest = max(int(age) for text in map(read, glob.glob(folder + "/*/alloc_traces"))
                     for age in re.findall(r"age=(?:\d+/\d+/)?(\d+)", text))
        equal(rows(path, "SELECT max(oldest_ns) FROM sys_kmem"), [(oldest * 4000000,)], "the oldest object")
        allium("sys", "import", folder, "-o", path, "--force")
        check("oldest_ns" not in allium("sql", "--json", path, "PRAGMA table_info(sys_kmem)").stdout.decode(),
              "without the state, no age")

        one = folder + "/kmalloc-16/alloc_traces"
        allium("sys", "import", one, "-o", path, "--force")
        equal(rows(path, "SELECT cache, sum(live_bytes) FROM sys_kmem GROUP BY 1"),
              [("kmalloc-16", sum(of[1] for (cache, _), of in want.items() if cache == "kmalloc-16"))], "one file")
        allium("sys", "import", "-", "-o", path, "--force", stdin=open(one, "rb"))
        equal(rows(path, "SELECT count(cache), count(live_bytes) FROM sys_kmem"), [(0, 0)], "a pipe names no cache")

        os.makedirs(where + "/freed/filp")
        shutil.copy(folder + "/filp/free_traces", where + "/freed/filp/free_traces")
        said = allium("sys", "import", where + "/freed", "-o", where + "/b.allium", code=1).stderr.decode()
        check(said.count("\n") == 1 and "only free_traces" in said, said)
        said = allium("sys", "import", PAGES, "--format", "slab_traces", "-o", where + "/b.allium",
                      code=1).stderr.decode()
        check(said.count("\n") == 1, said)


def blocks(text):
    """-> {(order, gfp, pid, comm, type): blocks}"""
    sums = collections.Counter()
    for times, order, gfp, _, tgid, comm, _, kind in BLOCK.findall(text):
        sums[int(order), gfp or "none", int(tgid), comm, kind.lower()] += int(times or 1)
    return sums


def pages():
    """page_owner, and as page_owner_sort writes it."""
    whole = read(PAGES)
    equal(whole.count("Page allocated"), sum(blocks(whole).values()), "blocks that this test understands")
    counted = "".join("3 times, 9 pages, allocated by kernel:\n%s\n\n\n" % block for block in whole.strip().split("\n\n"))
    with tap.private_dir() as where:
        for text, path in ((whole, where + "/plain"), (counted, where + "/sorted")):
            with open(path + ".txt", "w") as file:
                file.write(text)
            want = blocks(text)
            said = allium("sys", "import", path + ".txt", "-o", path).stderr.decode()
            n, live = sum(want.values()), sum(4096 * times << key[0] for key, times in want.items())
            check(" in %s blocks; " % format(n, ",") in said and "not understood" not in said, said)
            got = rows(path, 'SELECT "order", gfp, pid, comm, migrate_type, sum(blocks) FROM sys_page_owner '
                       "GROUP BY 1, 2, 3, 4, 5")
            equal(sorted(got), sorted((*key, times) for key, times in want.items()), "blocks")
            equal(rows(path, "SELECT sum(live_bytes), sum(allocations) FROM sys_kpages"), [(live, n)], "pages")
            total = json.loads(allium("report", path, "--json").stdout)["total"]
            equal((total["live_bytes"], total["live_objects"]), (live, n), "the report's total")
            allium("export", path, "--html", "-o", path + ".html")
        equal(rows(where + "/plain", "SELECT max(last_ns) FROM sys_page_owner"),
              [(max(int(found[6]) for found in BLOCK.findall(whole)),)], "the time of the last one")
        slabs = sum(4096 << int(BLOCK.search(block).group(2)) for block in whole.strip().split("\n\n")
                    if re.search(r"^Slab cache page|^ allocate_slab", block, re.M))
        equal(rows(where + "/plain", "SELECT sum(live_bytes) FROM sys_kpages WHERE use = 'slab'"), [(slabs,)],
              "pages of slabs")
        inner = rows(where + "/plain", "SELECT count(*) FROM sys_page_owner WHERE stack LIKE 'post_alloc_hook%'")
        equal(inner, [(0,)], "stacks that begin below the page allocator")
    shown = allium("sys", "kpages", "--from", PAGES, "--by", "order", "--json").stdout
    equal({row["order"]: row["allocations"] for row in map(json.loads, shown.splitlines()) if "order" in row},
          dict(collections.Counter({order: sum(times for key, times in blocks(whole).items() if key[0] == order)
                                    for order, *_ in blocks(whole)})), "orders")
    said = allium("sys", "kmem", "--from", PAGES, code=1).stderr.decode()
    check("no event of objects" in said, said)


lib.main([
    ("alloc_traces of a folder", slab_folder),
    ("sizes, ages and single files", slab_states),
    ("page_owner", pages),
])
