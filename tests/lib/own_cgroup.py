# SPDX-License-Identifier: BSD-2-Clause
"""Memory cgroups of our own, below the one that the tests run in."""
import contextlib
import os

import tap


def find():
    """Directory of the memory group that this process is in, and whether it is version 2."""
    with open("/proc/self/cgroup") as file:
        lines = [line.rstrip("\n").split(":", 2) for line in file]
    for number, controllers, path in lines:
        if "memory" in controllers.split(","):
            return "/sys/fs/cgroup/memory" + path, False
    return "/sys/fs/cgroup" + [path for number, _, path in lines if number == "0"][0], True


def removed(folder):
    """A group whose process has just ended is busy for a moment."""
    with contextlib.suppress(OSError):
        os.rmdir(folder)
    return not os.path.exists(folder)


@contextlib.contextmanager
def limited(limit_bytes):
    """A child of our memory cgroup with a limit; it goes in any case."""
    parent, v2 = find()
    folder = "%s/allium-test-%d" % (parent.rstrip("/"), os.getpid())
    os.mkdir(folder)
    try:
        with open(folder + ("/memory.max" if v2 else "/memory.limit_in_bytes"), "w") as file:
            file.write(str(limit_bytes))
        tap.keep_from_swap(folder)
        yield folder
    finally:
        tap.wait_until(lambda: removed(folder), 30, "rmdir " + folder)
