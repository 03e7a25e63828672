# SPDX-License-Identifier: BSD-2-Clause
"""`allium trace --sum kernel:NAME`: what the kernel does for a program, against what the program counts itself; losses to
the unit.
"""
import json
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
import json_schemas
import lib
import tap
from tap import built, check, equal, private_dir, succeed

ALLIUM = built("ALLIUM")
# Three threads and a fork child; each maps other lengths, and says how many of each.
PROGRAM = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#define TOUCHED 500
static long rounds;
static struct said { long tid, pid, n, bytes; } *said; /* shared with the child */

static void *work(void *number)
{
    struct said *s = &said[(intptr_t)number];
    s->tid = syscall(SYS_gettid);
    s->pid = getpid();
    for (long i = 0; i < rounds; i++) {
        const size_t length = 4096 * (1000 + (size_t)(intptr_t)number * 10 + (size_t)i % 4);
        void *p = (void *)syscall(SYS_mmap, 0, length, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        s->n++;
        s->bytes += (long)length;
        if (p == MAP_FAILED || munmap(p, length))
            abort();
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[3];
    rounds = atol(argv[1]);
    if (argc > 2 && read(0, argv[2], 1) < 0) /* with one more argument it waits for a byte of its input */
        return 1;
    said = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char *pages = mmap(NULL, 4096 * TOUCHED, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    said[4].n = 1; /* a fault of the class shared, and one in the child */
    for (long i = 0; i < TOUCHED; i++)
        pages[4096 * i] = 1;
    for (intptr_t i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    if (!fork()) {
        work((void *)3);
        _exit(0);
    }
    wait(NULL);
    for (int i = 0; i < 4; i++)
        printf("%ld %ld %ld %ld\n", said[i].tid, said[i].pid, said[i].n, said[i].bytes);
    return argc < 2;
}
"""


def program(folder):
    path = folder + "/program"
    with open(path + ".c", "w") as file:
        file.write(PROGRAM)
    succeed(["cc", "-O1", "-pthread", path + ".c", "-o", path])
    return path


def run_sum(spec, words, options=(), code=0, **env):
    """-> rows, what the program printed in numbers, what allium said"""
    with private_dir() as folder:
        done = tap.run([ALLIUM, "trace", "--sum", spec, "--json", "--top", "0", "-o", folder + "/sums", *options, "--",
                        *words], env=dict(os.environ, **env))
        equal(done.returncode, code, (words, done.stderr))
        with open(folder + "/sums") as file:
            document = json.load(file)
    json_schemas.check(document)
    return document["rows"], [list(map(int, line.split())) for line in done.stdout.splitlines()], done.stderr.decode()


def by_thread():
    """Sums of a length for each thread and length: exactly those that the program counts; the alert on it comes once."""
    with private_dir() as folder:
        rows, printed, said = run_sum(
            "kernel:mmap.length,by=thread,pid,length,event", [program(folder), "2000"],
            ("--alert", "length>=4096000 count>=500", "--exec", "echo x >>%s/alerts" % folder))
        with open(folder + "/alerts") as file:
            equal(file.read(), "x\n", "alerts")
    check("were lost" not in said, said)
    for number, (tid, pid, n, total) in enumerate(printed):
        own = [row for row in rows if row["thread"] == tid and row["length_bytes"] >= 4096000]
        equal({(row["pid"], row["length_bytes"], row["count"], row["sum_bytes"], row["event"]) for row in own},
              {(pid, 4096 * pages, n // 4, 4096 * pages * n // 4, "kernel:mmap") for pages in
               range(1000 + number * 10, 1004 + number * 10)}, "thread %d" % number)
        equal(sum(row["sum_bytes"] for row in own), total, "bytes")


def running():
    """The same of a process that runs already, and of its child; the end of the process is the end."""
    with private_dir() as folder:
        p = subprocess.Popen([program(folder), "500", "x"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        sums = [ALLIUM, "trace", "--sum", "kernel:mmap.length,by=thread,pid", "--json", "--top", "0"]
        done = tap.run(["setpriv", "--bounding-set=-all", "--inh-caps=-all", *sums, str(p.pid)])
        equal(done.returncode, 3, done.stderr)
        check(b"as root" in done.stderr and done.stderr.count(b"\n") == 1, done.stderr)
        tool = subprocess.Popen([*sums, str(p.pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = tool.stderr.readline()
        check("adding up events of process %d" % p.pid in line, line)
        printed = [list(map(int, line.split())) for line in p.communicate(b"x")[0].splitlines()]
        text, said = tool.communicate(timeout=60)
        equal((tool.returncode, said), (0, ""), "the tool")
    found = {row["thread"]: row for row in json.loads(text)["rows"]}
    equal(len(printed), 4, printed)
    for tid, pid, n, total in printed[1:3]:  # others map memory for their threads, too
        row = found[tid]
        check(row["pid"] == pid and n <= row["count"] <= n + 5 and total <= row["sum_bytes"], row, n, total)
    check(all(found[tid]["count"] >= n for tid, _, n, _ in printed), found)


def by_class():
    """Page faults by class; an event without a value."""
    with private_dir() as folder:
        rows, _, said = run_sum("kernel:page_fault_begin,by=class", [program(folder), "1"])
    (shared,) = [row for row in rows if row["class"] == "shared"]
    equal(shared["count"], 502, "faults")
    check("sum" not in shared and "lost" not in said, shared, said)
    check({"anonymous", "file"} <= {row["class"] for row in rows}, rows)


def many_keys():
    """There is room for 4,095 keys: the events of the others are in one row, and none is missing."""
    pages = 6000
    touch = "import mmap\nm = mmap.mmap(-1, %d)\nm.madvise(mmap.MADV_NOHUGEPAGE)\nfor i in range(%d): m[4096 * i] = 1"
    rows, _, said = run_sum("kernel:page_fault_begin,by=address",
                            ["/usr/bin/python3", "-c", touch % (4096 * pages, pages)])
    (others,) = [row for row in rows if row["other_keys"]]
    equal(len(rows), 4096, "rows")
    counted = sum(row["count"] for row in rows)
    check(0 <= counted - pages < 4095 and others["count"] > pages - 4095, others, counted)
    check("%d events are in the row of other keys" % others["count"] in said, said)


def lost():
    """While allium is stopped, the smallest rings fill: what is in the rows and what is lost is what happened."""
    with private_dir() as folder:
        script = "kill -STOP $PPID; %s 1; %s 1; %s 1; kill -CONT $PPID" % (3 * (program(folder),))
        rows, _, said = run_sum("kernel:rss,by=pid", ["sh", "-c", script], ("--kernel-buffer", "32K"),
                                ALLIUM_KERNEL_COUNTS="1")
    n_lost = int(re.search(r"allium: (\d+) events of the kernel, of kernel:rss or its group, were lost", said).group(1))
    counted = int(re.search(r"(\d+) counted apart", said).group(1))
    check(n_lost > 500, n_lost)
    equal(sum(row["count"] for row in rows) + n_lost, counted, "events that the programs counted")


tap.main([
    ("by thread, process, length and event", by_thread),
    ("page faults by class", by_class),
    ("more keys than there is room for", many_keys),
    ("a process that runs already", running),
    ("losses", lost),
])
