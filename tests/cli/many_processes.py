# SPDX-License-Identifier: BSD-2-Clause
"""Thousands of short processes, beside one that does not answer: files and memory stay bounded, and each is kept or
counted.
"""
import json
import os
import re
import sys
import threading
import time

sys.dont_write_bytecode = True
import tap
from workdir import placed, program
from tap import check, equal, pick

KEPT_MOST = 1000  # images stored in full (src/run/ledger_tracker.c)
FILES_MOST = 2 * 800  # a ledger and a control page each: the backlog (400) and what comes up while it is looked at
RSS_MOST = 64 << 20


class Watch(threading.Thread):
    """The most files in the directories of ledgers, and the most memory of a process, while it runs."""

    def __init__(self, process, folder):
        super().__init__(daemon=True)
        self.process, self.folder, self.files, self.rss, self.looks = process, folder, 0, [], 0
        self.start()

    def run(self):
        while self.process.poll() is None:
            self.looks += 1
            self.files = max(self.files, sum(len(names) for _, _, names in os.walk(self.folder)))
            try:
                with open("/proc/%d/status" % self.process.pid) as file:
                    self.rss += [int(kib) << 10 for kib in re.findall(r"VmRSS:\s+(\d+)", file.read())]
            except OSError:
                pass
            time.sleep(0.02)


def stuck(place):
    """Of a process whose memory map stays locked, in another mount namespace: a search of all processes waits for it.
    """
    folder = place.path("mount")
    os.mkdir(folder)
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "locked_mmap.py")
    server = place.start("unshare", "-m", sys.executable, "-B", script, folder)
    pid = int(server.stdout.readline())
    tap.wait_until(lambda: open("/proc/%d/stat" % pid).read().rpartition(")")[2].split()[0] == "D", 20, "state D")


def make(place):
    """holder makes 2 MB in all: at a period of 64 KiB one of 10 ** 13 has no sample, and so no ledger."""
    count = pick(1500, 6000)
    if os.geteuid() == 0:
        stuck(place)
    with open(place.path("Makefile"), "w") as file:
        names = " ".join("t%d" % i for i in range(count))
        file.write(".PHONY: all %s\nall: %s\n%s:\n\t@%s 0\n" % (names, names, names, program("holder")))
    process = place.start_allium("run", "--period", "64K", "-o", "r.allium", "--", "make", "-s", "-j", "4")
    watch = Watch(process, place.runtime)
    out, err = process.communicate()
    watch.join()
    equal((process.returncode, out), (0, b"ready\n" * count), "code and stdout")
    report = json.loads(place.allium("report", "r.allium", "--json", "--top", "0").out)
    kept, dropped = report["processes"], report["lost"]["images_dropped"]
    names = [p["program"] for p in kept]
    print("# %d processes: %d kept, %d counted; at most %d files and %d MiB, half-way %d MiB" %
          (count + 1, len(kept), dropped, watch.files, max(watch.rss) >> 20, watch.rss[len(watch.rss) // 2] >> 20))
    equal(set(names), {"make", "holder"}, "programs")
    equal(len(kept) + dropped, count + 1, "processes kept and counted")
    check(len(kept) <= KEPT_MOST and dropped >= count - KEPT_MOST, len(kept), "kept", dropped, "counted")
    check(watch.looks > 50 and 0 < watch.files <= FILES_MOST, watch.files, "files in", watch.looks, "looks")
    check(max(watch.rss) <= RSS_MOST, "resident:", max(watch.rss))
    equal(place.ledgers(), [], "ledgers that are left")
    check("%d more" % (count + 1 - 3) in err.decode(), "the summary says", err.decode())
    text = place.allium("report", "r.allium").out
    check(re.search(r"only counted", text), "the report does not say what was not kept:", text[-1500:])


tap.main([("thousands of short processes of make -j", placed(make))])
