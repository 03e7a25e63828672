# SPDX-License-Identifier: BSD-2-Clause
"""`allium bench --memcg`: what the cgroup is charged agrees with the sizes of the kernel's objects and with pages, and the
cgroup is gone afterwards, however the command ends. Times are not judged.
"""
import contextlib
import glob
import json
import os
import random
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import json_schemas
import tap
from tap import built, check, equal, wait_until

PAGE = os.sysconf("SC_PAGESIZE")
POINTER = 8  # beside each object the kernel keeps a pointer to the cgroup that is charged for it
HELD_TOLERANCE = 64 * PAGE  # the kernel may charge a processor's pages in lots


def folders():
    """Cgroups that commands have made."""
    return glob.glob("/sys/fs/cgroup/memory/allium-bench-*") + glob.glob("/sys/fs/cgroup/allium-bench-*")


def start(*words, **how):
    return subprocess.Popen([built("ALLIUM"), "bench", "--memcg", *words], stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **how)


def members(folder):
    with contextlib.suppress(FileNotFoundError), open(folder + "/cgroup.procs") as file:
        return file.read().split()
    return []


def own_folder(process):
    """The cgroup of a command, as soon as a process is in it."""
    def find():
        for folder in folders():
            if folder.split("allium-bench-")[1].split(".")[0] == str(process.pid) and members(folder):
                return folder
        return None
    return wait_until(find, 20, "a process is in the cgroup of the command")


def children(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as file:
        return [int(word) for word in file.read().split()]


def bench(*words):
    return json.loads(tap.succeed([built("ALLIUM"), "bench", "--memcg", "--json", *words]).stdout)


def slab_bytes(cache):
    with open("/sys/kernel/slab/%s/slab_size" % cache) as file:
        return int(file.read()) + POINTER


def kmalloc_sums():
    """What two objects of kmalloc may be charged together."""
    each = [slab_bytes(os.path.basename(path)) for path in glob.glob("/sys/kernel/slab/kmalloc-cg-*")]
    return {a + b for a in each for b in each}


def near(have, want, what):
    check(abs(have - want) * 4096 <= HELD_TOLERANCE, what, "is charged", have, "and not", want)


def test_charges():
    rows = {row["operation"]: row for row in bench("--time", "0s")["rows"]}
    equal(sorted(rows), ["cache", "open", "pipe", "socket", "touch"], "operations")
    for name, row in rows.items():
        equal(row["unavailable"], None, name)
        check(row["held"] >= 1000, name, "held", row["held"])
        check(row["remaining_bytes"] <= HELD_TOLERANCE, name, "left", row["remaining_bytes"], "bytes")
        equal((row["turns"], row["ratio"], row["root_ns"]), (0, None, None), "no time was measured")
    near(rows["touch"]["charged_bytes"], PAGE, "a page that is touched")
    near(rows["cache"]["charged_bytes"], PAGE, "a page in the page cache")
    file, dentry, inode = slab_bytes("filp"), slab_bytes("dentry"), slab_bytes("inode_cache")
    near(rows["open"]["charged_bytes"], file, "an open file")
    near(rows["socket"]["charged_bytes"], file + dentry + slab_bytes("sock_inode_cache") + slab_bytes("UNIX-STREAM"),
         "a socket")
    rest = rows["pipe"]["charged_bytes"] - (2 * file + dentry + inode)
    near(rest, min(kmalloc_sums(), key=lambda pair: abs(pair - rest)), "a pipe, beside files, dentry and inode,")


def test_document():
    whole = bench("--time", "100ms")
    json_schemas.check(whole, "allium-bench-memcg")
    for row in whole["rows"]:
        if row["unavailable"]:  # the machine is busy; nothing else may keep it from being measured
            check("other programs" in row["unavailable"], row)
            continue
        check(row["turns"] >= 8, row)
        check(row["ratio_low"] <= row["ratio"] <= row["ratio_high"], row)
        check(row["more_low_ns"] <= row["more_ns"] <= row["more_high_ns"], row)
        equal(row["profiled_ratio"] is None, not os.path.exists("/proc/allocinfo"), "profiling is measured")


def test_text():
    text = tap.succeed([built("ALLIUM"), "bench", "--memcg", "--time", "0s"]).stdout.decode()
    for words in ("+ 36 % on slab, + 26 % on pages", '"ten times" that', "charged"):
        check(words in text, "no", words, "in", text)
    equal("profiling was not measured: " in text, not os.path.exists("/proc/allocinfo"), "the reason")


def test_removed():
    process = start("--time", "0s")
    folder = own_folder(process)
    equal(process.wait(60), 0, "its code")
    check(not os.path.exists(folder), folder, "remains")


def test_killed():
    """SIGKILL of the command alone, at any instant: another process removes the cgroup."""
    chance = random.Random(1)
    for _ in range(tap.pick(6, 60)):
        process = start("--time", "100ms")
        folder = own_folder(process)
        time.sleep(chance.random() * 0.5)
        process.kill()
        process.wait()
        wait_until(lambda: not os.path.exists(folder), 10, "the cgroup of a killed command is removed")


def test_both_killed():
    """SIGKILL of everything: the next command removes the cgroup, and leaves that of a command that runs."""
    process = start("--time", "100s")
    folder = own_folder(process)
    for pid in children(process.pid) + [process.pid]:
        os.kill(pid, signal.SIGKILL)
    process.wait()
    check(os.path.exists(folder), "something else has removed the cgroup")
    wait_until(lambda: not members(folder), 10, "the process that measures ends, too")
    other = start("--time", "100s")
    try:
        others = own_folder(other)
        wait_until(lambda: not os.path.exists(folder), 10, "the next command removes " + folder)
        bench("--time", "0s")
        check(os.path.exists(others), "a command has removed the cgroup of another one")
    finally:
        tap.stop(other)
    wait_until(lambda: not os.path.exists(others), 10, "the cgroup is removed after SIGTERM")


def test_no_privilege():
    done = tap.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", built("ALLIUM"), "bench", "--memcg"])
    equal(done.returncode, 3, "its code")
    text = done.stderr.decode()
    check(text.count("\n") == 1 and "needs root" in text, repr(text))


def test_usage():
    for words in (("--threads", "2"), ("--sink", "off"), ("--mechanism", "nop"), ("--list",), ("--time", "never")):
        equal(tap.run([built("ALLIUM"), "bench", "--memcg", *words]).returncode, 2, "the code with %s" % words[0])


TESTS = [
    ("what is charged agrees with the kernel's sizes", test_charges),
    ("the JSON is what its schema says", test_document),
    ("what was published and what is missing is said", test_text),
    ("the cgroup is removed", test_removed),
    ("the cgroup of a killed command is removed", test_killed),
    ("a cgroup whose remover was killed is removed by the next command", test_both_killed),
    ("without privileges there is one line", test_no_privilege),
    ("other options are refused", test_usage),
]

if __name__ == "__main__":
    tap.main(TESTS)
