# SPDX-License-Identifier: BSD-2-Clause
"""`allium trace --kernel LIST PID`: what the kernel does for a process that runs already, and for its children of before
and after; nothing of others. The program knows its pages, its faults and its children.
"""
import collections
import contextlib
import os
import re
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
import lib
import tap
from tap import built, check, equal, private_dir, run, succeed

ALLIUM = built("ALLIUM")
# For each byte of its input: "t" touches pages, "f" does so in a new child, "c" in a child of the beginning. Each tells
# what it did. The blocks are for the trace of the agent.
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void touch(long n)
{
    struct rusage before, after;
    char said[128], *at = mmap(NULL, 4096 * n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *volatile block = malloc(70001);
    madvise(at, 4096 * n, MADV_NOHUGEPAGE);
    getrusage(RUSAGE_SELF, &before);
    for (long i = 0; i < n; i++)
        *(volatile char *)(at + 4096 * i) = 1;
    getrusage(RUSAGE_SELF, &after);
    free(block);
    const int length = snprintf(said, sizeof(said), "%d %ld %ld %ld\n", (int)getpid(), (long)at, n,
                                after.ru_minflt - before.ru_minflt);
    if (write(1, said, length) != length)
        _exit(1);
}

int main(void)
{
    int to[2];
    char c;
    if (pipe(to) || setvbuf(stdout, NULL, _IONBF, 0))
        return 1;
    touch(1);
    if (!fork()) {
        close(to[1]);
        while (read(to[0], &c, 1) == 1)
            touch(30);
        _exit(0);
    }
    while (read(0, &c, 1) == 1) {
        if (c == 't')
            touch(20);
        else if (c == 'c' && write(to[1], &c, 1) != 1)
            return 1;
        else if (c == 'f' && !fork()) {
            touch(40);
            _exit(0);
        } else if (c == 'f')
            wait(NULL);
    }
    return 0;
}
"""
# Makes children one after the other that all have one process id, the given one or that of the first child. Each child
# waits, touches pages, and tells its id, where they are and how many. Then it waits for the end of its input.
AGAIN = r"""
#define _GNU_SOURCE
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void touch(long n)
{
    char said[128], *at = mmap(NULL, 4096 * n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(at, 4096 * n, MADV_NOHUGEPAGE);
    for (long i = 0; i < n; i++)
        *(volatile char *)(at + 4096 * i) = 1;
    const int length = snprintf(said, sizeof(said), "%d %ld %ld\n", (int)getpid(), (long)at, n);
    _exit(write(1, said, length) != length);
}

int main(int argc, char **argv)
{
    pid_t number = atoi(argv[1]);
    char c;
    for (int i = 0; i < atoi(argv[2]); i++) {
        struct clone_args a = {
            .exit_signal = SIGCHLD, .set_tid = number ? (uintptr_t)&number : 0, .set_tid_size = number != 0};
        const pid_t child = syscall(SYS_clone3, &a, sizeof(a));
        if (!child) {
            usleep(atoi(argv[3]));
            touch(30);
        }
        if (child < 0) {
            perror("clone3");
            return 1;
        }
        number = child;
        waitpid(child, NULL, 0);
    }
    return read(0, &c, 1) < 0;
}
"""
LINE = re.compile(r"^\[(\d+)\] (?:\S+ )*?(?:\(\S+\) )?(kernel|allium):(\w+): .* \}, \{ (.*) \}$")
FIELD = re.compile(r'(\w+) = (?:\( "([^"]*)" : container = -?\d+ \)|"([^"]*)"|(-?\w+))')


def events(folder):
    """-> [(kernel or allium, name, fields)] in the order of time"""
    shown = run(["babeltrace2", "--clock-cycles", "--no-delta", folder])
    equal((shown.returncode, shown.stderr.decode()), (0, ""), "babeltrace2")
    found = []
    for line in shown.stdout.decode().splitlines():
        _, origin, name, fields = LINE.match(line).groups()
        found.append((origin, name, {
            key: label or text or int(number or "0", 0) for key, label, text, number in FIELD.findall(fields)}))
    return found


class Program:
    def __init__(self, folder, env_options=None):
        self.folder = folder
        self.env = dict(os.environ, XDG_RUNTIME_DIR=folder, ALLIUM_KERNEL_COUNTS="1")
        if not os.path.exists(folder + "/pages"):
            with open(folder + "/pages.c", "w") as file:
                file.write(PROGRAM)
            succeed(["cc", "-O1", "-fno-builtin", folder + "/pages.c", "-o", folder + "/pages"])
        lines = "" if env_options is None else succeed([ALLIUM, "env", *env_options], env=self.env).stdout.decode()
        self.process = subprocess.Popen(["sh", "-c", lines + 'exec "$@"', "sh", folder + "/pages"], env=self.env,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid = self.process.pid
        self.told()

    def told(self):
        return tuple(map(int, self.process.stdout.readline().split()))

    def step(self, what):
        """-> its process, where its pages are, how many, and how many faults it had"""
        self.process.stdin.write(what)
        self.process.stdin.flush()
        return self.told()


@contextlib.contextmanager
def programs(folder, *each):
    started = []
    try:
        for options in each:
            started.append(Program(folder, options))
        yield started
    finally:
        for p in started:
            p.process.stdin.close()
            p.process.kill()
            p.process.wait()


class Traced:
    def __init__(self, program, name, *options):
        self.folder = program.folder + "/" + name
        self.tracer = subprocess.Popen([ALLIUM, "trace", "-o", self.folder, *options, str(program.pid)],
                                       env=program.env, stderr=subprocess.PIPE, text=True)
        line = self.tracer.stderr.readline()
        check("tracing process %d" % program.pid in line, line)

    def end(self):
        """-> its events"""
        self.tracer.send_signal(signal.SIGINT)
        _, self.said = self.tracer.communicate(timeout=60)
        equal(self.tracer.returncode, 0, self.said)
        told = re.search(r"allium: (\d+) events of the kernel, 0 lost(?:; up to (\d+) more may)?.*; (\d+) counted", self.said)
        check(told, self.said)
        lib.excuse(int(told.group(2) or 0))
        found = events(self.folder)
        equal(sum(origin == "kernel" for origin, _, _ in found), int(told.group(1)), "events in the folder")
        equal(int(told.group(1)), int(told.group(3)), "events that the programs counted")
        return found


def check_pages(found, told):
    """Each page of each process has one fault, in their order; getrusage counted as many."""
    for pid, at, n, faults in told:
        pages = [f["address"] & ~4095 for _, name, f in found if name == "page_fault_begin" and f["pid"] == pid]
        equal([page for page in pages if at <= page < at + 4096 * n], [at + 4096 * i for i in range(n)], "pages")
        check(faults == n, "faults that getrusage counts", faults, n)


def any_process():
    """A process without agent and library: its events, those of the child it had, and of children that it makes."""
    with private_dir() as folder, programs(folder, None, None) as (p, other):
        p.step(b"t")
        t = Traced(p, "t", "--kernel", "faults,sched,rss")
        told = []
        for what in b"t", b"c", b"f", b"t", b"f", b"c":
            told.append(p.step(what))
            other.step(what)
        with open("/proc/%d/smaps_rollup" % p.pid) as file:
            anonymous = 1024 * int(re.search(r"\nAnonymous: +(\d+) kB", file.read()).group(1))
        found = t.end()
        equal(os.listdir(t.folder), ["kernel"], "what the folder has")
        check("the process itself writes no events" in t.said and t.said.count("\n") <= 3, t.said)
        equal(len({pid for pid, _, _, _ in told}), 4, "processes")
        check_pages(found, told)
        forked = [f["child_pid"] for _, name, f in found if name == "process_fork"]
        equal(forked, [told[2][0], told[4][0]], "children")
        equal({f["pid"] for _, name, f in found if name in ("page_fault_begin", "thread_exit", "process_fork")},
              {pid for pid, _, _, _ in told}, "whose events they are")
        held = [f["bytes"] for _, name, f in found if name == "rss" and f["pid"] == p.pid and f["own"] and
                f["kind"] == "anonymous"]
        equal(held[-1], anonymous, "resident memory")
        listed = succeed([ALLIUM, "events", t.folder, "--by", "event"]).stdout.decode()
        check(re.search(r"kernel:process_fork +2 ", listed), listed)


def with_agent():
    """The process's own events and the kernel's are on one clock: the faults lie between the calls around them."""
    with private_dir() as folder, programs(folder, ["--trace"]) as (p,):
        t = Traced(p, "t", "--kernel", "faults")
        told = [p.step(b"t") for _ in range(5)]
        found = t.end()
        check_pages(found, told)
        calls = [i for i, (_, name, f) in enumerate(found) if name == "malloc" and f["size"] == 70001]
        frees = [i for i, (_, name, f) in enumerate(found) if name == "free"]
        equal((len(calls), len(frees)), (5, 5), "calls")
        for (pid, at, n, _), begin, end in zip(told, calls, frees):
            inside = [f["address"] & ~4095 for _, name, f in found[begin:end] if name == "page_fault_begin"]
            equal([page for page in inside if at <= page < at + 4096 * n], [at + 4096 * i for i in range(n)], pid)
        check(os.path.exists(t.folder + "/profile.allium"), "names")


def once_free(command):
    """What a program prints that begins a process with a given number. It fails as long as another process has that."""
    done = []
    tap.wait_until(lambda: done.append(run(command)) or done[-1].returncode == 0, tap.TIMEOUT, command)
    return done[-1].stdout


def numbers():
    """A process id that is used again: the kernel frees an ended process later than its id. All processes of the command
    are traced, and no process of another one that has the same id."""
    with private_dir() as folder:
        again = folder + "/again"
        succeed(["cc", "-x", "c", "-", "-o", again], input=AGAIN.encode())
        tracer = subprocess.Popen([ALLIUM, "trace", "--kernel", "faults", "-o", folder + "/t", "--", again, "0", "4",
                                   "100000"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        told = [tuple(map(int, tracer.stdout.readline().split())) for _ in range(4)]
        own = told[0][0]
        stranger = once_free([again, str(own), "1", "0"])
        _, said = tracer.communicate(timeout=60)
        equal(tracer.returncode, 0, said)
        equal({pid for pid, _, _ in told}, {own}, "process ids")
        other, at, n = map(int, stranger.split())
        equal(other, own, "the id of a process of another command")
        touched = collections.Counter(f["address"] & ~4095 for _, name, f in events(folder + "/t")
                                      if name == "page_fault_begin" and f["pid"] == own)
        pages = collections.Counter(where + 4096 * i for _, where, n in told for i in range(n))
        equal({page: touched[page] for page in pages}, dict(pages), "faults of the pages of the children")
        equal([touched[at + 4096 * i] for i in range(n) if at + 4096 * i not in pages], [0] * n, "of the stranger")


def mistakes():
    """Where it is not possible: one line."""
    with private_dir() as folder, programs(folder, None) as (p,):
        ended = subprocess.Popen(["true"])
        ended.wait()
        for before, words, code, line in (
                (("setpriv", "--bounding-set=-all", "--inh-caps=-all"), ("--kernel", "faults", p.pid), 3, "as root"),
                ((), ("--kernel", "nosuch", p.pid), 2, "unknown events in --kernel: nosuch"),
                ((), ("--kernel", "faults", ended.pid), 1, "there is no process %d" % ended.pid),
                ((), ("--kernel", "faults", "--events", "user", p.pid), 1, "writes no events: restart it"),
                ((), ("--kernel-buffer", "1M", p.pid), 2, "is for --kernel"),
                (lib.IN_NAMESPACE, ("--kernel", "faults", 1), 3, "in a PID namespace")):
            done = run([*before, ALLIUM, "trace", "-o", folder + "/t", *map(str, words)], env=p.env)
            equal(done.returncode, code, "%s: %s" % (words, done.stderr))
            check(line in done.stderr.decode() and done.stderr.count(b"\n") == 1, done.stderr)
            check(not os.path.exists(folder + "/t"), "no folder is left")


lib.main([
    ("any process, its children of before and after, and no other", any_process),
    ("on one clock with the process's own events", with_agent),
    ("process ids that are used again", numbers),
    ("where it is not possible", mistakes),
])
