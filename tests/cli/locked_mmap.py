# SPDX-License-Identifier: BSD-2-Clause
"""A process that hangs with its memory map locked: it maps something over a dirty page of a file system that never
takes it.

Run as a program (under unshare -m, as root, with a directory) it is that file system, in FUSE's protocol by hand, and
starts the process. It prints the process's id once the kernel waits for the write. Its end, also by SIGKILL, ends the
file system, and that lets the process go.
"""
import ctypes
import os
import struct
import subprocess
import sys

LOOKUP, FORGET, GETATTR, OPEN, READ, WRITE, INIT = 1, 2, 3, 14, 15, 16, 26
FILE_NODE = 2
ENOSYS = 38

VICTIM = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
fd = os.open(sys.argv[1], os.O_RDWR)
at = libc.mmap(None, 4096, 3, 1, fd, 0)  # shared, to read and write
ctypes.memset(at, 1, 1)
libc.mmap(at, 4096, 1, 0x32, -1, 0)  # fixed, private, anonymous: the kernel writes the page back first, with the map locked
sys.stdin.read()
"""


def attributes(node):
    size, mode = (4096, 0o100644) if node == FILE_NODE else (0, 0o040755)
    return struct.pack("<6Q10I", node, size, 8, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def answer(opcode, node):
    """The body of the reply, or an error number."""
    if opcode == INIT:
        return struct.pack("<4I2H2I2H7I4x", 7, 31, 0, 0, 0, 0, 4096, 1, 1, 0, *[0] * 7)[:64]
    if opcode == LOOKUP:
        return struct.pack("<4Q2I", FILE_NODE, 0, 9999, 9999, 0, 0) + attributes(FILE_NODE)
    if opcode == GETATTR:
        return struct.pack("<Q2I", 9999, 0, 0) + attributes(node)
    if opcode == OPEN:
        return struct.pack("<Q2I", 1, 0, 0)
    if opcode == READ:
        return bytes(4096)
    return -ENOSYS


def serve(folder):
    fuse = os.open("/dev/fuse", os.O_RDWR)
    options = b"fd=%d,rootmode=40000,user_id=0,group_id=0" % fuse
    assert not ctypes.CDLL(None).mount(b"stuck", folder.encode(), b"fuse", 0, options), "mount"
    victim = None
    while True:
        request = os.read(fuse, 1 << 17)
        _, opcode, unique, node = struct.unpack_from("<2I2Q", request)
        if opcode == WRITE:
            print(victim.pid, flush=True)
        elif opcode != FORGET:
            reply = answer(opcode, node)
            error, body = (reply, b"") if isinstance(reply, int) else (0, reply)
            os.write(fuse, struct.pack("<IiQ", 16 + len(body), error, unique) + body)
        if not victim:
            victim = subprocess.Popen([sys.executable, "-c", VICTIM, folder + "/file"], stdin=subprocess.PIPE)


if __name__ == "__main__":
    serve(sys.argv[1])
