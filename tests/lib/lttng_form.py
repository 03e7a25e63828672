# SPDX-License-Identifier: BSD-2-Clause
"""Traces in LTTng's form: their metadata and events, and what Trace Compass asks of them.

Trace Compass is no package of a distribution, so its rules are written down here, as its sources have them: which
names it looks for, which fields it reads from each event, and what it computes from them.
"""
import collections
import contextlib
import re
import subprocess

import bt2
from tap import check, equal

Event = collections.namedtuple("Event", "ns name cpu fields process thread procname")
DISCARDED = re.compile(r"WARNING: Tracer (may have )?discarded (\d+ |)(events?|packets?)")


def plain(field):
    if isinstance(field, bt2._StructureFieldConst):
        return {name: plain(value) for name, value in field.items()}
    if isinstance(field, bt2._EnumerationFieldConst):
        with contextlib.suppress(AssertionError):  # what bt2 2.0.4 does for a value without a label
            return int(field), sorted(field.labels)
        return int(field), []
    if isinstance(field, bt2._StringFieldConst):
        return str(field)
    if isinstance(field, bt2._ArrayFieldConst):
        return [plain(value) for value in field]
    return float(field) if isinstance(field, bt2._RealFieldConst) else int(field)


def messages(folder):
    return [m for m in bt2.TraceCollectionMessageIterator(folder) if type(m) is bt2._EventMessageConst]


def events(folder):
    """-> [Event] in the order of time, of a trace in LTTng's form"""
    found = []
    for message in messages(folder):
        event = message.event
        context = plain(event.common_context_field)
        found.append(Event(message.default_clock_snapshot.ns_from_origin, event.name,
                           int(event.packet.context_field["cpu_id"]), plain(event.payload_field), context["vpid"],
                           context["vtid"], context["procname"]))
    return found


def warnings(folder, *more):
    """What babeltrace2 says beside discarded events; -> the number of events that it prints"""
    done = subprocess.run(["babeltrace2", folder, *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    equal(done.returncode, 0, done.stderr[-1000:])
    for line in done.stderr.decode().splitlines():
        check(DISCARDED.search(line), line)
    return done.stdout.count(b"\n")


class Metadata:
    """The text: `env`, and for each event its fields as they are written."""

    def __init__(self, folder):
        with open(folder + "/metadata", "rb") as file:
            raw = file.read()
        if raw.startswith(b"/* CTF 1.8"):
            self.text = raw.decode()
        else:
            self.text = subprocess.run(["babeltrace2", "-o", "ctf-metadata", folder], stdout=subprocess.PIPE,
                                       check=True).stdout.decode()
        env = re.search(r"^env \{\n(.*?)^\};", self.text, re.M | re.S).group(1)
        self.env = dict(re.findall(r"^\t(\w+) = (.*);$", env, re.M))
        self.events = {}
        for name, body in re.findall(r'^event \{\n\tname = "([^"]*)";\n(.*?)^\};', self.text, re.M | re.S):
            fields = re.search(r"fields := struct \{\n(.*?)^\t\};", body, re.M | re.S).group(1)
            self.events[name] = re.sub(r"\s+", " ", fields).strip()

    def block(self, begin):
        """-> the text from there to the line that closes it"""
        return re.search(r"^%s.*?^\}[^\n]*;$" % re.escape(begin), self.text, re.M | re.S).group(0)

    def has(self, event, *fields):
        check(event in self.events, "no event " + event)
        for field in fields:
            check(re.search(r" _%s(\[\d+\])?;" % field, self.events[event]), event, "has no", field)


# ---- Trace Compass ----

LIBC = {"malloc": ("ptr", "size"), "free": ("ptr",), "calloc": ("nmemb", "size", "ptr"),
        "realloc": ("ptr", "in_ptr", "size"), "memalign": ("ptr", "size"), "posix_memalign": ("out_ptr", "size")}


def compass_is_ust(folder):
    """It takes a trace for LTTng-UST's by env.domain; names of events depend on the tracer's version, and from 2.8 on
    those of the libc wrapper begin with lttng_ust_libc. The view of memory is there if all six are declared."""
    metadata = Metadata(folder)
    equal((metadata.env["domain"], metadata.env["tracer_name"]), ('"ust"', '"lttng-ust"'), "trace type")
    check((int(metadata.env["tracer_major"]), int(metadata.env["tracer_minor"])) >= (2, 8), metadata.env)
    for name, fields in LIBC.items():
        metadata.has("lttng_ust_libc:" + name, *fields)
    for name in "_vpid", "_vtid", "_procname":
        check(re.search(r"event\.context := struct \{[^}]*(\}[^}]*)* %s\b" % name, metadata.block("stream")), name)
    return metadata


def compass_memory(found):
    """-> {thread: bytes} and {thread: name}: the state of the view of memory after the last event. A block belongs to
    the thread that an event names: a free by another thread counts there. Of a realloc the two addresses are taken for
    each other. The name is that of the thread's first event."""
    blocks, memory, names = {}, collections.Counter(), {}

    def take(event, address, size):
        change = size
        if size:
            blocks[address] = size
        else:
            if address not in blocks:
                return
            change = -blocks.pop(address)
        names.setdefault(event.thread, event.procname)
        memory[event.thread] += change

    for event in found:
        kind, f = event.name.rpartition(":")[2], event.fields
        if not event.name.startswith("lttng_ust_libc:") or not f.get("out_ptr", f.get("ptr")):
            continue
        if kind == "free":
            take(event, f["ptr"], 0)
        elif kind == "realloc":
            take(event, f["ptr"], 0)
            take(event, f["in_ptr"], f["size"])
        else:
            take(event, f.get("out_ptr", f.get("ptr")), f["size"] * f.get("nmemb", 1))
    return memory, names


def compass_is_kernel(folder):
    """env.domain again; from lttng-modules 2.6 on system calls begin with syscall_entry_ and syscall_exit_, from 2.7 on
    pages with kmem_."""
    metadata = Metadata(folder)
    equal((metadata.env["domain"], metadata.env["tracer_name"]), ('"kernel"', '"lttng-modules"'), "trace type")
    check((int(metadata.env["tracer_major"]), int(metadata.env["tracer_minor"])) >= (2, 7), metadata.env)
    check("uint32_t cpu_id;" in metadata.block("struct packet_context"), "cpu_id")
    metadata.has("sched_switch", "prev_tid", "prev_state", "next_comm", "next_tid", "next_prio")
    metadata.has("sched_wakeup", "tid", "prio", "target_cpu")
    metadata.has("sched_process_fork", "parent_tid", "child_tid", "child_comm", "child_pid")
    metadata.has("sched_process_exit", "tid")
    metadata.has("kmem_mm_page_alloc", "order")
    metadata.has("kmem_mm_page_free", "order")
    return metadata


def compass_threads(found):
    """-> {thread: {state: ns}} and {CPU: {thread: ns}}, as the views of control flow and resources draw them"""
    state, since, current, call = {}, {}, {}, {}
    threads = collections.defaultdict(collections.Counter)
    cpus = collections.defaultdict(collections.Counter)
    took = {}

    def enter(ns, thread, to):
        if thread in state:
            threads[thread][state[thread]] += ns - since[thread]
        state[thread], since[thread] = to, ns

    for event in found:
        f, running = event.fields, current.get(event.cpu)
        if event.name == "sched_switch":
            if event.cpu in took:
                cpus[event.cpu][running] += event.ns - took[event.cpu]
            current[event.cpu], took[event.cpu] = f["next_tid"], event.ns
            waits = f["prev_state"] & 1023
            enter(event.ns, f["prev_tid"], "wait for CPU" if not waits else "blocked" if waits & 3 else "other")
            enter(event.ns, f["next_tid"], "system call" if call.get(f["next_tid"]) else "user")
        elif event.name == "sched_wakeup" and state.get(f["tid"]) not in ("user", "system call"):
            enter(event.ns, f["tid"], "wait for CPU")
        elif event.name == "sched_process_fork":
            enter(event.ns, f["child_tid"], "wait for CPU")
        elif event.name.startswith("syscall_entry_") and running is not None:
            call[running] = event.name[14:]
            enter(event.ns, running, "system call")
        elif event.name.startswith("syscall_exit_") and running is not None:
            call.pop(running, None)
            enter(event.ns, running, "user")
    return threads, cpus
