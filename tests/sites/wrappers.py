# SPDX-License-Identifier: BSD-2-Clause
"""What is asked for through wrappers is charged to who called them, exactly, whatever they are compiled like."""
import json
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
import tap
from tap import agent_env, built, check, equal, pick, private_dir, run, succeed

SCRATCH = tempfile.TemporaryDirectory(prefix="allium-wrappers-")
SOURCE = os.path.join(HERE, "wrapped.cc")
STRICT = ["-Wall", "-Wextra", "-Wshadow", "-Werror", "-Wno-unknown-attributes", "-Wno-attributes"]

# calls and bytes, of each function that asks
ALWAYS = {
    "asks_thrice": (3, 300), "asks_here_and_there": (3, 24), "copies": (5, 25), "grows": (4, 10000), "counts": (1, 100)
}
NAMED = {"takes": (2, 90)}
CXX = {"fills": (5, 8 * 31), "maps": (11, None), "writes": (None, None)}


def compiled(compiler, *options):
    out = os.path.join(SCRATCH.name, "".join([compiler, *options]).replace("/", ""))
    language = ["-x", "c"] if compiler in ("gcc", "clang") else ["-std=gnu++17"]
    succeed([
        compiler, *language, "-g", "-fno-builtin-malloc", "-fno-builtin-free", "-fno-builtin-calloc",
        "-fno-builtin-realloc", *STRICT, *options, SOURCE, "-o", out
    ])
    return out


def outermost(row):
    return row["name"].split("inlined in ")[-1].split(" at ")[0] if row["name"] else row["function"]


def sites(program, wrappers=None, config=None):
    """{function: (calls, bytes, frees)}, {function: class}, what was said"""
    with private_dir() as ledgers:
        env = agent_env(ledgers, 512 << 10, ALLIUM_SITES="1", **({"ALLIUM_WRAPPERS": wrappers} if wrappers else {}))
        p = subprocess.Popen([program], env=env)
        equal(p.wait(tap.TIMEOUT), 0, "its code")
        env = dict(os.environ, ALLIUM_DIR=ledgers, **({"XDG_CONFIG_HOME": config} if config else {}))
        done = run([built("ALLIUM"), "sites", str(p.pid), "--json"], env=env)
        equal(done.returncode, 0, done.stderr.decode())
        said = succeed([built("ALLIUM"), "sites", str(p.pid)], env=env).stderr.decode()
    have, classes = {}, {}
    for row in json.loads(done.stdout)["rows"]:
        name = outermost(row)
        a = have.get(name, (0, 0, 0))
        have[name] = (a[0] + row["allocations"], a[1] + row["requested_bytes"], a[2] + row["live_objects"])
        classes[name] = row["class"]
    return have, classes, said


def compare(have, want, how):
    for name, (calls, bytes_) in want.items():
        got = have.get(name, (0, 0, 0))
        equal((got[0] if calls else None, got[1] if bytes_ else None), (calls, bytes_), "%s: %s" % (how, name))
        equal(got[2], 0, "%s: live of %s" % (how, name))


BUILDS = [(compiler, *options) for compiler in ("gcc", "clang") for options in (["-O0"], ["-O2"])] + [
    ("gcc", "-O2", "-fno-omit-frame-pointer"), ("gcc", "-O0", "-fomit-frame-pointer"),
    ("g++", "-O0"), ("g++", "-O1"), ("g++", "-O2"), ("clang++", "-O0"), ("clang++", "-O2")]


def callers():
    for build in BUILDS:
        have, classes, said = sites(compiled(*build))
        how = " ".join(build)
        compare(have, ALWAYS, how)
        equal(have.get("take_three"), (2, 90, 0), how + ": who is no wrapper unless it is named")
        for wrapper in "xmalloc", "xstrdup", "xrealloc", "xcalloc":
            check(wrapper not in have, how, wrapper, have)
        for name in ALWAYS:
            equal(classes[name], None, how + ": class of " + name)
        check("charged to no site" not in said and "wrappers that have sites" not in said, said)


def templates():
    """The C++ library works for whoever calls it, in as many functions as it likes; a pattern may have template
    arguments.
    """
    for build in BUILDS:
        if "++" not in build[0]:
            continue
        have, classes, said = sites(compiled(*build), "nothing;pool<*>::take")
        how = " ".join(build)
        compare(have, {"takes_of_pool": (6, 240), **CXX}, how)
        check(not [name for name in have if name.startswith(("std::", "__gnu", "pool"))], how, have)


def named():
    """By an option; by a list of one's own; and not at all."""
    program = compiled("gcc", "-O2")
    have, _, said = sites(program, "take_three")
    compare(have, {**ALWAYS, **NAMED}, "named")
    check("take_three" not in have, have)
    have, _, _ = sites(program, "take_t*;!xmalloc")
    equal(have["xmalloc"], (3 + 2 + 5 + 2, 300 + 15 + 25 + 90, 0), "taken away")

    config = os.path.join(SCRATCH.name, "config")
    os.makedirs(os.path.join(config, "allium"))
    with open(os.path.join(config, "allium", "wrappers"), "w") as file:
        file.write("take_three # mine\n")
    late = sites(program, config=config)
    equal((late[0]["take_three"], late[1]["take_three"]), ((2, 90, 0), "wrapper"), "named when it was read")
    equal(late[2].count("wrappers that have sites of their own"), 1, "lines: " + late[2])
    check("take_three" in late[2] and "WRAPPERS in allium-sites(1)" in late[2], late[2])

    path = os.path.join(SCRATCH.name, "x.allium")
    for options, env in ((["--wrapper", "take_three,other"], {}), ([], {"XDG_CONFIG_HOME": config})):
        succeed([built("ALLIUM"), "run", "--sites", *options, "--force", "--quiet", "-o", path, "--", program],
                env=dict(os.environ, **env))
        rows = json.loads(succeed([built("ALLIUM"), "sites", path, "--json"]).stdout)["rows"]
        equal(
            [(row["allocations"], row["requested_bytes"]) for row in rows if row["function"] == "takes"],
            [(1, 60), (1, 30)],
            "takes",
        )


def environment():
    """What allium env prints has a shell start it so."""
    program = compiled("gcc", "-O2")
    script = succeed([built("ALLIUM"), "env", "--sites", "--wrapper", "take_three"]).stdout.decode()
    with private_dir() as ledgers:
        done = succeed(["sh", "-c", script + "\nexport ALLIUM_DIR=" + ledgers + "\n" + program + " & echo $!; wait"])
        env = dict(os.environ, ALLIUM_DIR=ledgers)
        rows = json.loads(succeed(
            [built("ALLIUM"), "sites", done.stdout.decode().strip(), "--json"], env=env).stdout)["rows"]
    check("takes" in [row["function"] for row in rows], rows)
    for words in (["env", "--wrapper", "x"], ["run", "--wrapper", "x", "--", "true"]):
        done = run([built("ALLIUM"), *words])
        check(done.returncode in (2, 125) and b"--sites --wrapper x" in done.stderr, done.stderr)


def stripped():
    """Names are gone: so are wrappers, but for those that are exported."""
    program = compiled("gcc", "-O2", "-rdynamic", "-DSTRIPPED")
    succeed(["strip", program])
    with private_dir() as ledgers:
        p = subprocess.Popen([program], env=agent_env(ledgers, 512 << 10, ALLIUM_SITES="1"))
        equal(p.wait(tap.TIMEOUT), 0, "its code")
        done = succeed([built("ALLIUM"), "sites", str(p.pid), "--json"], env=dict(os.environ, ALLIUM_DIR=ledgers))
    rows = json.loads(done.stdout)["rows"]
    check(not [row for row in rows if row["function"] in ("xmalloc", "xstrdup", "xrealloc", "xcalloc")], rows)
    equal(sum(row["allocations"] for row in rows), 3 + 3 + 5 + 4 + 1 + 2, "allocations")


tap.main([
    ("callers of wrappers are sites, to the byte", callers),
    ("the C++ library is passed over, and templates that are named", templates),
    ("wrappers are named at the start; later a line says what to do", named),
    ("allium env has them, too", environment),
    ("in a program without names those that it exports", stripped),
])
