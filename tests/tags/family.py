# SPDX-License-Identifier: BSD-2-Clause
"""What <allium/malloc_hooks.h> does to sources that know nothing of it: they compile, and see what they saw without it.
"""
import ctypes.util
import itertools
import json
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
from building import HERE, HOOKS, INCLUDE, STRICT, accounts, by_function, program, quiet, scratch, tap
from tap import built, check, equal, own_counts, pick, private_dir, succeed

C, CXX = ("gcc", "clang"), ("g++", "clang++")
LEVELS = ("-O0", "-O2")

NOT_OLD = "builtin-declaration-mismatch incompatible-library-redeclaration deprecated-non-prototype strict-prototypes unknown-warning-option".split(
)

# Sources that compile without the header, as they stand.
ODDITIES = {
    "defines _GNU_SOURCE itself": ("""
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <sys/mman.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
void *larger(void *p);
void *larger(void *p) { return mremap(p, 4096, 8192, MREMAP_MAYMOVE); }
char *(*pointer)(const char *, size_t) = strndup;
""", C, []),
    "has functions of its own where ISO C has none": ("""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int getline(char *s, int most) { return s[0] + most; }
static char *strdup(const char *s) { return (char *)calloc(2, strlen(s)); }
static char *strndup(int n) { return strdup("xy") + n; }
static void *memalign(void) { return 0; }
int asprintf(double);
int asprintf(double d) { return d > 1; }
int use(char *s);
int use(char *s) { return getline(s, 1) + *strndup(1) + !memalign() + asprintf(3.); }
""", C, ["-std=c99", "-pedantic", "-Wno-pragmas", "-Wno-format"]),
    "declares them itself": ("""
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
extern void *malloc(size_t);
void free(void *);
extern char *realpath(const char *, char *);
int asprintf(char **, const char *, ...);
ssize_t getline(char **, size_t *, FILE *);
void *mmap(void *, size_t, int, int, int, off_t);
struct table { void *(*malloc)(size_t); void (*free)(void *); char *(*realpath)(const char *, char *); int (*asprintf)(char **, const char *, ...); };
extern const struct table table;
const struct table table = {malloc, free, realpath, asprintf};
char *both(char *strdup, int mmap);
char *both(char *strdup, int mmap) { char *p = (realpath)("/", strdup + mmap); table.free(strdup); return p; }
""", C, ["-std=gnu99"]),
    "calls members and variables by their names": ("""
#include <cstdlib>
#include <cstring>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
struct pool {
    void *malloc(size_t n) { return std::malloc(n); }
    void free(void *p) { ::free(p); }
    int asprintf(const char *, ...) { return 1; }
    static int munmap(void *) { return 2; }
    std::string getline() { std::string s; std::getline(std::cin, s); return s; }
};
namespace mine { template <class T> T *realloc(T *p) { return p; } int getdelim(int n) { return n; } }
int use(pool *p);
int use(pool *p)
{
    std::unique_ptr<char, decltype(&std::free)> owned(static_cast<char *>(std::malloc(3)), std::free);
    void *(*chosen)(size_t) = &std::malloc;
    p->free(mine::realloc(p->malloc(3)));
    std::free(chosen(4));
    return p->asprintf("%d", 3) + pool::munmap(p) + mine::getdelim(3) + static_cast<int>(p->getline().size());
}
""", CXX, ["-std=c++17", "-pedantic"]),
    "is pedantic C++11": ("""
#include <cstdlib>
#include <vector>
void *use(std::vector<int> *v);
void *use(std::vector<int> *v) { v->push_back(1); return std::realloc(std::calloc(2, 3), v->size()); }
""", CXX, ["-std=c++11", "-pedantic"]),
    "has types of its own where the library has some": ("""
typedef char *uint32_t;
typedef long size_t_;
uint32_t text(void);
uint32_t text(void) { return 0; }
""", C + CXX, []),
    "says that nobody shall call them": ("""
#include <stdlib.h>
void *calloc(size_t count, size_t size) __attribute__((deprecated));
void free(void *ptr) __attribute__((deprecated));
void *malloc(size_t size) __attribute__((deprecated));
int none;
""", C, ["-Wno-redundant-decls", "-Wno-ignored-attributes"]),  # clang says that it ignores them after an inline definition
    "is K&R C": ("""
char *malloc();
char *realloc(), *calloc(), *strdup(), *mmap();
void free();
char *twice(s, n) char *s; int n;
{
    char *p = malloc(n), *q = realloc(calloc(n, 2), 2 * n);
    if (n)
        free(p);
    return s ? strdup(s) : q ? q : mmap(0, n, 1, 2, 3, 4);
}
""", C, ["-std=gnu89", *("-Wno-" + word for word in NOT_OLD)]),
    "is K&R C, compiled as C17 with -DALLIUM_BY_CALL": ("""
char *malloc();
int free();
int use(void);
int use(void) { return free(malloc(3)); }
""", C, ["-std=gnu17", "-DALLIUM_BY_CALL", *("-Wno-" + word for word in NOT_OLD)]),
    "is written in Intel's assembler syntax": ("""
#include <allium/helper.h>
#include <stdlib.h>
#include <string.h>
long use(void);
long use(void)
{
    ALLIUM_HELPER(use);
    char *p = strdup("x");
    long n;
    allium_account(ALLIUM_TAG("arena", "block"), 4);
    __asm__("mov %0, qword ptr [%1]" : "=r"(n) : "r"(p));
    free(p);
    return n;
}
""", C + CXX, ["-masm=intel", "-I", INCLUDE]),
}


def compiles(what):
    source, compilers, options = ODDITIES[what]

    def test():
        for compiler, level in itertools.product(compilers, LEVELS):
            path = scratch("oddity.cc" if compiler in CXX else "oddity.c", source)
            for hooks in [], HOOKS:
                quiet([compiler, level, *STRICT, *options, *hooks, "-c", path, "-o", path + ".o"])
    return test


def compared(path, words=(), env=()):
    """Runs it; -> for each of its processes what it counted, what stands in its accounts, and what was said of losses.
    """
    with private_dir() as ledgers:
        done = succeed([path, *words], env=dict(os.environ, ALLIUM_DIR=ledgers, **dict(env)))
        readings = []
        for pid, counted in own_counts(done.stdout.decode()).items():
            rows, said = accounts(ledgers, pid)
            readings.append((counted, by_function(rows), said))
        return readings


def refused(compiler):
    """A program of 32-bit pointers is told why it cannot have tags."""
    def test():
        done = subprocess.run([compiler, "-mx32", *HOOKS, "-x", "c", "-fsyntax-only", "/dev/null"], capture_output=True,
                              text=True)
        check(done.returncode != 0, "it compiles")
        errors = [line for line in done.stderr.splitlines() if "error: " in line]
        check(errors and "64-bit x86-64 Linux only" in errors[0], "what it says:", done.stderr)
    return test


def own_warnings():
    """What clang is told to say of the user's file it still says with the header before it."""
    path = scratch("ignored.c", "int f(void) { return 1; }\nint f(void) __attribute__((deprecated));\n")
    for hooks in [], HOOKS:
        done = subprocess.run(["clang", *hooks, "-fsyntax-only", path], capture_output=True, text=True)
        check("-Wignored-attributes" in done.stderr, "what it says:", done.stderr)


def own_attributes():
    """The attributes of the user's own declarations hold in code that is tagged by call."""
    path = scratch("attributes.c", "void free(void *) __attribute__((deprecated));\nvoid f(void) { free(0); }\n")
    done = subprocess.run(["clang", *HOOKS, "-DALLIUM_BY_CALL", "-fsyntax-only", path], capture_output=True, text=True)
    equal(re.findall(r"\[-W[^]]*\]", done.stderr), ["[-Wdeprecated-declarations]"], done.stderr)


def probe_arguments(compiler, syntax):
    """A probe's arguments are in AT&T syntax, as all who read them expect."""
    def test():
        source = scratch(
            "probe.c",
            "#include <allium/tag.h>\nvoid f(char *p, long n) { ALLIUM_PROBE(entry, n, p); ALLIUM_PROBE(entry, 4, p); }\n"
        )
        quiet([compiler, "-O1", "-masm=" + syntax, *HOOKS[:2], "-c", source, "-o", scratch("probe.o")])
        notes = succeed(["readelf", "-n", scratch("probe.o")]).stdout.decode()
        found = re.findall(r"Arguments: (.*)", notes)
        equal([bool(re.fullmatch(r"8@%r\w+ 8@%r\w+", words)) for words in found], [True, True], "arguments: %s" % found)
    return test


LINES = "".join("%s\n" % ("line " * n) for n in (3, 40, 20, 200, 1)) + "q"


def exact(compiler, *options):
    def test():
        readings = compared(in_language(compiler, "relatives.c", *options), [scratch("lines", LINES)])
        equal(len(readings), 2, "processes")
        for counted, have, said in readings:
            equal((have, said), (counted, ""), "accounts")
    return test


def planted():
    """A count that is left out, for each place: the comparison finds each of them."""
    path, words = in_language("gcc", "relatives.c", "-O2"), [scratch("lines", LINES)]
    places = compared(path, words)[0][0]
    check(len(places) >= 12, "places:", len(places))
    for place in places:
        counted, have, _ = compared(path, words, {"SKIP": place})[0]
        equal({name for name in places if counted[name] != have[name]}, {place}, "what differs")


def in_language(compiler, name, *options):
    """A source in C that is C++ as well, built by that compiler."""
    source = os.path.join(HERE, name)
    if compiler in CXX:
        with open(source) as file:
            source = scratch(name.replace(".c", ".cc"), file.read())
    else:
        options += ("-D_GNU_SOURCE",)
    return program(compiler, options, source)


def helpers(compiler, *options):
    """What each line of helpers.c says of itself. C++ alone has some of them."""
    def test():
        want, names = {}, {}
        with open(os.path.join(HERE, "helpers.c")) as file:
            for number, line in enumerate(file, 1):
                said = re.search(r"; +// (\w+): (.*)", line)
                if said:
                    name, counts = said.groups()
                    names[number] = name
                    if counts != "-" and (compiler in CXX or name not in ("thrown", "caught", "new")):
                        want[name] = tuple(map(int, counts.split()))
        with private_dir() as ledgers:
            p = subprocess.Popen([in_language(compiler, "helpers.c", *options)],
                                 env=dict(os.environ, ALLIUM_DIR=ledgers))
            equal(p.wait(60), 0, "its code")
            rows, said = accounts(ledgers, p.pid)
        have = {}
        for row in rows:
            line = int((row["place"] or ":0").split(":")[1])
            # of a function that jumps to its helper, the first line is the place
            name = "tail" if row["function"] == "tail" else names.get(line, "%s %s" % (row["function"], row["place"]))
            before = have.get(name, (0, 0))
            have[name] = before[0] + row["allocations"], before[1] + row["allocated_bytes"]
        equal((have, said), (want, ""), "places")
    return test


GENERATED = r"""
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void *xmalloc(size_t n)
{
    ALLIUM_HELPER(xmalloc);
    return malloc(n);
}

int main(void)
{
    /* sub $8, %rsp; call *%rsi; add $8, %rsp; ret */
    static const char code[] = "\x48\x83\xec\x08\xff\xd6\x48\x83\xc4\x08\xc3";
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    free(xmalloc(10));
    for (int at = 0; at < 2 * 64; at += 64) {
        memcpy(page + at, code, sizeof(code));
        for (int i = 0; i < 1000; i++)
            free(((void *(*)(size_t, void *(*)(size_t)))(page + at))(20, xmalloc));
        if (at == 64)
            break;
        pid_t child = fork();
        if (!child) {
            for (int i = 0; i < 1000; i++)
                free(((void *(*)(size_t, void *(*)(size_t)))(page + at))(20, xmalloc));
            _exit(0);
        }
        printf("%d\n", (int)child);
        waitpid(child, NULL, 0);
    }
    return 0;
}
"""


def generated_code():
    """Calls of a helper by generated code, which is in no module, get no tag: the memory is charged to the helper. Each
    call instruction counts as one tag that was left out, however often it runs. A fork child counts its own.
    """
    source = scratch("generated.c", GENERATED)
    with private_dir() as ledgers:
        p = subprocess.Popen([program("gcc", ("-O2", "-D_GNU_SOURCE"), source)],
                             env=dict(os.environ, ALLIUM_DIR=ledgers), stdout=subprocess.PIPE)
        child = int(p.communicate(timeout=60)[0])
        equal(p.returncode, 0, "its code")
        rows, said = accounts(ledgers, p.pid)
        said_of_child = accounts(ledgers, child)[1]
    check("1 tag was left out" in said_of_child, said_of_child)
    equal(sorted((row["function"], row["allocations"], row["allocated_bytes"]) for row in rows),
          [("main", 1, 10), ("main", 1, 4096), ("xmalloc", 2000, 40_000)], "accounts")
    equal(said, "allium: 2 tags were left out: the code is in no loaded file, or the ledger has no room for more\n",
          "losses")


WIDE = """
#ifdef __cplusplus
#include <allium/operator_new.hh>
#include <string>
#include <vector>
#endif
#include <allium/tag.h>
#include <allium/helper.h>
#include <stdlib.h>
#include <string.h>

void *xmalloc(size_t n);
void *xmalloc(size_t n)
{
    ALLIUM_HELPER(xmalloc);
    return malloc(n);
}

static char *copy(const char *s)
{
    ALLIUM_HELPER_OUTERMOST(copy);
    char *p = strdup(s);
    return p;
}

int main(void)
{
    struct allium_tag *tag = ALLIUM_TAG("arena", "block"), *other = ALLIUM_TAG_FIELDS("arena", "page", "tenant=blue");
    __UINT64_TYPE__ started = allium_latency_start(tag);
    void *p = realloc(xmalloc(3), 9);
    char *q = copy("x");
    allium_account(tag, 4);
    allium_unaccount(other, 4);
    allium_track(tag, p, 3);
    allium_untrack(p);
    if (allium_should_fail(tag))
        allium_failed(tag);
    ALLIUM_PROBE(entry, 4, p);
    allium_latency_stop(tag, started);
    free(p);
    free(q);
#ifdef __cplusplus
    std::vector<std::string> texts(3);
    delete new int(static_cast<int>(texts.size()));
#endif
    return 0;
}
"""
WARNINGS = {
    "": "all extra error pedantic shadow conversion sign-conversion cast-qual cast-align write-strings undef pointer-arith format=2 switch-enum redundant-decls",
    "gcc": "strict-prototypes missing-prototypes old-style-definition nested-externs bad-function-cast c++-compat duplicated-cond logical-op null-dereference",
    "clang": "strict-prototypes missing-prototypes old-style-definition",
    "g++": "old-style-cast useless-cast zero-as-null-pointer-constant non-virtual-dtor overloaded-virtual",
    "clang++": "old-style-cast zero-as-null-pointer-constant non-virtual-dtor overloaded-virtual",
}
STANDARDS = {
    "c": "c99 c11 c17 c2x gnu99 gnu11 gnu2x".split(), "c++": "c++11 c++14 c++17 c++20 c++2b gnu++11 gnu++2b".split()
}


def quiet_for(compiler):
    """All headers, in a program that has more warnings on than most."""
    def test():
        language = "c++" if compiler in CXX else "c"
        source = scratch("wide." + ("cc" if compiler in CXX else "c"), WIDE)
        flags = ["-W" + word for word in (WARNINGS[""] + " " + WARNINGS[compiler]).split()]
        for standard, level in itertools.product(pick(STANDARDS[language][::3], STANDARDS[language]), LEVELS):
            for hooks in HOOKS, HOOKS[:2]:
                quiet([
                    compiler, "-std=" + standard, level, "-D_GNU_SOURCE", *flags, *hooks, "-c", source, "-o",
                    scratch("wide.o")
                ])
    return test


def listed_before(compiler, *options):
    """What a program reached had been listed before it ran, but for what it calls by a pointer; and of helpers nothing
    else is.
    """
    def test():
        for name, words, least in ("relatives.c", [scratch("lines", LINES)], 15), ("helpers.c", [], 12):
            path = in_language(compiler, name, *options)
            with private_dir() as ledgers:
                p = subprocess.Popen([path, *words], env=dict(os.environ, ALLIUM_DIR=ledgers),
                                     stdout=subprocess.DEVNULL)
                equal(p.wait(60), 0, "its code")
                rows, _ = accounts(ledgers, p.pid)
            listed = json.loads(succeed([built("ALLIUM"), "tags", path, "--json", "--top", "0"]).stdout)["rows"]
            key = lambda row: (row["class"], row["name"], row["place"])
            with open(os.path.join(HERE, name)) as file:
                lines = file.read().splitlines()
            text = lambda row: lines[int(row["place"].split(":")[1]) - 1]
            reached, known = {key(row) for row in rows if "// pointer:" not in text(row)}, {key(row) for row in listed}
            equal(sorted(reached - known), [], "reached, and not listed")
            check(len(reached) >= least, "few were reached:", len(reached))
            others = [key(row) for row in listed if row["class"] == "helper" and row["name"] not in ("0", "print")
                      and row["name"] + "(" not in text(row) and row["function"] != "tail"]
            equal(others, [], "no calls")
    return test


def standard_library(compiler, level):
    """Each line of stl.cc where it is optimized; else what they add up to. Nothing is live, as a table of threads says
    beside it.
    """
    def test():
        want = {}
        with open(os.path.join(HERE, "stl.cc")) as file:
            for number, line in enumerate(file, 1):
                said = re.search(r"; +// (\w+): (.*)", line)
                if said:
                    want[number] = tuple(map(int, said.group(2).split()))
        with private_dir() as ledgers:
            p = subprocess.Popen([program(compiler, [level, "-std=c++17"], "stl.cc")],
                                 env=dict(os.environ, ALLIUM_DIR=ledgers))
            equal(p.wait(60), 0, "its code")
            rows, said = accounts(ledgers, p.pid)
        equal(said, "", "losses")
        equal([row for row in rows if row["live_bytes"] and "libstdc++" not in row["module"]], [], "what is live")
        total = sum(row["allocations"] for row in rows)
        check(total >= 3050 + sum(calls for calls, _ in want.values()), "allocations:", total)
        if level != "-O0":
            have = {int(row["place"].split(":")[1]): row for row in rows if "stl.cc:" in (row["place"] or "")}
            lines = {
                number: (have[number]["allocations"], have[number]["allocated_bytes"])
                for number in want if number in have
            }
            equal(lines, want, "lines")
            equal([row["failed"] for row in rows if row["failed"]], [1], "failures")
    return test


ARRAYS = """
#include <allium/operator_new.hh>
struct object { int value; ~object() { value = 0; } };
struct alignas(64) wide { char bytes[128]; ~wide() { bytes[0] = 0; } };
int main()
{
    static char *plain[1000], *silent[100];
    static object *objects[1000];
    static wide *wides[100];
    for (int i = 0; i < 1000; i++) {
        plain[i] = new char[100];
        objects[i] = new object[5];
    }
    for (int i = 0; i < 100; i++) {
        wides[i] = new wide[3];
        silent[i] = new (std::nothrow) char[10];
    }
    for (int i = 0; i < 999; i++) {
        delete[] plain[i];
        delete[] objects[i];
    }
    for (int i = 0; i < 100; i++) {
        delete[] wides[i];
        operator delete[](silent[i], std::nothrow);
    }
}
"""


def arrays(compiler, *options, preload=None, tagged=True):
    """Arrays are made and deleted by our operators, and by none of the allocator's or sanitizer's: two objects stay."""
    def test():
        path = program(compiler, ["-O1", "-std=c++17", *options], scratch("arrays.cc", ARRAYS))
        with private_dir() as ledgers:
            env = dict(os.environ, ALLIUM_DIR=ledgers, LD_PRELOAD=preload and ctypes.util.find_library(preload) or "",
                       ASAN_OPTIONS="detect_leaks=0")
            p = subprocess.Popen([path], env=env, stderr=subprocess.PIPE)
            equal((p.communicate(timeout=60)[1].decode(), p.returncode), ("", 0), "what it says, and its code")
            if not tagged:
                return
            rows, said = accounts(ledgers, p.pid)
        equal(said, "", "losses")
        rows = [row for row in rows if "arrays" in row["module"]]
        sums = [sum(row[key] for row in rows) for key in ("allocations", "live_objects")]
        equal(sums, [2200, 2], "arrays made, and live")
    return test


def assembled(compiler):
    """Flags of a whole project reach its assembler sources, too."""
    def test():
        source = scratch("nothing.S",
                         "    .globl nothing\nnothing:\n    ret\n    .section .note.GNU-stack,\"\",@progbits\n")
        quiet([compiler, *HOOKS, "-c", source, "-o", scratch("nothing.o")])
    return test


def frees_of_others(*before, **env):
    """With liballium-frees.so nothing that code without tags gives back is missed. `before` are preloaded in this
    order, FREES is it.
    """
    def test():
        foreign = scratch("foreign.o")
        quiet(["gcc", "-O2", "-c", os.path.join(HERE, "foreign.c"), "-o", foreign])
        path = program("gcc", ["-O2"], "churn.c", words=[foreign])
        libraries = [
            built("TEST_TAGS_FREES")
            if name == "FREES" else built("ALLIUM_AGENT") if name == "AGENT" else ctypes.util.find_library(name)
            for name in before
        ]
        check(all(libraries), "not all are here:", libraries)
        readings = compared(path, ["4", "20000", "fork"], {"FOREIGN": "1", "LD_PRELOAD": ":".join(libraries), **env})
        equal(len(readings), 2, "processes")
        for counted, have, said in readings:
            equal((have, said), (counted, ""), "accounts")
    return test


tap.main([("a source that " + what, compiles(what)) for what in ODDITIES] +
         [("%s %s%s: the wider family is counted as the program does" %
           (compiler, level, more and " " + more), exact(compiler, level, *[more] * bool(more))) for compiler in C + CXX
          for level, more in (("-O0", ""), ("-O2", ""), ("-O2", "-D_FORTIFY_SOURCE=3"),
                              ("-O2", "-std=c11" if compiler in C else "-std=c++17"), ("-O2", "-masm=intel")) +
          (("-O2", "-DALLIUM_BY_CALL"),) * (compiler in C)] + [("a count that is left out is found", planted),] +
         [("%s: -mx32 is refused in one line" % compiler, refused(compiler))
          for compiler in C] + [("a warning that a user wants from clang stays on", own_warnings),
                                   ("attributes of a user's own declarations hold by call", own_attributes)] +
         [("%s -masm=%s: the arguments of a probe can be read" % (compiler, syntax), probe_arguments(compiler, syntax))
          for compiler in C for syntax in ("att", "intel")] +
         [("%s: an assembler source compiles with the header before it" % compiler, assembled(compiler))
          for compiler in C] + [("%s %s: arrays are deleted by the operators that made them" %
                                 (compiler, option), arrays(compiler, option, tagged="thread" not in option))
                                for compiler in CXX for option in ("-fsanitize=address", "-fsanitize=thread", "-O2")] +
         [("arrays are deleted by the operators that made them with %s below" % name, arrays("g++", preload=name))
          for name in ("jemalloc", "tcmalloc_minimal", "mimalloc")] +
         [("with liballium-frees, frees of others are seen",
           frees_of_others("FREES")), ("so with another allocator", frees_of_others("FREES", "jemalloc")),
          ("so with the agent behind it", frees_of_others("FREES", "AGENT")),] +
         [("%s %s: new, templates and containers are places" % (compiler, level), standard_library(compiler, level))
          for compiler in CXX for level in LEVELS] + [("%s %s: callers of helpers are the places" %
                                                       (compiler, level), helpers(compiler, level))
                                                      for compiler in C + CXX for level in ("-O0", "-O2", "-O3")] +
         [("calls of a helper by generated code are one left-out tag for each place", generated_code)] +
         [("%s: headers have nothing to be warned of" % compiler, quiet_for(compiler)) for compiler in C + CXX] +
         [("%s %s: what a program reaches was listed before it ran" %
           (compiler, " ".join(options)), listed_before(compiler, *options)) for compiler in C + CXX
          for options in (["-O0"], ["-O2"], ["-O2", "-fno-plt"], ["-O2", "-D_FORTIFY_SOURCE=3", "-fcf-protection"],
                          ["-O2", "-fuse-ld=lld"])
          if not (compiler.startswith("clang") and "-fno-plt" in options)  # which then calls some by a register
          ])
