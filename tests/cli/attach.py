# SPDX-License-Identifier: BSD-2-Clause
"""`allium attach` and `allium detach`: a process is observed from then on, and is as before afterwards."""
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import tap
from tap import built, check, equal, private_dir, run, succeed

ALLIUM = built("ALLIUM")
CYCLES = tap.pick(10, 100)
# Four threads that allocate, and check what is in their blocks.
PROGRAM = r"""
import sys, threading, zlib
SUMS = [zlib.crc32(bytes([n]) * (600 + 37 * n)) for n in range(100)]
ends = False
rounds, wrong = [0] * 4, [0] * 4
def work(me):
    kept = []
    while not ends:
        n = rounds[me] % 100
        kept.append(bytes([n]) * (600 + 37 * n))
        if len(kept) > 50:
            wrong[me] += sum(zlib.crc32(block) != SUMS[block[0]] for block in kept)
            kept.clear()
        rounds[me] += 1
threads = [threading.Thread(target=work, args=(me,)) for me in range(4)]
for thread in threads:
    thread.start()
print("ready", flush=True)
sys.stdin.readline()
ends = True
for thread in threads:
    thread.join()
print(min(rounds), sum(wrong), flush=True)
"""

# At each line of input it allocates 1,000 bytes by each function of the family, each several times; at "m" by functions
# that call others inside: realloc() of nothing, of a block of its own mapping, memalign() of a small alignment. The
# answers of epoll_wait() that are EINTR are counted.
FAMILY = r"""
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
static void *before[100], *kept[1000];
static int n, n_before;
static volatile int interrupted;
static void *wait_for_nothing(void *unused)
{
    struct epoll_event e;
    const int fd = epoll_create1(0);
    for (;;)
        if (epoll_wait(fd, &e, 1, -1) < 0 && errno == EINTR)
            interrupted++;
    return unused;
}
__attribute__((noinline)) static void work(int moves)
{
    void *p;
    for (int i = 0; i < 10; i++) {
        kept[n++] = malloc(1000);
        kept[n++] = calloc(10, 100);
        kept[n++] = realloc(malloc(10), 1000);
        if (posix_memalign(&kept[n++], 256, 1000))
            abort();
        kept[n++] = aligned_alloc(512, 1000);
        kept[n++] = memalign(64, 1000);
        kept[n++] = valloc(1000);
        if (moves) {
            kept[n++] = realloc(NULL, 1000);
            kept[n++] = memalign(8, 1000);
            p = realloc(malloc(300000), 600000);
            kept[n++] = realloc(p, 1000);
        }
        p = malloc(1000);
        free(p);
        free(before[n_before++]);
    }
}
int main(void)
{
    pthread_t thread;
    char line[10];
    mallopt(M_MMAP_THRESHOLD, 200000);
    for (int i = 0; i < 100; i++)
        before[i] = malloc(1000);
    pthread_create(&thread, NULL, wait_for_nothing, NULL);
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        work(line[0] == 'm');
        printf("%d\n", interrupted);
        fflush(stdout);
    }
    return 0;
}
"""


@contextlib.contextmanager
def program():
    p = subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        equal(p.stdout.readline(), b"ready\n", "program")
        yield p
    finally:
        p.kill()
        p.wait()


def end(p):
    """It went on, and no block was changed."""
    out, _ = p.communicate(b"\n", timeout=60)
    equal(p.returncode, 0, "exit")
    rounds, wrong = map(int, out.split())
    check(rounds > 0, "rounds")
    equal(wrong, 0, "blocks that were changed")


def text_of(pid, name):
    """Address and bytes of the code of a mapped library."""
    parts = {}
    with open("/proc/%d/maps" % pid) as maps, open("/proc/%d/mem" % pid, "rb") as memory:
        for line in maps:
            words = line.split()
            if len(words) > 5 and "x" in words[1] and os.path.basename(words[5]).startswith(name):
                start, stop = (int(word, 16) for word in words[0].split("-"))
                memory.seek(start)
                parts[start] = memory.read(stop - start)
    return parts


def cycles():
    """A program of four threads is attached to and left, again and again."""
    with private_dir() as folder, program() as p:
        os.environ["ALLIUM_DIR"] = folder
        before = text_of(p.pid, "libc.so.6")
        for k in range(CYCLES):
            said = succeed([ALLIUM, "attach", str(p.pid)]).stderr.decode()
            check(re.match(r"allium: attached to python3\S* \(pid %d\): 5 threads, longest stop \S+ \S+, "
                           r"8 functions of libc.so.6; monitoring began at \S+; see allium report %d\n$" %
                           (p.pid, p.pid), said), said)
            check(text_of(p.pid, "libc.so.6") != before, "jumps")
            if k % 10 == 0:
                tap.wait_until(lambda: shown(p.pid), 10, "a report")
            succeed([ALLIUM, "detach", str(p.pid)])
            equal(text_of(p.pid, "libc.so.6") == before, True, "the code is as before")
        end(p)


def half():
    """A tool that was killed has patched some entries: the next one undoes that first. It may also be detached."""
    with private_dir() as folder, program() as p:
        os.environ["ALLIUM_DIR"] = folder
        before = text_of(p.pid, "libc.so.6")
        for then in "attach", "detach":
            succeed([ALLIUM, "attach", str(p.pid)])
            done = run([ALLIUM, "attach", str(p.pid)])
            equal((done.returncode, done.stderr.decode()),
                  (1, "allium: process %d is observed already: see allium report %d\n" % (p.pid, p.pid)), "twice")
            (start, old), = before.items()
            new = text_of(p.pid, "libc.so.6")[start]
            first = next(i for i in range(len(old)) if old[i] != new[i])
            with open("/proc/%d/mem" % p.pid, "r+b", buffering=0) as memory:
                memory.seek(start + first)
                memory.write(old[first:first + 5])
            succeed([ALLIUM, then, str(p.pid)])
            if then == "attach":
                succeed([ALLIUM, "detach", str(p.pid)])
            equal(text_of(p.pid, "libc.so.6") == before, True, "the code is as before")
        end(p)


def refuses(pid, line, code=1):
    done = run([ALLIUM, "attach", str(pid)])
    equal((done.returncode, done.stdout), (code, b""), done.stderr)
    said = done.stderr.decode()
    check(re.fullmatch("allium: %s\n" % line, said), said, line)


@contextlib.contextmanager
def started(*command, **how):
    p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **how)
    try:
        yield p
    finally:
        p.kill()
        p.wait()


def state_of(pid):
    with open("/proc/%d/status" % pid) as file:
        return re.search(r"^State:\s+(\S)", file.read(), re.M)[1]


def work_of(pid, state="running"):
    """Allocations and live bytes of the function."""
    shown = json.loads(succeed([ALLIUM, "report", str(pid), "--json", "--by", "function"]).stdout)
    equal([p["state"] for p in shown["processes"]], [state], "state")
    row, = [row for row in shown["rows"] if row["name"] == "work"]
    return row["self"]["allocations"], row["self"]["live_bytes"]


def family():
    """Each call counts once, whichever functions call each other inside; and epoll_wait() is not interrupted."""
    with private_dir() as folder:
        os.environ["ALLIUM_DIR"] = folder
        succeed(["cc", "-w", "-O1", "-g", "-fno-builtin", "-x", "c", "-", "-o", folder + "/family", "-lpthread"],
                input=FAMILY.encode())
        with started(folder + "/family") as p:
            equal(p.stdout.readline(), b"ready\n", "program")
            for _ in range(3):
                succeed([ALLIUM, "attach", str(p.pid), "--period", "1"])
                for words, calls, live in (b"\n", 90, 70000), (b"m\n", 90 + 140, 70000 + 100000):
                    p.stdin.write(words)
                    p.stdin.flush()
                    equal(p.stdout.readline(), b"0\n", "interrupted")
                    equal(work_of(p.pid), (calls, live), words)
                succeed([ALLIUM, "detach", str(p.pid)])
                p.stdin.write(b"m\n")
                p.stdin.flush()
                equal(p.stdout.readline(), b"0\n", "interrupted")
                equal(work_of(p.pid, "detached"), (calls, live), "after it was detached")
            p.stdin.close()
            equal(p.wait(30), 0, "exit")


SEALED = """
import ctypes, sys
libc = ctypes.CDLL(None)
assert libc.prctl(22, 1, 0, 0, 0) == 0  # PR_SET_SECCOMP, SECCOMP_MODE_STRICT
while True:
    pass
"""


def refusals():
    """Whom it must not touch. One line says why, and what to do."""
    ended = subprocess.Popen(["true"], stdin=subprocess.DEVNULL)
    ended.wait()
    refuses(ended.pid, "there is no process %d" % ended.pid)
    refuses(2, "process 2 is a thread of the kernel: see allium sys memleak")
    with started("true") as p:
        tap.wait_until(lambda: state_of(p.pid) == "Z", 10, "a zombie")
        refuses(p.pid, "process %d has ended, and waits for its parent" % p.pid)
    with started("cat") as p:
        p.send_signal(signal.SIGSTOP)
        tap.wait_until(lambda: state_of(p.pid) == "T", 10, "stopped")
        refuses(p.pid, "process %d is stopped: kill -CONT %d lets it go on" % (p.pid, p.pid))
    with program() as p:
        thread = max(map(int, os.listdir("/proc/%d/task" % p.pid)))
        refuses(thread, "%d is a thread of process %d: attach to that" % (thread, p.pid))
    with started(sys.executable, "-c", SEALED) as p:
        tap.wait_until(lambda: b"Seccomp:\t1" in open("/proc/%d/status" % p.pid, "rb").read(), 10, "sealed")
        refuses(p.pid, r"process %d restricts its system calls \(seccomp\), and .*: start it with allium run" % p.pid)
    with started(built("TEST_CLI") + "/static") as p:
        equal(p.stdout.readline(), b"ready\n", "program")
        refuses(p.pid, "process %d does not use the shared C library of GNU, .*" % p.pid)
    with started(built("TEST_CLI") + "/sanitized") as p:
        equal(p.stdout.readline(), b"ready\n", "program")
        refuses(p.pid, "process %d runs with AddressSanitizer: .*" % p.pid)
    with started(ALLIUM, "run", "--", "cat") as p:
        observed = tap.wait_until(lambda: children(p.pid), 10, "a child")[0]
        tap.wait_until(lambda: "liballium" in open("/proc/%d/maps" % observed).read(), 10, "the agent")
        refuses(observed, "process %d was started with allium: see allium report %d" % (observed, observed))
        p.stdin.close()
        p.wait(30)
    done = run([ALLIUM, "detach", str(os.getpid())])
    equal((done.returncode, done.stderr), (1, b"allium: process %d is not attached to\n" % os.getpid()), "detach")


def children(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as file:
        return [int(word) for word in file.read().split()]


def shown(pid):
    done = run([ALLIUM, "report", str(pid), "--json"])
    return done.returncode == 0 and json.loads(done.stdout)["rows"]


tap.main([("attached and detached, again and again", cycles), ("each call counts once", family),
          ("half done by a tool that was killed", half), ("whom it refuses", refusals)])
