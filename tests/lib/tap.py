# SPDX-License-Identifier: BSD-2-Clause
"""What the test drivers share: TAP, private directories for ledgers, programs under the agent, sums of their ledgers.

Paths of what was built come from the environment, set by meson: ALLIUM, ALLIUM_AGENT, LEDGER_TOTALS and so on.
ALLIUM_TEST_LONG=1 asks for the full counts.
"""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

LONG = os.environ.get("ALLIUM_TEST_LONG") == "1"
TIMEOUT = 600 if LONG else 120
PATIENCE = 6

_built = {}
for _name in list(os.environ):  # taken out of it: the programs under test shall not see them
    if _name.startswith(("ALLIUM", "TEST_", "LEDGER_TOTALS", "COUNT_SHIM")):
        _built[_name] = os.environ.pop(_name)
# meson sets some
for _name in ("LD_PRELOAD", "LD_LIBRARY_PATH", "MALLOC_PERTURB_", "COUNT_SHIM_DIR", "DEBUGINFOD_URLS", "PYTHONPATH"):
    os.environ.pop(_name, None)


class Failed(Exception):
    """What a test says that found something wrong."""


class Skipped(Exception):
    """What a test says that this machine cannot run; tests/checks/skips-allowed must list it."""


def built(name):
    """Path of something that meson built: built("ALLIUM_AGENT")."""
    if name not in _built:
        raise Failed("%s is not set: run this through meson test" % name)
    return os.path.abspath(_built[name])


def replace_built(name, path):
    """From now on built(name) is this."""
    built(name)
    _built[name] = path


def pick(short, long):
    return long if LONG else short


def check(condition, *words):
    if not condition:
        raise Failed(" ".join(str(word) for word in words))


def equal(have, want, what):
    if have != want:
        raise Failed("%s: have %s, want %s" % (what, shorten(have), shorten(want)))


def shorten(value, most=2000):
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= most else text[:most] + "... (%d characters)" % len(text)


def main(tests):
    """Runs [(name, function)], printing TAP. With arguments: only those whose name has one of them in it."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what was begun is tidied up
    for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGINT):  # ignored under nohup, and in a shell's background:
        signal.signal(number, signal.SIG_DFL)  # and so in everything that is started here
    signal.signal(signal.SIGINT, signal.default_int_handler)
    wanted = sys.argv[1:]
    tests = [test for test in tests if not wanted or any(word in test[0] for word in wanted)]
    print("1..%d" % len(tests), flush=True)
    bad = 0
    for number, (name, function) in enumerate(tests, 1):
        began, why, skipped = time.monotonic(), None, ""
        try:
            function()
        except Skipped as reason:
            skipped = " # SKIP %s" % reason
        except Failed as error:
            why = str(error)
        except subprocess.TimeoutExpired as error:
            why = "did not end within %d s: %s" % (error.timeout, error.cmd)
        except Exception:
            why = traceback.format_exc()
        print("%sok %d - %s%s" % ("not " if why else "", number, name, skipped))
        for line in (why or "").splitlines():
            print("# " + line)
        print("# %.1f s" % (time.monotonic() - began), flush=True)
        bad += why is not None
    sys.exit(1 if bad else 0)


@contextlib.contextmanager
def private_dir(where="/dev/shm"):
    """A directory that is ours alone and gone afterwards."""
    path = tempfile.mkdtemp(prefix="allium-test-", dir=where)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def agent_for(env):
    """Path of the library that has what the settings in `env` ask for."""
    return built("ALLIUM_AGENT_FULL" if env.get("ALLIUM_SITES") else "ALLIUM_AGENT")


def agent_env(ledgers, period=1, preload=(), **more):
    """Environment of a program under the agent, the full one with ALLIUM_SITES; `preload` are libraries behind it,
    "+LIBRARY" before it.
    """
    before = [name[1:] for name in preload if name.startswith("+")]
    behind = [name for name in preload if not name.startswith("+")]
    env = dict(os.environ)
    env.update(LD_PRELOAD=":".join(before + [agent_for(more)] + behind), ALLIUM_DIR=ledgers,
               ALLIUM_PERIOD=str(period), **{name: str(value) for name, value in more.items()})
    return env


def run(command, timeout=None, **how):
    """subprocess.run with captured output and an empty stdin, unless said otherwise. Kills the whole group at timeout.
    """
    how.setdefault("stdin", subprocess.DEVNULL)
    how.setdefault("stdout", subprocess.PIPE)
    how.setdefault("stderr", subprocess.PIPE)
    data = how.pop("input", None)
    if data is not None:
        how["stdin"] = subprocess.PIPE
    process = subprocess.Popen(command, start_new_session=True, **how)
    try:
        out, err = process.communicate(data, timeout=timeout or TIMEOUT)
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def succeed(command, **how):
    """As run(), and the command must end with 0."""
    done = run(command, **how)
    check(done.returncode == 0, "%s ended with %d: %s" % (shorten(command, 300), done.returncode,
                                                         shorten((done.stderr or b"")[-1500:])))
    return done


def totals(directory, *options):
    """What the ledgers in a directory add up to: a list of dictionaries."""
    done = succeed([built("LEDGER_TOTALS"), *options, directory])
    return [json.loads(line) for line in done.stdout.decode(errors="replace").splitlines()]


def own_counts(text):
    """What the tests' programs print of themselves, a line for each place: {pid: {place: (made, bytes made, live, bytes
    live)}}.
    """
    counts = {}
    for line in text.splitlines():
        pid, place, *numbers = line.split()
        counts.setdefault(int(pid), {})[place] = tuple(map(int, numbers))
    return counts


LOSSES = ("lost_samples", "lost_live", "frees_unseen")


def no_losses(ledger):
    check("error" not in ledger, ledger)
    for loss in LOSSES:
        equal(ledger[loss], 0, "%s of pid %d" % (loss, ledger["pid"]))
    check(not ledger["inconsistent"], "inconsistent ledger of pid", ledger["pid"])
    check(not ledger["full"], "a full ledger:", ledger["full"])


def numbers(text):
    """{"a": 1} of lines 'a 1'."""
    return {line.split()[0]: int(line.split()[1]) for line in text.splitlines() if len(line.split()) == 2}


def unshare():
    """Words before a command that shall have a mount namespace of its own."""
    return ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]


def wait_until(condition, seconds, what):
    """`seconds` are a quiet machine's: one that has others to serve gets more before it is said to hang."""
    end = time.monotonic() + seconds * PATIENCE
    while time.monotonic() < end:
        got = condition()
        if got:
            return got
        time.sleep(0.01)
    raise Failed("after %g s still not: %s" % (seconds * PATIENCE, what))


def retry(why):
    """A test begins once more. tests/run counts these lines, and a run with more than two has failed."""
    print("# retry: %s" % str(why).replace("\n", " "), flush=True)


def in_time(test, *seconds):
    """Of what lasts some seconds: test(seconds, is_over) does it, -> True when it was over too soon; then once more,
    with longer.
    """
    for last in seconds:
        began = time.monotonic()
        if not test(last, lambda: time.monotonic() - began >= last):
            return
        retry("%g s were over too soon" % last)
    raise Failed("in %g s it could not be done" % last)


def keep_from_swap(group):
    """What is in a memory cgroup stays in memory, or is killed; also where the machine has swap."""
    for name in ("memory.swappiness", "memory.swap.max"):  # of version 1, of version 2; not of a kernel without swap
        if os.path.exists(group + "/" + name):
            with open(group + "/" + name, "w") as file:
                file.write("0")


def stop(process, sig=signal.SIGTERM, seconds=20):
    """Ends a process that we started; -> its code."""
    if process.poll() is None:
        process.send_signal(sig)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
    return process.returncode
