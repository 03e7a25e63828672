# SPDX-License-Identifier: BSD-2-Clause
"""Programs that others start: what allium env says to set, and to undo."""
import json
import os
import re
import sys
import time

sys.dont_write_bytecode = True
import tap
from container import kill
from workdir import placed, program
from tap import built, check, equal


def by_shell(place):
    """eval of what it prints; its last comment, as commands, undoes it."""
    lines = place.allium("env", "--period", "1", "--ledger-size", "8M").out
    undo = "\n".join(line.lstrip("# ") for line in lines.splitlines()[-2:])
    script = lines + "echo $LD_PRELOAD >during\nenv | sort >seen\n%s 1 >&2\n%s\nenv | sort >after\n" % (
        program("holder"), undo)
    for before in (None, "", "/usr/lib/x86_64-linux-gnu/libm.so.6"):
        env = dict(place.env, **({} if before is None else {"LD_PRELOAD": before}))
        done = tap.run(["sh", "-c", "env | sort >before\n" + script], cwd=place.folder, env=env)
        equal((done.returncode, done.stderr), (0, b"ready\n"), "code and words of the script")
        texts = [open(place.path(name)).read() for name in ("before", "during", "after", "seen")]
        want = re.sub(r"LD_PRELOAD=\n", "", texts[0])  # empty is as good as unset
        equal(texts[2], want, "the environment after it was undone")
        preload = built("ALLIUM_AGENT") + (":" + before if before else "")
        equal(texts[1], preload + "\n", "LD_PRELOAD of the shell")
        equal(texts[3], want, "what a program that is started sees")
    # others' may
    rows = [
        row for row in json.loads(place.allium("ps", "--json").out)["rows"]
        if row["program"] == "holder" and row["state"] != "running"
    ]
    equal([row["state"] for row in rows], ["exited"] * 3, "holders that ps lists")


def by_systemd(place):
    """Each line of the drop-in's section is a variable, quoted."""
    lines = place.allium("env", "--systemd", "--no-follow").out.splitlines()
    section = lines[lines.index("[Service]") + 1:]
    set_ = dict(re.fullmatch(r'Environment="([A-Z_]+)=([^"%]*)"', line).groups() for line in section)
    equal(set_, {"LD_PRELOAD": built("ALLIUM_AGENT"), "ALLIUM_PERIOD": "524288", "ALLIUM_FOLLOW": "0"}, "variables")
    check(all(line.startswith("#") for line in lines[:lines.index("[Service]")]), lines)


def by_docker(place):
    lines = place.allium("env", "--docker", "--period", "64K").out.splitlines()
    words = [line.split(None, 1) for line in lines if not line.startswith("#")]
    equal([word[0] for word in words], ["COPY", "ENV", "ENV"], "instructions")
    equal(words[2][1], "ALLIUM_PERIOD=65536", "the period")


def quoted(place):
    """Names that mean something to who reads them come through: to a shell, and in the two that are written by their
    rules.
    """
    for name in "f()::'lambda'*", "$(exit 3)", 'operator""_x', "a\\b", "100%", "plain":
        words = ("--sites", "--wrapper", name)
        script = place.allium("env", "--shell", *words).out + 'printf %s "$ALLIUM_WRAPPERS" >named\n'
        done = tap.run(["sh", "-ec", "unset LD_PRELOAD\n" + script.replace("export LD_PRELOAD=", "NOT_HERE=")],
                       cwd=place.folder, env=place.env)
        equal((done.returncode, done.stderr, open(place.path("named")).read()), (0, b"", name), "a shell's")
        unit = re.search(r'^Environment="ALLIUM_WRAPPERS=((?:[^"\\]|\\.)*)"$',
                         place.allium("env", "--systemd", *words).out, re.M)
        equal(re.sub(r"\\(.)", r"\1", unit.group(1)).replace("%%", "%"), name, "a unit's")
        image = re.search(r'^ENV ALLIUM_WRAPPERS="((?:[^"\\$]|\\.)*)"$',
                          place.allium("env", "--docker", *words).out, re.M)
        equal(re.sub(r"\\(.)", r"\1", image.group(1)), name, "an image's")
    done = place.allium("env", "--sites", "--wrapper", "a;b,kept")
    check("export ALLIUM_WRAPPERS='kept'\n" in done.out and "the wrapper a;b is left out" in done.err, done.out,
          done.err)


NGINX = """
worker_processes 2; pid %(folder)s/pid; error_log %(folder)s/error.log; daemon on;
events { worker_connections 64; }
http {
    access_log off; gzip on; gzip_http_version 1.0; gzip_types text/plain;
    client_body_temp_path %(folder)s; proxy_temp_path %(folder)s; fastcgi_temp_path %(folder)s;
    uwsgi_temp_path %(folder)s; scgi_temp_path %(folder)s;
    server { listen unix:%(folder)s/socket; root %(folder)s/served; }
}
"""


def web_server(place):
    """nginx: a daemon that closes its descriptors, its workers become another user if they can."""
    folder = place.folder
    os.mkdir(folder + "/served")
    text = b"".join(b"line %d of what is served\n" % n for n in range(20_000))
    with open(folder + "/served/a.txt", "wb") as file:
        file.write(text)
    with open(folder + "/conf", "w") as file:
        file.write(NGINX % {"folder": folder})
    for name in (os.path.dirname(folder), folder, folder + "/served"):
        os.chmod(name, 0o777)
    script = """
        mount -t tmpfs -o mode=1777 none /dev/shm || exit 90
        unset XDG_RUNTIME_DIR
        (eval "$($ALLIUM env --period 64K)"; /usr/sbin/nginx -c $PWD/conf) || exit 91
        trap 'kill $(cat pid)' EXIT
        python3 -c "$FETCH" || exit 92
        $ALLIUM ps --json >running
        $ALLIUM set --where comm:nginx off | sort >off
        for pid in $(sed 's/ .*//' off); do $ALLIUM report $pid --by function --sort allocated --json >report.$pid || exit 93; done
        kill $(cat pid); trap - EXIT
        for n in $(seq 200); do $ALLIUM ps --json >ended; grep -q '"nginx","state":"running"' ended || break; sleep 0.05; done
    """
    fetch = """
import gzip, socket
for _ in range(60):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect("socket")
        s.sendall(b"GET /a.txt HTTP/1.0\\r\\nAccept-Encoding: gzip\\r\\n\\r\\n")
        with s.makefile("rb") as answer:
            head, _, body = answer.read().partition(b"\\r\\n\\r\\n")
    assert b" 200 " in head.splitlines()[0], head
    assert gzip.decompress(body) == open("served/a.txt", "rb").read()
"""
    done = tap.run(
        [*tap.unshare(), "sh", "-c", script], cwd=folder, env=dict(place.env, ALLIUM=built("ALLIUM"), FETCH=fetch)
    )
    equal((done.returncode, done.stdout), (0, b""), "code and output of the script, which said %s" % done.stderr)

    def rows(name):
        with open(folder + "/" + name) as file:
            return {
                row["pid"]: row
                for row in json.load(file)["rows"] if row["program"] == "nginx" and row["state"] != "unsampled"
            }
    running, ended = rows("running"), rows("ended")
    workers = [pid for pid, row in running.items() if row["state"] == "running"]
    check(workers, "no nginx runs with a ledger:", running)
    equal({row["state"] for row in ended.values()}, {"exited"}, "states at the end")
    equal(set(ended), set(running), "ledgers before and after")
    with open(folder + "/off") as file:
        equal([int(line.split()[0]) for line in file], sorted(workers, key=str), "what was switched off")
    allocated = 0
    for pid in workers:
        with open(folder + "/report.%d" % pid) as file:
            report = json.load(file)
        allocated += report["total"]["allocated_bytes"]
        check(any((row["module"] or "").endswith("/nginx") for row in report["rows"]), "nothing of nginx:",
              report["rows"][:3])
    check(allocated > 5e6, "60 answers, compressed, took %d bytes" % allocated)
    with open(folder + "/error.log") as file:
        errors = [line for line in file if not line.split("]")[0].endswith(("[notice", "[warn"))]
    equal(errors, [], "what nginx complains of")


def left_over(place):
    """A ledger that nobody fetched goes seven days after it was found to be left over; not one of a process that runs.
    """
    folder, gone, day = place.runtime + "/allium", 2 ** 22 - 1, 24 * 3600
    os.mkdir(folder, 0o700)
    now = time.time()

    def put(pid, age_days, marked, suffix):
        name = "%d-%015x%d%s" % (pid, age_days, marked, suffix)
        with open(folder + "/" + name, "w"):
            pass
        os.utime(folder + "/" + name, (0 if marked else now, now - age_days * day))
        return name
    both = (".ledger", ".control")
    kept = [
        put(*file) for suffix in both
        for file in ((gone, 6, True, suffix), (gone, 60, False, suffix), (os.getpid(), 60, True, suffix))
    ]
    kept += [put(gone, 60, True, ".notes")]
    for age in range(8, 60):
        for suffix in both:
            put(gone, age, True, suffix)
    env = dict(place.env, LD_PRELOAD=built("ALLIUM_AGENT"), ALLIUM_PERIOD="1")
    for turn in range(2):  # what the first one finds is marked for the second, but has its seven days from then
        tap.succeed([program("holder"), "1"], env=env)
        left = [name for name in os.listdir(folder) if name in kept or int(name.split("-")[0]) == gone]
        equal(sorted(left), sorted(kept), "files that are left after turn %d" % turn)
    equal(len(os.listdir(folder)), len(kept) + 4, "files, with those of two holders")


def many_left(place):
    """Many of them are gone through once a minute; a program that starts thousands does not wait."""
    folder, gone = place.runtime + "/allium", 2 ** 22 - 1
    os.mkdir(folder, 0o700)

    def left_of(count):
        """Puts so many there, starts a program: how many are left. Who reads the folder meanwhile has it gone through
        again.
        """
        names = ["%s/%d-%016x.tags" % (folder, gone, number) for number in range(count)]
        for name in names:
            with open(name, "w"):
                pass
            os.utime(name, (0, time.time() - 60 * 24 * 3600))
        tap.succeed([program("holder"), "1"], env=dict(place.env, LD_PRELOAD=built("ALLIUM_AGENT"), ALLIUM_PERIOD="1"))
        return sum(map(os.path.exists, names))
    equal([left_of(20), left_of(20)], [0, 0], "few that are left")
    equal(left_of(700), 0, "many that are left")
    rest = os.stat(folder).st_atime_ns
    equal([left_of(20), left_of(20)], [20, 20], "left within a minute")
    for ns, what in (rest - 61 * 10 ** 9, "after a minute"), (rest + 3600 * 10 ** 9, "after the clock was set back"):
        os.utime(folder, ns=(ns, os.stat(folder).st_mtime_ns))
        equal(left_of(20), 0, "left " + what)


def left_behind_others(place):
    """Left-over ledgers go from a directory with 6,000 other files too, whichever the kernel lists first. Each start of
    a program examines a third of them: the chance that 60 starts miss one is 3e-11.
    """
    folder, gone = place.runtime + "/allium", 2 ** 22 - 1
    os.mkdir(folder, 0o700)

    def put(name, count):
        names = ["%s/%d-%016x.tags" % (folder, name, number) for number in range(count)]
        for file in names:
            with open(file, "w"):
                pass
            os.utime(file, (0, time.time() - 60 * 24 * 3600))
        return names
    old = put(gone, 10)
    running = put(os.getpid(), 6000)
    old += put(gone - 1, 10)
    for _ in range(60):
        os.utime(folder, ns=(0, os.stat(folder).st_mtime_ns))
        tap.succeed([program("holder"), "1"], env=dict(place.env, LD_PRELOAD=built("ALLIUM_AGENT"), ALLIUM_PERIOD="1"))
        if not any(map(os.path.exists, old)):
            break
    equal([name for name in old if os.path.exists(name)], [], "left-over ledgers that stay")
    equal(sum(map(os.path.exists, running)), 6000, "files of a process that runs")


def elsewhere(place):
    """The pid in a ledger's name is nobody's where another PID namespace shares the directory: while it is mapped it
    stays.
    """
    folder = place.runtime + "/allium"
    holder = place.start_holder()
    kept = sorted(os.listdir(folder))
    equal([name.split("-")[0] for name in kept], [str(holder.pid)] * 2, "files of the holder")
    env = dict(place.env, LD_PRELOAD=built("ALLIUM_AGENT"), ALLIUM_PERIOD="1")

    def age_and_start():
        for name in kept:
            os.utime(folder + "/" + name, (0, time.time() - 60 * 24 * 3600))
        tap.succeed([*tap.unshare(), "--pid", "--fork", "--mount-proc", "--kill-child",
                     program("holder"), "1"], env=env)
        return sorted(name for name in os.listdir(folder) if name in kept)
    equal(age_and_start(), kept, "files of the holder while it runs")
    kill(holder)
    equal(age_and_start(), [], "files of the holder when it has ended")


def little_room(place):
    """Where ledgers that were left fill a tmpfs, the oldest go sooner, until there is room for who begins; also under
    run.
    """
    script = """
        mount -t tmpfs -o size=8m,mode=700 none "$0" && mkdir -m 700 "$0/allium" && cd "$0/allium" || exit 90
        left() { head -c $2k /dev/zero >419430$1-0$1.ledger && touch -m -d "-$3 seconds" 419430$1-*.ledger && touch -a -d @0 419430$1-*.ledger || exit 91; }
        left 1 1020 500; left 2 1020 2000; left 3 1020 8000; left 4 1020 30000; left 5 1020 100000; left 6 1020 500000
        : >4194307-07.ledger  # found to be gone only now
        for n in 1 2; do LD_PRELOAD=$4 ALLIUM_PERIOD=1 $1 1 || exit 92; ls; echo; done
        left 8 2000 9000
        $2 run --quiet --period 1 -o $3/short.allium -- $1 1 || exit 93
        ls
    """
    words = ["sh", "-c", script, place.runtime, program("holder"), built("ALLIUM"), place.folder, built("ALLIUM_AGENT")]
    said = tap.succeed([*tap.unshare(), *words], env=place.env).stdout.decode()
    turns = [turn.split() for turn in said.split("\n\n")]
    equal(len(turns), 3, "turns")
    left = [[int(re.search(r"-0(\d).ledger", name)[1]) for name in turn if re.match(r"41.*ledger", name)]
            for turn in turns]
    equal(sorted(left[0]), [1, 2, 3, 7], "left ones after the first holder")
    equal(sorted(left[1]), [1, 2, 7], "left ones after the second")
    equal(sorted(left[2]), [1, 2, 7], "left ones after a recorder")
    made = [[name for name in turn if re.fullmatch(r"\d+-[0-9a-f]{16}.ledger", name)] for turn in turns]
    equal([len(turn) for turn in made[:2]], [1, 2], "ledgers of holders")
    report = json.loads(place.allium("report", "short.allium", "--json").out)
    equal((len(report["processes"]), report["lost"]["ledger_full"]), (1, None),
          "recorded processes, and why their ledgers stopped growing")


def misuse(place):
    for words, what in ((("--shell", "--docker"), "too many forms"),
                        (("--period", "0"), "out of range: use 1 B to 1 TiB"),
                        (("x",), "leave out x"), (("--ledger-size", "many"), "invalid size 'many'")):
        done = place.allium("env", *words, code=2)
        check(not done.out and done.err.startswith("allium: ") and what in done.err, words, done.out, done.err)


tap.main([(name, placed(test, "/var/tmp" if test is web_server else "/dev/shm")) for name, test in [
    ("what env prints for a shell brings the agent, and can be undone", by_shell),
    ("what env prints for systemd", by_systemd),
    ("what env prints for docker", by_docker),
    ("names of wrappers are quoted", quoted),
    ("nginx comes up with the agent, works, and can be asked", web_server),
    ("ledgers that nobody fetched go after seven days", left_over),
    ("ledgers that nobody fetched go from a large directory too", left_behind_others),
    ("many left ledgers are gone through once a minute", many_left),
    ("a ledger that is mapped in another PID namespace stays", elsewhere),
    ("left ledgers make room where the tmpfs is short of it", little_room),
    ("misuse of env is told", misuse),
]])
