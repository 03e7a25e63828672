# SPDX-License-Identifier: BSD-2-Clause
"""Traces of chosen events, at chosen times: what a program cannot be made to do whenever a test runs."""
import os
import re
import struct

import tap
from tap import built, check


class Trace:
    """A folder with the metadata of a trace of nothing, and the streams that a test adds."""

    def __init__(self, folder):
        self.folder = folder
        tap.succeed([built("ALLIUM"), "trace", "--quiet", "-o", folder, "--", "true"])
        os.unlink(folder + "/profile.allium")
        for name in os.listdir(folder + "/ust"):
            if name != "metadata":
                os.unlink("%s/ust/%s" % (folder, name))
        with open(folder + "/ust/metadata") as file:
            text = file.read()
        self.metadata, after = text.split("/* clocks: at ", 1)
        check(re.fullmatch(r"\d+, offset \d+, residual \d+ \*/\n\n", after), "the end of the metadata", after)
        self.uuid = bytes.fromhex(re.search(r'uuid = "([-0-9a-f]+)"', text).group(1).replace("-", ""))
        self.offset = int(re.search(r"offset = (\d+);", text).group(1))
        self.numbers = {}
        for event in text.split("event {\n")[1:]:
            name, number = re.match(r'\tname = "allium:(\w+)";\n\tid = (\d+);', event).groups()
            if "_site;" in event and "_stack;" not in event:
                self.numbers[name] = int(number)
        self.describe()

    def describe(self, *clocks):
        """clocks: (by how much the wall clock was set, residual) in ns, as time went on"""
        with open(self.folder + "/ust/metadata", "w") as file:
            file.write(self.metadata)
            for n, (step, residual) in enumerate(clocks):
                file.write("/* clocks: at %d, offset %d, residual %d */\n\n" % (n, self.offset + step, residual))

    def stream(self, cpu, *events, lost=0):
        """The events of a CPU: (time, "malloc", address, size) or (time, "free", address)."""
        self.packets(cpu, (lost, *events))

    def packets(self, cpu, *packets):
        """Packets of a CPU: (events lost until its end, events ...)."""
        data = b""
        for number, (lost, *events) in enumerate(packets, 1):
            content = b""
            for time, name, *fields in events:
                content += struct.pack("<QHHI", time, self.numbers[name], 0, 4711)
                content += struct.pack("<%dQ" % (len(fields) + 1), *fields, 0)
            bits = 8 * (88 + len(content))
            data += struct.pack("<I16sIQQQQQQIIQ", 0xC1FC1FC1, self.uuid, 0, events[0][0], events[-1][0], bits, bits,
                                number, lost, cpu, 4711, 1) + content
        with open("%s/ust/events_4711-0000000000000001_%d" % (self.folder, cpu), "wb") as file:
            file.write(data)
