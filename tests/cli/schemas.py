# SPDX-License-Identifier: BSD-2-Clause
"""Output of every command with --json is what its JSON Schema says. (Place.allium() and the tests of `allium sys NAME` look
at all that they read, too.)
"""
import json
import os
import shutil
import sys

sys.dont_write_bytecode = True
import json_schemas
import jsonschema
import tap
from workdir import placed, program
from tap import built, check, equal

RECORDED = os.path.realpath(__file__ + "/../../unit/recorded")
SEEN = set()

TOOLS = ("brkstack", "drsnoop", "faults", "ffaults", "hfaults", "kmem", "kpages", "memleak --kernel",
         "mmapsnoop", "mmapsnoop --summary", "numamove", "oomkill", "shmsnoop", "slabratetop", "swapin", "vmscan")


def look(place, *words):
    """The documents that a command prints; each is valid."""
    text = place.allium(*words, "--json").out
    check(text, "nothing from", words)
    json_schemas.check_text(text)
    SEEN.add(json.JSONDecoder().raw_decode(text)[0]["schema"])
    return text


def recordings(place):
    place.allium("run", "--quiet", "--sites", "--period", "1", "-o", "e.allium", "--", program("asker"))
    place.allium("run", "--quiet", "--period", "4K", "-o", "s.allium", "--", program("grower"), "16", "20", "0")
    place.allium("run", "--quiet", "--period", "1", "-o", "e2.allium", "--", program("asker"))
    place.allium("run", "--quiet", "--period", "4K", "-o", "s2.allium", "--", program("grower"), "16", "30", "0")
    for source in "e.allium", "s.allium":
        for group in "stack", "function", "file", "directory", "module", "owner", "thread", "size", "process":
            look(place, "report", source, "--by", group)
            look(place, "diff", "e.allium", source, "--by", group, "--coarse", "--fail-if", "peak+99999%")
        for order in "peak", "allocated", "allocations", "temporary", "age":
            look(place, "report", source, "--sort", order)
        look(place, "frees", source)
        look(place, "sql", source, "SELECT pid, peak_bytes, NULL, 1.5 FROM image")
        for table in "live_sample", "recent_free":
            question = "SELECT address FROM %s LIMIT 1" % table
            for row in json.loads(place.allium("sql", source, question, "--json").out)["rows"]:
                look(place, "who", source, hex(row["address"]))
    for per in (), ("--per", "event"), ("--per", "s"):
        look(place, "diff", "e.allium,s.allium", "e2.allium,s2.allium", *per, "--by", "function")
    look(place, "report", "e.allium", "--callers", "main")
    look(place, "sites", "e.allium")
    look(place, "sites", "e.allium", "--by", "function")
    place.allium("run", "--quiet", "--json", "run.json", "-o", "r.allium", "--", program("holder"), "1")
    with open(place.path("run.json")) as file:
        json_schemas.check(json.load(file), "allium-run")
    SEEN.add("allium-run")


def traces(place):
    place.allium("trace", "--quiet", "--events", "alloc,begin", "-o", "t.trace", "--", program("asker"))
    look(place, "events", "t.trace")
    for group in "event", "thread", "cpu", "call":
        look(place, "events", "t.trace", "--by", group)
    look(place, "events", "t.trace", "--sum", "malloc.size,by=size")
    look(place, "report", "t.trace")


def processes(place):
    pid = str(place.start_holder(ALLIUM_SITES="1").pid)
    twice = "--interval", "200ms", "--count", "2"
    for words in (("ps",), ("report", pid), ("watch", pid, "--once"), ("watch", pid, *twice), ("sites", pid),
                  ("sites", pid, "--freed"), ("sites", pid, *twice), ("sites", pid, "--faults", "200ms"),
                  ("sites", pid, "--stacks")):
        look(place, *words)


def tagged(place):
    with open(place.path("tagged.c"), "w") as file:
        file.write("""
#include <stdlib.h>
#include <unistd.h>
int main(void) { void *p = malloc(10); for (int i = 0; i < 600; i++) { p = realloc(p, 100 + i); usleep(100000); } free(p); }
""")
    include = os.path.realpath(__file__ + "/../../../include")
    library = built("TEST_TAGS_LIBRARY")
    tap.succeed(["cc", "-g", "-I", include, "-include", "allium/malloc_hooks.h", place.path("tagged.c"), library, "-o",
                 place.path("tagged"), "-Wl,-rpath," + os.path.dirname(library)])
    pid = str(place.start("./tagged").pid)
    tap.wait_until(lambda: place.allium("tags", pid, code=None).returncode == 0, 20, "tags")
    place.allium("set", pid, "--where", "func:main", "stacks", "latency")
    for words in ((pid,), (pid, "--by", "function"), (pid, "--interval", "200ms", "--count", "2"), ("./tagged",),
                  (pid, "--stacks"), (pid, "--latency"), (pid, "--faults", "200ms")):
        look(place, "tags", *words)


def machine(place):
    look(place, "doctor")
    look(place, "bench", "--mechanism", "none", "--sink", "empty", "--time", "1ms")
    look(place, "sys", "--duration", "50ms")
    look(place, "sys", "--duration", "50ms", "--top", "0", "--pss")
    look(place, "sys", "-p", str(os.getpid()))
    look(place, "sys", "--list")
    for name in os.listdir(RECORDED):
        if name.startswith("allocinfo-") and name != "allocinfo-README":
            shutil.copy(os.path.join(RECORDED, name), place.path(name))
            look(place, "sys", "allocinfo", name)
    look(place, "sys", "allocinfo", "allocinfo-6.12-before", "allocinfo-6.12-after")
    look(place, "sys", "frag")
    if os.geteuid() == 0:
        look(place, "sys", "advise")
        look(place, "bench", "--memcg", "--time", "0s")
        for name in TOOLS:
            look(place, "sys", *name.split(), "--duration", "300ms")
        look(place, "sys", "memleak", "-p", str(os.getpid()), "--duration", "300ms")


def all_seen(place):
    """There is output of each schema; one with an unknown key, or with a text for a number, is found wrong."""
    equal(set(json_schemas.names()) - SEEN, set() if os.geteuid() == 0 else {
        "allium-sys-" + name.replace(" --", "_")
        for name in ("advise", "memleak", *TOOLS)
    } | {"allium-bench-memcg"}, "schemas without output")
    document = json.loads(place.allium("doctor", "--json").out)
    for spoil in (lambda rows: rows[0].update(unknown=1), lambda rows: rows[0].update(works=1),
                  lambda rows: rows[0].pop("what")):
        spoiled = json.loads(json.dumps(document))
        spoil(spoiled["rows"])
        try:
            json_schemas.check(spoiled)
        except jsonschema.ValidationError:
            continue
        raise tap.Failed("a spoiled document is valid")


tap.main([(name, placed(function)) for name, function in (
    ("of recordings", recordings), ("of traces", traces),
    ("of processes", processes), ("of a program with tags", tagged),
    ("of the machine", machine), ("all schemas have output, and a wrong document is found", all_seen))])
