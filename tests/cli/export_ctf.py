# SPDX-License-Identifier: BSD-2-Clause
"""`allium export --ctf`: what babeltrace2 reads from it, beside the trace that it was made from and LTTng's own trace of
the same program; what Trace Compass asks for; losses; mistakes.
"""
import collections
import glob
import os
import re
import shutil
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
import tap
from lttng_form import (Metadata, compass_is_ust, compass_memory, events, messages, plain, warnings)
from tap import Skipped, built, check, equal, private_dir, succeed

ALLIUM = built("ALLIUM")
BEGIN, END = 12345, 54321
# Each call of the family; what succeeds, and what fails; in a thread that has a name, in a fork child, in the main
# thread between two blocks of known sizes.
PROGRAM = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void *volatile kept[100];
static void *work(void *arg)
{
    pthread_setname_np(pthread_self(), "worker");
    for (int i = 0; i < 100; i++)
        kept[i] = malloc(1000);
    for (int i = 0; i < 90; i++)
        free(kept[i]);
    return arg;
}
static void calls(void)
{
    void *volatile p = malloc(BEGIN);
    free(p);
    p = malloc(100);
    void *volatile q = calloc(3, 40);
    p = realloc(p, 1000);
    p = realloc(p, 500000);
    void *volatile r = realloc(NULL, 77);
    r = realloc(r, 0);
    void *volatile m = memalign(256, 300);
    void *n;
    if (posix_memalign(&n, 64, 1000))
        abort();
    void *volatile none = malloc(PTRDIFF_MAX);
    none = realloc(p, PTRDIFF_MAX);
    if (none)
        abort();
    free(m);
    free(n);
    free(q);
    free(p);
    free(malloc(END));
}
int main(void)
{
    pthread_t other;
    calls();
    pthread_create(&other, NULL, work, NULL);
    pthread_join(other, NULL);
    if (!fork()) {
        kept[0] = malloc(3333);
        _exit(0);
    }
    wait(NULL);
    return 0;
}
"""


def program(folder):
    with open(folder + "/calls.c", "w") as file:
        file.write(PROGRAM)
    succeed(["cc", "-O1", "-w", "-fno-builtin", "-DBEGIN=%d" % BEGIN, "-DEND=%d" % END, folder + "/calls.c",
             "-lpthread", "-o", folder + "/calls"])
    return folder + "/calls"


def export(*words, code=0):
    done = tap.run([ALLIUM, "export", *words])
    equal(done.returncode, code, "exit code of %s: %s" % (words, done.stderr.decode()))
    return done.stderr.decode()


def recorded(folder, period="1"):
    """-> the trace of the program, by default with a sample of each thread, and so with their names"""
    succeed([ALLIUM, "trace", "--quiet", "--period", period, "-o", folder + "/t", "--", program(folder)])
    return folder + "/t"


def written(folder):
    """-> the folder of CTF of the only user"""
    found = glob.glob(folder + "/ust/uid/*/64-bit")
    equal(found, ["%s/ust/uid/%d/64-bit" % (folder, os.getuid())], "folders")
    return found[0]


def expected(trace):
    """-> [(ns, name, CPU, process, thread, fields)] that the events of a trace of allium become"""
    out, moving = [], {}
    for message in messages(trace + "/ust"):
        event = message.event
        f, kind = plain(event.payload_field), event.name.partition(":")[2]
        thread = int(event.common_context_field["vtid"])
        where = (int(event.packet.context_field["cpu_id"]), int(event.packet.context_field["vpid"]))
        if "ptr" not in f:  # of the group life
            out.append((message.default_clock_snapshot.ns_from_origin, event.name, *where, thread, f))
            continue
        f.pop("site")
        if kind == "calloc":
            f["nmemb"] = 1
        elif kind == "memalign":
            f["alignment"] = 0
        elif kind == "realloc_end" and not f["ptr"] and f["size"]:
            moving[thread]["ptr"] = 0  # it failed: the old block is still there
        if kind == "realloc_begin":
            moving[thread] = f
        name = "lttng_ust_libc:" + {"realloc_begin": "free", "realloc_end": "malloc"}.get(kind, kind)
        out.append((message.default_clock_snapshot.ns_from_origin, name, *where, thread, f))
    return out


def in_order(rows):
    return sorted(map(repr, ((ns, name, cpu, process, thread, sorted(fields.items()))
                             for ns, name, cpu, process, thread, fields in rows)))


def each():
    with private_dir() as folder:
        trace = recorded(folder)
        said = export(trace, "--ctf", "-o", folder + "/l")
        found = events(written(folder + "/l"))
        equal(said, "allium: wrote %d events into %s/l\n" % (len(found), folder), "what it says")
        equal(warnings(folder + "/l"), len(found), "events that babeltrace2 prints")
        counted = tap.run([ALLIUM, "events", trace]).stdout.count(b"\n") - 1
        equal(len(found), counted, "events of allium events")
        # events of one time are in no order
        equal(in_order((e.ns, e.name, e.cpu, e.process, e.thread, e.fields) for e in found),
              in_order(expected(trace)), "events")
        names = {e.thread: e.procname for e in found}
        equal(sorted(collections.Counter(names.values()).items()), [("calls", 2), ("worker", 1)], "names of threads")
        equal(packets(written(folder + "/l")), 0, "losses")


HEAD = struct.Struct("<I16sIQ QQQQQQI")


def packets(folder):
    """Packets are numbered from 0 and do not overlap; -> events that were lost up to the ends of all files"""
    lost = 0
    for name in glob.glob(folder + "/channel0_*"):
        with open(name, "rb") as file:
            content = file.read()
        at = number = end = 0
        while at < len(content):
            magic, _, stream, instance, first, last, used, bits, have, discarded, cpu = HEAD.unpack_from(content, at)
            equal((magic, stream, instance, have), (0xC1FC1FC1, 0, cpu, number), "head of a packet")
            equal(name.rpartition("_")[2], str(cpu), "CPU")
            check(end <= first <= last and used == bits and not bits % 8, end, first, last, used, bits)
            at, number, end = at + bits // 8, number + 1, last
        equal(at, len(content), "end of the file")
        lost += discarded
    return lost


def compass():
    """Trace Compass takes it for LTTng-UST's, and its view of memory shows each thread with what it holds."""
    with private_dir() as folder:
        trace = recorded(folder)
        export(trace, "--ctf", "-o", folder + "/l")
        compass_is_ust(written(folder + "/l"))
        memory, names = compass_memory(events(written(folder + "/l")))
        by_name = collections.Counter()
        for thread, held in memory.items():
            by_name[names[thread]] += held
        equal(by_name["worker"], 10 * 1000, "memory of the thread")
        main = [thread for thread, name in names.items() if name == "calls"]
        check(3333 in {memory[thread] % 100000 for thread in main}, "memory of the child", memory)
        # all the rest is freed but what libc keeps of its own
        check(sum(memory[thread] for thread in main) < 3333 + 2000, memory)


def losses():
    """What did not fit into small rings is in the last packets, to the unit; babeltrace2 warns of that alone."""
    with private_dir() as folder:
        with open(folder + "/many.c", "w") as file:
            file.write("#include <stdlib.h>\nint main(void) { for (int i = 0; i < 3000000; i++) free(malloc(32)); }\n")
        succeed(["cc", "-O0", "-fno-builtin", folder + "/many.c", "-o", folder + "/many"])
        for attempt in range(10):
            succeed([ALLIUM, "trace", "--force", "--quiet", "--buffer", "64K", "-o", folder + "/t", "--",
                     folder + "/many"])
            said = export(folder + "/t", "--ctf", "-o", folder + "/l", "--force").splitlines()
            if len(said) > 1:
                break
        check(len(said) == 2 and said[1].endswith("events were lost while the trace was recorded"), said)
        equal(packets(written(folder + "/l")), int(said[1].split()[1]), "lost")
        written_events, lost = int(said[0].split()[2]), int(said[1].split()[1])
        check(6000000 <= written_events + lost <= 6000020, "written and lost", written_events, lost)
        equal(warnings(folder + "/l"), written_events, "events that babeltrace2 prints")


def mistakes():
    with private_dir() as folder:
        trace = recorded(folder)
        export(trace, "--ctf", "-o", folder + "/l")
        os.mkdir(folder + "/mine")
        with open(folder + "/mine/file", "w"):
            pass
        for words, code, line in (
                (["--ctf", "-o", folder + "/x"], 2, "missing folder"), ([trace, "--ctf"], 2, "needs -o"),
                ([trace, trace, "--ctf", "-o", folder + "/x"], 2, "too many"),
                ([trace, "--ctf", "-o", folder + "/x", "--where", "size>1"], 2, "--where"),
                ([trace, "--ctf", "-o", folder + "/x", "--debuginfod", "off"], 2, "asks no server"),
                ([trace, "--chrome", "-o", folder + "/x", "--debuginfod", "off"], 2, "asks no server"),
                ([trace, "--ctf", "--pprof", "-o", folder + "/x"], 2, "one format"),
                ([folder + "/mine", "--ctf", "-o", folder + "/x"], 2, "not a trace"),
                ([folder + "/l", "--ctf", "-o", folder + "/x"], 2, "trace of allium"),
                ([folder + "/none", "--ctf", "-o", folder + "/x"], 1, "No such file"),
                ([trace, "--ctf", "-o", folder + "/l"], 1, "--force"),
                ([trace, "--ctf", "-o", folder + "/mine", "--force"], 1, "not a trace of allium"),
                ([trace, "--ctf", "-o", folder, "--force"], 1, "write to another folder"),
                ([trace, "--ctf", "-o", trace, "--force"], 1, "write to another folder"),
                ([trace, "--ctf", "-o", folder + "/a/b"], 1, "No such file")):
            said = export(*words, code=code)
            check(line in said and said.count("\n") == 1, words, said)
        equal(sorted(os.listdir(folder)), ["calls", "calls.c", "l", "mine", "t"], "files")
        export(trace, "--ctf", "-o", folder + "/l", "--force")
        # a stream in a packet's middle, of a recorder that was killed
        stream = max(glob.glob(trace + "/ust/events_*"), key=os.path.getsize)
        os.truncate(stream, os.path.getsize(stream) - 4)
        check("cut short" in export(trace, "--ctf", "-o", folder + "/l", "--force"), "a cut trace")


def full():
    """A full disk, here the largest size of a file: one line, and nothing is left."""
    with private_dir() as folder:
        trace = recorded(folder)
        done = subprocess.run(["sh", "-c", 'ulimit -f 1; trap "" XFSZ; exec "$@"', "sh", ALLIUM, "export", trace,
                               "--ctf", "-o", folder + "/l"], stderr=subprocess.PIPE, text=True)
        equal(done.returncode, 1, done.stderr)
        check(done.stderr.endswith(": File too large\n") and done.stderr.count("\n") == 1, done.stderr)
        check(not os.path.exists(folder + "/l"), "left behind")


# ---- LTTng ----

def tool(name):
    path = shutil.which(name)
    if not path:
        raise Skipped("unavailable: no %s here (lttng-tools, liblttng-ust1)" % name)
    return path


def lttng_library():
    root = os.path.dirname(os.path.dirname(os.path.realpath(tool("lttng"))))
    found = glob.glob(root + "/lib/*/liblttng-ust-libc-wrapper.so.1")
    if not found:
        raise Skipped("unavailable: no liblttng-ust-libc-wrapper.so here (liblttng-ust1)")
    return found[0]


# The session daemon of root is one for the whole machine: this one has a /run and a /dev/shm of its own.
SESSION = r"""
mount -t tmpfs none /run && mount -t tmpfs none /dev/shm || exit 77
set -e
lttng-sessiond --no-kernel >"$HOME/sessiond" 2>&1 &
daemon=$!
trap 'kill $daemon; wait' EXIT
until lttng list >/dev/null 2>&1; do kill -0 $daemon; sleep 0.1; done
lttng create s --output="$HOME/lttng"
lttng enable-event -u 'lttng_ust_libc:*'
lttng add-context -u -t vpid -t vtid -t procname
lttng start
LTTNG_UST_REGISTER_TIMEOUT=-1 LD_PRELOAD=$LIBRARY "$@"
lttng stop
lttng destroy
"""


def lttng_trace(folder, command):
    """-> the folder of CTF that LTTng has written of the command"""
    tool("lttng-sessiond")
    env = {**os.environ, "LTTNG_HOME": folder, "HOME": folder, "LIBRARY": lttng_library()}
    user = [] if os.getuid() == 0 else ["-r"]
    done = subprocess.run(["unshare", "-m", *user, "sh", "-c", SESSION, "sh", command], env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=tap.TIMEOUT)
    if done.returncode == 77 or "unshare failed" in done.stdout:
        raise Skipped("unavailable: no mount namespace here for LTTng's daemon")
    equal(done.returncode, 0, done.stdout)
    return glob.glob(folder + "/lttng/ust/uid/*/64-bit")[0]


def of_main(found):
    """-> [(name, size, number of the block)] of the main thread's calls between the two blocks of known sizes. What
    LTTng has as one event, and allium as two, is two; what only LTTng knows is left out."""
    rows, inside, blocks = [], False, {0: 0}

    def add(name, address, size=0):
        rows.append((name, size, blocks.setdefault(address, len(blocks))))

    first = next(e for e in found if e.name.endswith(":malloc") and e.fields["size"] == BEGIN)
    for e in found:
        f, name = e.fields, e.name.rpartition(":")[2]
        inside = inside or e is first
        if not inside or e.thread != first.thread:
            continue
        if name == "realloc":
            add("free", f["in_ptr"] if f["ptr"] or not f["size"] else 0)
            add("malloc", f["ptr"], f["size"])
        elif name == "posix_memalign":
            add("memalign", f["out_ptr"] if not f["result"] else 0, f["size"])
        elif name == "free":
            add(name, f["ptr"])
        else:
            add(name, f["ptr"], f["size"] * f.get("nmemb", 1))
        if (name, f.get("size")) == ("malloc", END):
            break
    return [row for row in rows if row != ("free", 0, 0)]  # of realloc(NULL), and realloc that failed


def beside_lttng():
    """The same program under LTTng: its declarations to the letter, and the main thread's calls."""
    with private_dir("/tmp") as folder:
        lttng = lttng_trace(folder, program(folder))
        # a call that is sampled is recorded as malloc, whichever it was
        export(recorded(folder, "1G"), "--ctf", "-o", folder + "/l")
        theirs, ours = Metadata(lttng), Metadata(written(folder + "/l"))
        for name in "malloc", "free", "calloc", "realloc", "memalign", "posix_memalign":
            if "lttng_ust_libc:" + name in theirs.events:  # those that happened
                equal(ours.events["lttng_ust_libc:" + name], theirs.events["lttng_ust_libc:" + name], name)
        for block in "trace {", "stream {", "struct packet_context", "struct event_header_large", "clock {":
            have, want = (re_uuid(m.block(block)) for m in (ours, theirs))
            equal(have, want, block)
        for key in "domain", "tracer_name", "tracer_major", "tracer_minor", "tracer_buffering_scheme", \
                   "architecture_bit_width":
            equal(ours.env[key], theirs.env[key], key)
        have, want = of_main(events(written(folder + "/l"))), of_main(events(lttng))
        equal(have, want, "calls")
        check(len(want) > 15, want)


def re_uuid(text):
    return re.sub(r'(uuid = "|offset = )[0-9a-f-]+', r"\1", text)


tap.main([
    ("each event of the trace, with its fields and names", each),
    ("what Trace Compass asks for, and what it computes", compass),
    ("losses", losses),
    ("mistakes", mistakes),
    ("a full disk", full),
    ("beside LTTng's own trace", beside_lttng),
])
