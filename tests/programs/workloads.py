# SPDX-License-Identifier: BSD-2-Clause
"""Real programs with work whose result is always the same: what exact.py counts and transparent.py compares.

A workload runs in an empty directory of its own. The short form does it once; the long form as often, or as much of it,
as takes two seconds of CPU.
"""
import contextlib
import os
import resource
import socket
import subprocess
import sys

import tap
from tap import check, private_dir, stop, succeed

CPU_SECONDS = 2  # at least, in the long form, without us

BASH = r"""
declare -A seen
for ((i = 0; i < 2000 * ROUNDS; i++)); do
    word=word$((i * 7919 % 1009)); seen[$word]=$((${seen[$word]:-0} + i % 17)); list[i]=${word/o/0}
done
for i in 1 2 3 4 5; do
    (for ((k = 0; k < 200; k++)); do inner[k]=$i.$k; done; echo "${#inner[@]} $i") | tr 1 x
    text=$(printf '%s\n' "${list[@]:0:300}" | sort | uniq -c | head -3)
    echo "$text"
done
echo "${#seen[@]} ${seen[word1]} ${list[1999]}" | tee out.txt
trap 'echo leaving >&2' EXIT
exit 7
"""
PYTHON = r"""
import collections, json, re, subprocess, sys, threading
def work(k, out):
    out.append(sorted(str(j) for j in range(k * 500)))
for _ in range(ROUNDS):
    data = {str(i): [i, i * 0.5, 'x' * (i % 50)] for i in range(3000)}
    text = json.dumps(data, sort_keys=True)
    print(len(text), json.loads(text) == data, hash(1.5))
    words = re.findall(r'x+', text)
    print(collections.Counter(map(len, words)).most_common(3))
    out = []
    threads = [threading.Thread(target=work, args=(k, out)) for k in range(4)]
    for t in threads: t.start()
    for t in threads: t.join()
    print(sum(map(len, out)))
print(subprocess.run(['/bin/echo', 'child'], capture_output=True).stdout)
open('out.txt', 'w').write(text)
print('done', file=sys.stderr)
sys.exit(3)
"""
SQLITE = """
CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT, b REAL);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000 * ROUNDS)
  INSERT INTO t SELECT i, printf('row %08d', i * 7919 % 10007), i / 3.0 FROM n;
CREATE INDEX by_a ON t(a);
SELECT count(*), min(a), max(a), sum(b) FROM t;
SELECT a FROM t ORDER BY a DESC LIMIT 3;
DELETE FROM t WHERE id % 3 = 0;
SELECT group_concat(a) FROM (SELECT a FROM t WHERE id < 20 ORDER BY a);
SELECT nonsense FROM t;
"""
PERL = r"""
my $text;
for my $round (1 .. ROUNDS) {
    my (%h, @list);
    for my $i (1 .. 20000) { my $k = "k" . ($i * 7919 % 4001); $h{$k} .= "$i,"; push @{$list[$i % 17]}, $k; }
    my @k = sort { length($h{$b}) <=> length($h{$a}) || $a cmp $b } keys %h;
    print scalar(@k), " $k[0] $h{$k[0]}\n";
    $text = join ' ', @k; my $n = () = $text =~ /k(\d)(\d*)\1/g; print "$n\n";
}
open my $f, '>', 'out.txt'; print $f "$text\n"; close $f;
my $pid = fork; if (!$pid) { my @x = map { "c$_" } 1 .. 1000; print STDERR scalar(@x), "\n"; exit 4 } waitpid $pid, 0;
print "child ", $? >> 8, "\n"; exit 5;
"""
NODE = r"""
const crypto = require('crypto'), fs = require('fs');
for (let round = 0; round < ROUNDS; round++) {
    const data = Array.from({length: 5000}, (_, i) => ({i, s: 'x'.repeat(i % 40), f: i / 3}));
    const text = JSON.stringify(data);
    console.log(text.length, crypto.createHash('sha256').update(text).digest('hex'));
    fs.writeFileSync('out.txt', text);
    const m = new Map(); for (let i = 0; i < 20000; i++) m.set('k' + i % 997, Buffer.alloc(i % 100 + 1, i));
    console.log(m.size, m.get('k5').length);
}
setTimeout(() => { console.error('done'); process.exitCode = 6; }, 5);
"""
JAVA = r"""
import java.util.*;
import java.util.stream.*;
public class Work {
    public static void main(String[] a) throws Exception {
        for (int round = 0; round < ROUNDS; round++) work();
        System.err.println("done");
        System.exit(8);
    }
    static void work() throws Exception {
        Map<String, List<Integer>> m = new TreeMap<>();
        for (int i = 0; i < 50000; i++) m.computeIfAbsent("k" + i % 991, k -> new ArrayList<>()).add(i);
        System.out.println(m.size() + " " + m.get("k5").stream().mapToInt(x -> x).sum());
        Thread[] t = new Thread[4]; int[] sums = new int[4];
        for (int k = 0; k < 4; k++) { int n = k; t[k] = new Thread(() -> {
            sums[n] = IntStream.range(0, 20000).mapToObj(Integer::toString).collect(Collectors.joining()).length(); }); t[k].start(); }
        for (Thread x : t) x.join();
        System.out.println(Arrays.toString(sums));
        java.nio.file.Files.writeString(java.nio.file.Path.of("out.txt"), String.join(",", m.keySet()));
        java.util.zip.Deflater d = new java.util.zip.Deflater(); d.setInput(new byte[100000]); d.finish();
        System.out.println(d.deflate(new byte[1000])); d.end();
    }
}
"""


def source(functions):
    """A program in C that takes the compiler some time, and two warnings."""
    return """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct node { struct node *left, *right; char name[32]; long value; };
#define F(n) static long f##n(struct node *x, long y) { long s = 0; for (int i = 0; i < n + 3; i++) { if (!x) break; \\
    s += x->value * (i + n) ^ y; x = s & 1 ? x->left : x->right; } printf("%%ld", s); return s + (long)strlen(x ? x->name : ""); }
%s
int main(void) { struct node n = {0}; int unused; return (int)(%s); }
""" % ("\n".join("F(%d)" % n for n in range(functions)), " + ".join("f%d(&n, %d)" % (n, n % 9) for n in range(functions)))


GIT_DATE = "2024-01-01T00:00:00Z"


class Workload:
    """`files`: of the number of rounds, the names and texts of its input."""

    def __init__(self, name, commands, files, env=None, ignore=(), stdin=os.devnull):
        self.name, self.commands, self.files, self.stdin = name, commands, files, stdin
        self.env = env or {}
        self.ignore = ignore  # files whose bytes hold times or inode numbers
        self.rounds = 1

    def run(self, folder, env, wrap=lambda: []):
        """Runs each command behind the words of wrap(); -> [(command, how it ended)]"""
        env, ended = dict(env, **self.env), []
        for name, text in self.files(self.rounds).items():
            with open(os.path.join(folder, name), "w") as file:
                file.write(text)
        for command in self.commands:
            with open(os.path.join(folder, self.stdin)) as stdin:
                ended.append((command, tap.run(wrap() + command, cwd=folder, env=env, stdin=stdin)))
        return ended

    def cpu(self):
        """Seconds that a run takes without us."""
        with private_dir("/tmp") as folder:
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            self.run(folder, dict(os.environ))
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def lengthen(self):
        """For the long form; says how long that is."""
        if not tap.LONG:
            return
        cpu = self.cpu()
        while cpu < CPU_SECONDS:
            self.rounds += max(1, int(self.rounds * (1.2 * CPU_SECONDS / cpu - 1)))
            cpu = self.cpu()
        print("# %s: %d rounds, %.2f s of CPU" % (self.name, self.rounds, cpu), flush=True)


class Redis(Workload):
    """The server, while redis-benchmark and redis-cli ask it; only the server is wrapped. What it says holds times."""

    def run(self, folder, env, wrap=lambda: []):
        with self.serving(folder, env, wrap) as (path, process):
            done = succeed(["redis-cli", "-s", path], input="\n".join(REDIS_CLI).encode())
            tap.run(["redis-cli", "-s", path, "shutdown", "nosave"])
            code = process.wait(tap.TIMEOUT)
        return [(["redis-cli"], done), (["redis-server"], subprocess.CompletedProcess([], code, b"", b""))]

    def cpu(self):
        with private_dir("/tmp") as folder, self.serving(folder, dict(os.environ)) as (_, process):
            with open("/proc/%d/stat" % process.pid) as file:
                return sum(map(int, file.read().rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")

    @contextlib.contextmanager
    def serving(self, folder, env, wrap=lambda: []):
        with redis(folder, env, wrap()) as (path, process):
            # each request of a kind is the same, and their number a multiple of the pipeline's: so the file of commands
            # is
            succeed(["redis-benchmark", "-s", path, "-q", "-n", str(2000 * self.rounds), "-c", "10", "-P", "4",
                     "-d", "100", "-t", "set,get,lpush,lrange_100,sadd,hset,zadd"])
            yield path, process


GIT_ENV = dict(GIT_AUTHOR_NAME="a", GIT_AUTHOR_EMAIL="a@b", GIT_COMMITTER_NAME="a", GIT_COMMITTER_EMAIL="a@b",
               GIT_AUTHOR_DATE=GIT_DATE, GIT_COMMITTER_DATE=GIT_DATE, GIT_CONFIG_GLOBAL="/dev/null",
               GIT_CONFIG_SYSTEM="/dev/null", GIT_PAGER="cat")
GIT = [["git", "init", "-q", "-b", "main", "."], ["git", "add", "."], ["git", "commit", "-q", "-m", "one"],
       ["git", "log", "-p", "--stat"], ["git", "-c", "pack.threads=1", "repack", "-adq"], ["git", "fsck"],
       ["git", "grep", "-n", "line 17"]]

REDIS_CLI = ["SET key%d %s" % (i, "v" * (i % 300)) for i in range(500)]
REDIS_CLI += ["LPUSH list%d a b c %d" % (i % 7, i)
              for i in range(300)] + ["HSET hash f%d %d" % (i, i) for i in range(200)]
REDIS_CLI += [
    "LRANGE list3 0 -1", "HLEN hash", "DEBUG DIGEST", "DBSIZE", "GET key299", "EVAL 'return #KEYS' 1 a", "NONSENSE"
]


def script(name, text):
    return lambda rounds: {name: text.replace("ROUNDS", str(rounds))}


WORKLOADS = [
    Workload("bash", [["bash", "work.sh"]], script("work.sh", BASH)),
    Workload("python3", [["/usr/bin/python3", "work.py"]], script("work.py", PYTHON), {"PYTHONHASHSEED": "0"}),
    Workload("python3 with PYTHONMALLOC=malloc", [["/usr/bin/python3", "work.py"]], script("work.py", PYTHON),
             {"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0"}),
    Workload("sqlite3", [["sqlite3", "out.db"]], script("work.sql", SQLITE), stdin="work.sql"),
    Workload(
        "git", GIT, lambda rounds:
        {"file%d" % k: "".join("line %d of %d\n" % (i, k) for i in range(100))
         for k in range(40 * rounds)}, GIT_ENV, ignore=(".git/index",)),
    Workload("gcc",
             [["gcc", "-O2", "-Wall", "-c", "work.c"], ["gcc", "-o", "work", "work.c"], ["gcc", "-c", "nothing.c"]],
             lambda rounds: {"work.c": source(16 * rounds)}, {"LC_ALL": "C", "SOURCE_DATE_EPOCH": "1"}),
    Workload("perl", [["perl", "work.pl"]], script("work.pl", PERL), {"PERL_HASH_SEED": "0", "PERL_PERTURB_KEYS": "0"}),
    Workload("node", [["node", "work.js"]], script("work.js", NODE)),
    Workload("java", [["java", "-Xmx200m", "-XX:-UsePerfData", "Work.java"]], script("Work.java", JAVA)),
    # the log holds times, and so does what an empty file of commands begins with
    Redis("redis-server under redis-benchmark", [], None,
          ignore=("redis.log", "appendonlydir/appendonly.aof.1.base.rdb")),
]


def listens(path):
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as s:
        s.connect(path)
        return True


@contextlib.contextmanager
def redis(folder, env, wrap=()):
    """A private redis-server, at a path, as a port may be taken by somebody else; yields (path, process). It is stopped
    by its process id.
    """
    path = os.path.join(folder, "redis.sock")
    with open(os.path.join(folder, "redis.log"), "wb") as log:
        process = subprocess.Popen([*wrap, "redis-server", "--port", "0", "--unixsocket", path, "--save", "",
                                    "--dir", folder, "--appendonly", "yes", "--auto-aof-rewrite-percentage", "0",
                                    "--enable-debug-command", "local"], cwd=folder, env=env,
                                   stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        def up():
            check(process.poll() is None, "redis-server has ended")
            return listens(path)
        tap.wait_until(up, 60, "redis-server is up")
        yield path, process
    finally:
        stop(process)
