# SPDX-License-Identifier: BSD-2-Clause
"""A program that a shell starts with what `allium env` prints (tests/cli/caller.c, or another), and commands on it."""
import contextlib
import os
import re
import signal
import subprocess

import tap
from tap import built, check, equal, private_dir

ALLIUM = built("ALLIUM")
CALLER = os.path.join(built("TEST_CLI"), "caller")


class Service:
    """It does what its arguments say."""

    def __init__(self, folder, options, *words, agent_options="", program=CALLER):
        self.folder = folder
        self.env = dict(os.environ, XDG_RUNTIME_DIR=folder + "/runtime")
        os.makedirs(folder + "/runtime", mode=0o700, exist_ok=True)
        lines = 'exec "$@"'
        if options is not None:
            lines = tap.succeed([ALLIUM, "env", *options], env=self.env).stdout.decode()
            lines += 'export ALLIUM_SITES="$ALLIUM_SITES%s"; exec "$@"' % agent_options
        self.process = subprocess.Popen(["sh", "-c", lines, "sh", program, *map(str, words)], env=self.env,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid = str(self.process.pid)

    def reach(self, word):
        equal(self.process.stdout.readline().decode(), word + "\n", "the program")

    def go_on(self):
        self.process.stdin.write(b"x")
        self.process.stdin.flush()

    def call(self, *words, code=0, **how):
        """-> what it printed"""
        done = tap.run([ALLIUM, *words], env=self.env, cwd=self.folder, **how)
        equal(done.returncode, code, done.stderr)
        return (done.stdout + done.stderr).decode()

    def begin(self, *words):
        """-> `allium trace PID` that has begun"""
        tracer = subprocess.Popen([ALLIUM, "trace", *words, self.pid], env=self.env, cwd=self.folder,
                                  stderr=subprocess.PIPE, text=True)
        line = tracer.stderr.readline()
        check(re.search(r"tracing process %s into .*; Ctrl-C ends the trace" % self.pid, line), line)
        return tracer

    def end(self, tracer):
        """-> its summary"""
        tracer.send_signal(signal.SIGINT)
        _, said = tracer.communicate(timeout=60)
        equal(tracer.returncode, 0, said)
        return said


@contextlib.contextmanager
def service(options, *words, agent_options="", program=CALLER):
    """`options`: of `allium env`; None: without it. `agent_options`: of the tracer (src/agent/tracer/tracer_options.h)"""
    with private_dir() as folder:
        s = Service(folder, options, *words, agent_options=agent_options, program=program)
        try:
            yield s
        finally:
            s.process.kill()
            s.process.communicate()
