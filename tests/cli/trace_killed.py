# SPDX-License-Identifier: BSD-2-Clause
"""SIGKILL of the program and of `allium trace`: what was written to the disk and what is left in the rings are together
all that the program did. The program counts its calls in a file that it maps.
"""
import glob
import json
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
import tap
from tap import built, check, equal, private_dir, succeed

ALLIUM = built("ALLIUM")
# Call number n allocates 1000 + n bytes, so that an event tells its number. It makes them one by one, with pauses, so
# that no ring is ever full.
PROGRAM = """
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
static void *volatile kept;
int main(int argc, char **argv)
{
    const int file = open(argv[argc - 1], O_RDWR);
    volatile long *n = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    for (;;) {
        n[0]++;
        kept = malloc(999 + n[0]);
        n[1]++;
        free(kept);
        if (n[0] % 16 == 0)
            usleep(100);
    }
}
"""


def counts(path):
    with open(path, "rb") as file:
        return struct.unpack("qq", file.read(16))


def events(folder):
    """-> by number of the call: the time of its event"""
    done = tap.run([ALLIUM, "events", "--json", "--where", "event:malloc size>=1000", folder])
    equal(done.returncode, 0, "events of %s: %s" % (folder, done.stderr))
    found = [json.loads(line) for line in done.stdout.splitlines()[1:-1]]
    return {e["fields"]["size_bytes"] - 1000: e["time_ns"] for e in found}


def both_killed():
    with private_dir() as folder:
        env = dict(os.environ, XDG_RUNTIME_DIR=folder + "/runtime")
        os.mkdir(folder + "/runtime", 0o700)
        source, program, shared = folder + "/program.c", folder + "/program", folder + "/counts"
        with open(source, "w") as file:
            file.write(PROGRAM)
        succeed(["cc", "-O1", "-fno-builtin", source, "-o", program])
        for round in range(tap.pick(3, 20)):
            with open(shared, "wb") as file:
                file.truncate(4096)
            trace, rest = "%s/t%d" % (folder, round), "%s/rest%d" % (folder, round)
            tool = subprocess.Popen([ALLIUM, "trace", "--quiet", "-o", trace, "--", program, shared], env=env,
                                    stderr=subprocess.DEVNULL)
            streams = trace + "/ust"
            tap.wait_until(lambda: counts(shared)[1] > 2000 * (round + 1) and any(
                name.startswith("events_") for name in os.listdir(streams)), 30, "the program runs, and is read")
            tool.kill()
            tool.wait()
            pid = next(name.split("-")[0] for _, _, names in os.walk(env["XDG_RUNTIME_DIR"]) for name in names
                       if name.endswith(".ring"))
            seen = counts(shared)[1]
            tap.wait_until(lambda: counts(shared)[1] > seen + 100, 30, "the program goes on without a reader")
            os.kill(int(pid), signal.SIGKILL)
            tap.wait_until(lambda: not os.path.exists("/proc/" + pid) or
                           open("/proc/%s/stat" % pid).read().rsplit(")", 1)[1].split()[0] == "Z", 10, "it is dead")
            begun, done = counts(shared)
            said = tap.run([ALLIUM, "snapshot", pid, "--trace", "-o", rest], env=env)
            equal(said.returncode, 0, "snapshot: %s" % said.stderr)
            check(re.search(rb"; \d+ before them are gone, 0 lost\n", said.stderr), said.stderr)
            first, second = events(trace), events(rest)
            equal(sorted(first), list(range(len(first))), "calls in the trace, from the first one on")
            equal(sorted(second), list(range(min(second), max(second) + 1)), "calls in the rings, to the last one")
            check(min(second) <= len(first), "calls in neither", len(first), min(second))
            # the call at the moment of the kill may have its event, or not
            check(done <= max(second) + 1 <= begun, (done, max(second) + 1, begun))
            # the trace has the times by the anchors of its reader, the rest by those of the agent
            check(all(abs(first[n] - second[n]) < 100000 for n in first.keys() & second.keys()), "times")
            both = succeed(["babeltrace2", rest + "/ust"]).stdout.decode().count("allium:malloc")
            check(both >= len(second), both, len(second))
            for view in (["report", trace], ["report", rest], ["sites", trace]):
                done_ = tap.run([ALLIUM, *view])
                equal(done_.returncode, 0, "%s: %s" % (view, done_.stderr))
            for root, _, names in os.walk(env["XDG_RUNTIME_DIR"]):
                for name in names:
                    os.unlink(os.path.join(root, name))


def listed(trace):
    """-> the events of each CPU, in their order, and what the report says of packets that are cut"""
    lines = succeed([ALLIUM, "events", "--json", trace]).stdout.splitlines()[1:-1]
    of = {}
    for e in map(json.loads, lines):
        of.setdefault((e["process"], e["cpu"]), []).append((e["time_ns"], e["event"], e["fields"]))
    return of


def cut_packets(trace):
    """-> how many the report counts"""
    found = re.search(r"(\d+) packets? at the end not whole",
                      " ".join(succeed([ALLIUM, "report", trace]).stdout.decode().split()))
    return int(found.group(1)) if found else 0


def babeltrace(trace):
    done = subprocess.run(["babeltrace2", trace + "/ust"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return done.returncode, done.stderr, done.stdout.count(b"\n")


def cut_on_disk():
    """The first reader keeps the whole events of a packet that was cut, and closes it, so that babeltrace2 reads them."""
    with private_dir() as folder:
        whole, trace = folder + "/whole", folder + "/t"
        succeed([ALLIUM, "trace", "--quiet", "--events", "alloc,tag", "-o", whole, "--", "sh", "-c", "true; echo x"])
        want = listed(whole)
        equal((babeltrace(whole)[:2], cut_packets(whole)), ((0, b""), 0), "the whole trace")
        streams = [name for name in os.listdir(whole + "/ust") if os.path.getsize(whole + "/ust/" + name) and
                   name.startswith("events_")]
        for less in 1, 8, 20, 40, 100, 333, 1000, 10**9:
            shutil.rmtree(trace, ignore_errors=True)
            shutil.copytree(whole, trace)
            for name in streams:
                size = os.path.getsize(whole + "/ust/" + name)
                os.truncate(trace + "/ust/" + name, max(size - less, 50))
            check(babeltrace(trace)[0] != 0, "babeltrace2 reads what is cut by", less)
            first = listed(trace)
            for key, events_ in first.items():
                equal(events_, want[key][:len(events_)], (less, key))
                check(len(events_) >= len(want[key]) - (less + 39) // 32 - 1, less, key, len(events_), len(want[key]))
            code, said, lines = babeltrace(trace)
            equal((code, said, lines), (0, b"", sum(map(len, first.values()))), less)
            equal((listed(trace), cut_packets(trace)), (first, len(streams)), "read once more: %d" % less)


def write_little():
    """For a child process: a file can grow to 40 bytes, so that the head of a packet cannot be written."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40, 40))


def not_closed():
    """A packet that cannot be closed is counted once, however often it is read. No FIFO in the folder stops a reader."""
    with private_dir() as folder:
        trace, fifo = folder + "/t", folder + "/t/ust/.cut"
        succeed([ALLIUM, "trace", "--quiet", "-o", trace, "--", "sh", "-c", "true"])
        (name,) = [path for path in glob.glob(trace + "/ust/events_*") if os.path.getsize(path)][:1]
        os.truncate(name, os.path.getsize(name) - 8)
        os.mkfifo(fifo)
        for _ in range(2):
            equal(cut_packets(trace), 1, "the notes are a FIFO")
        os.unlink(fifo)
        for _ in range(3):
            succeed([ALLIUM, "events", "--json", trace], preexec_fn=write_little)
        with open(fifo) as notes:
            equal(notes.read(), os.path.basename(name) + "\n", "notes")
        for _ in range(2):
            equal(cut_packets(trace), 1, "packets that are cut")
        for path, code, line in (name, 1, b"cannot read"), (trace + "/ust/metadata", 2, b"not a trace of allium"):
            os.unlink(path)
            os.mkfifo(path)
            done = tap.run([ALLIUM, "events", trace])
            equal((done.returncode, done.stdout, done.stderr.count(b"\n")), (code, b"", 1), done.stderr)
            check(line in done.stderr, done.stderr)


def being_written():
    """A packet that is not whole may become so: the reader leaves it alone while the trace goes on."""
    with private_dir() as folder:
        trace = folder + "/t"
        tool = subprocess.Popen([ALLIUM, "trace", "--quiet", "-o", trace, "--", "sh", "-c", "true; echo x; read y"],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        equal(tool.stdout.readline(), b"x\n", "the program")
        tap.wait_until(lambda: any(name.startswith("events_") and os.path.getsize(trace + "/ust/" + name)
                                   for name in os.listdir(trace + "/ust")), 30, "events")
        (name, *_) = [trace + "/ust/" + name for name in os.listdir(trace + "/ust") if name.startswith("events_") and
                      os.path.getsize(trace + "/ust/" + name)]
        size = os.path.getsize(name)
        with open(name, "ab") as file:
            file.write(b"x" * 24)
        succeed([ALLIUM, "events", trace])
        equal(os.path.getsize(name) >= size + 24, True, "the stream")
        tool.communicate(b"\n")


tap.main([("a packet that was cut on disk", cut_on_disk), ("a packet that is being written", being_written),
          ("a packet that cannot be closed, and FIFOs", not_closed),
          ("nothing is lost if both are killed", both_killed)])
