# SPDX-License-Identifier: BSD-2-Clause
"""A program that does what a test tells it, and `allium set` beside it."""
import json
import os
import shutil
import subprocess

from building import program
from tap import built, run, succeed, wait_until


class Steps:
    """steps.c at work, or a copy of it in `folder`: each call does one thing and waits until it is done."""

    def __init__(self, ledgers, source="steps.c", folder=None, **env):
        self.env = dict(os.environ, ALLIUM_DIR=ledgers)
        steps = program("gcc", ["-O2"], source)
        if folder:
            steps = shutil.copy(steps, folder)
        self.comm = os.path.basename(steps)[:15]
        self.process = subprocess.Popen([steps], env=dict(self.env, **env), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, bufsize=0)
        self.pid = self.process.pid
        # It has its accounts when it waits for the first line: system call 0, read, of descriptor 0.
        wait_until(lambda: self.process.poll() is not None or self.system_call().startswith("0 0x0 "), 20, "its start")

    def system_call(self):
        with open("/proc/%d/syscall" % self.pid) as file:
            return file.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()

    def do(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        return int(self.process.stdout.readline())

    def set(self, *words, pid=None):
        return succeed([built("ALLIUM"), "set", str(pid or self.pid), *words], env=self.env).stdout.decode()

    def refused(self, *words):
        done = run([built("ALLIUM"), "set", str(self.pid), *words], env=self.env)
        return done.returncode, done.stderr.decode()

    def rows(self, pid=None):
        """{function: (allocations, allocated bytes, live objects, live bytes, failed)}"""
        done = succeed([built("ALLIUM"), "tags", str(pid or self.pid), "--json", "--top", "0"], env=self.env)
        return {
            row["function"]: tuple(
                row.get(key) or 0 for key in ("allocations", "allocated_bytes", "live_objects", "live_bytes", "failed"))
            for row in json.loads(done.stdout)["rows"]
        }

    def details(self, *words, pid=None):
        """(rows, what stands on stderr)"""
        done = succeed([built("ALLIUM"), "tags", str(pid or self.pid), "--json", "--top", "0", *words], env=self.env)
        return json.loads(done.stdout)["rows"], done.stderr.decode()

    def note(self, pid=None):
        """What `allium ps` says of it."""
        listed = json.loads(succeed([built("ALLIUM"), "ps", "--json"], env=self.env).stdout)["rows"]
        return [row.get("note") for row in listed if row["pid"] == (pid or self.pid)][-1]
