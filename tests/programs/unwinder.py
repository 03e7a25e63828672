# SPDX-License-Identifier: BSD-2-Clause
"""Our unwinder against libgcc's at every allocation of real programs, and against chains of frame pointers.

The programs are made to recurse in all the ways they can. Stacks are told apart by module and offset, so that one that
two processes have, or two threads, counts once. No difference is explained away: there must be none. Where one of the
two stops because code has no rules (JIT), the other must stop at the same frame.
"""
import contextlib
import glob
import os
import struct
import sys

sys.dont_write_bytecode = True
import tap
import workloads
from tap import LONG, built, check, equal, pick, private_dir, succeed

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
DISTINCT, DEPTH = pick(10000, 100000), 15  # at least, of all programs together
# Faults of an unwinder. It does not restore the rules that it was told to remember; it does not notice that another
# register gives the frame now, that a cached frame has other callers now, or that they have another rbp.
RESTORE = ("vm->row = vm->remembered[--vm->depth];", "vm->depth--;")
REGISTER = ("case DW_CFA_def_cfa_register:\n        row->cfa_register = (uint8_t)cursor_uleb(c);",
            "case DW_CFA_def_cfa_register:\n        cursor_uleb(c);")
CALLERS = ("*(const uintptr_t *)(place->sp - sizeof(uintptr_t)) != place->pc", "place == &t->at[WALK_CACHE_END]")
FRAME_POINTER = ("*((uintptr_t)fp->at < first_sp ? fp_at : fp->at) != fp->value", "false")
UNLOADED = ("    if (!module_is_current(module, exact ? pc : pc - 1))\n        return compile_cold(k->w, pc, exact);\n", "")
HEADER, TEXT_BYTES, DISTINCT_MAX, DEPTH_MASK = struct.Struct("5Q"), 8192, 1 << 20, 1023  # as in unwind_check.c

BASH = r"""
f() { local d=$1 w=x$RANDOM; shift
    (( d > 0 )) || { w=$(echo "${w/x/y}${!d}"); list+=("$w"); return; }
    case $((d % 5)) in
    0) for w in a b; do f $((d - 1)) "$w"; done ;;
    1) if [[ $w =~ x(.*) ]]; then eval "f $((d - 1)) ${BASH_REMATCH[1]}"; fi ;;
    2) { f $((d - 1)); w=${w%%[0-9]*}; } 2>/dev/null ;;
    3) while :; do f $((d - 1)); break; done; printf -v w '%s' "$w" ;;
    4) w=${list[$(f $((d - 1)); echo $d)]} ;;
    esac; }
for ((i = 0; i < $1; i++)); do f $i; done
"""
PYTHON = r"""
import functools, json, pickle, random, re, sys, warnings
warnings.simplefilter('ignore')
rng = random.Random(1)
def expression(depth):
    if not depth:
        return rng.choice(['x', '1', '"a"', 'y.z', 'f(1)', '[]'])
    return rng.choice(['(%s + %s)', '[%s, %s]', '{%s: %s}', 'f(%s, k=%s)', '(%s if %s else 0)', '(lambda x: %s)(%s)', '[%s for x in %s]',
                       '(%s < %s)', '(%s)[%s:]', '(not (%s and %s))', '(%s, *%s)']) % (expression(depth - 1), expression(rng.randrange(depth)))
def statement(depth):
    if not depth:
        return 'x = ' + expression(rng.randrange(5))
    inner = '\n'.join(statement(rng.randrange(depth)) for _ in range(rng.randrange(1, 3))).replace('\n', '\n ')
    return rng.choice(['if %s:\n %s', 'while %s:\n %s', 'for x in %s:\n %s', 'with %s as q:\n %s', 'def f(x=%s):\n %s', 'class C(%s):\n %s',
                       'try:\n x = %s\nfinally:\n %s']) % (expression(rng.randrange(4)), inner)
class Node:
    def __init__(self, depth): self.a = [Node(rng.randrange(depth)) for _ in range(rng.randrange(4))] if depth else []
    def __lt__(self, other): return len(sorted(self.a)) < len(sorted(other.a, key=functools.cmp_to_key(lambda p, q: p < q or -1)))
    def __repr__(self): return '<%s>' % self.a
    def __iter__(self): return map(repr, self.a)
for n in range(int(sys.argv[1])):
    compile(statement(1 + n % 6), 'x', 'exec')
for n in range(int(sys.argv[1]) // 20):
    t = Node(2 + n % 7)
    str(t); sorted([t, Node(3), Node(4)]); list(map(list, [t] * 3))
    pickle.loads(pickle.dumps(t)); json.loads(json.dumps({'k': [[1, {'z': list(t)}]]}))
    re.compile('(' * (n % 9) + 'a|b[c-f]+' + ')*?' * (n % 9))
"""
SQLITE = """
CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT, b REAL);
CREATE TABLE u(id INTEGER PRIMARY KEY, t INTEGER REFERENCES t ON DELETE CASCADE, x TEXT DEFAULT ('d' || 1), CHECK (length(x) < 900));
CREATE TABLE log(what TEXT);
CREATE TRIGGER down AFTER INSERT ON t WHEN new.id % 50 BEGIN
  INSERT INTO u(t, x) SELECT new.id, group_concat(a) FROM (SELECT a FROM t ORDER BY b LIMIT 3);
  INSERT INTO t(a, b) VALUES (new.a || 1, new.b + 1); END;
CREATE TRIGGER gone AFTER DELETE ON u BEGIN
  INSERT INTO log VALUES (printf('%s %d', old.x, (SELECT count(*) FROM t WHERE a LIKE old.x || '%'))); END;
PRAGMA recursive_triggers = ON; PRAGMA foreign_keys = ON;
CREATE VIEW v AS SELECT t.id AS i, a, x, sum(b) OVER (PARTITION BY a ORDER BY t.id) AS s FROM t LEFT JOIN u ON u.t = t.id;
CREATE VIEW w AS SELECT i, upper(a) AS a, s FROM v WHERE s > 0 UNION ALL SELECT i, x, s FROM v GROUP BY i HAVING max(s) > 1
  UNION SELECT id, a, b FROM t;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9) INSERT INTO t(a, b) SELECT printf('row %d', i), i / 3.0 FROM n;
CREATE INDEX by_a ON t(a, lower(a)) WHERE b > 1;
SELECT count(*), json_array(json_object('a', max(a), 'n', json(json_array(i, s)))) FROM w
  WHERE i IN (SELECT i FROM w WHERE a LIKE '%9%' OR EXISTS (SELECT 1 FROM u WHERE u.id = w.i AND x IS NOT NULL));
SELECT a, count(*) FILTER (WHERE s > 3), group_concat(DISTINCT i) FROM w GROUP BY a ORDER BY abs(sum(s)) DESC, a COLLATE NOCASE LIMIT 2;
DELETE FROM t WHERE id % 3 = 0;
REINDEX; ANALYZE; VACUUM; PRAGMA integrity_check;
"""
PERL = r"""
package N;
use overload '""' => sub { my $s = shift; "<" . join(',', map { "$_" } @{$s->{a}}) . ">" }, 'bool' => sub { 1 },
    '<=>' => sub { my ($p, $q) = @_; my @x = sort { $a <=> $b } @{$p->{a}}; my @y = sort { $b <=> $a } @{$q->{a}};
                   @x - @y || length("$p") - length("$q") };
sub new { my ($class, $depth) = @_; bless { a => [$depth > 0 ? map { N->new($depth - 1 - $_ % 2) } 1 .. 1 + $depth % 3 : ()] }, $class }
sub TIEARRAY { bless {}, shift }
sub FETCHSIZE { 3 }
sub FETCH { my ($s, $i) = @_; my $t = "x$i" x 50; $t =~ s/(x)(\d)/ $i . eval "\$2 . ('y' x 30)" /ge; $t }
package main;
for my $n (1 .. $ARGV[0]) {
    my $t = N->new($n % 6); my @s = sort { $a <=> $b } $t, N->new(2), N->new($n % 5); my $s = "$t @s";
    tie my @a, 'N'; $s .= join '', map { "$_" } @a;
    my $deep = ('(?:a|(b' x ($n % 12)) . ('))*' x ($n % 12)); $s =~ /$deep/;
    eval 'my $v = ' . ('(sub { my $q = shift; [' x ($n % 9)) . '"a$n"' . (']})->(1)' x ($n % 9)) . ';';
    $s =~ s/(\d+)/sprintf "%s", N->new($1 % 3)/ge;
}
"""
NODE = r"""
const vm = require('vm'), zlib = require('zlib'), crypto = require('crypto');
let seed = 1; const draw = n => (seed = (seed * 48271) % 2147483647) % n;
const kinds = [(a, b) => `(${a} + ${b})`, (a, b) => `[${a}, ...[${b}]]`, (a, b) => `({k: ${a}, [${b}]: 1})`, (a, b) => `((x, y = ${a}) => ${b})(1)`,
    (a, b) => `(function* () { yield ${a}; return ${b}; })().next()`, (a, b) => `(class { m() { return ${a}; } static s = ${b}; }).s`,
    (a, b) => '`' + '${' + a + '}${' + b + '}`', (a, b) => `(${a} ?? ${b})`, (a, b) => `f(${a})?.[${b}]`];
const expression = d => d ? kinds[draw(9)](expression(d - 1), expression(draw(d))) : ['x', '1', '"a"', 'y.z', 'f(1)', '[]'][draw(6)];
for (let i = 0; i < +process.argv[2]; i++) try {
    vm.runInNewContext(`var x = 1, y = {z: 1}, f = q => q; function g() { try { return ${expression(i % 8)}; } finally { x++; } } for (let k = 0; k < 50; k++) g();`);
} catch (error) { if (error instanceof SyntaxError) throw error; }
const deep = n => n ? {n, d: deep(n - 1), toString() { return `${this.d}`; }, valueOf() { return +this.d; }, toJSON() { return [n, this.d]; }} : 'x';
for (let i = 1; i < 30; i++) {
    new RegExp('(?:a|(b'.repeat(i) + '))*'.repeat(i), 'iu').test('abababab'); JSON.parse('['.repeat(i * 9) + ']'.repeat(i * 9));
    JSON.stringify(deep(i)); [deep(i), deep(3), deep(5)].sort(); 'aXbX'.replace(/X/g, () => [3, 1, 2].sort((a, b) => String(deep(i)) < a ? 1 : -1));
    new Proxy(deep(3), {get: (t, k) => Reflect.get(t, k)}).d; structuredClone(JSON.parse(JSON.stringify(deep(i)))); Intl.NumberFormat('de').format(i);
}
zlib.gunzipSync(zlib.gzipSync(Buffer.alloc(100000))); crypto.createHash('sha256').update('x').digest('hex');
"""
JAVA = r"""
import java.util.*;
import java.util.regex.Pattern;
import java.util.stream.*;
public class Work {
    interface Shape { double area(int d); }
    record Box(int a, int b) implements Shape { public double area(int d) { return d <= 0 ? a * b : new Ball(a).area(d - 1) + b; } }
    record Ball(int r) implements Shape { public double area(int d) { return d <= 0 ? 3 * r * r : new Box(r, d).area(d - 2) * Math.sqrt(r); } }
    public static void main(String[] a) throws Exception {
        Map<String, List<Integer>> m = new TreeMap<>();
        for (int i = 0; i < 100000; i++) m.computeIfAbsent("k" + i % 991, k -> new ArrayList<>()).add(i);
        double sum = 0; for (int i = 0; i < 100000; i++) sum += new Box(i, 3).area(i % 9);
        m.values().parallelStream().flatMap(List::stream).collect(Collectors.groupingBy(x -> x % 7, Collectors.averagingInt(x -> x)));
        for (String n : List.of("java.util.zip.ZipFile", "java.math.BigDecimal", "java.net.URI", "java.util.Scanner")) Class.forName(n);
        System.out.println(String.format("%,.3f %s", sum, new java.text.SimpleDateFormat("yyyy").format(new Date(0))));
        for (int i = 0; i < 300; i++) Pattern.compile("(a|b)*c{" + i + "}[d-f]+").matcher("abcd").find();
        System.out.println(IntStream.range(0, 100000).parallel().mapToObj(Integer::toHexString).sorted().count());
    }
}
"""
LUA = r"""
local function f(d)
    if d <= 0 then return cjson.encode({a = {cjson.decode('[[[1,{"k":[2]}]]]')}}) end
    if d % 4 == 0 then return select(2, pcall(f, d - 1)) end
    if d % 4 == 1 then return (string.gsub('b', 'b', function() f(d - 1) return 'x' end)) end
    if d % 4 == 2 then local t, once = {2, 1}, 0
        table.sort(t, function(a, b) if once == 0 then once = 1 f(d - 1) end return a < b end) return d end
    redis.call('RPUSH', 'lua' .. d, string.rep('y', d * 10))
    return loadstring('return ' .. string.rep('{', d) .. '1' .. string.rep('}', d))(), f(d - 1)
end
for i = 1, tonumber(ARGV[1]) do f(i) end return 1
"""
REDIS = [
    "SAVE", "BGREWRITEAOF", "INFO", "CONFIG GET *", "COMMAND DOCS", "MULTI", "ZADD z 1 a 2 b",
    "SORT mylist BY k* LIMIT 0 5", "EXEC", "XADD s * a b", "XGROUP CREATE s g 0", "GEOADD geo 1 2 a 3 4 b",
    "PFADD p a b c", "DEBUG RELOAD"
]


def c_source(functions):
    """C that keeps a compiler busy; not meant to be run."""
    import random
    rng = random.Random(2)
    leaves = ["x->v[i & 7]", "y", "s", "i", "x->d", "x->l->v[1]", "x->c[i & 15]", "t[i & 31]"]
    kinds = [
        "(%s + %s)", "(%s * %s)", "((long)%s ^ (long)%s)", "(%s > %s)", "((long)(%s) << ((long)(%s) & 7))",
        "(%s ? %s : y)", "g(x, %s, %s)", "((long)%s %% ((long)%s | 1))", "labs((long)%s - (long)%s)"
    ]
    forms = [
        "if (%s) { %s }", "for (int i = 0; i < 9 && %s; i++) { %s }", "while (%s) { %s break; }",
        "t[i & 31] = %s; { %s }",
        "switch ((long)%s & 7) { case 1: { %s } break; case 2: y++; case 3: s--; default: x = x->r; }"
    ]

    def expression(depth):
        return rng.choice(kinds) % (expression(depth - 1),
                                    expression(rng.randrange(depth))) if depth else rng.choice(leaves)

    def statement(depth):
        if not depth:
            return "s += %s;" % expression(rng.randrange(4))
        return rng.choice(forms) % (expression(rng.randrange(3)), " ".join(
            statement(rng.randrange(depth)) for _ in range(rng.randrange(1, 4))))

    lines = ["#include <stdlib.h>", "struct n { struct n *l, *r; long v[8]; double d; char c[16]; };",
             "static __attribute__((noinline)) long g(struct n *x, long y, long i) { return x->v[y & 7] + i; }"]
    for k in range(functions):
        lines.append("long f%d(struct n *x, long y) { long s = 0, i = y, t[32] = {0}; %s %s return s; }" % (
            k, " ".join(statement(1 + k % 5) for _ in range(3)), "s += f%d(x->l, s);" % (k - 1) if k % 3 else ""))
    return "\n".join(lines)


class Program:
    """Runs in an empty folder of its own, but for `files`; each of `commands` in turn."""

    def __init__(self, name, commands, files, env=None, stdin=os.devnull):
        self.name, self.commands, self.files, self.env, self.stdin = name, commands, files, env or {}, stdin


ME = dict(GIT_AUTHOR_NAME="a", GIT_AUTHOR_EMAIL="a@b", GIT_COMMITTER_NAME="a", GIT_COMMITTER_EMAIL="a@b",
          GIT_PAGER="cat", GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_SYSTEM="/dev/null")
GIT = [
    "init -q .", "add .", "commit -qm one", "rm -q file3", "mv file1 file2 moved", "commit -qm two", "log -p --stat -M",
    "fsck", "blame moved/file1", "log --graph -Gline", "grep -n line.17", "revert --no-edit HEAD", "gc -q --aggressive"
]
PROGRAMS = [
    Program("python3", [["/usr/bin/python3", "work.py", pick("60", "300")]], {"work.py": PYTHON},
            {"PYTHONMALLOC": "malloc"}),
    Program("gcc",
            [["gcc", "-w", *level, "-c", "work.c"] for level in pick([["-O1"]], [["-O0"], ["-O2", "-g"], ["-O3"]])],
            {"work.c": c_source(pick(10, 40))}),
    Program("bash", [["bash", "work.sh", pick("7", "9")]], {"work.sh": BASH}),
    Program("sqlite3", [["sqlite3", "out.db"]], {"work.sql": SQLITE}, stdin="work.sql"),
    Program("git", [["git", *words.split()] for words in GIT],
            {"file%d" % k: "".join("line %d of %d\n" % (i, k) for i in range(100))
             for k in range(40)} | {"moved/x": ""}, ME),
    Program("perl", [["perl", "work.pl", "60"]], {"work.pl": PERL}),
    Program("node", [["node", "work.js", "300"]], {"work.js": NODE}),
    Program("java", [["java", "-Xmx200m", "-XX:-UsePerfData", "Work.java"]], {"Work.java": JAVA}),
]
stacks = set()  # of all programs: hashes that hold the depth


class Seen:
    """What the library found in the processes of one run."""

    def __init__(self, folder):
        self.compared = self.whole = self.differences = 0
        self.stacks, self.text = set(), ""
        for path in sorted(glob.glob(folder + "/*.unwind")):
            with open(path, "rb") as file:
                compared, whole, differences, distinct, text_used = HEADER.unpack(file.read(HEADER.size))
                text = file.read(TEXT_BYTES)[:text_used].decode(errors="replace")
                count = min(distinct, DISTINCT_MAX)
                self.stacks.update(struct.unpack("%dQ" % count, file.read(8 * count)))
            self.compared += compared
            self.whole += whole
            self.differences += differences
            self.text = self.text or text

    def judge(self, name):
        check(self.stacks, "nothing was compared")
        print("# %s: %d compared (%.1f %% to the outermost frame), %d distinct, median depth %d, %d differences" %
              (name, self.compared, 100 * self.whole / self.compared, len(self.stacks), median(
                  self.stacks), self.differences))
        check(not self.differences, "%d differences, such as\n%s" % (self.differences, self.text))


def median(hashes):
    depths = sorted(h & DEPTH_MASK for h in hashes)
    return depths[len(depths) // 2] if depths else 0


@contextlib.contextmanager
def observed(library=None, **env):
    """-> folder of the results, environment of the program."""
    with private_dir() as folder:
        yield folder, dict(os.environ, LD_PRELOAD=library or built("TEST_UNWIND_CHECK"), UNWIND_CHECK_DIR=folder, **env)


def seen_in(program, library=None):
    with private_dir("/tmp") as folder, observed(library, **program.env) as (results, env):
        for name, text in program.files.items():
            os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
            with open(os.path.join(folder, name), "w") as file:
                file.write(text)
        for command in program.commands:
            with open(os.path.join(folder, program.stdin)) as stdin:
                done = tap.run(command, cwd=folder, env=env, stdin=stdin)
            check(library or done.returncode == 0,
                  "%s ended with %d: %s" % (command, done.returncode, done.stderr[-500:]))
        return Seen(results)


def agrees(program):
    def test():
        seen = seen_in(program)
        seen.judge(program.name)
        stacks.update(seen.stacks)
    return test


def redis_agrees():
    with private_dir() as folder, observed() as (results, env):
        with workloads.redis(folder, env) as (path, process):
            to = ["-s", path]
            succeed(["redis-benchmark", *to, "-q", "-n", "2000", "-c", "10", "-P", "4", "-r", "1000", "-d", "100"])
            succeed(["redis-cli", *to, "EVAL", LUA, "0", "60"])
            succeed(["redis-cli", *to], input="\n".join(REDIS).encode())
            tap.run(["redis-cli", *to, "shutdown", "nosave"])
            process.wait(tap.TIMEOUT)
        seen = Seen(results)
        seen.judge("redis-server")
        stacks.update(seen.stacks)


def enough():
    print("# all programs: %d distinct, median depth %d" % (len(stacks), median(stacks)))
    check(len(stacks) >= DISTINCT, "too few, want", DISTINCT)
    check(median(stacks) >= DEPTH, "too shallow, want", DEPTH)


def chain(library=None):
    with observed(library) as (results, env):
        tap.run([built("TEST_FRAME_CHAIN"), pick("500", "5000")], env=env)
        return Seen(results)


def chain_agrees():
    seen = chain()
    seen.judge("frame_chain")
    check(len(seen.stacks) >= pick(10000, 100000), "too few")


def changes(library=None):
    with observed(library) as (results, env):
        program, *plugins = [os.path.join(built("TEST_PROGRAMS"), name)
                             for name in ("stack_changes", "stack_plugin24.so", "stack_plugin88.so")]
        done = tap.run([program, pick("20000", "200000"), *plugins], env=env)
        check(library or done.returncode == 0, "ended with", done.returncode, done.stderr)
        return Seen(results)


def changes_agree():
    seen = changes()
    seen.judge("stack_changes")
    check(len(seen.stacks) >= 500, "too few")


def fault_is_found(fault, observe):
    """The same with a faulty unwinder."""
    def test():
        planted = 0
        with private_dir("/tmp") as folder:
            os.mkdir(folder + "/unwind")
            for name in [ROOT + "/tests/programs/unwind_check.c", *glob.glob(ROOT + "/src/unwind/*.[ch]")]:
                with open(name) as file, open("%s/unwind/%s" % (folder, os.path.basename(name)), "w") as copy:
                    text = file.read()
                    planted += text.count(fault[0])
                    copy.write(text.replace(*fault))
            equal(planted, 1, "places where the fault is planted")
            library = folder + "/planted.so"
            succeed([
                "cc", "-D_GNU_SOURCE", "-std=gnu11", "-O1", "-fPIC", "-shared", "-fno-builtin",
                "-fno-omit-frame-pointer", "-ftls-model=initial-exec", "-I", folder, "-I", ROOT + "/src", "-o", library,
                *glob.glob(folder + "/unwind/*.c"), ROOT + "/src/base/sigsafe/word_cache.c", "-ldl"
            ])
            seen = observe(library)
            print("# differences: %d of %d" % (seen.differences, seen.compared))
            check(seen.differences, "not found")
    return test


tests = [("%s: every stack is libgcc's" % p.name, agrees(p)) for p in (PROGRAMS if LONG else PROGRAMS[:3])]
tests += [("redis-server under redis-benchmark: every stack is libgcc's", redis_agrees)] if LONG else []
tests += [
    ("%d different stacks of median depth %d or more" % (DISTINCT, DEPTH), enough),
    ("every stack is the chain of frame pointers, where there is one", chain_agrees),
    ("alloca, recursion, longjmp, other stacks, signals, another library: every stack is libgcc's", changes_agree),
    ("a fault in the unwinder is found by libgcc's", fault_is_found(RESTORE, lambda lib: seen_in(PROGRAMS[0], lib))),
    (
        "a walk cache that does not compare return addresses is found by libgcc's",
        fault_is_found(CALLERS, lambda lib: seen_in(PROGRAMS[0], lib)),
    ),
    ("and where the stack changes in all ways", fault_is_found(CALLERS, changes)),
    ("a walk cache that keeps frames of libraries that are gone is found there", fault_is_found(UNLOADED, changes)),
    ("a walk cache that does not compare rbp is found by the chain", fault_is_found(FRAME_POINTER, chain)),
    ("a fault in the unwinder is found by the chain", fault_is_found(REGISTER, chain)),
]
tap.main(tests)
