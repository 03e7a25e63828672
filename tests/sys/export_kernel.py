# SPDX-License-Identifier: BSD-2-Clause
"""`allium export --ctf` of the kernel's events: each one as babeltrace2 reads it from the trace, by LTTng's names and
fields; and what Trace Compass asks for, and computes, of a program whose steps are known.
"""
import collections
import os
import sys

sys.dont_write_bytecode = True
import lib
import tap
from lttng_form import compass_is_kernel, compass_threads, events, messages, plain, warnings
from tap import built, check, equal, private_dir, succeed

ALLIUM = built("ALLIUM")
SLEEPS, SLEEP_NS, PAGES = 50, 2000000, 500
PROGRAM = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
    char *pages = mmap(NULL, 4096 * %(PAGES)d, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(pages, 4096 * %(PAGES)d, MADV_NOHUGEPAGE);
    for (int i = 0; i < %(PAGES)d; i++)
        ((volatile char *)pages)[4096 * i] = 1;
    mprotect(pages, 4096, PROT_READ);
    pages = mremap(pages, 4096 * 10, 4096 * 20, MREMAP_MAYMOVE);
    munmap(pages, 8192);
    munmap((void *)1, 4096);
    for (int i = 0; i < %(SLEEPS)d; i++)
        usleep(%(SLEEP_NS)d / 1000);
    if (!fork())
        _exit(0);
    wait(NULL);
    return 0;
}
""" % globals()
# By the name of an event of allium: LTTng's, and its fields from those of allium.
PLAIN = {
    "sched_switch": ("sched_switch", lambda f, e: {
        "prev_comm": f["comm"], "prev_tid": e.thread, "prev_prio": f["prio"], "prev_state": f["state"],
        "next_comm": f["next_comm"], "next_tid": f["next_tid"], "next_prio": f["next_prio"]}),
    "sched_wakeup": ("sched_wakeup", lambda f, e: {
        "comm": f["woken_comm"], "tid": f["woken_tid"], "prio": f["woken_prio"], "target_cpu": f["target_cpu"]}),
    "process_fork": ("sched_process_fork", lambda f, e: {
        "parent_comm": e.name, "parent_tid": e.thread, "parent_pid": f["pid"], "child_comm": e.name,
        "child_tid": f["child_pid"], "child_pid": f["child_pid"]}),
    "process_exec": ("sched_process_exec", lambda f, e: {"filename": f["comm"], "tid": e.thread}),
    "thread_exit": ("sched_process_exit", lambda f, e: {"comm": f["comm"], "tid": e.thread, "prio": f["prio"]}),
    "kmalloc": ("kmem_kmalloc", lambda f, e: slab(f)), "cache_alloc": ("kmem_cache_alloc", lambda f, e: slab(f)),
    "kfree": ("kmem_kfree", lambda f, e: {"call_site": f["call_site"], "ptr": f["ptr"]}),
    "cache_free": ("kmem_cache_free", lambda f, e: {
        "call_site": f["call_site"], "ptr": f["ptr"], "name": f["cache"]}),
    "page_alloc": ("kmem_mm_page_alloc", lambda f, e: {
        "pfn": f["pfn"], "order": f["order"], "gfp_flags": f["gfp"], "migratetype": f["migratetype"]}),
    "page_free": ("kmem_mm_page_free", lambda f, e: {"pfn": f["pfn"], "order": f["order"]}),
}
CALLS = {
    "brk": lambda f: {"brk": f["asked"]},
    "mmap": lambda f: {"addr": f["address"], "len": f["length"], "prot": f["prot"], "flags": f["flags"], "fd": f["fd"],
                       "offset": f["offset"]},
    "munmap": lambda f: {"addr": f["address"], "len": f["length"]},
    "mremap": lambda f: {"addr": f["address"], "old_len": f["old_length"], "new_len": f["length"], "flags": f["flags"],
                         "new_addr": f["wanted"]},
    "madvise": lambda f: {"start": f["address"], "len_in": f["length"], "behavior": f["advice"]},
    "mprotect": lambda f: {"start": f["address"], "len": f["length"], "prot": f["prot"]},
}
FAULT_MODES = {0: "user", 1: "kernel"}
At = collections.namedtuple("At", "thread name")


def slab(f):
    return {"call_site": f["call_site"], "ptr": f["ptr"], "bytes_req": f["requested"], "bytes_alloc": f["allocated"],
            "gfp_flags": f["gfp"]}


def number(value):
    """An enumeration of allium is (number, labels)."""
    return value[0] if isinstance(value, tuple) else value


def expected(trace):
    """-> [(ns, name, CPU, process, thread, fields)] that the kernel's events of a trace of allium become"""
    out, begun, names = [], {}, {}
    for message in messages(trace + "/kernel"):
        event = message.event
        kept = plain(event.payload_field)
        f = {key: number(value) for key, value in kept.items()}
        kind, thread = event.name.partition(":")[2], int(event.common_context_field["vtid"])
        names[thread] = f.get("comm", names.get(thread))
        if "next_comm" in f:
            names[f["next_tid"]] = f["next_comm"]
        name, fields = event.name, kept
        if kind in PLAIN:
            name, to = PLAIN[kind]
            fields = to(f, At(thread, names[thread]))
        elif kind == "page_fault_begin":
            name = "x86_exceptions_page_fault_" + FAULT_MODES[f["mode"]]
            code = (0 if f["mode"] else 4) | {0: 0, 1: 2, 2: 16}[f["access"]]
            fields = {"address": f["address"], "ip": f["ip"], "error_code": code}
        elif kind == "map_begin":
            name, fields = "syscall_entry_" + kept["call"][1][0], {}
            begun[thread] = fields
        elif kind in CALLS:
            begun.pop(thread, {}).update(CALLS[kind](f))
            name = "syscall_exit_" + kind
            result = f["result"]
            fields = {"ret": result & (2**64 - 1) if kind == "mmap" else result - 2**64 if result >= 2**63 else result}
        out.append([message.default_clock_snapshot.ns_from_origin, name, int(event.packet.context_field["cpu_id"]),
                    f["pid"], thread, fields])
    return out


def recorded(folder, groups):
    with open(folder + "/steps.c", "w") as file:
        file.write(PROGRAM)
    succeed(["cc", "-O1", "-w", folder + "/steps.c", "-o", folder + "/steps"])
    done = succeed([ALLIUM, "trace", "-o", folder + "/t", "--kernel", groups, "--", folder + "/steps"])
    check(b"events of the kernel, 0 lost" in done.stderr, done.stderr)
    succeed([ALLIUM, "export", folder + "/t", "--ctf", "-o", folder + "/l"])
    return folder + "/t", folder + "/l"


def each():
    with private_dir() as folder:
        trace, out = recorded(folder, "kmem,pages,faults,maps,rss,sched,reclaim,oom")
        found, want = events(out + "/kernel"), expected(trace)
        have = sorted(repr((e.ns, e.name, e.cpu, e.process, e.thread, sorted(e.fields.items()))) for e in found)
        for one, other in zip(have, sorted(repr((*row[:5], sorted(row[5].items()))) for row in want)):
            equal(one, other, "an event")
        equal(len(found), len(want), "events")
        equal(warnings(out + "/kernel"), len(found), "events that babeltrace2 prints")
        # the program's and the kernel's are in one order, as in the trace itself
        equal(warnings(out), warnings(trace), "events of both")
        check({"syscall_entry_mmap", "syscall_exit_mremap", "x86_exceptions_page_fault_user", "kmem_mm_page_alloc",
               "sched_process_fork", "kernel:rss"} <= {e.name for e in found}, "kinds")
        failed = [e.fields["ret"] for e in found if e.name == "syscall_exit_munmap"]
        check(-22 in failed, "the result of a call that fails", failed)


def compass():
    """The state of each thread over time: it sleeps as long as the program does, and it ends."""
    with private_dir() as folder:
        trace, out = recorded(folder, "sched,maps,pages")
        compass_is_kernel(out + "/kernel")
        found = events(out + "/kernel")
        main = next(e for e in found if e.name == "sched_process_exec" and e.fields["filename"] == "steps").thread
        threads, cpus = compass_threads(found)
        slept = threads[main]["blocked"]
        check(SLEEPS * SLEEP_NS <= slept, "time that it is blocked", slept)
        check(all(threads[main][state] > 0 for state in ("user", "system call", "wait for CPU")), threads[main])
        check(any(of[main] for of in cpus.values()), "a CPU on which it runs")
        children = [e.fields["child_tid"] for e in found if e.name == "sched_process_fork"]
        check(any(child in threads for child in children), "the child")
        equal({e.procname for e in found if e.thread == main and e.ns > found[-1].ns - 10**8}, {"steps"}, "name")


lib.main([
    ("each event of the kernel by LTTng's name, with its fields", each),
    ("what Trace Compass asks for, and what it computes", compass),
])
