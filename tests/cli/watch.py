# SPDX-License-Identifier: BSD-2-Clause
"""allium watch as its users meet it: what is new, what grows, keys and signals, what is dismissed, alerts, what it
leaks.
"""
import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

sys.dont_write_bytecode = True
import tap
from workdir import placed, program
from tap import built, check, equal, pick, wait_until

BLOCK, BLOCKS = 4000, 16


class Stepper:
    """stepper under the agent; it does what it is told, a letter a step, and has done it when the call returns."""

    def __init__(self, place, period=1):
        env = dict(place.env, LD_PRELOAD=built("ALLIUM_AGENT"), ALLIUM_PERIOD=str(period))
        self.process = place.start(program("stepper"), env=env)
        self.pid = self.process.pid

    def do(self, steps):
        self.process.stdin.write(steps.encode())
        self.process.stdin.flush()
        done = b""
        while len(done) < len(steps):
            done += os.read(self.process.stdout.fileno(), len(steps) - len(done))

    def end(self):
        self.process.stdin.close()
        equal(self.process.wait(20), 0, "code of stepper")


class Watcher:
    """allium watch --json, read line by line."""

    def __init__(self, place, *words, before=()):
        self.process = place.start(*before, built("ALLIUM"), "watch", *words, "--json")
        self.seen, self.rest, self.told = [], b"", 0

    def read(self):
        ready = select.select([self.process.stdout], [], [], 0.05)[0]
        if ready:
            got = os.read(self.process.stdout.fileno(), 1 << 20)
            self.rest += got
            if not got and self.process.poll():
                raise tap.Failed(
                    "allium watch has ended with %d: %s"
                    % (self.process.returncode, self.process.stderr.read().decode())
                )
        *lines, self.rest = self.rest.split(b"\n")
        self.seen += [json.loads(line) for line in lines]
        return self.seen

    def wait(self, fits, what, seconds=30):
        """The first look that fits, of those after the one that was waited for last."""
        def found():
            at = next((at for at, look in enumerate(self.read()) if at >= self.told and fits(look)), None)
            self.told = len(self.seen) if at is None else at + 1
            return None if at is None else self.seen[at]
        return wait_until(found, seconds, what)

    def signal(self, number):
        self.process.send_signal(number)

    def end(self, code=0):
        equal(tap.stop(self.process), code, "code of allium watch")
        return self.process.stderr.read().decode()


def rows(look, pid=None):
    """{innermost function: row} of a look."""
    return {
        row["name"]: row
        for process in look["processes"] if pid in (None, process["pid"]) for row in process["rows"]
    }


def old_samples(look, function):
    row = rows(look).get(function)
    return row["old_samples"] if row else 0


FAST = ("--interval", "30ms", "--older-than", "20ms")
OLD_BY_THEN = 0.03


@contextlib.contextmanager
def unseen(process):
    """What is allocated meanwhile becomes old for the next look at once: no look falls in its midst, however slow the
    machine is.
    """
    process.send_signal(signal.SIGSTOP)
    wait_until(lambda: open("/proc/%d/stat" % process.pid).read().rpartition(")")[2].split()[0] == "T", 20,
               "it has stopped")
    yield
    time.sleep(OLD_BY_THEN)
    process.send_signal(signal.SIGCONT)


def exact_rows(place):
    stepper = Stepper(place)
    stepper.do("lccl" + "t" * 5)
    time.sleep(0.05)
    done = place.allium("watch", str(stepper.pid), "--once", "--older-than", "20ms", "--json")
    look = json.loads(done.out)
    equal(done.out.count("\n"), 1, "lines of JSON")
    equal({name: (row["old_bytes"], row["old_bytes_low"], row["old_bytes_high"], row["old_samples"], row["new"])
           for name, row in rows(look).items()},
          {name: (2 * BLOCKS * BLOCK,) * 3 + (2 * BLOCKS, False) for name in ("leak", "fill")}, "rows")
    process = look["processes"][0]
    equal((process["pid"], process["program"], process["began"]), (stepper.pid, "stepper", True), "process")
    equal((process["old_bytes"], process["live_bytes"]), (4 * BLOCKS * BLOCK,) * 2, "sums")
    later = json.loads(place.allium("watch", str(stepper.pid), "--once", "--older-than", "1h", "--json").out)
    equal((later["processes"][0]["rows"], later["processes"][0]["live_bytes"]), ([], 4 * BLOCKS * BLOCK),
          "of an hour ago")
    narrow = json.loads(place.allium("watch", str(stepper.pid), "--once", "--older-than", "20ms", "--json",
                                     "--where", "func:fill").out)
    equal((list(rows(narrow)), narrow["processes"][0]["live_bytes"]), (["fill"], 2 * BLOCKS * BLOCK),
          "--where func:fill")


def from_the_start(place):
    """Without --interval and --older-than: a young process has old memory, too, and the next snapshot comes soon."""
    stepper = Stepper(place)
    stepper.do("lc")
    time.sleep(0.1)
    process = json.loads(place.allium("watch", str(stepper.pid), "--once", "--json").out)["processes"][0]
    check(0 < process["older_than_ns"] < 300e9, "old from", process["older_than_ns"], "ns on")
    watcher = place.start_allium("watch", str(stepper.pid))
    first = watcher.stdout.readline()
    check(b", half its age, " in first, "where the age is from:", first)
    for line in watcher.stdout:
        if b"next snapshot" in line:
            break
    left = re.search(r"in ([0-9.]+) s; growth is judged from snapshot 8 on, this was 1$", line.decode())
    check(left and 5 < float(left[1]) <= 10, "the first report ends with", line)
    watcher.kill()


def limits(place):
    """--count and --duration end it."""
    stepper = Stepper(place)
    stepper.do("l")
    for words in ("--count", "3"), ("--duration", "100ms"):
        out = place.allium("watch", str(stepper.pid), "--interval", "40ms", "--json", *words).out
        equal([json.loads(line)["snapshot"] for line in out.splitlines()], [1, 2, 3], "snapshots of " + " ".join(words))
    # the next snapshot would come after 10 s, and is not announced
    check("next snapshot" not in place.allium("watch", str(stepper.pid), "--duration", "6s").out, "it is announced")


def askers(place):
    """A row is called after the function that asked, wrappers passed over; a stack listed again begins there."""
    os.makedirs(place.path("allium"))
    with open(place.path("allium/wrappers"), "w") as file:
        file.write("leak\n")
    stepper = Stepper(place)
    stepper.do("l")
    time.sleep(0.05)
    env = {"XDG_CONFIG_HOME": place.folder}
    words = ("watch", str(stepper.pid), "--older-than", "20ms")
    look = json.loads(place.allium(*words, "--once", "--json", env=env).out)
    equal((list(rows(look)), rows(look)["main"]["stack"][0]["function"]), (["main"], "leak"),
          "name, and innermost frame")
    place.env.update(env)
    watcher = place.start_allium(*words, "--interval", "30ms")

    def skip_to(pattern):
        return next(line for line in iter(watcher.stdout.readline, b"") if re.match(pattern, line))
    skip_to(rb" +leak ")
    with unseen(watcher):
        stepper.do("l")
    skip_to(rb" .* %d +%d " % (2 * BLOCKS, BLOCKS))
    equal(watcher.stdout.readline().split()[:1], [b"main"], "first frame of a stack that is listed again")
    equal(tap.stop(watcher), 0, "code")


def fresh_and_new(place):
    stepper = Stepper(place)
    stepper.do("l")
    time.sleep(OLD_BY_THEN)
    watcher = Watcher(place, str(stepper.pid), *FAST)
    first = watcher.wait(lambda look: old_samples(look, "leak") == BLOCKS, "the first blocks")
    check(not any(row["new"] for row in rows(first).values()), "new at the first look", first)
    with unseen(watcher.process):
        stepper.do("c")
    look = watcher.wait(lambda look: "fill" in rows(look), "another stack")
    equal((rows(look)["fill"]["new"], rows(look)["fill"]["fresh_samples"]), (True, BLOCKS), "of another stack")
    equal((rows(look)["leak"]["new"], rows(look)["leak"]["fresh_samples"]), (False, 0), "of the one before")
    after = watcher.wait(lambda _: True, "the look after")
    equal((rows(after)["fill"]["new"], rows(after)["fill"]["fresh_samples"]), (False, 0), "of it one look later")
    with unseen(watcher.process):
        stepper.do("l")
    more = watcher.wait(lambda look: old_samples(look, "leak") == 2 * BLOCKS, "more blocks")
    equal((rows(more)["leak"]["new"], rows(more)["leak"]["fresh_samples"]), (False, BLOCKS),
          "of more in the same stack")
    stepper.do("e")
    watcher.wait(lambda look: "fill" not in rows(look), "an empty cache")
    watcher.end()


def growing(place):
    """What leaks all the time is marked, what has filled is not; the slope is that of what was truly added. A look has
    the time at which it began, the slope those at which the ledger was read. What was born just before the latter may
    be in the next look.
    """
    stepper = Stepper(place)
    stepper.do("cccc")
    watcher = Watcher(place, str(stepper.pid), *FAST)
    marked = None
    end = time.monotonic() + 60
    while not marked and time.monotonic() < end:
        stepper.do("l")
        marked = next((look for look in watcher.read() if rows(look).get("leak", {}).get("growing")), None)
        read_ns = time.time_ns()
        time.sleep(0.01)
    check(marked, "a leak is not marked")
    row = rows(marked)["leak"]
    check(not rows(marked)["fill"]["growing"], "a full cache is marked", rows(marked)["fill"])
    check(row["slope_bytes_per_hour_low"] <= row["slope_bytes_per_hour"] <= row["slope_bytes_per_hour_high"], "slope",
          row)
    # slope_since_ns is the time of a snapshot less the age, which does not change here
    at, since_ns = watcher.seen.index(marked), row["slope_since_ns"] + marked["processes"][0]["older_than_ns"]
    since = max(i for i in range(at) if watcher.seen[i]["time_ns"] <= since_ns)
    most, least = (row["old_bytes"] - rows(watcher.seen[i]).get("leak", {"old_bytes": 0})["old_bytes"]
                   for i in (since, since + 1))
    shortest, longest = ((ns - since_ns) / 3600e9 for ns in (marked["time_ns"], read_ns))
    check(least / longest - 1 <= row["slope_bytes_per_hour"] <= most / shortest + 1, "added", least, "to", most, "in",
          shortest, "to", longest, "h, and the slope is", row)
    watcher.told = len(watcher.seen)
    watcher.wait(lambda look: not rows(look)["leak"]["growing"], "a leak that has stopped is unmarked", 60)
    watcher.end()


def quiet_looks(place):
    """A night in which nothing happens is a line a look; what happens is told once."""
    stepper = Stepper(place)
    stepper.do("l")
    time.sleep(0.05)
    watcher, said = place.start_allium("watch", str(stepper.pid), *FAST), []

    def read_quiet(count):
        while count:
            said.append(watcher.stdout.readline().decode())
            check(said[-1], "it has ended, and said", said)
            count -= "nothing new" in said[-1]
    read_quiet(6)
    with unseen(watcher):
        stepper.do("c")
    while not any(" fill " in line for line in said):
        read_quiet(1)
    read_quiet(6)
    equal(tap.stop(watcher), 0, "code")
    text = "".join(said) + watcher.stdout.read().decode()
    stamped = [line for line in text.splitlines() if re.match(r"\d{4}-", line)]
    quiet = [line for line in stamped if "nothing new" in line]
    check(len(quiet) > 10 and len(stamped) - len(quiet) == 2, "quiet", len(quiet), "of", len(stamped), text)
    equal((text.count(" leak "), text.count(" fill "), len(re.findall(r"  new$", text, re.M))), (1, 1, 1),
          "stacks in " + text)


def waited_for(place):
    """A process with the agent, of which nothing was sampled yet, is watched from its first sample on."""
    stepper = Stepper(place)
    with open("/proc/%d/maps" % stepper.pid) as maps:
        wait_until(lambda: maps.seek(0) or "liballium-agent" in maps.read(), 20, "the agent")
    done = place.allium("watch", str(stepper.pid), "--once", code=1)
    check("has no sample yet" in done.err, "one look said", done.err)
    watcher = Watcher(place, str(stepper.pid), *FAST)
    empty = watcher.wait(lambda _: True, "a look")
    equal(empty["processes"], [], "processes before the first sample")
    with unseen(watcher.process):
        stepper.do("l")
    look = watcher.wait(lambda look: rows(look), "what was sampled then")
    equal(old_samples(look, "leak"), BLOCKS, "its samples")
    check("process %d has no sample yet" % stepper.pid in watcher.end(), "it did not say so")
    never = Stepper(place)
    with open("/proc/%d/maps" % never.pid) as maps:
        wait_until(lambda: maps.seek(0) or "liballium-agent" in maps.read(), 20, "the agent")
    watcher = Watcher(place, str(never.pid), *FAST)
    watcher.wait(lambda _: True, "a look")
    never.end()
    equal(watcher.process.wait(20), 0, "code at the end of a process that never had a sample")


def comings_and_goings(place):
    watcher = Watcher(place, *FAST)
    watcher.wait(lambda _: True, "a look")
    one, two = Stepper(place), Stepper(place)

    def ours(look):  # there may be others
        return {process["pid"]: process for process in look["processes"] if process["pid"] in (one.pid, two.pid)}
    one.do("l")
    look = watcher.wait(ours, "one process")
    equal([process["began"] for process in ours(look).values()], [True], "it began")
    two.do("c")
    both = watcher.wait(lambda look: len(ours(look)) == 2, "two processes")
    equal((ours(both)[one.pid]["began"], ours(both)[two.pid]["began"]), (False, True), "the other began")
    one.end()
    image = ours(both)[one.pid]["image"]
    look = watcher.wait(lambda look: {"pid": one.pid, "image": image, "program": "stepper"} in look["ended"],
                        "one that ended")
    equal(list(ours(look)), [two.pid], "what is left")
    watcher.end()


def over(place):
    stepper = Stepper(place)
    stepper.do("l")
    watcher = Watcher(place, str(stepper.pid), *FAST)
    watcher.wait(lambda look: look["processes"], "a look")
    stepper.end()
    equal(watcher.process.wait(20), 0, "code at the end of the process")
    check(watcher.read()[-1]["ended"], "the last look does not say so", watcher.seen[-1])
    for ends in (True, False):  # by itself, and killed: noticed at once, not an hour later
        stepper = Stepper(place)
        stepper.do("l")
        watcher = Watcher(place, str(stepper.pid), "--interval", "1h", "--older-than", "0")
        watcher.wait(lambda look: look["processes"], "a look")
        if ends:
            stepper.end()
        else:
            stepper.process.kill()
        equal(watcher.process.wait(20), 0, "code at the end of the process, with an hour to the next look")
        equal([ended["pid"] for ended in watcher.read()[-1]["ended"]], [stepper.pid],
              "what the last look says has ended")
    process = place.start(program("stepper"), env=dict(place.env, LD_PRELOAD=built("ALLIUM_AGENT"), ALLIUM_PERIOD="1G"))
    watcher = Watcher(place, str(process.pid), "--interval", "1h")
    watcher.wait(lambda look: True, "a look")
    process.kill()
    equal(watcher.process.wait(20), 0, "code at the end of a process without samples")


def dismissed(place):
    stepper = Stepper(place)
    stepper.do("lc")
    time.sleep(OLD_BY_THEN)
    words = (str(stepper.pid), *FAST, "--state", "known")
    watcher = Watcher(place, *words)
    watcher.wait(lambda look: len(rows(look)) == 2, "both stacks")
    watcher.signal(signal.SIGUSR1)
    look = watcher.wait(lambda look: not rows(look), "both dismissed")
    equal(look["processes"][0]["dismissed_samples"], 2 * BLOCKS, "dismissed")
    with unseen(watcher.process):
        stepper.do("l")
    look = watcher.wait(lambda look: rows(look), "what came after it")
    equal({name: row["old_samples"] for name, row in rows(look).items()}, {"leak": BLOCKS}, "listed")
    check("%d samples dismissed" % (2 * BLOCKS) in watcher.end(), "it did not say how many")
    with open(place.path("known")) as file:
        lines = file.read().splitlines()
    image = int(look["processes"][0]["image"], 16)
    equal((lines[0], len(lines), {int(line.split()[0], 16) for line in lines[1:]}),
          ("allium-watch-state 1", 1 + 2 * BLOCKS, {image}), "the file")
    equal(os.stat(place.path("known")).st_mode & 0o777, 0o600, "its mode")

    again = Watcher(place, *words)
    look = again.wait(lambda look: rows(look), "the same again")
    equal({name: row["old_samples"] for name, row in rows(look).items()}, {"leak": BLOCKS}, "listed by another watch")
    stepper.do("ec")  # other samples, most likely at the same addresses
    look = again.wait(lambda look: old_samples(look, "fill") == BLOCKS, "new samples at old addresses")
    equal(look["processes"][0]["dismissed_samples"], BLOCKS, "still dismissed")
    again.end()
    with open(place.path("known")) as file:
        equal(len(file.readlines()), 1 + BLOCKS, "lines of the file: those freed are gone")


def dismissed_of_others(place):
    """What was dismissed of a process stays while it lives, whatever is watched; then it goes."""
    one, two = Stepper(place), Stepper(place)
    for stepper in (one, two):
        stepper.do("l")
        time.sleep(OLD_BY_THEN)
        watcher = Watcher(place, str(stepper.pid), *FAST, "--state", "known")
        watcher.wait(lambda look: rows(look), "a look")
        watcher.signal(signal.SIGUSR1)
        watcher.wait(lambda look: not rows(look), "dismissed")
        watcher.end()

    def kept():
        with open(place.path("known")) as file:
            return [line.split()[0] for line in file.read().splitlines()[1:]]
    both = kept()
    equal((len(both), len(set(both))), (2 * BLOCKS, 2), "samples and images in the file")
    two.do("ce")  # so that there is something to write
    for words in ((str(two.pid),), ()):
        place.allium("watch", *words, "--once", "--state", "known")
        equal(kept(), both, "after watch " + " ".join(words))
    one.end()
    place.allium("watch", str(two.pid), "--once", "--state", "known")
    equal(len(kept()), BLOCKS, "what is left when one has ended")


def other_numbers(place):
    """A process is called as it is here, not as in the name of its ledger; who cannot be seen from here has no number.
    """
    env = dict(place.env, LD_PRELOAD=built("ALLIUM_AGENT"), ALLIUM_PERIOD="1")
    process = place.start(*tap.unshare(), "--pid", "--fork", "--kill-child", program("stepper"), env=env)
    process.stdin.write(b"l")
    process.stdin.flush()
    equal(process.stdout.read(1), b".", "the answer of stepper")
    (pid,) = [int(child) for child in children(process.pid)]

    with open("/proc/%d/maps" % pid) as maps:
        (image,) = set(re.findall(r"/1-([0-9a-f]{16})\.ledger", maps.read()))

    def ours(look):  # there may be others
        return [(one["pid"], {row["name"]: row["old_samples"]
                              for row in one["rows"]}) for one in look["processes"]
                if int(one["image"], 16) == int(image, 16)]
    words = ("watch", "--once", "--older-than", "0", "--json")
    equal(ours(json.loads(place.allium(*words).out)), [(pid, {"leak": BLOCKS})], "its number, and its samples")
    inside = tap.succeed([*tap.unshare(), "--pid", "--fork", "--mount-proc", built("ALLIUM"), *words], env=place.env)
    equal(ours(json.loads(inside.stdout)), [(None, {"leak": BLOCKS})], "seen from elsewhere")
    printed = tap.succeed([*tap.unshare(), "--pid", "--fork", "--mount-proc",
                           built("ALLIUM"), *words[:-1]], env=place.env)
    check(b"stepper (process id not visible here)" in printed.stdout, printed.stdout)


def hostile_states(place):
    stepper = Stepper(place)
    stepper.do("l")
    head, line = b"allium-watch-state 1\n", b"%016x %016x\n"
    hostile = {
        b"": 1, b"hello\n": 1, head[:-1]: 1, b"allium-watch-state 2\n": 1, head * 2: 2, head + b"x": 2,
        head + line % (1, 2) + b"\0": 3, head + (line % (1, 2))[:-1]: 2,
        head + line % (1, 2) + line % (3, 4) + line % (1, 5): 4, head + b"g" * 33 + b"\n": 2,
        head + b"-000000000000001 0000000000000001\n": 2, head + b"\xff" * 34: 2, b"\0" * 4096: 1, head + b"\n" * 34: 2
    }
    for content, number in hostile.items():
        with open(place.path("bad"), "wb") as file:
            file.write(content)
        done = place.allium("watch", str(stepper.pid), "--once", "--state", "bad", code=1)
        check(
            done.err.startswith("allium: bad:%d: " % number) and done.err.count("\n") == 1, content[:60], "gave",
            done.err)
        with open(place.path("bad"), "rb") as file:
            equal(file.read(), content, "a file that was refused")
    os.mkfifo(place.path("pipe"))
    for path in ("pipe", ".", "/dev/null", "no/such/folder/file/x/"):
        done = place.allium("watch", str(stepper.pid), "--once", "--state", path, code=None)
        check(done.returncode == (0 if path.startswith("no/") else 1), path, "gave", done.returncode, done.err)
    with open(place.path("good"), "wb") as file:  # of processes that there are not
        file.write(head + b"".join(line % (7, serial)
                                   for serial in range(1000)) + line % (0, 0) + line % (2**64 - 1, 2**64 - 1))
    place.allium("watch", str(stepper.pid), "--once", "--state", "good")
    with open(place.path("good"), "rb") as file:
        equal(file.read(), head, "what is left of processes that have ended")


def cannot_save(place):
    stepper = Stepper(place)
    stepper.do("l")
    time.sleep(OLD_BY_THEN)
    watcher = Watcher(place, str(stepper.pid), *FAST, "--state", "no/such/folder")
    watcher.wait(lambda look: rows(look), "a look")
    watcher.signal(signal.SIGUSR1)
    watcher.wait(lambda look: look["processes"][0]["dismissed_samples"] == BLOCKS, "dismissed even so")
    check("no/such/folder: No such file" in watcher.end(code=1), "it said nothing")


def listing(place):
    """SIGHUP lists all, SIGUSR2 recent frees: where they were allocated, and freed."""
    stepper = Stepper(place)
    stepper.do("lce")
    watcher = Watcher(place, str(stepper.pid), "--interval", "1h", "--older-than", "1ms")
    watcher.wait(lambda look: look["snapshot"] == 1 and look["why"] == "requested", "the first look")
    watcher.signal(signal.SIGHUP)
    look = watcher.wait(lambda look: look["snapshot"] == 2, "a look that was asked for")
    equal((look["why"], old_samples(look, "leak"), look["processes"][0]["frees"]), ("requested", BLOCKS, []),
          "what it shows")
    watcher.signal(signal.SIGUSR2)
    frees = watcher.wait(lambda look: look["why"] == "frees", "recent frees")["processes"][0]["frees"]
    of_cache = [free for free in frees if free["allocated_by"]["stack"][0]["function"] == "fill"]
    equal(
        ([free["size_bytes"] for free in of_cache], len({free["sample"] for free in of_cache})),
        ([BLOCK] * BLOCKS, BLOCKS),
        "frees",
    )
    where = {free["freed_by"]["stack"][0]["function"] for free in of_cache if free["freed_by"]["stack"]}
    check(where <= {"empty"} and where, "they were freed in", where)
    watcher.end()


def alerts(place):
    """Once when it comes true, again when it has been false; one command at a time, and nobody waits for it."""
    stepper = Stepper(place)
    stepper.do("t")  # so it has a ledger
    script = 'echo "$ALLIUM_PID $ALLIUM_COMM $ALLIUM_ALERT $ALLIUM_LIVE_BYTES $ALLIUM_LIVE_BYTES_LOW" >>told; sleep 0.3; echo end >>told'
    watcher = Watcher(place, str(stepper.pid), *FAST, "--alert", "live>100K", "--exec", script)
    stepper.do("c")
    watcher.wait(lambda look: rows(look), "a look")
    check(not os.path.exists(place.path("told")), "an alert below the limit")
    for turn in (1, 2, 3):
        stepper.do("cc")
        look = watcher.wait(lambda look: look["alerts"], "an alert")
        equal([(alert["condition"], alert["pid"], alert["row"]) for alert in look["alerts"]],
              [("live>100K", stepper.pid, None)], "alerts")
        for _ in range(5):
            equal(watcher.wait(lambda _: True, "looks go on")["alerts"], [], "alerts while it stays true")
        stepper.do("e")
        watcher.wait(lambda look: look["processes"][0]["live_bytes"] == 0, "nothing live")

    def told():
        with contextlib.suppress(FileNotFoundError), open(place.path("told")) as file:
            return file.read().splitlines()
        return []
    wait_until(lambda: len(told()) == 6, 20, "three commands")
    equal(told()[1::2], ["end"] * 3, "one after the other")
    check(all(re.fullmatch(r"%d stepper live>100K (\d+) \1" % stepper.pid, line) for line in told()[::2]), "variables",
          told())
    wait_until(lambda: not children(watcher.process.pid), 10, "no zombie is left")
    watcher.end()


def children(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as file:
        return file.read().split()


def alert_for(place):
    """live>... for TIME waits so long; growing names the stack; a command that fails is told, whoever started us."""
    stepper = Stepper(place)
    stepper.do("c" * 4)
    watcher = Watcher(place, str(stepper.pid), *FAST, "--alert", "live>100K for 400ms or growing for 0s", "--exec",
                      'echo "$ALLIUM_FUNCTION $ALLIUM_SLOPE_BYTES_PER_HOUR" >>"$ALLIUM_ALERT"; exit 3',
                      before=("env", "--ignore-signal=CHLD"))
    look = watcher.wait(lambda look: look["alerts"], "an alert")
    equal(look["alerts"][0]["condition"], "live>100K for 400ms", "it")
    first = next(seen for seen in watcher.seen if seen["processes"])
    # A look has the time at which it began, its ledgers those at which they were read: before the next look.
    after = watcher.wait(lambda _: True, "the look after")
    check(after["time_ns"] - first["time_ns"] >= 400e6, "after", (after["time_ns"] - first["time_ns"]) / 1e6, "ms")
    found = None
    end = time.monotonic() + 60
    while not found and time.monotonic() < end:
        stepper.do("l")
        found = next(
            (look for look in watcher.read() if look["alerts"] and look["alerts"][0]["condition"] == "growing for 0s"),
            None)
        time.sleep(0.01)
    check(found, "no alert of growth")
    equal(found["processes"][0]["rows"][found["alerts"][0]["row"]]["name"], "leak", "the row of the alert")

    def told():
        with contextlib.suppress(FileNotFoundError), open(place.path("growing for 0s")) as file:
            return file.read()
    check(re.match(r"leak \d+\n", wait_until(told, 20, "the command")), "variables")
    wait_until(lambda: not children(watcher.process.pid), 20, "its command has ended")
    said = watcher.end()
    equal(said.count("the command of --exec ended with 3"), sum(len(look["alerts"]) for look in watcher.read()),
          "complaints in " + said)


WITHOUT_PIDFD = """
import ctypes, errno, os, struct, sys
PIDFD_OPEN, NO_NEW_PRIVS, SECCOMP, FILTER = 434, 38, 22, 2
code = b"".join(struct.pack("<HBBI", *one) for one in (  # the number of the call; is it that one; an error, or go on
    (0x20, 0, 0, 0), (0x15, 0, 1, PIDFD_OPEN), (0x06, 0, 0, 0x00050000 | errno.EMFILE), (0x06, 0, 0, 0x7fff0000)))
program = struct.pack("<HxxxxxxQ", 4, ctypes.addressof(held := ctypes.create_string_buffer(code)))
libc = ctypes.CDLL(None)
assert not libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0) and not libc.prctl(SECCOMP, FILTER, program, 0, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


def without_descriptor(place):
    """Where the end of a command gives no descriptor to wait for, the next one begins all the same, and nobody
    complains.
    """
    stepper = Stepper(place)
    stepper.do("c")
    script = 'echo "$ALLIUM_ALERT" >>told; sleep 0.2'
    watcher = Watcher(place, str(stepper.pid), "--interval", "1h", "--alert", "live>10K or live>20K or live>30K",
                      "--exec", script, before=(sys.executable, "-c", WITHOUT_PIDFD))
    equal(len(watcher.wait(lambda _: True, "a look")["alerts"]), 3, "alerts")

    def told():
        with contextlib.suppress(FileNotFoundError), open(place.path("told")) as file:
            return file.read().splitlines()
    wait_until(lambda: told() == ["live>10K", "live>20K", "live>30K"], 60, "three commands, and there are")
    equal(watcher.end(), "", "what it said")


def keys_of(value):
    if isinstance(value, list):
        return {key for one in value for key in keys_of(one)}
    return set(value) | keys_of(list(value.values())) if isinstance(value, dict) else set()


def manual(place):
    """Every key that is written is in the manual, and no other."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../man/allium-json.5.scd")) as file:
        page = file.read()
    block = page.split("Blocks have these keys:")[1].split("\n# ")[0]
    heads = [
        set(re.findall(r"\*([a-z_]+)\*", line))
        for line in (page.split("\n# WATCH")[1].split("\n# ")[0] + block).splitlines()
        if re.fullmatch(r"\*[^ ]+\*(, \*[^ ]+\*)*", line)
    ]
    stepper, other = Stepper(place), Stepper(place)
    stepper.do("lcce")
    other.do("l")
    watcher = Watcher(place, *FAST, "--alert", "live>1K", "--top", "1")
    watcher.wait(lambda look: look["alerts"], "an alert")
    other.end()
    watcher.wait(lambda look: other.pid in [ended["pid"] for ended in look["ended"]], "an end")
    watcher.signal(signal.SIGUSR2)
    watcher.wait(lambda look: look["why"] == "frees" and look["processes"], "frees")
    written = {key for key in keys_of(watcher.seen) if not key.endswith(("_low", "_high"))}
    told = {key for head in heads for key in head if not key.endswith(("_low", "_high"))}
    common = {"schema", "version", "stack_end", "stack", "function", "file", "line", "inlined", "module", "address"}
    common |= {"place", "distance_bytes"}  # of blocks, those that only allium who writes
    equal(sorted(written - common), sorted(told - common), "keys")
    watcher.end()


def misuse(place):
    for condition, column in (
        ("", 1),
        ("live", 5),
        ("live>", 6),
        ("live>=1G", 5),
        ("live>x", 6),
        ("growing fo 5m", 9),
        ("grow", 1),
        ("growing for", 12),
        ("growing for x", 13),
        ("live>1G or", 11),
        ("live>1G live>2G", 9),
        ("growing or " * 8 + "growing", 89),
        ("live>1G for 5m\x1b[2J", 13),
        ("growing;", 8),
    ):
        done = place.allium("watch", "--once", "--alert", condition, code=2)
        check(
            "at column %d%s" % (column, ":" if column <= len(condition) else ";") in done.err
            and done.err.count("\n") == 1, repr(condition), "gave", repr(done.err))
        check("\x1b" not in done.err, "an escape sequence in", repr(done.err))
    for words in (("--interval", "0"), ("--interval", "x"), ("--interval", "1us"), ("--older-than", "x"),
                  ("--top", "-1"), ("--exec", "true"), ("--where", "size>"), ("1", "2"), ("--nonsense",)):
        done = place.allium("watch", "--once", *words, code=2)
        check(done.err.startswith("allium: ") and not done.out, words, "said", done.err, done.out)
    place.allium("watch", "--once", "999999999", code=1)
    place.allium("watch", "--once", "no.such.allium", code=1)


def recordings(place):
    path = place.recording("300")
    look = json.loads(place.allium("watch", path, "--older-than", "1ms", "--json").out)
    equal({name: (row["old_bytes"], row["old_samples"])
           for name, row in rows(look).items()}, {"hold": (1000000, 100)}, "rows")
    check("hold" in place.allium("watch", path, "--older-than", "1ms").out, "text")
    check("change any more" in place.allium("watch", path, "--alert", "growing", code=2).err,
          "an alert about a recording")
    past = place.allium("watch", path + "@150ms", code=None)  # there may be none yet on a busy machine
    check(past.returncode == (2 if "ages are not known" in past.err else 1) and not past.out,
          "a moment in the past gave", past.err)
    stepper = Stepper(place)
    stepper.do("l")
    time.sleep(0.05)
    stepper.end()
    look = json.loads(place.allium("watch", str(stepper.pid), "--older-than", "0", "--json").out)
    equal(old_samples(look, "leak"), BLOCKS, "what a process has left")


class Terminal:
    """allium watch on a terminal of its own."""

    def __init__(self, place, *words):
        self.text = ""
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.chdir(place.folder)
            os.execve(built("ALLIUM"), ["allium", "watch", *words], dict(place.env, TERM="dumb"))
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 160, 0, 0))
        self.before = None

    def read(self):
        with contextlib.suppress(OSError):
            while select.select([self.fd], [], [], 0.02)[0]:
                self.text += os.read(self.fd, 65536).decode(errors="replace").replace("\r", "")
        return self.text

    def wait(self, words):
        wait_until(lambda: words in self.read(), 20, "%r on the terminal: %s" % (words, self.text))
        self.text = self.text.split(words, 1)[1]

    def press(self, keys):
        os.write(self.fd, keys.encode())

    def echoes(self):
        return termios.tcgetattr(self.fd)[3] & (termios.ECHO | termios.ICANON) == termios.ECHO | termios.ICANON

    def end(self):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
        os.close(self.fd)


def keys(place):
    stepper = Stepper(place)
    stepper.do("lce")
    time.sleep(0.05)
    terminal = Terminal(place, str(stepper.pid), "--interval", "1h", "--older-than", "20ms")
    try:
        terminal.wait("leak")
        check(not terminal.echoes(), "the terminal still echoes")
        terminal.press("?")
        terminal.wait("dismiss it")
        terminal.press("f")
        terminal.wait("freed lately")
        terminal.wait("empty")
        terminal.press("\n")
        terminal.wait("leak")
        terminal.press("d")
        terminal.wait("%d samples dismissed" % BLOCKS)
        terminal.press("l")
        terminal.wait("%d samples dismissed" % BLOCKS)
        check("leak" not in terminal.read(), "listed though dismissed:", terminal.text)
        os.kill(terminal.pid, signal.SIGTSTP)
        equal(os.WIFSTOPPED(os.waitpid(terminal.pid, os.WUNTRACED)[1]), True, "stopped")
        check(terminal.echoes(), "the terminal while stopped")
        os.kill(terminal.pid, signal.SIGCONT)
        wait_until(lambda: not terminal.echoes(), 10, "the terminal taken again")
        terminal.press("q")
        wait_until(terminal.echoes, 10, "the terminal as it was")
        terminal.read()
        equal(os.waitpid(terminal.pid, 0)[1], 0, "code after q")
    finally:
        terminal.end()


def terminal_signals(place):
    """However it ends, the terminal is as it was."""
    stepper = Stepper(place)
    stepper.do("l")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        terminal = Terminal(place, str(stepper.pid), "--interval", "1h", "--older-than", "0")
        try:
            terminal.wait("leak")
            os.kill(terminal.pid, number)
            wait_until(terminal.echoes, 10, "the terminal as it was after signal %d" % number)
            equal(os.waitpid(terminal.pid, 0)[1], 0, "code after signal %d" % number)
        finally:
            terminal.end()


def closed_output(place):
    stepper = Stepper(place)
    stepper.do("l")
    watcher = place.start_allium("watch", str(stepper.pid), *FAST)
    watcher.stdout.readline()
    watcher.stdout.close()
    equal(watcher.wait(20), -signal.SIGPIPE, "code when nobody reads any more")
    with open("/dev/full", "w") as full:
        done = tap.run([built("ALLIUM"), "watch", str(stepper.pid), "--once"], env=place.env, stdout=full)
    equal((done.returncode, "cannot write" in done.stderr.decode()), (1, True), "on a full disk")


def damaged_ledgers(place):
    """What lies among the ledgers and is none does no harm, and is told once."""
    stepper = Stepper(place)
    stepper.do("l")
    folder = os.path.dirname(place.ledgers()[0])
    with open(place.ledgers()[0], "rb") as file:
        head = file.read(1 << 16)
    for number, content in enumerate((b"", b"\0" * 8192, b"\xff" * 8192, head[:4096], head)):
        with open("%s/%d-%016x.ledger" % (folder, stepper.pid, number + 1), "wb") as file:
            file.write(content)
    watcher = Watcher(place, *FAST)
    look = watcher.wait(lambda look: look["snapshot"] >= 5, "looks")
    equal(rows(look, stepper.pid)["leak"]["old_samples"], BLOCKS, "what is seen among rubbish")
    said = watcher.end()
    check(said.count("\n") <= 1, "complaints", said)


def leaks_nothing(place):
    """A day of it in fast time, under its own agent, every allocation booked: what it holds between two looks does not
    grow with their number. It sees itself, too.
    """
    rounds = pick(36, 720)
    own = place.folder + "/own"
    os.mkdir(own, 0o700)
    stepper = Stepper(place)
    stepper.do("l")
    agent = [name + "=" + value for name, value in tap.agent_env(own, 1).items() if os.environ.get(name) != value]
    watcher = place.start(*alone(place), "env", *agent, built("ALLIUM"), "watch", "--interval", "1h", "--older-than",
                          "1ms", "--alert", "live>200K or growing for 0s", "--exec", "true", "--state", "known",
                          "--where", "!comm:allium", "--json")
    looks = 0

    def look(number, watched):
        nonlocal looks
        if number:
            watcher.send_signal(number)
        seen = json.loads(watcher.stdout.readline())
        looks += 1
        equal((seen["snapshot"], {process["pid"]
                              for process in seen["processes"]} - {watcher.pid}), (looks, watched), "a look")

    def held():
        wait_until(lambda: not children(watcher.pid), 10, "its command has ended")
        look(signal.SIGHUP, {stepper.pid})  # and is forgotten
        time.sleep(0.05)
        return int(next(ledger["live_seen_bytes"] for ledger in tap.totals(own) if ledger["pid"] == watcher.pid))

    seen = []
    look(None, {stepper.pid})
    # processes come and go, caches fill and empty, alerts come true, samples are dismissed
    for number in range(rounds):
        other = Stepper(place)
        other.do("lccc")
        stepper.do("cccc")
        for wish in (signal.SIGHUP, signal.SIGUSR1):
            look(wish, {stepper.pid, other.pid})
        stepper.do("et")
        other.end()
        for wish in (signal.SIGHUP, signal.SIGUSR2):
            look(wish, {stepper.pid})
        if number % (rounds // 12) == 0:
            seen.append(held())
    print("# %d looks; held: %s" % (looks, " ".join(map(str, seen))))
    equal(tap.stop(watcher), 0, "code")
    check(min(seen[6:]) <= min(seen[1:6]), "it holds ever more:", seen)


def alone(place):
    """Words before a command that shall find no ledgers but those of this place: those of others come and go."""
    hide = ('mount --bind "$0" /mnt && mount -t tmpfs tmpfs /dev/shm && mkdir -p "$0" && mount --bind /mnt "$0" && '
            '{ test ! -d /run/user || mount -t tmpfs tmpfs /run/user; } && exec "$@"')
    return [*tap.unshare(), "sh", "-c", hide, os.path.dirname(place.folder)]


tap.main([
    ("one look: every stack with its exact sums", placed(exact_rows)),
    ("old memory is listed from the start, and the time of the next snapshot", placed(from_the_start)),
    ("--count and --duration end the watch", placed(limits)),
    ("a stack is called after who asked, not after a wrapper", placed(askers)),
    ("what is fresh and what is new is told once", placed(fresh_and_new)),
    ("a leak is marked while it leaks, with its slope; a full cache is not", placed(growing)),
    ("a look at which nothing has changed is one line", placed(quiet_looks)),
    ("a process of which nothing was sampled yet is waited for", placed(waited_for)),
    ("processes that come and go", placed(comings_and_goings)),
    ("it ends with the process it was asked to watch", placed(over)),
    ("SIGUSR1 dismisses what is old now, by serial; a file keeps it", placed(dismissed)),
    ("hostile and damaged states are refused and left alone", placed(hostile_states)),
    ("a state that cannot be written is told", placed(cannot_save)),
    ("SIGHUP lists all, SIGUSR2 recent frees", placed(listing)),
    ("an alert runs its command once, and one at a time", placed(alerts)),
    ("what was dismissed of other processes stays", placed(dismissed_of_others)),
    ("a process is called as it is here", placed(other_numbers)),
    ("commands follow one another without descriptors", placed(without_descriptor)),
    ("an alert that must last, and one of growth", placed(alert_for)),
    ("the manual has every key that is written, and no other", placed(manual)),
    ("what does not parse is told with its column", placed(misuse)),
    ("recordings, and what a process has left: one look", placed(recordings)),
    ("keys on a terminal, which is given back", placed(keys)),
    ("the terminal is as it was after any signal", placed(terminal_signals)),
    ("nobody reads it, or the disk is full", placed(closed_output)),
    ("rubbish among the ledgers", placed(damaged_ledgers)),
    ("a day of it leaks nothing", placed(leaks_nothing)),
])
