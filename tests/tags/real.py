# SPDX-License-Identifier: BSD-2-Clause
"""Programs of others, from Debian's sources, built with <allium/malloc_hooks.h> and with no change to them: the compiler has
nothing new to say, they do what they do without it, and `allium tags` has rows of them.

Sources come through apt, with lists and archives of our own, and are kept in the build folder.
"""
import glob
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
from building import INCLUDE, accounts, scratch, tap
from tap import Skipped, built, check, equal, private_dir, run, succeed, wait_until

LIBRARY = built("TEST_TAGS_LIBRARY")
FOLDER = built("TEST_TAGS_SOURCES")
RELEASE = "bookworm"
HOOKS = "-I%s -include allium/malloc_hooks.h" % os.path.abspath(INCLUDE)
LINK = "%s -Wl,-rpath,%s" % (LIBRARY, os.path.dirname(LIBRARY))
HOURS = 3600


def apt(*words):
    etc, lists = FOLDER + "/etc", FOLDER + "/lists"
    os.makedirs(lists + "/partial", exist_ok=True)
    os.makedirs(etc, exist_ok=True)
    with open(etc + "/src.list", "w") as file:
        file.write("deb-src http://deb.debian.org/debian %s main\n" % RELEASE)
    done = run(["apt-get", "-q", "-o", "Dir::Etc::sourcelist=" + etc + "/src.list", "-o", "Dir::Etc::sourceparts=/dev/null",
                "-o", "Dir::State::lists=" + lists, "-o", "Acquire::Retries=2", *words], cwd=FOLDER, timeout=600)
    if done.returncode:
        raise Skipped("sources cannot be had: no network? apt-get said: " + done.stderr.decode().strip().splitlines()[-1])


def source(package):
    """The folder of its unpacked source, as upstream has it; fetched once."""
    into = "%s/%s" % (FOLDER, package)
    if not os.path.exists(into):
        if not glob.glob(FOLDER + "/lists/*Sources*"):
            apt("update")
        apt("source", "--download-only", package)
        archive, = glob.glob("%s/%s_*.orig.tar.*" % (FOLDER, package))
        shutil.rmtree(into + ".new", ignore_errors=True)
        os.makedirs(into + ".new")
        succeed(["tar", "xf", archive, "--strip-components=1", "-C", into + ".new"])
        os.rename(into + ".new", into)
    return into


def configured(package, *command):
    """The same, after ./configure: without the header, which configure scripts cannot be given."""
    into = FOLDER + "/" + package + ".configured"
    if not os.path.exists(into):
        shutil.rmtree(into + ".new", ignore_errors=True)
        succeed(["cp", "-a", source(package), into + ".new"])
        succeed(list(command), cwd=into + ".new", timeout=HOURS)
        os.rename(into + ".new", into)
    return into


class Variant:
    """How a program is built: with tags, or without."""

    def __init__(self, compiler, level, tags=True):
        self.compiler, self.level, self.tags = compiler, level, tags
        self.hooks = HOOKS if tags else ""
        self.link = LINK if tags else ""
        self.name = "%s %s%s" % (compiler, level, "" if tags else " without tags")

    def folder(self, tree, what):
        into = scratch("%s%s%s%s" % (what, self.compiler, self.level, self.tags))
        succeed(["cp", "-a", tree, into], timeout=HOURS)
        # what configure has written knows where it was
        succeed(["sh", "-c", "grep -rlF --include=Makefile '%s.new' . | xargs -r sed -i 's|%s.new|%s|g'" % (tree, tree, into)], cwd=into)
        return into

    def make(self, folder, *words):
        """-> how often the compiler warned"""
        done = run(["nice", "make", "-j2", *words], cwd=folder, stderr=subprocess.STDOUT, timeout=HOURS)
        check(done.returncode == 0, self.name, done.stdout[-1500:].decode(errors="replace"))
        said = [line for line in done.stdout.decode(errors="replace").splitlines() if "warning:" in line]
        equal([line for line in said if "include/allium/" in line], [], "warnings of our headers")
        return len(said)


def sqlite(v, _):
    tree = configured("sqlite3", "sh", "-c", "./configure -q && make -s sqlite3.c shell.c")
    folder = v.folder(tree, "sqlite")
    flags = [*v.hooks.split(), "-g", v.level, "-DSQLITE_ENABLE_FTS5", "-DSQLITE_ENABLE_MEMORY_MANAGEMENT"]
    done = succeed([v.compiler, *flags, "sqlite3.c", "shell.c", "-o", "sqlite3", *v.link.split(), "-lm", "-lpthread", "-ldl"],
                   cwd=folder, timeout=HOURS)
    return folder, done.stderr.decode().count("warning:"), lambda env: sqlite_at_work(folder, env)


SQL = """
PRAGMA journal_mode=wal; PRAGMA mmap_size=1000000;
CREATE TABLE a(x INTEGER PRIMARY KEY, y TEXT, z REAL); CREATE TABLE b(x, w); CREATE INDEX i ON b(x);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) INSERT INTO a SELECT i, hex(i * 7919), i / 3.0 FROM n;
INSERT INTO b SELECT x % 300, y FROM a WHERE x % 3 = 0;
SELECT count(*), sum(a.z), max(w) FROM a JOIN b ON a.x = b.x GROUP BY a.x % 5 ORDER BY 1, 2;
CREATE VIRTUAL TABLE f USING fts5(t); INSERT INTO f SELECT y FROM a LIMIT 500; SELECT count(*) FROM f WHERE f MATCH '37*';
BEGIN; DELETE FROM a WHERE x % 2; ROLLBACK; UPDATE a SET y = upper(y) || 'x' WHERE x < 100; VACUUM;
SELECT group_concat(y) FROM (SELECT y FROM a ORDER BY y LIMIT 20); PRAGMA integrity_check; SELECT json_group_array(w) FROM (SELECT w FROM b LIMIT 5);
"""


def sqlite_at_work(folder, env):
    with private_dir("/tmp") as here:
        p = subprocess.Popen([folder + "/sqlite3", here + "/db"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        out, _ = p.communicate(SQL.encode(), timeout=300)
        check(p.returncode == 0 and b"ok" in out, out[-500:])
        return out.decode(), p.pid


def bash(v, _):
    tree = configured("bash", "sh", "-c", "./configure -q --without-bash-malloc --disable-nls 2>&1")
    folder = v.folder(tree, "bash")
    said = v.make(folder, "CC=" + v.compiler, "CFLAGS=-g %s %s" % (v.level, v.hooks), "LOCAL_LIBS=" + v.link)
    succeed(["make", "-C", folder, "recho", "zecho", "printenv", "xcase", "CC=gcc"])
    return folder, said, lambda env: bash_at_work(folder, env)


def bash_at_work(folder, env):
    """Its own tests print what differs from what they want; so does a bash without tags where this machine is special."""
    with private_dir("/tmp") as here:
        env = dict(env, THIS_SH=folder + "/bash", TMPDIR=here, BASH_TSTOUT=here + "/out", PATH=folder + "/tests:" + folder + ":" + env["PATH"])
        out = ""
        for name in "array", "arith", "assoc", "braces", "case", "comsub", "cond", "extglob", "func", "heredoc", "new-exp", "nquote", "printf", "quote", "set-e", "strip", "tilde", "varenv":
            done = run(["sh", "run-" + name], cwd=folder + "/tests", env=env)
            out += "%s: %d\n%s%s" % (name, done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))
        p = subprocess.Popen([folder + "/bash", "-c", "for i in {1..3000}; do a[i]=${a[i-1]}x$i; declare -A m[$i]=$(( i * 7 )); done; set | cksum"],
                             env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        p.communicate()
        out = re.sub(r"line \d+: +\d+ (Killed|Terminated)", r"\1", out).replace(folder, "").replace(here, "")
        return re.sub(r"\b\d{3,7}\b(?= *$)|/bash\w*-\S*", "N", out, flags=re.M), p.pid


GIT = ["NO_%s=1" % what for what in "CURL EXPAT TCLTK GETTEXT PERL PYTHON OPENSSL INSTALL_HARDLINKS".split()]


def git(v, _):
    folder = v.folder(source("git"), "git")
    said = v.make(folder, *GIT, "CC=" + v.compiler, "CFLAGS=-g %s %s" % (v.level, v.hooks), "EXTLIBS=-lz " + v.link)
    return folder, said, lambda env: git_at_work(folder, env)


GIT_SCRIPT = """set -e
git init -q -b main r; cd r; git config user.name n; git config user.email e@f
for i in $(seq 60); do seq $i $((i * 40)) >f$((i % 7)); echo $i >>log; git add .; GIT_COMMITTER_DATE="@$((i * 100000)) +0000" GIT_AUTHOR_DATE="@$((i * 100000)) +0000" git commit -q -m "c $i"; done
git branch side HEAD~20; git checkout -q side; echo side >side; git add side; export GIT_COMMITTER_DATE="@9999999 +0000" GIT_AUTHOR_DATE="@9999999 +0000"; git commit -q -m side
git merge -q main -m merge; git gc -q; git fsck --full; git log --stat --format=%H%s | cksum; git blame f3 | cksum; git diff HEAD~30 | cksum
git grep -c 17 | cksum; cd ..; git clone -q --no-local r s; cd s; git rev-parse HEAD; git shortlog -sn --all; git archive HEAD | cksum; git log -p --all | cksum
"""


def git_at_work(folder, env):
    """What its commands print in a new repository, and some of its own tests."""
    with private_dir("/tmp") as here:
        env = dict(env, PATH=folder + "/bin-wrappers:" + env["PATH"], HOME=here, GIT_CONFIG_NOSYSTEM="1", GIT_TEST_OPTS="")
        done = succeed(["sh", "-c", GIT_SCRIPT], env=env, cwd=here, timeout=300)
        out = done.stdout.decode() + done.stderr.decode()
        for test in "t0000-basic.sh", "t0002-gitfile.sh", "t1300-config.sh", "t3200-branch.sh", "t4001-diff-rename.sh":
            done = run(["sh", test], cwd=folder + "/t", env=env, timeout=HOURS)
            text = done.stdout.decode(errors="replace")
            check(done.returncode == 0, test, text[-800:], done.stderr[-300:])
            out += "%s: %d passed\n" % (test, len(re.findall(r"^ok ", text, re.M)))
        p = subprocess.Popen([folder + "/git", "--exec-path=" + folder, "-C", here + "/r", "log", "--stat"], env=env, stdout=subprocess.DEVNULL)
        equal(p.wait(60), 0, "git log")
        return out, p.pid


def redis(allocator):
    def build(v, _):
        folder = v.folder(source("redis"), "redis" + allocator)
        said = v.make(folder, "MALLOC=" + allocator, "CC=" + v.compiler, "OPTIMIZATION=" + v.level, "BUILD_TLS=no", "USE_SYSTEMD=no",
                      "CFLAGS=-g " + v.hooks, "LDFLAGS=" + (v.link and "-Wl,--no-as-needed " + v.link))
        return folder, said, lambda env: redis_at_work(folder, env)
    return build


def redis_at_work(folder, env):
    with private_dir("/tmp") as here:
        socket, src = here + "/s", folder + "/src"
        p = subprocess.Popen([src + "/redis-server", "--port", "0", "--unixsocket", socket, "--dir", here, "--save", "", "--hz", "50"],
                             env=env, stdout=subprocess.DEVNULL)
        try:
            wait_until(lambda: os.path.exists(socket), 30, "its socket")
            succeed([src + "/redis-benchmark", "-s", socket, "-n", "3000", "-q"], env=env, timeout=300)
            lines = ["set k%d %s" % (i, "v" * i) for i in range(300)] + ["eval 'return redis.call(\"strlen\", \"k77\")' 0", "lrange l 0 -1", "hset h a 1 b 2", "hgetall h",
                                                                       "zadd z 1 a 2 b", "zrange z 0 -1 withscores", "append k7 x", "get k7", "dbsize", "xadd s 1-1 f v", "debug digest"]
            out = succeed([src + "/redis-cli", "-s", socket, "--raw"], input=("flushall\n" + "\n".join(lines)).encode(), stdin=None, env=env).stdout.decode()
            succeed([src + "/redis-cli", "-s", socket, "bgrewriteaof"], env=env)
        finally:
            p.terminate()
            equal(p.wait(60), 0, "its code")
        done = run(["./runtest", "--single", "unit/type/string", "--single", "unit/type/hash", "--single", "unit/expire", "--clients", "2"],
                   cwd=folder, env=env, timeout=HOURS)
        check(b"All tests passed" in done.stdout, done.stdout[-800:])
        return out, p.pid


def ninja(v, _):
    """In C++: what `new` gives is tagged by the operators of <allium/operator_new.hh>."""
    folder = v.folder(source("ninja-build"), "ninja")
    plus = {"gcc": "g++", "clang": "clang++"}[v.compiler]
    words = []
    if v.tags:
        unit = scratch("new.cc", "#include <allium/operator_new.hh>\n")
        succeed([plus, *v.hooks.split(), "-g", v.level, "-c", unit, "-o", folder + "/new.o"])
        words = [folder + "/new.o"]
    env = dict(os.environ, CXX=plus, CFLAGS="-g %s %s" % (v.level, v.hooks), LDFLAGS=" ".join([*words, v.link]))
    done = succeed([sys.executable, "configure.py", "--bootstrap"], cwd=folder, env=env, stderr=subprocess.STDOUT, timeout=HOURS)
    return folder, done.stdout.decode(errors="replace").count("warning:"), lambda env: ninja_at_work(folder, env)


def ninja_at_work(folder, env):
    with private_dir("/tmp") as here:
        with open(here + "/build.ninja", "w") as file:
            file.write("rule join\n  command = cat $in >$out\n  description = $out\n")
            for i in range(1, 300):
                file.write("build o%d: join %s\n" % (i, "first" if i == 1 else "o%d o%d" % (i // 2, max(1, i // 3))))
        with open(here + "/first", "w") as file:
            file.write("x")
        out = ""
        for words in ["-j1"], ["-d", "explain"], ["-t", "targets", "all"], ["-t", "graph"], ["-t", "compdb"], ["-t", "clean"]:
            p = subprocess.Popen([folder + "/ninja", "-C", here, *words], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            text = p.communicate(timeout=300)[0].decode()
            equal(p.returncode, 0, text[-500:])
            out += re.sub(r"0x[0-9a-f]+", "A", text.replace(here, ""))
        return out, p.pid


def behaves(build, least, *variants):
    """Each variant behaves as the program does without tags, with as few warnings, and has rows."""
    def test():
        for compiler in sorted({compiler for compiler, _ in variants}):
            _, bare_said, at_work = build(Variant(compiler, "-O2", False), None)
            bare, _ = at_work(dict(os.environ))
            for level in [level for other, level in variants if other == compiler]:
                v = Variant(compiler, level)
                folder, said, at_work = build(v, None)
                with private_dir() as ledgers:
                    out, pid = at_work(dict(os.environ, ALLIUM_DIR=ledgers))
                    equal(out, bare, v.name + ": what it does")
                    if level == "-O2":
                        check(said <= bare_said, v.name, "warnings:", said, "and without tags", bare_said)
                    rows, words = accounts(ledgers, pid)
                own = [row for row in rows if row["module"].startswith(folder)]
                named = [row for row in own if row["place"] and ":" in row["place"]]
                check(len(own) >= least and len(named) >= len(own) * 0.9, v.name, "rows:", len(own), "of which have a line:", len(named))
                # what was freed by code without tags is live to this day, and never the other way round
                equal([row for row in rows if row["live_objects"] < 0 or row["live_bytes"] < 0], [], v.name + ": below zero")
                check("damaged" not in words, words)
                shutil.rmtree(folder)
    return test


EVERY = [(compiler, level) for compiler in ("gcc", "clang") for level in ("-O0", "-O2")]
SOME = [("gcc", "-O2"), ("clang", "-O0")]
os.makedirs(FOLDER, exist_ok=True)
tap.main([
    ("sqlite3", behaves(sqlite, 3, *EVERY)),
    ("bash", behaves(bash, 3, *SOME)),
    ("ninja, in C++", behaves(ninja, 5, *SOME)),
    ("redis", behaves(redis("libc"), 3, *SOME)),
    ("redis with its own jemalloc", behaves(redis("jemalloc"), 1, ("gcc", "-O2"))),
    ("git", behaves(git, 3, *SOME)),
])
