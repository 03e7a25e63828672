# SPDX-License-Identifier: BSD-2-Clause
"""Traces of allium, as babeltrace2 prints them, and the processes that are traced."""
import collections
import re
import subprocess

from tap import Skipped, check, equal

Event = collections.namedtuple("Event", "time name cpu process thread address size ns")
LINE = re.compile(r"^\[([\d.]+)\] .*allium:(\w+): \{ cpu_id = (\d+), vpid = (\d+).* vtid = (\d+) \}, "
                  r"\{ ptr = 0x([0-9A-F]+)(?:, size = (\d+))?")
LIFE = re.compile(r" allium:(process|thread|exec|module)_?\w*: ")
LIFE_MOST = 10  # in an image of caller.c
DISCARDED = re.compile(r"WARNING: Tracer (may have )?discarded (\d+ |)(events?|packets?)")


def events(folder, losses=False):
    """-> the events of the malloc family, in the order of time. Without `losses`, babeltrace2 may warn of nothing."""
    done = subprocess.run(["babeltrace2", "--clock-seconds", folder + "/ust"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    equal(done.returncode, 0, done.stderr[-1000:])
    for line in done.stderr.splitlines():
        check(losses and DISCARDED.search(line), line)
    found = []
    for line in done.stdout.splitlines():
        match = LINE.match(line)
        if match:
            time, name, cpu, process, thread, address, size = match.groups()
            found.append(Event(float(time), name, int(cpu), int(process), int(thread), int(address, 16),
                               int(size or 0), int(time.replace(".", ""))))
    return found


def life(folder):
    """-> how many events of the group `life` the trace has"""
    done = subprocess.run(["babeltrace2", folder + "/ust"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    equal(done.returncode, 0, done.stderr[-1000:])
    return sum(1 for _ in LIFE.finditer(done.stdout))


def needs_tsc():
    """Skips a test of times of the CPUs' counter if the kernel does not use it: then events have CLOCK_MONOTONIC."""
    with open("/sys/devices/system/clocksource/clocksource0/current_clocksource") as file:
        source = file.read().strip()
    if source != "tsc":
        raise Skipped("the kernel's clock source is %s, not tsc" % source)


def count(found, size, name="malloc"):
    return sum(e.size == size and e.name == name for e in found)


def said(text):
    """-> the events that the summary counts: those in the trace, those lost, those that came later."""
    first = re.search(r"allium: (\d+) events of (\d+) process.*, (\d+) lost\n", text)
    check(first, text)
    later = re.search(r"; (\d+) later events", text)
    return int(first.group(1)), int(first.group(3)), int(later.group(1)) if later else 0


def calls(text, folder):
    """The same, without the events of the group `life` that the trace has."""
    written, lost, later = said(text)
    return written - life(folder), lost, later


def check_all(found, calls_made):
    """`found` is the number of all events: those of the calls, and some of the group `life`."""
    check(calls_made <= found <= calls_made + LIFE_MOST, found, calls_made)
