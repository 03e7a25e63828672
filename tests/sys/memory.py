# SPDX-License-Identifier: BSD-2-Clause
"""What the tests of page faults share: memory of some kinds, another program that has faults, and an older kernel."""
import contextlib
import os
import tempfile

import lib
from lib import equal, toucher


@contextlib.contextmanager
def load():
    """Another program that has page faults all the time."""
    with toucher() as other:
        other.begin("churn")
        yield


@contextlib.contextmanager
def file_of(pages):
    with tempfile.NamedTemporaryFile(dir="/var/tmp") as file:  # a disk's, not a tmpfs
        file.write(os.urandom(4096) * pages)
        file.flush()
        os.fsync(file.fileno())
        yield file.name


@contextlib.contextmanager
def before_6_1():
    """The kernel's BTF, but for the tree of mappings: as older kernels have it. -> what a command begins with that sees
    it.
    """
    with open("/sys/kernel/btf/vmlinux", "rb") as file:
        btf = file.read()
    equal(btf.count(b"\0mm_mt\0"), 1, "members of that name")
    with lib.tap.private_dir() as folder:
        with open(folder + "/btf", "wb") as file:
            file.write(btf.replace(b"\0mm_mt\0", b"\0mm_rb\0"))
        yield ["unshare", "-m", "sh", "-c", 'mount --bind %s/btf /sys/kernel/btf/vmlinux && exec "$@"' % folder, "sh"]
