# SPDX-License-Identifier: BSD-2-Clause
"""What programs of others are put to, and those of their own tests that are run: each prints what must be the same with
tags and without.
"""
import concurrent.futures
import os
import re
import shutil
import subprocess

from tap import check, equal, run, succeed, wait_until

LIMIT = 3600  # seconds for a case, once what it takes is built: on a machine that has other work, too
AT_ONCE = 2


def at_once(function, items):
    """-> what it gives for each, in their order"""
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(function, items))


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


def sqlite_works(folder, env, here):
    done = succeed([folder + "/sqlite3", here + "/db"], env=env, input=SQL.encode())
    check(b"ok" in done.stdout, done.stdout[-500:])
    return (done.stdout + done.stderr).decode()


SQLITE_TESTS = """select1 select4 selectA join join2 insert insert2 update upsert1 delete trigger1 trigger2 triggerC vtab1 view with1 window1 json101 func date
    e_expr collate1 cast alter attach autoinc backup blob capi2 capi3 incrblob shared shared2 malloc5 memsubsys1 mmap1 mmap2 mmap3 pager1 pcache
    savepoint temptable thread001 thread003 vacuum wal walhook zeroblob fts3aa fts3ab fts4aa rtree1 swarmvtab carray01 fuzz3 exclusive2 lookaside softheap1""".split()


def sqlite_tests(folder, env, here):
    """Those of its own that take no minutes; each says how many went wrong, and what was not freed."""
    def test(name):
        path, = [
            path for path in ("%s/%s/%s.test" % (folder, part, name) for part in ("test", "ext/rtree", "ext/fts3"))
            if os.path.exists(path)
        ]
        os.mkdir("%s/%s" % (here, name))
        done = run([folder + "/testfixture", path], env=env, cwd="%s/%s" % (here, name), stderr=subprocess.STDOUT)
        text = done.stdout.decode(errors="replace")
        said = re.findall(r"^.*errors out of.*tests|^All memory.*|^!.*|^Unfreed.*|.*leak.*", text, re.M)
        return "%s: %d %s" % (name, done.returncode, said or text[-500:])
    return "\n".join(at_once(test, SQLITE_TESTS))


BASH_SCRIPT = "for i in {1..3000}; do a[i]=${a[i-1]: -9}x$i; declare -A m[$i]=$(( i * 7 )); done; set | cksum; (f() { g=${a[*]}; }; f; echo ${#g}); echo $(echo $(echo x))"


def bash_works(folder, env, here):
    done = succeed([folder + "/bash", "-c", BASH_SCRIPT],
                   env=dict(PATH=env["PATH"],
                            **{key: env[key]
                               for key in env if "_DIR" in key or "LD_" in key or key == "COUNTS_SKIP"}))
    return re.sub(r"^\d+ \d+$", "sum", (done.stdout + done.stderr).decode(), flags=re.M)


BASH_TESTS = """alias appendop arith array assoc attr braces builtins case casemod comsub cond cprint dynvar errors extglob func getopts glob-test herestr
    heredoc ifs invert iquote lastpipe mapfile more-exp new-exp nquote nquote1 parser posix2 posixexp posixpat printf procsub quote redir rhs-exp rsh
    set-e set-x shopt strip test tilde tilde2 varenv vredir""".split()


def bash_tests(folder, env, here):
    """They print what differs from what they want; so does a bash without tags where this machine is special."""
    def test(name):
        own = "%s/%s" % (here, name)
        os.mkdir(own)
        its = dict(env, THIS_SH=folder + "/bash", TMPDIR=own, BASH_TSTOUT=own + "/out",
                   PATH=folder + "/tests:" + folder + ":" + env["PATH"])
        done = run(["sh", "run-" + name], cwd=folder + "/tests", env=its)
        text = done.stdout.decode(errors="replace") + done.stderr.decode(errors="replace")
        return "%s: %d\n%s" % (name, done.returncode, text.replace(own, "HERE"))
    out = "\n".join(at_once(test, BASH_TESTS)).replace(folder, "FOLDER")
    out = re.sub(r"line \d+: +\d+ (Killed|Terminated)", r"\1", out)
    return re.sub(r"\b\d{3,7}\b(?= *$)|/bash\w*-\S*", "N", out, flags=re.M)


GIT_SCRIPT = """set -e
git init -q -b main r; cd r; git config user.name n; git config user.email e@f
for i in $(seq 40); do seq $i $((i * 40)) >f$((i % 7)); echo $i >>log; git add .; GIT_COMMITTER_DATE="@$((i * 100000)) +0000" GIT_AUTHOR_DATE="@$((i * 100000)) +0000" git commit -q -m "c $i"; done
git branch side HEAD~20; git checkout -q side; echo side >side; git add side; export GIT_COMMITTER_DATE="@9999999 +0000" GIT_AUTHOR_DATE="@9999999 +0000"; git commit -q -m side
git merge -q main -m merge; git gc -q; git fsck --full; git log --stat --format=%H%s | cksum; git blame f3 | cksum; git diff HEAD~30 | cksum
git grep -c 17 | cksum; cd ..; git clone -q --no-local r s; cd s; git rev-parse HEAD; git shortlog -sn --all; git archive HEAD | cksum; git log -p --all | cksum
"""
GIT_TESTS = "t0000-basic t0002-gitfile t0040-parse-options t0063-string-list t0090-cache-tree t1300-config t1450-fsck t3200-branch t3400-rebase t4001-diff-rename t5300-pack-object t6012-rev-list-simplify t7006-pager".split(
)


def git_works(folder, env, here):
    env = dict(env, PATH=folder + "/bin-wrappers:" + env["PATH"], HOME=here, GIT_CONFIG_NOSYSTEM="1")
    done = succeed(["sh", "-c", GIT_SCRIPT], env=env, cwd=here, timeout=300)
    return (done.stdout + done.stderr).decode()


def git_tests(folder, env, here):
    def test(name):
        done = run(["sh", name + ".sh", "--root=" + here], cwd=folder + "/t", env=dict(env, GIT_TEST_OPTS=""),
                   timeout=LIMIT)
        text = done.stdout.decode(errors="replace")
        return "%s: %d, %d passed %s" % (name, done.returncode, len(re.findall(
            r"^ok ", text, re.M)), re.findall(r"^not ok.*", text, re.M))
    return "\n".join(at_once(test, GIT_TESTS))


def redis_works(folder, env, here):
    socket, src = here + "/s", folder + "/src"
    server = subprocess.Popen(
        [src + "/redis-server", "--port", "0", "--unixsocket", socket, "--dir", here, "--save", "", "--hz", "50"],
        env=env, stdout=subprocess.DEVNULL)
    try:
        wait_until(lambda: os.path.exists(socket), 30, "its socket")
        succeed([src + "/redis-benchmark", "-s", socket, "-n", "2000", "-q"], env=env, timeout=300)
        lines = ["set k%d %s" % (i, "v" * i) for i in range(300)]
        lines += [
            "eval 'return redis.call(\"strlen\", \"k77\")' 0", "lrange l 0 -1", "hset h a 1 b 2", "hgetall h",
            "zadd z 1 a 2 b", "zrange z 0 -1 withscores", "append k7 x", "get k7", "dbsize", "xadd s 1-1 f v",
            "debug digest"
        ]
        out = succeed([src + "/redis-cli", "-s", socket, "--raw"], input=("flushall\n" + "\n".join(lines)).encode(),
                      env=env).stdout.decode()
        succeed([src + "/redis-cli", "-s", socket, "bgrewriteaof"], env=env)

        def has_rewritten():
            said = succeed([src + "/redis-cli", "-s", socket, "info", "persistence"], env=env).stdout
            return b"aof_rewrite_in_progress:0" in said and b"aof_rewrite_scheduled:0" in said
        wait_until(has_rewritten, 60, "the rewritten file")  # else the server kills its child, between any two counts
    finally:
        server.terminate()
        equal(server.wait(60), 0, "its code")
    return out


REDIS_TESTS = [
    "unit/" + name for name in
    "type/string type/hash type/list-2 type/incr type/zset expire scan dump auth quit protocol multi scripting hyperloglog"
    .split()
]


def redis_tests(folder, env, here):
    """Some of them depend on the time that things take: what fails is tried again. Their sockets have whole paths, of
    at most 107 bytes: so their folder is a short one. The two builds of redis may be tested at once: each has ports of
    its own.
    """
    port = "31111" if "jemalloc" in folder else "21111"
    for name in os.listdir(folder):
        if name != "tests":
            os.symlink(folder + "/" + name, here + "/" + name)
    shutil.copytree(folder + "/tests", here + "/tests", symlinks=True)

    def failing(names):
        words = [word for name in names for word in ("--single", name)]
        done = run(
            ["./runtest", *words, "--clients", str(AT_ONCE), "--timeout", "300", "--baseport", port],
            cwd=here, env=env, timeout=LIMIT)
        text = re.sub(r"\033\[[\d;]*m", "", done.stdout.decode(errors="replace"))
        passed = len(re.findall(r"^\[ok\]", text, re.M))
        bad = sorted(set(re.findall(r"^\[(?:err|exception)\]: (.*?)(?: in tests/.*)?$", text, re.M)))
        check(bad or (done.returncode == 0 and "All tests passed" in text), text[-1500:])
        return passed, bad
    passed, bad = failing(REDIS_TESTS)
    if bad:
        bad = sorted(set(bad) & set(failing(REDIS_TESTS)[1]))
    check(passed > 300, "only", passed, "passed")
    return "failed: %s" % bad


def ninja_works(folder, env, here):
    with open(here + "/build.ninja", "w") as file:
        file.write("rule join\n  command = cat $in >$out\n  description = $out\n")
        for i in range(1, 300):
            file.write("build o%d: join %s\n" % (i, "first" if i == 1 else "o%d o%d" % (i // 2, max(1, i // 3))))
    with open(here + "/first", "w") as file:
        file.write("x")
    out = ""
    for words in (
        ["-j1"],
        ["-d", "explain"],
        ["-t", "targets", "all"],
        ["-t", "graph"],
        ["-t", "compdb"],
        ["-t", "clean"],
    ):
        done = succeed([folder + "/ninja", "-C", here, *words], env=env, stderr=subprocess.STDOUT)
        out += re.sub(r"0x[0-9a-f]+", "A", done.stdout.decode().replace(here, ""))
    return out


def ninja_tests(folder, env, here):
    done = succeed([folder + "/ninja_test"], env=env, cwd=here, stderr=subprocess.STDOUT)
    return "\n".join(line for line in done.stdout.decode(errors="replace").splitlines()
                     if line.startswith(("[", "passed", "***")))


# program: (what it is put to, what runs its own tests, files that must have rows)
TRIALS = {
    "sqlite3": (sqlite_works, sqlite_tests, ["sqlite3.c"]),
    "bash": (bash_works, bash_tests, ["xmalloc.c"]),
    "git": (git_works, git_tests, ["wrapper.c"]),
    "redis": (redis_works, redis_tests, ["zmalloc.c"]),
    "redis with its jemalloc": (redis_works, redis_tests, []),
    "ninja": (ninja_works, ninja_tests, ["state.cc"]),
}
