# SPDX-License-Identifier: BSD-2-Clause
"""Traces of programs in difficult circumstances: what an allocator below counts (counted_alloc.c) is what the rings have
and what they count as lost, to the unit (ring_count.c, or `allium trace`'s own reader).
"""
import json
import os
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
import tap
from tap import agent_env, built, check, equal, private_dir, succeed

FOLDER = built("TEST_STRESS")
PERIOD = 1 << 40  # no samples
SLOTS = 512
TRACE, FLIGHT = "2", "6"  # ALLIUM_SITES, LEDGER_WITH_*


def program(name):
    return os.path.join(FOLDER, name)


class Place:
    """A folder of ledgers, and the counts of programs that write there."""

    def __init__(self, folder, sites=TRACE, **more):
        self.ledgers, self.counted = folder + "/ledgers", folder + "/counted"
        os.mkdir(self.ledgers, 0o700)
        with open(self.counted, "wb") as file:
            file.write(bytes(8 * SLOTS))
        self.env = agent_env(self.ledgers, PERIOD, [program("counted-alloc.so")], ALLIUM_SITES=sites,
                             COUNTED=self.counted, **more)

    def counts(self):
        with open(self.counted, "rb") as file:
            return struct.unpack("%dQ" % SLOTS, file.read())

    def follow(self):
        return subprocess.Popen([program("ring-count"), self.ledgers, "follow"], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE)

    def images(self, reader=None):
        """-> what the rings have, a dictionary for each image"""
        text = reader.communicate()[0] if reader else succeed([program("ring-count"), self.ledgers]).stdout
        return [json.loads(line) for line in text.decode().splitlines()]


def happened(image):
    return image["events"] + image["overwritten"] + sum(image["lost"])


def sound(image):
    for name in "torn", "back", "bad":
        equal(image[name], 0, name + " in %s" % image)


def boot_calls():
    """Calls of the allocator that are the agent's own, when it starts, and no events."""
    with private_dir() as folder:
        place = Place(folder)
        succeed([program("traced"), "plain", "1"], env=place.env)
        (image,) = place.images()
        sound(image)
        return place.counts()[0] - happened(image)


def plain():
    with private_dir() as folder:
        place = Place(folder)
        succeed([program("traced"), "plain", "1000"], env=place.env)
        (image,) = place.images()
        sound(image)
        equal((image["marked"], image["lost"]), (1000, [0, 0, 0, 0]), image)
        equal(place.counts()[0] - happened(image), boot_calls(), "calls that are neither there nor lost")


def flight():
    """A flight recorder keeps the newest events without a reader, and counts those that it has overwritten."""
    with private_dir() as folder:
        place = Place(folder, FLIGHT)
        succeed([program("traced"), "threads", "1000000"], env=place.env)
        (image,) = place.images()
        sound(image)
        equal((image["overwrites"], image["lost"]), (1, [0, 0, 0, 0]), image)
        check(image["overwritten"] > 100000 and image["events"] > 80000, image)
        equal(place.counts()[0] - happened(image), boot_calls(), "calls that are neither there nor lost")
        check(not any(name.endswith(".read") for name in os.listdir(place.ledgers)), "a file of positions")


def unread():
    """Nobody reads: the rings fill, and what comes then is lost and counted."""
    with private_dir() as folder:
        place = Place(folder)
        succeed([program("traced"), "plain", "1000000"], env=place.env)
        (image,) = place.images()
        sound(image)
        check(image["lost"][0] > 100000 and not any(image["lost"][1:]), image)
        equal(place.counts()[0] - happened(image), boot_calls(), "calls that are neither there nor lost")


tap.main([
    ("each call is there", plain),
    ("a flight recorder overwrites", flight),
    ("without a reader the rings fill", unread),
])
