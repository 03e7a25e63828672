# SPDX-License-Identifier: BSD-2-Clause
"""SIGKILL of the program and of `allium trace`: what was written to the disk and what is left in the rings are together
all that the program did. The program counts its calls in a file that it maps.
"""
import json
import os
import re
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


tap.main([("nothing is lost if both are killed", both_killed)])
