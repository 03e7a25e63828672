# SPDX-License-Identifier: BSD-2-Clause
"""What the tests of the command share: a place to work in."""
import contextlib
import json
import os
import re
import signal
import subprocess

import json_schemas
import tap
from tap import agent_for, built, equal, private_dir

FOLDER = built("TEST_CLI")


def program(name):
    return os.path.join(FOLDER, name)


class Place:
    """A directory to work in, with a runtime and a cache directory of its own: no ledger of anybody else in it."""

    def __init__(self, folder):
        self.folder, self.runtime = folder + "/work", folder + "/runtime"
        for name in (self.folder, self.runtime, folder + "/cache"):
            os.mkdir(name, 0o700)
        self.env = dict(os.environ, XDG_RUNTIME_DIR=self.runtime, XDG_CACHE_HOME=folder + "/cache")
        self.started = []

    def allium(self, *words, code=0, **how):
        done = tap.run([built("ALLIUM"), *words], cwd=self.folder, env=dict(self.env, **how.pop("env", {})), **how)
        done.out, done.err = (stream.decode(errors="replace") for stream in (done.stdout, done.stderr))
        if code is not None and "--json" in words and words[0] != "run" and not done.returncode:
            json_schemas.check_text(done.out)
        if code is not None:
            equal(done.returncode, code,
                  "code of allium %s, which said %s" % (" ".join(words), tap.shorten(done.err, 600)))
        return done

    def start(self, *command, env=None):
        process = subprocess.Popen(command, cwd=self.folder, env=env or self.env, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        self.started.append(process)
        return process

    def start_allium(self, *words):
        return self.start(built("ALLIUM"), *words)

    def start_holder(self, **more):
        """holder under the agent, without allium; its ledger lies where allium looks, unless `more` says otherwise."""
        env = dict(self.env, LD_PRELOAD=agent_for(more), ALLIUM_PERIOD="1", **more)
        process = self.start(program("holder"), env=env)
        equal(process.stdout.readline(), b"ready\n", "the holder's word")
        return process

    def recording(self, *words):
        self.allium("run", "--quiet", "--period", "1", "-o", "r.allium", "--", program("holder"), *words)
        return "r.allium"

    def path(self, name):
        return os.path.join(self.folder, name)

    def ledgers(self):
        return [os.path.join(where, name) for where, _, names in os.walk(self.runtime) for name in names
                if name.endswith(".ledger")]

    def row(self, pid, **env):
        """The row of this pid in `allium ps`: of a running process, if ended ones with the same pid have rows, too."""
        rows = [row for row in json.loads(self.allium("ps", "--json", env=env).out)["rows"] if row["pid"] == pid]
        return min(rows, key=lambda row: row["state"] != "running", default=None)

    def line(self, pid):
        """Its line in what ps prints: there may be ledgers of others."""
        printed = self.allium("ps", env={"LC_ALL": "C"}).out.splitlines()
        return next((line for line in printed if re.search(r"\b%d\b" % pid, line)), "")

    def release(self):
        for process in self.started:
            with contextlib.suppress(Exception):
                os.killpg(process.pid, signal.SIGKILL)  # what it started, too
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                with contextlib.suppress(Exception):
                    stream.close()


def placed(function, where="/dev/shm"):
    def test():
        with private_dir(where) as folder:
            place = Place(folder)
            try:
                function(place)
            finally:
                place.release()
    return test
