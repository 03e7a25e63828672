# SPDX-License-Identifier: BSD-2-Clause
"""`allium sys advise`: what it says that "shrink" frees against what it frees, what it says of a recording against the
rows of that recording, and tables against the kernel's log.
"""
import fcntl
import json
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import json_schemas
import lib
import tap
import vmlinux
from lib import built, check, equal

CACHE = "/sys/kernel/slab/file_lock_cache/"
LOCKS = 3000
PIPES = 2000
PIPE_CALL = "alloc_pipe_info+"
HOLDS_PIPES = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (3 * %d, 3 * %d))
kept = [os.pipe() for _ in range(%d)]
print("made", flush=True)
sys.stdin.readline()
""" % (PIPES, PIPES, PIPES)


def advise(*words, code=0):
    done = tap.run([built("ALLIUM"), "sys", "advise", *map(str, words)])
    equal(done.returncode, code, "exit code of %s (%s)" % (words, done.stderr.decode()))
    return done


def asked(*words):
    document = json.loads(advise("--json", *words).stdout)
    json_schemas.check(document)
    for measure in document["measures"]:
        check(measure["low_bytes"] <= measure["high_bytes"] and measure["from"], measure)
    return document


def found(document, *words):
    """The measures whose change has these words."""
    return [each for each in document["measures"] if all(word in each["change"] for word in words)]


def attribute(name):
    with open(CACHE + name) as file:
        return int(file.read().split()[0])


def slab_pages():
    with open("/proc/sys/vm/stat_refresh", "w") as file:
        file.write("1")
    with open("/proc/vmstat") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith("nr_slab_"))


def freed_by_shrink(keep):
    """Takes locks, gives up those that `keep` does not want, and shrinks their cache. -> (what was said, bytes that
    were freed)
    """
    with tempfile.TemporaryFile() as file:
        def lock(kind, number):
            fcntl.fcntl(file, fcntl.F_SETLK, struct.pack("hhqqi4x", kind, os.SEEK_SET, 3 * number, 1, 0))

        for number in range(LOCKS):
            lock(fcntl.F_WRLCK, number)
        for number in range(LOCKS):
            if not keep(number):
                lock(fcntl.F_UNLCK, number)
        said = asked("--top", "0")
        before, pages = attribute("slabs"), slab_pages()
        with open(CACHE + "shrink", "w") as shrink:
            shrink.write("1")
        freed, pages = before - attribute("slabs"), pages - slab_pages()
    print("# %d slabs freed; %d pages of all slab caches of the machine" % (freed, pages))
    return said, freed * (os.sysconf("SC_PAGESIZE") << attribute("order"))


def measures_of_cache(document):
    """Those that shrink the cache of locks, by whichever of its names."""
    name = os.path.basename(os.path.realpath(CACHE))
    names = [each for each in os.listdir("/sys/kernel/slab")
             if os.path.basename(os.path.realpath("/sys/kernel/slab/" + each)) == name]
    return [each for each in document["measures"] if each["kind"] == "free_slabs" and any(
        "/slab/%s/shrink" % name in each["change"] for name in names)]


def shrinks():
    """A cache that is left half empty, and one that is left nearly empty; then there is nothing more to free."""
    for keep in lambda number: number % 40 == 0, lambda number: number == 0:
        for _ in range(3):  # other programs take locks, too
            said, freed = freed_by_shrink(keep)
            measure, = measures_of_cache(said)
            if measure["low_bytes"] <= freed <= measure["high_bytes"]:
                break
        else:
            check(False, measure, "freed", freed)
        check(freed > 0, "nothing was freed")


def tables():
    """Figures of the kernel's log, if the boot is still in it; each table has room for twice what is in it."""
    log = subprocess.run(["dmesg"], capture_output=True, text=True).stdout
    line = re.search(r"Dentry cache hash table entries: (\d+) \(order: \d+, (\d+) bytes", log)
    document = asked()
    if not line:
        check(any("sized at boot" in each for each in document["not_judged"]), document["not_judged"])
        return
    entries, size = map(int, line.groups())
    with open("/proc/sys/fs/dentry-state") as file:
        dentries = int(file.read().split()[0])
    for measure in found(document, "dhash_entries="):
        wanted = int(measure["change"].partition("=")[2])
        check(wanted >= dentries and wanted & wanted - 1 == 0 and wanted < entries, measure, dentries)
        equal((measure["low_bytes"], measure["high_bytes"]), (size - wanted * size // entries,) * 2, measure)
        check(line.group(1) in measure["from"][0] and line.group(2) in measure["from"][0], measure["from"])
    check(found(document, "dhash_entries=") or entries <= 4 * dentries, "no measure", entries, dentries)


def pipes_recorded(folder, *words):
    """A recording at whose end a program holds pipes."""
    path = folder + "/r.allium"
    with subprocess.Popen([built("ALLIUM"), "sys", "record", "--buffer", "64M", "-o", path, *words],
                          stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as recorder:
        try:
            check(b": ready: " in recorder.stderr.readline(), "it did not get ready")
            with subprocess.Popen([sys.executable, "-S", "-c", HOLDS_PIPES], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE) as program:
                equal(program.stdout.readline(), b"made\n", "the program")
                recorder.send_signal(signal.SIGINT)
                recorder.communicate(timeout=tap.TIMEOUT)
                program.stdin.close()
        finally:
            recorder.kill()
    return path


def query(path, text):
    return json.loads(tap.succeed([built("ALLIUM"), "sql", "--json", path, text]).stdout)["rows"]


def check_pipes(document, path):
    """struct pipe_inode_info and the array of buffers are rows of their own; what misses a bucket is found."""
    sizes = query(path, "SELECT * FROM sys_kmem_sizes WHERE call_site LIKE '%s%%'" % PIPE_CALL)
    total = sum(each["live_objects"] for each in sizes)
    check(2 * PIPES <= total < 2 * PIPES + 2000, sizes)
    check(all(each["requested_bytes"] <= each["allocated_bytes"] for each in sizes), sizes)
    whole = query(path, "SELECT sum(live_objects) AS n FROM sys_kmem WHERE call_site LIKE '%s%%'" % PIPE_CALL)
    equal(whole[0]["n"], total, "live objects of both tables")
    for each in sizes:
        slack = each["allocated_bytes"] - (each["requested_bytes"] + 7) // 8 * 8
        if each["live_objects"] < PIPES or 4 * slack < each["allocated_bytes"]:
            continue
        measure, = found(document, each["call_site"], "a cache of their own")
        exact = each["live_objects"] * slack
        # apart from what is left over in slabs of either kind
        check(0.7 * exact < measure["high_bytes"] < 1.3 * exact and measure["low_bytes"] <= exact, measure, exact)
        check("%d live objects" % each["live_objects"] in measure["formula"], measure["formula"])
        return
    check(False, "no pipe misses a bucket by a quarter here:", sizes)


def recordings():
    """Objects that miss a bucket, and the option that brings them, by a source tree of the test's own."""
    with tap.private_dir() as folder:
        debug = vmlinux.make(folder, {"fs/pipe.c": ["alloc_pipe_info"], "fs/file_table.c": ["alloc_empty_file"]})
        path = pipes_recorded(folder, "--vmlinux", debug)
        check_pipes(asked("--from", path), path)
        source, config = folder + "/source", folder + "/config"
        os.makedirs(source + "/fs")
        with open(source + "/fs/Makefile", "w") as file:
            file.write("obj-y += file_table.o\nobj-$(CONFIG_PIPES) += pipe.o\nobj-$(CONFIG_NOT_SET) += file_table.o\n")
        with open(config, "w") as file:
            file.write("CONFIG_PIPES=y\n# CONFIG_NOT_SET is not set\nCONFIG_OTHER=y\n")
        document = asked("--from", path, "--config", config, "--source", source)
        measure, = [each for each in document["measures"] if each["kind"] == "config"]
        equal(measure["change"], "build the kernel without CONFIG_PIPES", "the option")
        live, = query(path, "SELECT sum(live_bytes) AS n FROM sys_kmem WHERE file = 'fs/pipe.c'")
        equal(measure["low_bytes"], live["n"], "live bytes of its file")
        equal(measure["high_bytes"], live["n"], "without its code, which is not known")
        # an object file beside the source tells the size of its code
        with open(source + "/fs/pipe.c", "w") as file:
            file.write("int pipes[1000] = {1}; int f(int n) { return pipes[n]; }\n")
        tap.succeed(["cc", "-c", "pipe.c", "-o", "pipe.o"], cwd=source + "/fs")
        measure, = [each for each in asked("--from", path, "--config", config, "--source", source)["measures"]
                    if each["kind"] == "config"]
        check(4000 < measure["high_bytes"] - measure["low_bytes"] < 8000, measure)
        text = advise("--from", path, "--top", "1", "--no-pager")
        check(re.match(r"\S+/r\.allium, Linux \S+, at .*: \d+ measures, together .* of .*\n\n1\. ",
                       text.stdout.decode()), text.stdout)
        check(b"measures are shown; --top 0 shows all" in text.stderr, text.stderr)


def mistakes():
    """One line each, that says what to do."""
    with tap.private_dir() as folder:
        for words, code, line in (
                (["--from", "/nonexistent"], 1, "/nonexistent"),
                (["--from", "/etc/passwd"], 1, "is not an allium recording"),
                (["--config", "/nonexistent"], 1, "cannot read /nonexistent"),
                (["--config", "/etc/passwd"], 1, "sets no option: give the kernel's .config"),
                (["--source", "/nonexistent"], 1, "cannot open /nonexistent"),
                (["--source", folder], 1, "has no Makefile"),
                (["r.allium"], 2, "give a recording with --from"),
                (["--top", "x"], 2, "--top")):
            done = advise(*words, code=code)
            check(line in done.stderr.decode() and not done.stdout, words, done.stderr)
        unprivileged = subprocess.run([built("ALLIUM"), "sys", "advise", "--json"], capture_output=True, user=65534)
        if unprivileged.returncode == 3:
            check(b"it needs root" in unprivileged.stderr, unprivileged.stderr)
        else:  # the log of the kernel, or the modules, are for everybody here
            equal(unprivileged.returncode, 0, "code without privilege")
            check(any("/sys/kernel/slab" in each for each in json.loads(unprivileged.stdout)["not_judged"]),
                  unprivileged.stdout)


lib.main([
    ("what shrink frees lies within its bounds", shrinks),
    ("tables of the boot, against the kernel's log", tables),
    ("objects of a recording, and the option that brings them", recordings),
    ("mistakes, and no privilege", mistakes),
])
