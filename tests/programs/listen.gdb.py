# SPDX-License-Identifier: BSD-2-Clause
"""Run by gdb: lets a program run, or one that runs go on, and notes each hit of the agent's probes in $LISTEN_TO.

A line is the probe's name and its arguments. $LISTEN_FOR names the probes, each with the number of its arguments.
"""
import os

import gdb

heard = open(os.environ["LISTEN_TO"], "w", buffering=1)


class Probe(gdb.Breakpoint):
    def __init__(self, name, count):
        super().__init__("-probe-stap " + name, internal=True)
        self.name, self.count = name, count

    def stop(self):
        values = [int(gdb.parse_and_eval("(unsigned long)$_probe_arg%d" % k)) for k in range(self.count)]
        heard.write(" ".join([self.name, *map(str, values)]) + "\n")
        return False


def agent_is_there():
    return any("liballium-agent" in (objfile.filename or "") for objfile in gdb.objfiles())


def start():
    """Stops where the loader has mapped the libraries, and has run nothing of them."""
    gdb.execute("set stop-on-solib-events 1")
    gdb.execute("run")
    while not agent_is_there():
        gdb.execute("continue")
    gdb.execute("set stop-on-solib-events 0")


gdb.execute("set pagination off")
if gdb.selected_inferior().pid == 0:
    start()
for word in os.environ["LISTEN_FOR"].split():
    Probe(word.split("=")[0], int(word.split("=")[1]))
heard.write("listening\n")
gdb.execute("continue")
