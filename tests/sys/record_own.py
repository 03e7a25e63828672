# SPDX-License-Identifier: BSD-2-Clause
"""What the reader's own thread does while `allium sys record` runs, and what interrupts do over it: against a naive
reader of the same events (kept pages). Also with a load that allocates in softirqs, on the reader's CPU.
"""
import glob
import json
import os
import re
import signal
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
import lib
import tap
from lib import built, check, equal
from traces import CONTEXT, PAGE, Repeats, allium, records

SOFTIRQ = 0x10
ECHOES = 20000

# In a network of its own: echo requests from this CPU, which the kernel answers in softirqs of the other one.
PINGS = """
import os, socket, struct, subprocess, sys, time
mask, own, folder, count = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
subprocess.run(["mount", "-t", "sysfs", "none", folder], check=True)
with open(folder + "/class/net/lo/queues/rx-0/rps_cpus", "w") as file:
    file.write(mask)
os.sched_setaffinity(0, {own})
up = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
import fcntl
fcntl.ioctl(up, 0x8914, struct.pack("16sH14x", b"lo", 0x1 | 0x8 | 0x40)) # SIOCSIFFLAGS: up, loopback, running
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
body = struct.pack("!BBHHH", 8, 0, 0, 1, 1) + b"x" * 56
total = sum(struct.unpack("!32H", body))
total = (total >> 16) + (total & 0xffff)
packet = body[:2] + struct.pack("!H", ~(total + (total >> 16)) & 0xffff) + body[4:]
def answered():
    with open("/proc/net/snmp") as file:
        names, values = [line.split()[1:] for line in file if line.startswith("Icmp:")]
    return int(dict(zip(names, values))["OutEchoReps"])
print("ready", flush=True)
sys.stdin.readline()
sent = 0
while sent < count:
    for _ in range(50):
        sent += 1
        raw.sendto(packet, ("127.0.0.1", 0))
    end = time.monotonic() + 5
    while answered() < sent and time.monotonic() < end: # so that none is dropped
        pass
print(answered(), flush=True)
"""


def field(text, name):
    return int(re.search(r" %s;\toffset:(\d+);" % name, text)[1])


def naive(raw):
    """-> [(pid, flags, allocated bytes; None: a free)] of the events of objects in the pages"""
    formats, texts, found, repeats = {}, {}, [], Repeats()
    for path in glob.glob(raw + "/events/kmem/k*/format"):
        with open(path) as file:
            text = file.read()
        at = field(text, "ptr"), field(text, "bytes_alloc") if "bytes_alloc;" in text else None
        formats[int(re.search(r"^ID: (\d+)", text, re.M)[1])] = at
        texts[int(re.search(r"^ID: (\d+)", text, re.M)[1])] = text
    for path in glob.glob(raw + "/per_cpu/*/trace_pipe_raw"):
        with open(path, "rb") as file:
            data = file.read()
        for begin in range(0, len(data), PAGE):
            page = data[begin:begin + PAGE]
            for record, _ in records(page):
                kind, flags, _, pid = struct.unpack_from("<HBBi", page, record)
                address, size = formats.get(kind, (None, None))
                if address is None or repeats.first_of_record(path, page, record, texts[kind]):
                    continue
                if struct.unpack_from("<Q", page, record + address)[0] <= 16:
                    continue
                found.append((pid, flags & CONTEXT,
                              None if size is None else struct.unpack_from("<Q", page, record + size)[0]))
    return found


def sums(rows):
    return len(rows), sum(rows)


def asked(path, where):
    row, = json.loads(allium("sql", "--json", path, "SELECT coalesce(sum(allocations), 0) AS n, "
                             "coalesce(sum(allocated_bytes), 0) AS bytes FROM sys_kmem WHERE " + where).stdout)["rows"]
    return row["n"], row["bytes"]


class Recorder:
    """One on the given CPU."""

    def __init__(self, folder, cpu):
        self.raw, self.path = folder + "/raw", folder + "/r.allium"
        command = ["taskset", "-c", str(cpu), built("ALLIUM"), "sys", "record", "--events", "slab", "--buffer", "64M"]
        self.process = subprocess.Popen([*command, "--settle", "0s", "--raw", self.raw, "-o", self.path],
                                        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        check(b": ready: " in self.process.stderr.readline(), "it did not get ready")

    def end(self):
        self.process.send_signal(signal.SIGINT)
        said = self.process.communicate(timeout=tap.TIMEOUT)[1].decode()
        check("lost       nothing" in said, said)
        with open(self.raw + "/allium") as file:
            return int(re.search(r"^own_tid (\d+)", file.read(), re.M)[1])

    def abandon(self):
        self.process.kill()
        self.process.wait()


def check_rows(path, own, events):
    """The row of allium itself has the allocations of its thread and no others; those of interrupts are in theirs."""
    ours = [size for pid, context, size in events if size is not None and pid == own and not context]
    interrupts = [size for _, context, size in events if size is not None and context]
    everything = [size for *_, size in events if size is not None]
    check(ours, "the reader allocates nothing")
    equal(asked(path, "call_site = 'allium itself'"), sums(ours), "allium itself")
    equal(asked(path, "comm = '[interrupt]'"), sums(interrupts), "interrupts")
    equal(asked(path, "1"), sums(everything), "everything")


def own():
    """The reader, busy with another program's events."""
    with tap.private_dir() as folder:
        recorder = Recorder(folder, min(os.sched_getaffinity(0)))
        try:
            code = "import os\nfor _ in range(20000): os.close(os.open('/dev/null', os.O_RDONLY))"
            subprocess.run([sys.executable, "-S", "-c", code], check=True)
            tid = recorder.end()
        finally:
            recorder.abandon()
        check_rows(recorder.path, tid, naive(recorder.raw))


def softirqs():
    """Each echo is answered in a softirq, with allocations that no one else makes; many come over the reader."""
    cpus = sorted(os.sched_getaffinity(0))
    reader, sender = cpus[0], cpus[-1]
    with tap.private_dir() as folder:
        os.mkdir(folder + "/sys")
        words = "%x" % (1 << reader), str(sender), folder + "/sys", str(ECHOES)
        load = subprocess.Popen(["unshare", "--net", "--mount", sys.executable, "-S", "-c", PINGS, *words],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        recorder = None
        try:
            equal(load.stdout.readline(), b"ready\n", "the load")
            recorder = Recorder(folder, reader)
            load.stdin.write(b"\n")
            load.stdin.flush()
            answered = int(load.stdout.readline())
            load.wait(tap.TIMEOUT)
            tid = recorder.end()
        finally:
            load.kill()
            load.wait()
            if recorder:
                recorder.abandon()
        events = naive(recorder.raw)
        equal(answered, ECHOES, "echoes that were answered")
        check_rows(recorder.path, tid, events)
        over = [size for pid, context, size in events if pid == tid and context & SOFTIRQ and size is not None]
        check(sender == reader or len(over) > 20, "allocations in softirqs over the reader:", len(over))
        print("# %d allocations in softirqs over the reader" % len(over))
        # an answer has a struct sk_buff and its data
        n, _ = asked(recorder.path, "comm = '[interrupt]' AND call_site LIKE '%skb%'")
        check(n >= ECHOES, "allocations for answers", n)


lib.main([
    ("allocations by the reader's own thread are one row, and no others are in it", own),
    ("allocations in softirqs over the reader are not lost, and not its own", softirqs),
])
