# SPDX-License-Identifier: BSD-2-Clause
"""What else does the work of each tool of `allium sys`: the original of bcc or bpftrace, a one-liner of bpftrace, perf
record, ftrace's ring. And work that makes a tool's events, with what one of them takes.
"""
import contextlib
import mmap
import os
import shutil
import subprocess
import tempfile
import time

import kernel_ways

NOBODY = "nobody-has-this"
FAULTS = ("faults", "ffaults")
SLAB = ("kmem:kmalloc", "kmem:kmem_cache_alloc", "kmem:kfree", "kmem:kmem_cache_free")
STALLS = ("vmscan:mm_vmscan_direct_reclaim", "vmscan:mm_vmscan_memcg_reclaim")
RECLAIM = (*(stall + end for stall in STALLS for end in ("_begin", "_end")), "vmscan:mm_shrink_slab_start",
           "vmscan:mm_shrink_slab_end", "vmscan:mm_vmscan_lru_isolate", "vmscan:mm_vmscan_lru_shrink_inactive")


def each(events, action):
    return [("tracepoint:" + event, action) for event in events]


def timed(stalls, key):
    """How long each took, summed up."""
    return [
        probe for stall in stalls
        for probe in (("tracepoint:%s_begin" % stall, "@began[tid] = nsecs;"),
                      ("tracepoint:%s_end" % stall,
                       "if (@began[tid]) { @ns[%s] = sum(nsecs - @began[tid]); delete(@began[tid]); }" % key))
    ]


MAPS = tuple("syscalls:sys_enter_" + call for call in ("mmap", "munmap", "mremap", "mprotect", "madvise"))
SHM = tuple("syscalls:sys_enter_" + call for call in ("shmget", "shmat", "shmdt", "shmctl"))

# Of hfaults and swapin there is none: their originals take kprobes, and no tracepoint tells of their events.
ONE_LINERS = {
    "brkstack": each(("syscalls:sys_enter_brk",), "@[ustack, comm] = count();"),
    "drsnoop": timed(STALLS, "pid, comm"),
    **dict.fromkeys(FAULTS, [("software:page-faults:1", "@[pid, comm] = count();")]),
    "kmem": each(SLAB[:2], "@calls[args->call_site] = count(); @bytes[args->call_site] = sum(args->bytes_alloc);") +
            each(SLAB[2:], "@calls[args->call_site] = count();"),
    "kpages": each(("kmem:mm_page_alloc", "kmem:mm_page_free"), "@[kstack] = sum(1 << args->order);"),
    "memleak": each(SLAB[:2], "@live[args->ptr] = (args->call_site, args->bytes_alloc, nsecs);") +
               each(SLAB[2:], "delete(@live[args->ptr]);"),
    "mmapsnoop": each(MAPS, "printf(\"%d %s %s\\n\", pid, comm, probe);"),
    "numamove": [("tracepoint:migrate:mm_migrate_pages_start", "@began[tid] = nsecs;"),
                 ("tracepoint:migrate:mm_migrate_pages",
                  "@pages[pid, args->reason] = sum(args->succeeded); "
                  "if (@began[tid]) { @ns[pid] = sum(nsecs - @began[tid]); delete(@began[tid]); }")],
    "oomkill": [("tracepoint:oom:mark_victim", "printf(\"%d\\n\", args->pid);")],
    "shmsnoop": each(SHM, "printf(\"%d %s %s\\n\", pid, comm, probe);"),
    "slabratetop": each(("kmem:kmem_cache_alloc",), "@[str(args->name)] = count();"),
    "vmscan": timed(STALLS, "probe") + each(RECLAIM[-2:], "@pages[probe] = count();"),
}
EVENTS = {
    "brkstack": ("syscalls:sys_enter_brk",), "mmapsnoop": MAPS, "shmsnoop": SHM,
    "drsnoop": RECLAIM[:4], **dict.fromkeys(FAULTS, ("exceptions:page_fault_user",)), "kmem": SLAB,
    "kpages": ("kmem:mm_page_alloc", "kmem:mm_page_free"), "memleak": SLAB,
    "numamove": ("migrate:mm_migrate_pages_start", "migrate:mm_migrate_pages"), "oomkill": ("oom:mark_victim",),
    "slabratetop": SLAB, "vmscan": RECLAIM,
}
ORIGINALS = {
    "drsnoop": ["drsnoop-bpfcc"], "kmem": ["memleak-bpfcc"], "memleak": ["memleak-bpfcc"], "oomkill": ["oomkill-bpfcc"],
    "shmsnoop": ["shmsnoop-bpfcc"], "slabratetop": ["slabratetop-bpfcc", "-C"],
}


def one_liner(tool, filtered=False):
    where = ' /comm == "%s"/' % NOBODY if filtered else ""
    return kernel_ways.bpftrace(" ".join("%s%s { %s }" % (probe, where, action) for probe, action in ONE_LINERS[tool]))


def original(tool):
    """The way to run it, or why there is none here."""
    command = ORIGINALS.get(tool)
    if not command:
        return None, "it has none"
    if not shutil.which(command[0]):
        return None, "%s is not installed" % command[0]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    os.set_blocking(process.stdout.fileno(), False)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(20)
    text = process.stdout.read() or b""
    if process.poll() is None:
        process.send_signal(2)
        process.communicate()
        return lambda: kernel_ways.beside(["stdbuf", "-oL", *command], b"", "stdout"), None
    process.stdout.close()
    return None, "%s: %s" % (command[0],
                             text.decode(errors="replace").strip().splitlines()[-1] if text.strip() else "it ended")


def started(tool):
    """{name: way} of those of which it can be told when they are ready; and what is not there, in words."""
    ways, absent = {}, []
    way, why = original(tool)
    if way:
        ways[ORIGINALS[tool][0]] = way
    else:
        absent.append("original: " + why)
    if not shutil.which("bpftrace"):
        absent.append("bpftrace is not installed")
    elif tool in ONE_LINERS:
        ways["bpftrace"] = one_liner(tool)
    return ways, absent


def weighed(tool):
    """{name: way} of those that are attached to what the tool is attached to."""
    words = [word for event in EVENTS[tool]
             for word in ("-e", event)] if tool not in FAULTS else ["-e", "page-faults", "-c", "1"]
    ways = {"ftrace": kernel_ways.ftrace(*(event.replace(":", "/") for event in EVENTS[tool]))}
    if shutil.which("bpftrace"):
        ways["bpftrace"] = one_liner(tool)
    if shutil.which("perf"):
        ways["perf record"] = kernel_ways.perf(*words)
    return ways


def idle(tool):
    """{name: way} of those that see nothing, as nobody has the name they ask for."""
    ways = {"bpftrace": one_liner(tool, True)} if shutil.which("bpftrace") and tool in ONE_LINERS else {}
    if shutil.which("perf") and tool in ONE_LINERS and tool not in FAULTS:  # of software events it takes no filter
        words = [word for event in EVENTS[tool] for word in ("-e", event, "--filter", "common_pid == 4194304")]
        ways["perf record"] = kernel_ways.perf(*words)
    return ways


@contextlib.contextmanager
def reclaiming(mib=64, limit_mib=16):
    """A function that reads a file which does not fit its memory cgroup."""
    root = "/sys/fs/cgroup/memory" if os.path.exists("/sys/fs/cgroup/memory/cgroup.procs") else "/sys/fs/cgroup"
    group = tempfile.mkdtemp(prefix="allium-bench-", dir=root)
    try:
        limit = "memory.limit_in_bytes" if root.endswith("/memory") else "memory.max"
        with open(os.path.join(group, limit), "w") as file:
            file.write(str(limit_mib << 20))
        with tempfile.NamedTemporaryFile(dir="/var/tmp") as sparse:
            sparse.truncate(mib << 20)
            command = ["sh", "-c", "echo $$ >%s/cgroup.procs && exec cat %s" % (group, sparse.name)]
            yield lambda: subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    finally:
        for _ in range(100):
            with contextlib.suppress(OSError):
                os.rmdir(group)
                break
            time.sleep(0.1)


def anonymous(mib):
    return mmap.mmap(-1, mib << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


@contextlib.contextmanager
def touching_huge(mib=256):
    """A function that touches memory in huge pages."""
    def work():
        with anonymous(mib) as memory:
            memory.madvise(mmap.MADV_HUGEPAGE)
            for at in range(0, mib << 20, 2 << 20):
                memory[at] = 1

    yield work


@contextlib.contextmanager
def swapping(mib=32):
    """A function that has its memory swapped out, to a file, and reads it again."""
    def work():
        with anonymous(mib) as memory:
            memory.madvise(mmap.MADV_NOHUGEPAGE)
            for at in range(0, mib << 20, 4096):
                memory[at] = 1
            memory.madvise(21)  # MADV_PAGEOUT
            sum(memory[at] for at in range(0, mib << 20, 4096))

    with tempfile.NamedTemporaryFile(dir="/var/tmp") as file:
        file.write(bytes(2 * mib << 20))
        file.flush()
        os.chmod(file.name, 0o600)
        subprocess.run(["mkswap", file.name], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["swapon", file.name], check=True)
        try:
            yield work
        finally:
            subprocess.run(["swapoff", file.name], check=True)


@contextlib.contextmanager
def compacting():
    """A function that has the kernel compact all memory, of which a file takes some first."""
    def work():
        with tempfile.TemporaryFile(dir="/dev/shm") as file:
            file.write(bytes(16 << 20))
            with open("/proc/sys/vm/compact_memory", "w") as switch:
                switch.write("1")

    yield work
