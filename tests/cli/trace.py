# SPDX-License-Identifier: BSD-2-Clause
"""`allium trace`: the events of a program whose calls are known, as babeltrace2 prints them; to the last one before
SIGKILL; children; first mistakes.
"""
import os
import re
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import tap
from tap import built, check, equal, private_dir, succeed

ALLIUM = built("ALLIUM")
BLOCKS = 30000
# Blocks of 100 to 1,099 bytes, every other one freed at once, by two threads; then it kills itself.
PROGRAM = """
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void *volatile kept[%d];
static void *work(void *arg)
{
    for (long i = (long)arg; i < %d; i += 2) {
        kept[i] = malloc(100 + i %% 1000);
        if (i %% 4 < 2)
            free(kept[i]);
    }
    return NULL;
}
int main(int argc, char **argv)
{
    pthread_t other;
    void *volatile p;
    pthread_create(&other, NULL, work, (void *)1);
    work(NULL);
    pthread_join(other, NULL);
    p = calloc(7, 11);
    p = realloc(p, 50001);
    p = realloc(p, 60001);
    free(p);
    free(NULL);
    p = memalign(64, 20001);
    free(p);
    p = malloc((size_t)1 << 62);
    if (argc > 1 && !fork()) {
        for (int i = 0; i < 100; i++)
            free(malloc(33333));
        _exit(0);
    }
    if (argc > 1)
        sleep(1);
    raise(SIGKILL);
}
""" % (BLOCKS, BLOCKS)
EVENT = re.compile(r"^\[([\d.]+)\] .*allium:(\w+): \{ cpu_id = (\d+), vpid = (\d+), image_id = 0x\w+ \}, \{ flags = (\d+), vtid = (\d+) \}, "
                   r"\{ ptr = 0x([0-9A-F]+)(?:, size = (\d+))?, site = 0x([0-9A-F]+) \}$")

LIFE = re.compile(r" allium:(process|thread|exec|module)_?\w*: ")


def program(folder):
    with open(folder + "/calls.c", "w") as file:
        file.write(PROGRAM.replace("#include <stdlib.h>", "#include <stdlib.h>\n#include <malloc.h>"))
    succeed(["cc", "-O1", "-fno-builtin", folder + "/calls.c", "-lpthread", "-o", folder + "/calls"])
    return folder + "/calls"


def traced(folder, *words):
    """-> [(seconds, name, cpu, process, thread, address, size)] in the order of time, and what allium said"""
    done = tap.run([ALLIUM, "trace", "-o", folder + "/t", "--", program(folder), *words])
    equal(done.returncode, 128 + signal.SIGKILL, done.stderr)
    printed = subprocess.run(["babeltrace2", "--clock-seconds", folder + "/t/ust"], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
    equal((printed.returncode, printed.stderr), (0, ""), "babeltrace2")
    events, life = [], 0
    for line in printed.stdout.splitlines():
        if LIFE.search(line):
            life += 1
            continue
        found = EVENT.match(line)
        check(found, line)
        time, name, cpu, process, thread, address, size = found.groups()[:4] + found.groups()[5:8]
        events.append((float(time), name, int(cpu), int(process), int(thread), int(address, 16), int(size or 0)))
    said = done.stderr.decode()
    found = re.search(r"allium: (\d+) events of (\d+) process.*/t, 0 lost\n", said)
    check(found, said)
    equal(int(found.group(1)), len(events) + life, said)
    check(life >= 2, "the process and its thread begin", life)
    return events, int(found.group(2))


def exact():
    """Each call is there once, with its size; no address has two lives at once; SIGKILL takes nothing away."""
    with private_dir() as folder:
        events, images = traced(folder)
        equal(images, 1, "processes")
        ours = [e for e in events if e[1] == "malloc" and 100 <= e[6] < 1100]
        for size in range(100, 1100):
            check(sum(e[6] == size for e in ours) >= BLOCKS // 1000, size)
        check(BLOCKS <= len(ours) <= BLOCKS + 50, len(ours))
        equal(len({e[4] for e in ours}), 2, "threads")
        live = {}
        for time, name, _, _, _, address, size in events:
            if name in ("free", "realloc_begin"):
                check(not address or live.pop(address, None), name, hex(address), time)
            elif address:
                check(address not in live, name, hex(address), time)
                live[address] = size
        held = sum(size for size in live.values() if 100 <= size < 1100)
        want = sum(100 + i % 1000 for i in range(BLOCKS) if i % 4 >= 2)
        check(want <= held <= want + 50 * 1100, held, want)
        some = [(name, size) for _, name, _, _, _, address, size in events
                if size in (77, 50001, 60001, 20001, 1 << 62) or name.startswith("realloc")]
        equal(some, [("calloc", 77), ("realloc_begin", 0), ("realloc_end", 50001), ("realloc_begin", 0),
                     ("realloc_end", 60001), ("memalign", 20001), ("malloc", 1 << 62)], "the other calls")
        equal([e[5] for e in events if e[6] == 1 << 62], [0], "address of a failure")


def settings():
    """Rings of the size that is asked for, which a program that allocates much between two looks of the reader needs;
    and times of CLOCK_MONOTONIC, between those of this test."""
    with private_dir() as folder:
        before = time.time()
        done = tap.run([ALLIUM, "trace", "-o", folder + "/t", "--clock", "mono", "--buffer", "64K", "--",
                        program(folder)])
        equal(done.returncode, 128 + signal.SIGKILL, done.stderr)
        check(b", 0 lost" not in done.stderr, "none lost in rings of 64 KiB", done.stderr)
        printed = succeed(["babeltrace2", "--clock-seconds", folder + "/t/ust"]).stdout.decode()
        times = [float(line[1:line.index("]")]) for line in printed.splitlines()]
        check(len(times) > 1000 and before - 1 <= min(times) <= max(times) <= time.time() + 1, before, times[:2])


def children():
    """A fork child has rings of its own."""
    with private_dir() as folder:
        events, images = traced(folder, "fork")
        equal(images, 2, "processes")
        theirs = [e for e in events if e[6] == 33333]
        equal((len(theirs), len({e[3] for e in theirs})), (100, 1), "allocations of the child")
        check(theirs[0][3] not in {e[3] for e in events if e[6] == 20001}, "pids")


def mistakes():
    with private_dir() as folder:
        for words, code, line in (((), 2, "missing command"), (("--", "nosuch"), 127, "command not found"),
                                  (("-o", folder, "--", "true"), 125, "exists: name another folder"),
                                  (("-o", folder + "/a/b", "--", "true"), 125, "No such file"),
                                  (("--period", "0", "--", "true"), 2, "period"),
                                  (("--buffer", "1K", "--", "true"), 2, "buffer"),
                                  (("--clock", "sun", "--", "true"), 2, "clock"),
                                  (("--stacks", "some", "--", "true"), 2, "stacks"),
                                  (("--stacks", "full", "--events", "user", "--", "true"), 2, "--stacks is for"),
                                  (("--events", "life", "--", "true"), 2, "alloc, begin, tag, user"),
                                  (("--stacks", "full", "1"), 2, "--stacks needs a command")):
            done = tap.run([ALLIUM, "trace", *words], cwd=folder)
            equal(done.returncode, code, words)
            check(line in done.stderr.decode(), done.stderr)
            check(done.stderr.count(b"\n") <= 2, done.stderr)
        equal(os.listdir(folder), [], "what is left behind")


tap.main([
    ("a trace has each call once, to the last before SIGKILL", exact),
    ("fork children have traces of their own", children),
    ("--buffer, --clock", settings),
    ("first mistakes", mistakes),
])
