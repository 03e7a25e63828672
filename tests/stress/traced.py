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


def traced(way, n, code=0, **more):
    """-> the counts of the allocator below, and the images, of a program whose rings are read meanwhile"""
    with private_dir() as folder:
        place = Place(folder, **more)
        reader = place.follow()
        done = tap.run([program("traced"), way, str(n)], env=place.env)
        equal(done.returncode, code, done)
        images = place.images(reader)
        for image in images:
            sound(image)
            print("# %s" % image if len(images) < 9 else "#")
        return place.counts(), images


def shared_memory(**more):
    """Children that share the memory of the process write into its rings, amid the writes of its threads."""
    def test():
        counts, (image,) = traced("vfork", tap.pick(60, 2000), **more)
        check(image["shared"] > 60 * 1000, image)
        equal(counts[0] - happened(image), boot_calls(), "calls that are neither there nor lost")
    return test


def copies():
    """Each fork child has rings of its own, those of raw system calls included, and its parent's get nothing of it."""
    n = tap.pick(60, 400)
    counts, images = traced("fork", n)
    equal(len(images), n + 1, "images")
    parent, children = images_of(images)
    equal(counts[0] - happened(parent), boot_calls(), "calls of the parent that are neither there nor lost")
    equal(sorted(counts[1:n + 1]), sorted(happened(c) for c in children), "calls of the children")
    for child in children:
        equal((child["parent_pid"], child["parent_id"]), (parent["pid"], parent["id"]), child)
        check(parent["began"] < child["forked"] <= child["began"], child)


def images_of(images):
    (parent,) = [i for i in images if not i["parent_pid"]]
    return parent, [i for i in images if i is not parent]


def storm(**more):
    """Signals whose handler writes interrupt the writers at any instruction."""
    def test():
        counts, (image,) = traced("signals", tap.pick(300000, 10000000), **more)
        equal(counts[0] - happened(image), boot_calls(), "calls that are neither there nor lost")
        check(more or image["aborted"] > 100, image)
    return test


def forking_handler(**more):
    """A handler forks, and the child goes on with what the handler interrupted: an event is the parent's, or one of the
    child's own, and the child writes nothing into its parent's rings."""
    def test():
        n = tap.pick(100, 2000)
        counts, images = traced("forking_handler", n, **more)
        parent, children = images_of(images)
        equal(counts[0] - happened(parent), boot_calls(), "calls of the parent that are neither there nor lost")
        equal(len(children), n, "children with rings")
        for child in children:
            check(child["events"] + sum(child["lost"]) >= 200, child)
    return test


tap.main([
    ("each call is there", plain),
    ("a flight recorder overwrites", flight),
    ("without a reader the rings fill", unread),
    ("vfork children write into the rings of the process", shared_memory()),
    ("so without registered sequences", shared_memory(GLIBC_TUNABLES="glibc.pthread.rseq=0")),
    ("fork children have rings of their own", copies),
    ("a storm of signals loses nothing", storm()),
    ("so without registered sequences", storm(GLIBC_TUNABLES="glibc.pthread.rseq=0")),
    ("a child that a handler forks has rings of its own", forking_handler()),
    ("so without registered sequences", forking_handler(GLIBC_TUNABLES="glibc.pthread.rseq=0")),
])
