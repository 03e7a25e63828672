# SPDX-License-Identifier: BSD-2-Clause
"""A command on a terminal: a pty stands for it."""
import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time

from tap import built, check

SECONDS = 60


class Terminal:
    """A command whose terminal is a pty of so many rows and columns."""

    def __init__(self, place, words, rows=10, columns=200, ignored=(), **env):
        env = {
            name: value
            for name, value in {**place.env, "TERM": "xterm", "LC_ALL": "C", **env}.items() if value is not None
        }
        self.pid, self.fd = pty.fork()
        if not self.pid:
            with contextlib.suppress(BaseException):
                os.read(0, 1)  # until the size is set
                os.chdir(place.folder)
                for number in ignored:
                    signal.signal(number, signal.SIG_IGN)
                os.execve(built("ALLIUM"), ["allium", *words], env)
            os._exit(99)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.write(self.fd, b"\n")
        self.shown = b""

    def read(self, until=None):
        """Until the end, or until a file is there."""
        end = time.monotonic() + SECONDS
        while not (until and os.path.exists(until)):
            check(time.monotonic() < end, "still not at its end after", self.shown)
            if not select.select([self.fd], [], [], 0.01)[0]:
                continue
            try:
                part = os.read(self.fd, 65536)
            except OSError:  # what a pty says when nobody has its other side any more
                part = b""
            if not part:
                break
            self.shown += part

    def read_some(self):
        """All that it has shown so far."""
        while select.select([self.fd], [], [], 0)[0]:
            self.shown += os.read(self.fd, 65536)
        return self.shown.decode(errors="replace")

    def press(self, keys):
        os.write(self.fd, keys.encode())

    def end(self):
        """(what it showed, its code or less than 0 for a signal)"""
        self.read()
        _, status = os.waitpid(self.pid, 0)
        os.close(self.fd)
        text = self.shown.decode().replace("\r\n", "\n")
        return text.split("\n", 1)[1] if text.startswith("\n") else text, os.waitstatus_to_exitcode(status)
