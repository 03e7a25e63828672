# SPDX-License-Identifier: BSD-2-Clause
"""Which of the two agents enters a program: liballium-agent.so, or, where call sites are asked for,
liballium-agent-full.so.
"""
import json
import os
import sys

sys.dont_write_bytecode = True
import tap
from workdir import placed, program
from tap import built, check, equal

DEFAULT, FULL = built("ALLIUM_AGENT"), built("ALLIUM_AGENT_FULL")
# A grandchild prints which agents it maps.
AGENTS = ["sh", "-c", "sh -c 'grep -o \"/[^ ]*liballium-agent[^ ]*\" /proc/self/maps; :' | sort -u"]


def run_takes(place):
    """A program and its children have the one that `allium run` has chosen, also where one of them is `allium run`
    itself.
    """
    for options, agent in ((), DEFAULT), (("--sites",), FULL):
        words = ["run", *options, "--quiet", "--force", "-o", "r.allium", "--"]
        equal(place.allium(*words, *AGENTS).out.split(), [agent], "agents with %s" % (options,))
        for outer in (), ("--sites",):
            done = place.allium("run", *outer, "--quiet", "--force", "-o", "outer.allium", "--", built("ALLIUM"),
                                *words, *AGENTS)
            equal(done.out.split(), [agent], "agents with %s in a run with %s" % (options, outer))


def env_takes(place):
    for options, agent in ((), DEFAULT), (("--sites",), FULL):
        check("export LD_PRELOAD='%s'" % agent in place.allium("env", *options).out, "a shell's, with %s" % (options,))
        check('"LD_PRELOAD=%s"' % agent in place.allium("env", "--systemd", *options).out,
              "a unit's, with %s" % (options,))
        image = place.allium("env", "--docker", *options).out
        check("COPY %s /usr" % os.path.basename(agent) in image and "The agent to copy is %s\n" % agent in image, image)
        lines = place.allium("env", *options).out
        undo = "\n".join(line.lstrip("# ") for line in lines.splitlines()[-2:])
        done = tap.run(["sh", "-c", "unset LD_PRELOAD\n" + lines + undo + "\nenv"], cwd=place.folder, env=place.env)
        check(b"LD_PRELOAD" not in done.stdout and b"ALLIUM_SITES" not in done.stdout, "undone, with %s" % (options,),
              done.stdout)


def doctor_finds(place):
    rows = json.loads(place.allium("doctor", "--json", code=None).out)["rows"]
    equal([row["found"] for row in rows if row["what"] in ("agent", "agent-full")], [DEFAULT, FULL], "agents")


def set_says(place):
    """What only the full one can do is refused in one line; the rest works, and there is no account of any site."""
    holder = place.start_holder()
    pid = str(holder.pid)
    for words in ("stacks",), ("--where", "func:main", "stacks"):
        done = place.allium("set", pid, *words, code=1)
        check(not done.out and done.err.count("\n") == 1 and "liballium-agent-full.so" in done.err, done.out, done.err)
    check(place.allium("set", pid, "period=64K").out.startswith(pid + " (holder): on, period 64"), "a period is set")
    check("has no accounts of call sites" in place.allium("sites", pid, code=1).err, "allium sites")


def default_ignores(place):
    """ALLIUM_SITES=1 asks the default one in vain: it samples, and the program and its children do not see the
    variable.
    """
    env = dict(place.env, LD_PRELOAD=DEFAULT, ALLIUM_SITES="1", ALLIUM_PERIOD="1", ALLIUM_WRAPPERS="xmalloc")
    done = tap.run(["sh", "-c", "env; sh -c env"], cwd=place.folder, env=env)
    check(done.returncode == 0 and b"ALLIUM_" not in done.stdout and b"LD_PRELOAD" not in done.stdout, done.stdout,
          done.stderr)
    holder = place.start(program("holder"), env=env)
    equal(holder.stdout.readline(), b"ready\n", "the holder's word")
    row, = [row for row in json.loads(place.allium("ps", "--json").out)["rows"] if row["pid"] == holder.pid]
    check("sites" not in (row["accounts"] or ""), row)
    check(json.loads(place.allium("report", str(holder.pid), "--json").out)["rows"], "no rows of samples")


tap.main([(name, placed(test)) for name, test in [
    ("run preloads the agent that is asked for, and children have their parent's", run_takes),
    ("env names the agent that is asked for, and how to undo it", env_takes),
    ("doctor finds both agents", doctor_finds),
    ("set says in one line that the full agent is needed", set_says),
    ("the default agent keeps no accounts of call sites", default_ignores),
]])
