# SPDX-License-Identifier: BSD-2-Clause
"""Traces of programs in difficult circumstances: what an allocator below counts (counted_alloc.c) is what the rings have
and what they count as lost, to the unit (ring_count.c, or `allium trace`'s own reader).
"""
import json
import os
import random
import re
import signal
import struct
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import own_cgroup
import tap
from tap import agent_env, built, check, equal, private_dir, succeed

FOLDER = built("TEST_STRESS")
PERIOD = 1 << 40  # no samples
SLOTS = 512
OPTIONS = os.environ.get("TRACED_OPTIONS", "")  # more of ALLIUM_SITES
TRACE, FLIGHT = "2" + OPTIONS, "6" + OPTIONS  # ALLIUM_SITES, LEDGER_WITH_*
EVENTS = 2 if ",begin" in OPTIONS else 1  # of each call
LIFE = 20  # events of the group `life`, in an image, at most


def program(name):
    return os.path.join(FOLDER, name)


class Place:
    """A folder of ledgers, and the counts of programs that write there."""

    def __init__(self, folder, sites=TRACE, counted=None, **more):
        self.ledgers, self.counted = folder + "/ledgers", counted or folder + "/counted"
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
    """-> calls, of which those that are lost or overwritten may be events of the group `life` instead"""
    return (image["events"] - image["life"] + image["overwritten"] + sum(image["lost"])) / EVENTS


def whole(calls, image, boot=None):
    """Each call is there, or is lost and counted; so are the LIFE events of the process, its threads and modules."""
    more = happened(image) - calls + (boot_calls() if boot is None else boot)
    lost = image["overwritten"] + sum(image["lost"])
    check(0 <= more <= (LIFE / EVENTS if lost else 0), "calls that are there twice", more, image)


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
        whole(place.counts()[0], image)


def flight():
    """A flight recorder keeps the newest events without a reader, and counts those that it has overwritten."""
    with private_dir() as folder:
        place = Place(folder, FLIGHT)
        succeed([program("traced"), "threads", "1000000"], env=place.env)
        (image,) = place.images()
        sound(image)
        equal((image["overwrites"], image["lost"]), (1, [0, 0, 0, 0]), image)
        check(image["overwritten"] > 100000 and image["events"] > 80000, image)
        whole(place.counts()[0], image)


def unread():
    """Nobody reads: the rings fill, and what comes then is lost and counted."""
    with private_dir() as folder:
        place = Place(folder)
        succeed([program("traced"), "plain", "1000000"], env=place.env)
        (image,) = place.images()
        sound(image)
        check(image["lost"][0] > 100000 and not any(image["lost"][1:]), image)
        whole(place.counts()[0], image)


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
        whole(counts[0], image)
    return test


def copies(**more):
    """Each fork child has rings of its own, those of raw system calls included, and its parent's get nothing of it."""
    def test():
        n = tap.pick(60, 400)
        counts, images = traced("fork", n, **more)
        equal(len(images), n + 1, "images")
        parent, children = images_of(images)
        whole(counts[0], parent)
        equal(sorted(counts[1:n + 1]), sorted(happened(c) for c in children), "calls of the children")
        for child in children:
            equal((child["parent_pid"], child["parent_id"]), (parent["pid"], parent["id"]), child)
            check(parent["began"] < child["forked"] <= child["began"], child)
    return test


def images_of(images):
    (parent,) = [i for i in images if not i["parent_pid"]]
    return parent, [i for i in images if i is not parent]


def storm(**more):
    """Signals whose handler writes interrupt the writers at any instruction."""
    def test():
        counts, (image,) = traced("signals", tap.pick(300000, 10000000), **more)
        whole(counts[0], image)
        check(more or image["aborted"] > 100, image)
    return test


def forking_handler(**more):
    """A handler forks, and the child goes on with what the handler interrupted: an event is the parent's, or one of the
    child's own, and the child writes nothing into its parent's rings."""
    def test():
        n = tap.pick(100, 2000)
        counts, images = traced("forking_handler", n, **more)
        parent, children = images_of(images)
        whole(counts[0], parent)
        equal(len(children), n, "children with rings")
        for child in children:
            check(child["events"] + sum(child["lost"]) >= 200, child)
    return test


def unloaded(**more):
    """Each module has an event of the group `life`, too: rings for all of them."""
    return exact("dlclose", tap.pick(300, 5000), sites=TRACE + ",buffer=64M", TWIN=program("twin-one.so"), **more)


def early(**more):
    """Signals interrupt fork children that make their rings: what has no ring yet is lost, and counted."""
    def test():
        n = tap.pick(60, 400)
        counts, images = traced("fork_storm", n, **more)
        parent, children = images_of(images)
        whole(counts[0], parent)
        equal(sorted(counts[1:n + 1]), sorted(happened(c) for c in children), "calls of the children")
        print("# %d events had no ring" % sum(child["lost"][2] for child in children))
    return test


def exact(way, n, least=0, **more):
    """The way of traced.c, of which nothing is missing; at least so many events are in the shared ring."""
    def test():
        counts, (image,) = traced(way, n, **more)
        check(image["shared"] >= least, image)
        whole(counts[0], image)
    return test


def stepped():
    """A debugger that steps aborts each sequence, again and again: the events go into the shared ring, and none is lost."""
    n = 5
    counts, images = traced("steps", n)
    _, (child,) = images_of(images)
    equal(happened(child), counts[1], child)
    check(child["shared"] >= 2 * n and not sum(child["lost"]), child)
    check(child["aborted"] >= 16 * n, "aborted", child)


def moved():
    """Forced migration, children that write in the other way, signals: both kinds of writer at once. In the long form
    10,000 sequences are aborted at least."""
    done, aborted, least, rounds = tap.pick(150, 2000), 0, tap.pick(0, 10000), 0
    while not rounds or (aborted < least and rounds < 50):
        counts, (image,) = traced("moving", done)
        check(image["shared"] > 10000 and image["events"] > image["shared"], image)
        whole(counts[0], image)
        aborted += image["aborted"]
        rounds += 1
    print("# %d sequences were aborted" % aborted)
    check(aborted >= least, "aborted", aborted)


def killed():
    """SIGKILL at any instant: what is there and what is counted as lost is what happened, but for the call that each
    thread was in, or its handler."""
    random.seed(20240102)
    boot, some = boot_calls(), 0
    for number in range(tap.pick(50, 1000)):
        with private_dir() as folder:
            place = Place(folder, GLIBC_TUNABLES="glibc.pthread.rseq=%d" % (number % 4 != 3))
            process = subprocess.Popen([program("traced"), "forever", str(number % 2)], env=place.env,
                                       stdout=subprocess.PIPE)
            reader = place.follow() if number % 3 else None
            process.stdout.read(1)
            time.sleep(random.random() * 0.03)
            process.kill()
            process.communicate()
            (image,) = place.images(reader)
            sound(image)
            some += image["events"] > 1000
            calls = place.counts()[0] - boot
            check(abs(calls - happened(image)) <= 2 * 4 + LIFE, number, calls, image)
    check(some > 40, "with events", some)


def orphaned():
    """The reader is killed: the rings fill, and count what comes then. Another reader takes what is there."""
    with private_dir() as folder:
        place = Place(folder)
        process = subprocess.Popen([program("traced"), "forever", "0"], env=place.env, stdout=subprocess.PIPE)
        process.stdout.read(1)
        first = place.follow()
        time.sleep(0.1)
        first.kill()
        first.communicate()
        time.sleep(0.3)
        process.kill()
        process.communicate()
        (image,) = place.images()
        sound(image)
        check(image["lost"][0] > 1000, image)
        check(abs(place.counts()[0] - boot_calls() - happened(image)) <= 2 * 4 + LIFE, place.counts()[0], image)


def full_filesystem():
    """A tmpfs that is full before the rings are: what has no memory is lost, and counted."""
    for size in "400k", "2m", "6m":
        with private_dir() as folder:
            place = Place(folder)
            words = ("mount -t tmpfs -o size=%s,mode=700 none %s && %s threads 300000; code=$?; %s %s; exit $code"
                     % (size, place.ledgers, program("traced"), program("ring-count"), place.ledgers))
            env = {name: place.env[name] for name in ("COUNTED", "ALLIUM_DIR", "ALLIUM_PERIOD", "ALLIUM_SITES")}
            words = words.replace(program("traced") + " threads", "env %s LD_PRELOAD=%s %s threads" % (
                " ".join("%s=%s" % pair for pair in env.items()), place.env["LD_PRELOAD"], program("traced")))
            done = succeed([*tap.unshare(), "sh", "-c", words])
            (image,) = [json.loads(line) for line in done.stdout.decode().splitlines()]
            sound(image)
            print("# %s" % image)
            check(image["ring_bytes"] < 1 << 20, "no smaller rings", image)
            whole(place.counts()[0], image)


def small_cgroup():
    """In a memory cgroup of 48 MiB the rings take at most a 16th of what is left, and the program lives."""
    with own_cgroup.limited(48 << 20) as group, private_dir() as folder:
        def enter():
            with open(group + "/cgroup.procs", "w") as file:
                file.write("0")
        place = Place(folder, TRACE + ",buffer=64M")
        succeed([program("traced"), "threads", "300000"], env=place.env, preexec_fn=enter)
        (image,) = place.images()
        sound(image)
        print("# %s" % image)
        check((image["cpus"] + 1) * image["ring_bytes"] <= 3 << 20, "large rings", image)
        whole(place.counts()[0], image)


def moved_to_group():
    """A fork child takes over what its parent has read of its cgroups, but not if it is in others."""
    with own_cgroup.limited(48 << 20) as group, private_dir() as folder:
        place = Place(folder, TRACE + ",buffer=64M", GROUP=group + "/cgroup.procs")
        parent, (child,) = images_of(traced_in(place, "group", 300000))
        print("# %s, %s" % (parent["ring_bytes"], child["ring_bytes"]))
        check(parent["ring_bytes"] > child["ring_bytes"], "rings of the parent", parent, child)
        check((child["cpus"] + 1) * child["ring_bytes"] <= 3 << 20, "large rings", child)
        whole(place.counts()[1], child, 0)

FILL = 'echo 0 > "$1"/cgroup.procs && head -c "$2" /dev/zero > "$3" && shift 3 && exec "$@"'


def full_cgroup():
    """Of a memory cgroup that is full but for some MiB, rings that find no room lose events, and count them; the program
    lives."""
    limit = 24 << 20
    for left in 1 << 20, 3 << 20, 8 << 20:
        with own_cgroup.limited(limit) as group, private_dir() as folder:
            place = Place(folder, TRACE + ",buffer=64M")
            succeed(["sh", "-c", FILL, "sh", group, str(limit - left), folder + "/fill", "env",
                     *("%s=%s" % (name, place.env[name]) for name in ("ALLIUM_DIR", "ALLIUM_PERIOD", "ALLIUM_SITES",
                                                                      "COUNTED", "LD_PRELOAD")),
                     program("traced"), "threads", "300000"])
            (image,) = place.images()
            sound(image)
            print("# %s" % image)
            whole(place.counts()[0], image)
            os.unlink(folder + "/fill")


def sizes():
    for wanted, got in ("", 4 << 20), (",buffer=8M", 8 << 20), (",buffer=12M", 8 << 20), (",buffer=1", 64 << 10):
        with private_dir() as folder:
            place = Place(folder, TRACE + wanted)
            succeed([program("traced"), "threads", "100000"], env=place.env)
            (image,) = place.images()
            sound(image)
            equal(image["ring_bytes"], got, wanted)


def clocks():
    """Times of the counter have anchors of CLOCK_MONOTONIC, between the program's beginning and its end; or they are
    that clock's."""
    for words in "", ",clock=mono":
        with private_dir() as folder:
            place = Place(folder, TRACE + words)
            before = time.monotonic_ns()
            counts = traced_in(place, "threads", 200000)
            after = time.monotonic_ns()
            (image,) = counts
            anchors = image["anchors"]
            equal(image["clock"], not words, "clock")
            if words:
                equal(anchors, [], "anchors")
                check(before <= image["first"] <= image["last"] <= after, before, image, after)
                continue
            check(len(anchors) >= 2, anchors)
            for ticks, ns, _ in anchors:
                check(before <= ns <= after, before, anchors, after)
                check(image["first"] - 10**8 < ticks <= image["last"] + 10**7, image)


def traced_in(place, way, n):
    succeed([program("traced"), way, str(n)], env=place.env)
    images = place.images()
    for image in images:
        sound(image)
    return images


def follower(folder, n):
    return succeed([built("ALLIUM"), "trace", "--buffer", "64M", "-o", folder + "/t", "--", program("traced"), "clock",
                    str(n)])


def afterwards(folder, n):
    """The program has ended when its rings are read: the clock is that of the anchors that its agent has left."""
    env = dict(os.environ, XDG_RUNTIME_DIR=folder)
    lines = succeed([built("ALLIUM"), "env", "--trace", "--flight"], env=env).stdout.decode()
    done = succeed(["sh", "-c", lines + 'export ALLIUM_SITES="$ALLIUM_SITES,buffer=64M"; echo $$ >&2; exec "$@"', "sh",
                    program("traced"), "clock", str(n)], env=env)
    succeed([built("ALLIUM"), "snapshot", done.stderr.decode().strip(), "--trace", "-o", folder + "/t"], env=env)
    return done


def order(traces):
    """The time of each event, as the tool converts it, lies between those that the program has seen on CLOCK_MONOTONIC
    before and after: to 100 ns for 999 of 1,000."""
    n, time_of = tap.pick(20000, 1000000), re.compile(rb"^\[(\d+)\] .*allium:malloc: .* size = 47,")
    with private_dir() as folder:
        done = traces(folder, n)
        bounds = struct.unpack("%dQ" % (2 * n), done.stdout)
        printed = succeed(["babeltrace2", "--clock-cycles", folder + "/t/ust"], timeout=600).stdout
    times = [int(found.group(1)) for found in map(time_of.match, printed.splitlines()) if found]
    equal(len(times), n, done.stderr.decode())
    off = sorted(max(bounds[2 * k] - time, time - bounds[2 * k + 1], 0) for k, time in enumerate(times))
    print("# of %d events %d outside, at 99.9 %% %d ns, at most %d ns" % (
        n, sum(by > 0 for by in off), off[n * 999 // 1000], off[-1]))
    check(off[n * 999 // 1000] <= 100, "ns outside", off[n * 999 // 1000], off[-1])


# With any options.
CALLS = [
    ("each call is there", plain),
    ("vfork children write into the rings of the process", shared_memory()),
    ("so without registered sequences", shared_memory(GLIBC_TUNABLES="glibc.pthread.rseq=0")),
    ("fork children have rings of their own", copies()),
    ("a storm of signals loses nothing", storm()),
    ("so without registered sequences", storm(GLIBC_TUNABLES="glibc.pthread.rseq=0")),
    ("writers that are moved, and both kinds of them at once", moved),
    ("strict seccomp: no system call, and no counter", exact("strict", 500000)),
    ("SIGKILL at any instant", killed),
    ("a full file system", full_filesystem),
    ("a child that a handler forks has rings of its own", forking_handler()),
    ("so without registered sequences", forking_handler(GLIBC_TUNABLES="glibc.pthread.rseq=0")),
]
RINGS = [
    ("a flight recorder overwrites", flight),
    ("without a reader the rings fill", unread),
    ("a writer that is stopped while others go round the shared ring",
     exact("stopping", tap.pick(30, 1000), 10000, sites=TRACE + ",buffer=64K", GLIBC_TUNABLES="glibc.pthread.rseq=0")),
    ("a debugger that goes from instruction to instruction", stepped),
    ("the reader is killed", orphaned),
    ("fork children without registered sequences", copies(GLIBC_TUNABLES="glibc.pthread.rseq=0")),
    ("signals while rings are made", early()),
    ("so without registered sequences", early(GLIBC_TUNABLES="glibc.pthread.rseq=0")),
    ("strict seccomp without registered sequences",
     exact("strict", 500000, 1000, GLIBC_TUNABLES="glibc.pthread.rseq=0")),
    ("a library that is unloaded amid writes", unloaded()),
    ("so without registered sequences", unloaded(GLIBC_TUNABLES="glibc.pthread.rseq=0")),
    ("a small memory cgroup", small_cgroup),
    ("a fork child in another memory cgroup", moved_to_group),
    ("a full memory cgroup", full_cgroup),
    ("sizes of rings", sizes),
    ("clocks", clocks),
    ("events lie between what the program sees before and after", lambda: order(follower)),
    ("so do those of a program that has ended", lambda: order(afterwards)),
]
tap.main(CALLS if OPTIONS else CALLS + RINGS)
