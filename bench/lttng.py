# SPDX-License-Identifier: BSD-2-Clause
"""A session daemon of LTTng that is ours alone, and sessions in it: the peer of benchmarks of traces.

Root's daemon has its sockets in /run, so root runs the benchmark in a mount namespace with a /run of its own.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import time

WRAPPER = "liblttng-ust-libc-wrapper.so.1"


def begin_alone():
    """Call this first: runs the whole script again with a /run of its own, if that takes a namespace."""
    if os.geteuid() == 0 and shutil.which("lttng-sessiond") and not os.environ.get("ALLIUM_BENCH_ALONE"):
        os.environ["ALLIUM_BENCH_ALONE"] = "1"
        os.execvp("unshare", ["unshare", "-m", "--propagation", "private", "sh", "-c",
                              'mount -t tmpfs none /run && exec "$@"', "sh", sys.executable, *sys.argv])


class Daemon:
    """Use it in `with`. `why`: why there is no daemon; None: there is one."""

    def __enter__(self):
        self.process, self.why, self.home = None, None, tempfile.mkdtemp(prefix="allium-lttng-", dir="/dev/shm")
        self.env = dict(os.environ, LTTNG_HOME=self.home, HOME=self.home)
        if not shutil.which("lttng-sessiond"):
            self.why = "n/a: lttng-sessiond is not there (lttng-tools)"
            return self
        self.process = subprocess.Popen(["lttng-sessiond", "--no-kernel"], env=self.env, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 10
        while self.lttng("list", check=False).returncode:
            if time.monotonic() > end or self.process.poll() is not None:
                self.why = "n/a: lttng-sessiond did not come up"
                break
            time.sleep(0.05)
        return self

    def __exit__(self, *_):
        if self.process:
            self.process.terminate()
            self.process.wait()
        shutil.rmtree(self.home)

    def lttng(self, *words, check=True):
        return subprocess.run(["lttng", "--no-sessiond", *words], env=self.env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=check)

    def begin(self, events, folder, *channel, contexts=()):
        """A session that writes into `folder`; channel: options, as --overwrite."""
        self.lttng("create", "bench", "--output", folder)
        self.lttng("enable-channel", "--userspace", "all", "--subbuf-size", "512k", "--num-subbuf", "8", *channel)
        self.lttng("enable-event", "--userspace", events, "--channel", "all")
        for context in contexts:
            self.lttng("add-context", "--userspace", "--channel", "all", "--type", context)
        self.lttng("start")

    def end(self):
        self.lttng("destroy", "bench")
