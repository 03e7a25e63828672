# SPDX-License-Identifier: BSD-2-Clause
"""Where the agent may not have what it wants: seccomp, ulimit -v, a full tmpfs, a memory cgroup near its limit.

The program does what it does without the agent; what the books lack is counted, and they say why.
"""
import contextlib
import os
import resource
import struct
import sys

sys.dont_write_bytecode = True
import own_cgroup
import tap
from tap import agent_env, built, check, equal, numbers, private_dir, run, succeed, totals

FOLDER = built("TEST_STRESS")


def program(name):
    return os.path.join(FOLDER, name)


def lost(ledger):
    return ledger["lost_samples"] + ledger["lost_live"]


def consistent(ledger, made):
    """What was counted and what was lost are what there was; rows do not contradict each other."""
    check("error" not in ledger, ledger)
    check(not ledger["inconsistent"], "inconsistent")
    equal(ledger["frees_unseen"], 0, "frees_unseen")
    counted = ledger["allocated_samples"] + ledger["lost_samples"]
    check(made <= counted <= made + 20, "counted and lost:", counted, "made:", made)
    equal(ledger["allocated_samples"] - ledger["freed_samples"], ledger["live_samples"],
          "allocated less freed (not followed: %d)" % ledger["lost_live"])
    check(ledger["full"] or not lost(ledger), "lost %d, and nothing says why" % lost(ledger))


def sandboxed(how):
    def test():
        # What fits into the room taken along; what runs out of room for the live ones; and for the stacks as well.
        for blocks, stacks in ((1000, 10), (5000, 10), (100_000, 10), (100_000, 16384)):
            with private_dir() as ledgers:
                done = run([program("sandbox"), how, str(blocks), str(stacks)], env=agent_env(ledgers, 1))
                equal((done.returncode, done.stderr), (0, b""), "code (-31, -9: the filter killed it) and stderr")
                said = numbers(done.stdout.decode())
                equal(said["made"], blocks, "blocks made")
                (ledger,) = totals(ledgers)
            check(ledger["allocated_samples"] >= 500, "nothing was counted inside")
            if blocks > 10000:
                check(lost(ledger), "nothing was lost")
            if lost(ledger):
                check("seccomp" in ledger["full"], "lost", lost(ledger), "and full says:", ledger["full"] or "nothing")
            equal(lost(ledger) if blocks == 1000 else 0, 0, "lost, of what must fit")
            consistent(ledger, blocks)
        for period in ("64K", "512K"):
            with private_dir() as ledgers:
                succeed([program("sandbox"), how, "100000", "16384"], env=agent_env(ledgers, period))
    return test


def raw_filter():
    """Entered by an instruction, past libc: nobody can tell the agent. Where the filter allows prctl(), growth asks
    first.
    """
    for settings in {}, {"ALLIUM_SITES": "1"}:
        for period in 1, "4096", "512K":
            for blocks, stacks in ((1000, 10), (100_000, 16384)):
                with private_dir() as ledgers:
                    done = run(
                        [program("sandbox"), "raw", str(blocks), str(stacks)],
                        env=agent_env(ledgers, period, **settings))
                    equal((done.returncode, done.stderr), (0, b""),
                          "code (-31: the filter killed it), period %s %s" % (period, settings))
                    equal(numbers(done.stdout.decode())["made"], blocks, "blocks made")
                    if period == 1:
                        (ledger,) = totals(ledgers)
                        consistent(ledger, blocks)


CONTROL_SEALED = 1 << 60  # LEDGER_CONTROL_SEALED
ROOM_BLOCKS, ROOM_STACKS = 23_500, 2000  # of 1 MiB, of which 86 % are samples at the default period: 20,300
ROOM_SAMPLES = 20_000


def room_is_enough(ledger):
    tap.no_losses(ledger)
    check(ledger["live_samples"] >= ROOM_SAMPLES, "live samples:", ledger["live_samples"])
    check(not ledger["inconsistent"], "inconsistent")


def calls_after_first_second(ledgers, preload):
    """The system calls that the program makes between its two marks, as strace writes them."""
    log = os.path.join(ledgers, "strace")
    settings = ["-E", "LD_PRELOAD=" + preload, "-E", "ALLIUM_DIR=" + ledgers]
    done = succeed(
        ["strace", "-f", "-o", log, *settings,
         program("room"), "marked",
         str(ROOM_BLOCKS),
         str(ROOM_STACKS)])
    equal(numbers(done.stdout.decode())["made"], ROOM_BLOCKS, "blocks made")
    with open(log) as file:
        calls = [line.split(None, 1)[1] for line in file]
    os.unlink(log)
    marks = [i for i, call in enumerate(calls) if call.startswith("getsid(")]
    equal(len(marks), 2, "marks")
    return calls[marks[0] + 1:marks[1]]


def room_at_start():
    with private_dir() as ledgers:
        equal(calls_after_first_second(ledgers, ""), [], "system calls of the program itself")
        equal(calls_after_first_second(ledgers, built("ALLIUM_AGENT")), [], "system calls with the agent")
        (ledger,) = totals(ledgers)
    room_is_enough(ledger)


def raw_filter_without_prctl():
    """The filter kills on any system call but write and exit."""
    with private_dir() as ledgers:
        done = run([program("room"), "confined", str(ROOM_BLOCKS), str(ROOM_STACKS)], env=agent_env(ledgers, "512K"))
        (ledger,) = totals(ledgers)
    equal((done.returncode, done.stderr), (0, b""), "code (-31: the filter killed it)")
    equal(numbers(done.stdout.decode())["made"], ROOM_BLOCKS, "blocks made")
    room_is_enough(ledger)


def sealed_by_the_tool():
    """Under the same filter, with more samples than there is room for: the recorder sees the filter, and the agent
    makes no call.
    """
    with private_dir() as folder:
        recording = os.path.join(folder, "x.allium")
        done = run([
            built("ALLIUM"), "run", "-o", recording, "--period", "4K", "--",
            program("room"), "observed",
            str(ROOM_BLOCKS),
            str(ROOM_STACKS)
        ])
        equal(done.returncode, 0, "code (159: the filter killed it): " + done.stderr.decode()[-500:])
        check("made %d" % ROOM_BLOCKS in done.stdout.decode(), "what it says:", done.stdout)
        report = succeed([built("ALLIUM"), "report", recording])
        said = (report.stdout + report.stderr).decode()
        check("the program entered seccomp" in said, "no reason in the report:", said[:1500])


@contextlib.contextmanager
def filtered_twice(ledgers, name, env):
    """A process that began under seccomp, as in a container, and has one filter more now."""
    process = tap.subprocess.Popen(
        [program("jumps"), "filtered", program(name), "observed", str(ROOM_BLOCKS), str(ROOM_STACKS)],
        env=env, stdout=tap.subprocess.PIPE)
    try:
        tap.wait_until(lambda: filters_of(process.pid) == 2, 30, "the second filter")
        yield process
    finally:
        process.kill()
        process.wait()


def seals(ledgers, *command):
    """What the command prints, after which the control page says that the process is sealed."""
    said = succeed([built("ALLIUM"), *command], env=dict(os.environ, ALLIUM_DIR=ledgers)).stdout.decode()
    word = control_word(ledgers)
    check(word & CONTROL_SEALED, "after", command, "the control page says", hex(word))
    return said


def seal_in_a_container(*command):
    """A command that reads the ledger seals the process."""
    def test():
        with private_dir() as ledgers:
            env = agent_env(ledgers, "4K")
            env["JUMPS_PRELOAD"] = env.pop("LD_PRELOAD")
            with filtered_twice(ledgers, "room", env) as process:
                seals(ledgers, *[str(process.pid) if word == "PID" else word for word in command])
                listed = seals(ledgers, "ps")
                out = process.communicate(timeout=60)[0]
            (ledger,) = totals(ledgers)
        check(str(process.pid) in listed and "entered seccomp" in listed, "what ps says:", listed)
        equal(process.returncode, 0, "code (-31: the filter killed it)")
        equal(numbers(out.decode())["made"], ROOM_BLOCKS, "blocks made")
        check(lost(ledger) and "seccomp" in ledger["full"], "lost", lost(ledger), "and full says:", ledger["full"])
        consistent(ledger, ledger["allocated_samples"] + ledger["lost_samples"])

    return test


def tags_seal():
    """The same for a ledger of liballium.so alone."""
    with private_dir() as ledgers, \
            filtered_twice(ledgers, "room-tagged", dict(os.environ, ALLIUM_DIR=ledgers)) as process:
        seals(ledgers, "tags", str(process.pid))
        out = process.communicate(timeout=60)[0]
    equal(process.returncode, 0, "code (-31: the filter killed it)")
    equal(numbers(out.decode())["made"], ROOM_BLOCKS, "blocks made")


def control_word(ledgers):
    """The word of the only control page there (src/wire/control_page.h)."""
    (name,) = [name for name in os.listdir(ledgers) if name.endswith(".control")]
    with open(os.path.join(ledgers, name), "rb") as file:
        return struct.unpack("8xQ", file.read(16))[0]


def filters_of(pid):
    with open("/proc/%d/status" % pid) as file:
        return int(next(line.split()[1] for line in file if line.startswith("Seccomp_filters:")))


def unconfined():
    with private_dir() as ledgers:
        succeed([program("sandbox"), "none", "100000", "16384"], env=agent_env(ledgers, 1))
        (ledger,) = totals(ledgers)
    tap.no_losses(ledger)
    consistent(ledger, 100_000)


def address_space():
    """ulimit -v 200 MB: exact books want 2 GiB of address space, and take less."""
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (200 << 20, 200 << 20))
    for blocks, size, some_fail in ((20000, 64, False), (100000, 4000, True)):
        bare = run([program("hungry"), str(blocks), str(size)], preexec_fn=limit)
        for period in (1, 512 << 10):
            with private_dir() as ledgers:
                done = run([program("hungry"), str(blocks), str(size)], preexec_fn=limit,
                           env=agent_env(ledgers, period))
                found = totals(ledgers)
            equal(done.returncode, bare.returncode, "code, period %d" % period)
            said = numbers(done.stdout.decode())
            equal(said["wrong"], 0, "blocks with something else in them")
            if some_fail:
                check(said["failed"] > 0, "all requests succeeded: nothing was tried")
            else:
                equal(done.stdout, bare.stdout, "what it says, period %d" % period)
            if period == 1:
                equal(len(found), 1, "ledgers")
                consistent(found[0], said["made"])


def full_filesystem():
    """In a mount namespace of our own: a tmpfs of 1 MiB, and nothing else to write ledgers to."""
    script = (
        "mount -t tmpfs -o size=%s,mode=700 none /dev/shm && mkdir -m 700 /dev/shm/l && "
        "ALLIUM_DIR=/dev/shm/l ALLIUM_PERIOD=%s LD_PRELOAD=%s %s %d 100 && ls -l /dev/shm/l >&2 && %s /dev/shm/l >&2")
    for size in ("40k", "256k", "1m"):
        for period in ("1", "4k"):
            blocks = 50000
            words = script % (size, period, built("ALLIUM_AGENT"), program("hungry"), blocks, built("LEDGER_TOTALS"))
            done = run([*tap.unshare(), "sh", "-c", words])
            equal(done.returncode, 0, "code, tmpfs of %s: %s" % (size, done.stderr.decode()[-500:]))
            equal(numbers(done.stdout.decode()), {"made": blocks, "failed": 0, "wrong": 0}, "what it says")
            lines = [line for line in done.stderr.decode().splitlines() if line.startswith("{")]
            if size == "1m" and period == "1":
                equal(len(lines), 1, "ledgers")
                ledger = tap.json.loads(lines[0])
                check("tmpfs" in ledger["full"], "full:", ledger["full"])
                check(lost(ledger), "nothing was lost")
                consistent(ledger, blocks)


def near_the_limit():
    """
    A group of 48 MiB. The program takes 36 MiB at once, and then little by little 5 more: 43 in all, and would want 13
    for its books. (What the books have taken they keep: a program that grows near the limit later has less.)
    """
    blocks = 80_000
    command = [program("hungry"), str(blocks), "32", str(36 << 20)]
    with own_cgroup.limited(48 << 20) as folder:
        def enter():
            with open(folder + "/cgroup.procs", "w") as file:
                file.write("0")
        bare = succeed(command, preexec_fn=enter)
        with private_dir() as ledgers:
            done = run(command, preexec_fn=enter, env=agent_env(ledgers, 1))
            found = totals(ledgers)
    equal(done.returncode, 0, "code (-9: the kernel's killer)")
    equal(done.stdout, bare.stdout, "what it says")
    equal(len(found), 1, "ledgers")
    check("cgroup" in found[0]["full"], "full:", found[0]["full"])
    check(lost(found[0]), "nothing was lost")
    consistent(found[0], blocks)


def small_cgroup():
    """In a group of 12 MiB that is far from full the ledger stops at its share, and the reason is not that the group is
    full.
    """
    with own_cgroup.limited(12 << 20) as folder:
        def enter():
            with open(folder + "/cgroup.procs", "w") as file:
                file.write("0")
        with private_dir() as ledgers:
            run([program("hungry"), "20000", "32", "0"], preexec_fn=enter, env=agent_env(ledgers, 1))
            found = totals(ledgers)
    equal([ledger["full"] for ledger in found], ["a twelfth of the memory cgroup's limit is reached"],
          "reason")


def jumps(how, kind):
    """Our own text is rewritten only where that is allowed and hurts nobody; what is counted is the same."""
    def test():
        blocks = 1000
        with private_dir() as ledgers:
            env = agent_env(ledgers, 1)
            env["JUMPS_PRELOAD"] = env.pop("LD_PRELOAD")
            done = succeed([program("jumps"), how, program("jumps"), "look", str(blocks)], env=env)
            equal(done.stdout, b"malloc=%s free=%s\n" % (kind, kind), "the jumps that malloc and free end in")
            # malloc, calloc, realloc each; then stdout's buffer
            counted = [ledger["allocated_samples"] for ledger in totals(ledgers)]
        check(max(counted) == 3 * blocks + 1, "requests counted:", counted)
    return test


def started_from_seccomp():
    """A program that an observed one executes after it has entered seccomp is not observed, and counted."""
    with private_dir() as ledgers:
        done = succeed([program("jumps"), "filtered", program("jumps"), "look", "1000"], env=agent_env(ledgers, 1))
        equal(done.stdout, b"malloc=none free=none\n", "the jumps of somebody unobserved")
        equal([ledger["lost_children"] for ledger in totals(ledgers)], [1], "children that are counted")


tap.main([
    ("what is started from under seccomp runs as without us", started_from_seccomp),
    ("without a sandbox nothing is lost", unconfined),
    ("strict seccomp: the program lives, and losses are counted", sandboxed("strict")),
    ("a seccomp filter by prctl: the program lives, and losses are counted", sandboxed("filter")),
    ("a seccomp filter by its system call: the program lives, and losses are counted", sandboxed("filter-syscall")),
    ("a seccomp filter past libc that allows prctl: the program lives, and losses are counted", raw_filter),
    ("after its first second a program with 20,000 live samples of 2,000 stacks makes no system call of ours",
     room_at_start),
    ("a seccomp filter past libc that kills on prctl, too: the program lives as long as nothing grows",
     raw_filter_without_prctl),
    ("the recorder seals a program that entered seccomp past libc: it lives, and losses are counted",
     sealed_by_the_tool),
    ("allium ps seals a program that has one filter more than at its start", seal_in_a_container("ps")),
    ("so does allium report", seal_in_a_container("report", "PID")),
    ("so does allium tags", tags_seal),
    ("a limit on the address space: the program does what it did", address_space),
    ("a full tmpfs: the program does what it did, and losses are counted", full_filesystem),
    ("a memory cgroup near its limit: the program lives, and losses are counted", near_the_limit),
    ("a small memory cgroup that is not full: the ledger's share is the reason that is told", small_cgroup),
    ("hot halves jump straight to the allocator", jumps("free", b"place")),
    ("where memory may not be both written and executed they jump through a pointer", jumps("denied", b"pointer")),
    ("under a seccomp filter they jump through a pointer", jumps("filtered", b"pointer")),
])
