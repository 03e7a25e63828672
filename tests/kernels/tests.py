# SPDX-License-Identifier: BSD-2-Clause
"""The settings of a guest test: lines `#: KEY VALUE...` in its script, all of them optional.

kernels    the names (debian.py) of the kernels it is for; else all
seconds    how long it may take, in the guest, until it is taken to hang; else 600. What takes 5 s alone may take minutes
           beside others
programs   programs of tests/kernels that the test finds in PATH
copies     programs of this machine that the test finds in PATH, with their libraries
modules    kernel modules to be loaded before the first test, with those they need
memory     size of the guest's memory, as qemu takes it; else 256M
cgroup     v2 (else) or v1: which has the memory controller
cpus       number of CPUs of the guest; else 1. With 2, an emulated CPU may execute an int3 that another CPU has already
           removed; then the kernel panics
cpu        model of the guest's CPU, as qemu takes it; else one with what this machine surely has. `max` has pages of 1 GiB
nodes      number of NUMA nodes, which share memory and CPUs evenly; else 1. With fewer CPUs than nodes, the last nodes have
           none
parameters words for the kernel's command line
long       left out of the short form
"""
import glob
import os
import re

from debian import PACKAGES, Wrong

# rdrand, or whoever asks for random numbers waits until the guest has gathered some.
PLAIN_CPU = "qemu64,+rdrand"
KEYS = ("kernels", "seconds", "programs", "copies", "modules", "memory", "cgroup", "cpus", "cpu", "nodes", "parameters",
        "long")


class Test:
    def __init__(self, path):
        self.path, self.name = path, os.path.basename(path)[: -len(".sh")]
        said = {}
        with open(path) as file:
            for key, words in re.findall(r"^#: *(\S*) *(.*)$", file.read(), re.M):
                if key not in KEYS or key in said:
                    raise Wrong("%s: no such key, or twice: %s" % (path, key))
                said[key] = words.split()
        self.kernels = said.get("kernels", list(PACKAGES))
        self.seconds = int(said.get("seconds", ["600"])[0])
        self.programs, self.copies, self.modules = (said.get(key, []) for key in ("programs", "copies", "modules"))
        self.machine = Machine(
            said.get("memory", ["256M"])[0],
            said.get("cgroup", ["v2"])[0],
            said.get("cpus", ["1"])[0],
            said.get("cpu", [PLAIN_CPU])[0],
            " ".join(said.get("parameters", [])),
            int(said.get("nodes", ["1"])[0]))
        self.long = "long" in said
        if not set(self.kernels) <= set(PACKAGES):
            raise Wrong("%s: kernels are %s" % (path, " ".join(PACKAGES)))
        if int(self.machine.memory[:-1]) % self.machine.nodes:
            raise Wrong("%s: memory does not divide by its nodes" % path)
        if self.machine.cgroup not in ("v1", "v2"):
            raise Wrong("%s: cgroup is v1 or v2" % path)


class Machine:
    """What tests of one boot share."""

    def __init__(self, memory="256M", cgroup="v2", cpus="1", cpu=PLAIN_CPU, parameters="", nodes=1):
        self.memory, self.cgroup, self.cpus, self.cpu, self.parameters = memory, cgroup, cpus, cpu, parameters
        self.nodes = nodes

    def __str__(self):
        words = [self.memory, self.cgroup, "" if self.cpus == "1" else self.cpus + " CPUs",
                 "" if self.cpu == PLAIN_CPU else self.cpu, "" if self.nodes == 1 else "%d nodes" % self.nodes,
                 self.parameters]
        return " ".join(filter(None, words))

    def smp(self):
        """Its CPUs, for qemu: the kernel does not expect those of one package on several nodes."""
        return self.cpus if self.nodes == 1 else "%s,sockets=%s" % (self.cpus, self.cpus)

    def numa(self):
        """The options of qemu for its nodes."""
        words, size = [], "%d%s" % (int(self.memory[:-1]) // self.nodes, self.memory[-1])
        for node in range(self.nodes if self.nodes > 1 else 0):
            cpus = ["cpus=%d" % cpu for cpu in range(int(self.cpus)) if cpu % self.nodes == node]
            words += ["-object", "memory-backend-ram,id=node%d,size=%s" % (node, size), "-numa",
                      ",".join(["node,nodeid=%d,memdev=node%d" % (node, node), *cpus])]
        return words


def read(folder):
    return [Test(path) for path in sorted(glob.glob(glob.escape(folder) + "/*.sh"))]


def boots(kernel_name, tests):
    """The tests for a kernel, as one list for each machine they need."""
    groups = {}
    for test in tests:
        if kernel_name in test.kernels:
            groups.setdefault(str(test.machine), []).append(test)
    return list(groups.values())
