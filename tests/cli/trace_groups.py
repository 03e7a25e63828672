# SPDX-License-Identifier: BSD-2-Clause
"""Groups of events: `begin`, what begins and ends in a process, calls of code tags; as `allium events --json` lists them
and as babeltrace2 prints them.
"""
import collections
import ctypes.util
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
import tap
from tap import built, check, equal, private_dir, succeed

ALLIUM = built("ALLIUM")
LIFE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_key_t key;
static void destroy(void *p)
{
    free(p);
}
static void *work(void *unused)
{
    pthread_setname_np(pthread_self(), "worker");
    pthread_setspecific(key, malloc(77));
    return unused;
}
int main(int argc, char **argv)
{
    pthread_t thread;
    free(malloc(10));
    pthread_key_create(&key, destroy);
    for (int i = 0; i < 3; i++) {
        pthread_create(&thread, NULL, work, NULL);
        pthread_join(thread, NULL);
    }
    for (int i = 0; i < 2; i++) {
        void *library = dlopen(argv[1], RTLD_NOW);
        void *make = dlsym(library, "make");
        free(((void *(*)(void))make)());
        dlclose(library);
        if (argc > 2) /* the library is loaded elsewhere the next time */
            mmap((void *)((long)make & -4096), 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    }
    if (!fork()) {
        free(malloc(20));
        execl("/nonexistent", "x", NULL);
        execl("/bin/true", "true", NULL);
    }
    return !wait(NULL);
}
"""
LIBRARY = "#include <stdlib.h>\nvoid *make(void) { void *volatile p = malloc(33); return p; }\n"
TAGGED = """
#include <allium/malloc_hooks.h>
#include <stdlib.h>
int main(void)
{
    void *volatile p[5];
    for (int i = 0; i < 5; i++)
        p[i] = malloc(100 + i);
    p[0] = realloc(p[0], 2000);
    p[4] = realloc(p[4], 1ul << 62) ? NULL : p[4];
    for (int i = 0; i < 5; i++)
        free(p[i]);
    return 0;
}
"""

# A function of the family for each size; then calls of an operator that throws.
CLASSES = """
#include <malloc.h>
#include <new>
#include <stdlib.h>
#include <string.h>
static void *volatile kept[9];
int main(int argc, char **argv)
{
    for (int i = 0; i < 100; i++) {
        void *p = NULL;
        kept[0] = calloc(3, 1000);
        kept[1] = malloc(3001);
        kept[2] = posix_memalign(&p, 64, 3002) ? NULL : p;
        kept[3] = ::operator new(3003);
        kept[4] = memalign(64, 3004);
        kept[5] = realloc(malloc(3005), 3006);
        kept[6] = valloc(3007);
        kept[7] = aligned_alloc(64, 3008);
        for (int k = 0; k < 8; k++)
            if (k == 3)
                ::operator delete(kept[k]);
            else
                free(kept[k]);
        free(pvalloc(3009)); /* the last one before the next round's calloc(): its class must not stay */
    }
    for (int i = 0; argc > 1 && i < 10; i++) {
        try {
            kept[0] = ::operator new(1ul << 62);
            return 1;
        } catch (const std::bad_alloc &) {
        }
        free(calloc(3, 2000));
        free(malloc(6001));
    }
    return 0;
}
"""
CLASS_OF = {3000: "calloc", 3002: "memalign", 3004: "memalign", 3006: "realloc_end", 3007: "memalign", 3008: "memalign",
            3009: "memalign", **dict.fromkeys((3001, 3003, 3005), "malloc")}
JEMALLOC = ctypes.util.find_library("jemalloc")


def compiled(folder, name, text, *options, language="c"):
    with open(folder + "/source.c", "w") as file:
        file.write(text)
    succeed(["cc", "-O1", "-g", "-fno-builtin", "-pthread", "-o", folder + "/" + name, "-x", language,
             folder + "/source.c", "-x", "none", *options])
    return folder + "/" + name


def traced(folder, options, *command, preload=None):
    """-> the events, each a dictionary with its fields; babeltrace2 reads as many of each name"""
    trace = folder + "/t"
    env = dict(os.environ, **({"LD_PRELOAD": preload} if preload else {}))
    done = tap.run([ALLIUM, "trace", "--force", *options, "-o", trace, "--", *command], env=env)
    equal(done.returncode, 0, done.stderr)
    check(b" 0 lost\n" in done.stderr, done.stderr)
    lines = succeed([ALLIUM, "events", "--json", trace]).stdout.splitlines()
    found = [json.loads(line) for line in lines[1:-1]]
    done = subprocess.run(["babeltrace2", trace + "/ust"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    equal((done.returncode, done.stderr), (0, ""), "babeltrace2")
    for name in {e["event"] for e in found}:
        printed = done.stdout.count("allium:%s: " % name.replace("allium:", ""))
        equal(printed, sum(e["event"] == name for e in found), name)
    return [{**e, **e["fields"], "event": e["event"].replace("allium:", "")} for e in found]


def begin():
    """Each call of a thread begins before it ends, and has its size; without sites, too, and with whole stacks."""
    ends = {"malloc": "malloc_begin", "calloc": "calloc_begin", "memalign": "memalign_begin", "free_end": "free",
            "realloc_end": "realloc_begin"}
    sql = "create table t(a); insert into t values(hex(randomblob(5000))); select length(a) from t;"
    with private_dir() as folder:
        for options in ([], ["--stacks", "none"], ["--stacks", "full"], ["--period", "1"]):
            under_way, calls = {}, 0
            for e in traced(folder, [*options, "--events", "begin"], "sqlite3", ":memory:", sql):
                if e["event"] in ends.values():
                    check(e["thread"] not in under_way, "a call amid another one", e)
                    under_way[e["thread"]] = e
                elif e["event"] in ends:
                    first = under_way.pop(e["thread"])
                    equal(first["event"], ends[e["event"]], options)
                    if e["event"] not in ("realloc_end", "free_end"):
                        equal(first["size_bytes"], e["size_bytes"], e)
                    if e["event"] != "realloc_end" and "none" not in options:
                        equal(first["site"], e["site"], (options, first, e))
                    calls += 1
                equal("site" in e, "none" not in options and e["event"] in (*ends, *ends.values()), e)
            equal((under_way, calls > 500), ({}, True), options)


def life():
    with private_dir() as folder:
        library = compiled(folder, "make.so", LIBRARY, "-shared", "-fPIC")
        program = compiled(folder, "life", LIFE, "-ldl")
        for options, *elsewhere in (([], ), ([], "elsewhere"), (["--stacks", "full"], "elsewhere")):
            found = traced(folder, options, program, library, *elsewhere)
            (parent, child) = [e for e in found if e["event"] == "process_begin"]
            equal((child["parent"], child["name"], parent["name"]), (parent["process"], "life", "life"), child)
            check(int(child["parent_image"], 16) and not int(parent["parent_image"], 16), parent, child)
            begins, ends = ([e for e in found if e["event"] == "thread_" + what] for what in ("begin", "end"))
            equal(len(begins), 5, "threads that begin")  # and the child's
            equal([e["thread"] for e in ends], [e["thread"] for e in begins[1:4]], "threads that end")
            equal({e["name"] for e in ends}, {"worker"}, "names")
            for e in ends:  # what the program's destructors free comes before
                own = [x["event"] for x in found if x["thread"] == e["thread"] and x["process"] == parent["process"]]
                equal((own[0], own.index("free") < own.index("thread_end")), ("thread_begin", True), own)
            equal([(e["event"], e.get("path"), e.get("error")) for e in found if e["event"].startswith("exec")],
                  [("exec", "/nonexistent", None), ("exec_failed", None, 2), ("exec", "/bin/true", None)], "exec")
            modules = [(e["event"], e["start"]) for e in found if e.get("path") == library]
            equal([name for name, _ in modules], ["module_loaded", "module_unloaded"] * 2, "the library")
            own = [e["event"] for e in found if e.get("path") == library or e.get("size_bytes") == 33]
            equal(own, ["module_loaded", "malloc", "module_unloaded"] * 2, "the library and its calls")
            equal([e["threads"] for e in found if e["event"] == "process_exit"], [4], "threads that have allocated")


def tags():
    """Each call of a tag is there, also without the agent's events; with its block."""
    with private_dir() as folder:
        include = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../include")
        library = built("TEST_TAGS_LIBRARY")
        program = compiled(folder, "tagged", TAGGED, "-I", include, library,
                           "-Wl,-rpath," + os.path.dirname(os.path.abspath(library)))
        for events in "alloc,tag", "tag":
            found = traced(folder, ["--events", events], program)
            calls = [e for e in found if e["event"] == "tag_call"]
            equal([(e["name"], e["size_bytes"]) for e in calls],
                  [("malloc", 100 + i) for i in range(5)] + [("realloc", 2000), ("realloc", 1 << 62)], "calls")
            equal([int(e["ptr"], 16) != 0 for e in calls], [True] * 6 + [False], "blocks")
            check(all(0 < e["duration_ns"] < 10**10 for e in calls), calls)
            if "alloc" in events:
                made = [e["ptr"] for e in found if e["event"] == "malloc" and 100 <= e["size_bytes"] < 105]
                equal([e["ptr"] for e in calls[:5]], made, "blocks of the allocator")


def classes_program(folder):
    return compiled(folder, "classes", CLASSES, "-lstdc++", language="c++")


def classes():
    """A call that the ledger samples has the class that it has otherwise; also if the allocator has operators."""
    check(JEMALLOC, "jemalloc is missing")
    with private_dir() as folder:
        program = classes_program(folder)
        for preload in None, JEMALLOC:
            for options in (["--period", "1"], ["--period", "10K"], ["--period", "1", "--stacks", "full"]):
                found = traced(folder, options, program, preload=preload)
                for size, name in CLASS_OF.items():
                    equal(collections.Counter(e["event"] for e in found if e.get("size_bytes") == size), {name: 100},
                          (preload, options, size))
            for period in "1", "10K":
                done = tap.run([ALLIUM, "trace", "--period", period, "--sum", "alloc,by=event,by=size", "--json", "--",
                                program], env=dict(os.environ, **({"LD_PRELOAD": preload} if preload else {})))
                equal(done.returncode, 0, done.stderr)
                rows = [row for row in json.loads(done.stdout)["rows"] if row.get("size_bytes") in CLASS_OF]
                equal(sorted((row["size_bytes"], row["event"].replace("allium:", ""), row["count"]) for row in rows),
                      sorted((size, name, 100) for size, name in CLASS_OF.items()), (preload, period))


def throwing():
    """An operator that throws does not end the group `begin` of its thread."""
    with private_dir() as folder:
        program = classes_program(folder)
        for options in ["--period", "1"], []:
            found = traced(folder, [*options, "--events", "begin"], program, "throw", preload=JEMALLOC)
            for size, name in {6000: "calloc", 6001: "malloc"}.items():
                equal(collections.Counter(e["event"] for e in found if e.get("size_bytes") == size),
                      {name: 10, name + "_begin": 10}, (options, size))


tap.main([
    ("each call has a beginning and an end", begin),
    ("each call has the class of its function", classes),
    ("an operator that throws", throwing),
    ("what begins and ends in a process", life),
    ("calls of code tags", tags),
])
