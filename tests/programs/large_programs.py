# SPDX-License-Identifier: BSD-2-Clause
"""Chromium in its sandbox, LibreOffice and PostgreSQL do under `allium run` what they do without, as an unprivileged
user.

Each process is observed, or the recording names its program with the reason. No sample is lost, and stacks are whole.
"""
import contextlib
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile

sys.dont_write_bytecode = True
import recording_reader
import tap
from tap import built, check, equal, private_dir, stop, succeed

OPTIONS = [], ["--period", "4096"], ["--sites"], ["--sites", "--period", "4096"]
NOBODY = 65534
OWN_MALLOC = "has an allocator of its own"
HIDDEN = "keeps its ledger where only root can read it"

PAGE = """<!doctype html><html><body><div id="words"></div><canvas id="image" width="200" height="200"></canvas><script>
const seen = new Set(Array.from({length: 20000}, (_, i) => 'w' + i * 7919 % 997));
const text = [...seen].sort().join(' ');
const context = document.getElementById('image').getContext('2d');
for (let i = 0; i < 500; i++) context.fillRect(i % 200, i * 7 % 200, 3, 3);
document.getElementById('words').textContent = text.length + ' ' + text.slice(0, 60) + ' ' +
    document.getElementById('image').toDataURL().length;
for (let i = 0; i < 300; i++) document.body.appendChild(document.createElement('p')).textContent = 'row ' + i * i;
</script></body></html>
"""
TABLE = "a,b,c\n1,2,=A2+B2\n" + "".join("%d,%g,row %d\n" % (i, i / 3, i * 7919 % 1009) for i in range(2000))
QUERIES = """
CREATE TABLE t AS SELECT i, md5(i::text) m FROM generate_series(1, 20000) i;
CREATE INDEX ON t(m);
SELECT count(*), max(m), sum(length(m)) FROM t;
SELECT a.i, b.m FROM t a JOIN t b ON a.m = b.m ORDER BY a.m LIMIT 5;
SELECT md5(string_agg(m, ',' ORDER BY m)) FROM t WHERE i % 3 = 0;
SELECT nonsense FROM t;
"""
# LibreOffice's static destructors run below a function of crtbeginS.o that has no unwind information; it also calls
# code that it makes at run time.
STACKS_MOST = 20

# Messages of a program that has lost one of its processes.
CRASH = re.compile(
    r"crashed|core dumped|terminated by signal|exited unexpectedly|Received signal|PANIC|Segmentation|Unspecified Application Error",
    re.I)


class Home:
    """A directory of a user without privileges, on a tmpfs."""

    def __init__(self, folder):
        self.folder, self.recordings = folder + "/home", []
        os.mkdir(self.folder, 0o700)
        self.bin = folder + "/bin"  # the user may not be allowed to read what was built where it was built
        os.mkdir(self.bin, 0o755)
        os.chmod(folder, 0o755)
        for name in ("ALLIUM", "ALLIUM_AGENT", "ALLIUM_AGENT_FULL"):
            shutil.copy(built(name), self.bin)
        self.env = {
            "PATH": os.environ["PATH"], "HOME": self.folder, "XDG_RUNTIME_DIR": self.folder, "LC_ALL": "C.UTF-8"
        }
        self.user = [] if os.geteuid() else [
            "setpriv", "--reuid", str(NOBODY), "--regid",
            str(NOBODY), "--clear-groups"
        ]
        if self.user:
            os.chown(self.folder, NOBODY, NOBODY)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w") as file:
            file.write(text)

    def command(self, options, words):
        """The words before a command and itself; not observed if `options` is None."""
        if options is None:
            return [*self.user, *words]
        self.recordings.append(self.path("%d.allium" % len(self.recordings)))
        return [*self.user, self.bin + "/allium", "run", *options, "-o", self.recordings[-1], "--", *words]

    def run(self, options, *words, **how):
        done = tap.run(self.command(options, words), cwd=self.folder, env=self.env, **how)
        done.out, done.err = done.stdout.decode(), done.stderr.decode()
        crashes = [line for line in done.err.splitlines() if CRASH.search(line)]
        check(not crashes, "said of a crash by", words[0], options, crashes)
        done.out = done.out.replace(self.folder, "HOME")
        return done


def chromium(home, options):
    """The document that a page's script has made, with the sandbox that it has by default."""
    home.write("page.html", PAGE)
    done = home.run(options, "chromium", "--headless", "--no-first-run", "--user-data-dir=" + home.path("profile"),
                    "--dump-dom", "file://" + home.path("page.html"))
    check("row 89401" in done.out, "the document", done.out, done.err)
    return [("chromium", done.returncode, done.out)]


def content(path):
    """Of a document of LibreOffice the text: its other files hold times."""
    with zipfile.ZipFile(path) as file:
        return file.read("content.xml")


def libreoffice(home, options):
    home.write("table.csv", TABLE)
    ended = []
    for kind, read in ("ods", content), ("html", lambda path: open(path, "rb").read()):
        done = home.run(options, "soffice", "--headless", "--convert-to", kind, "table.csv")
        ended.append((kind, done.returncode, done.out, read(home.path("table." + kind))))
    return ended


@contextlib.contextmanager
def server(home, options, program, ask):
    """PostgreSQL's server in home/data, at the socket in home; `ask`: options of those who ask it. It is stopped by its
    process id.
    """
    command = home.command(
        options, [program, "-D",
                  home.path("data"), "-k", home.folder, "-c", "listen_addresses=", "-c", "fsync=off"])
    with open(home.path("log"), "wb") as log:
        process = subprocess.Popen(command, cwd=home.folder, env=home.env, stdin=subprocess.DEVNULL, stdout=log,
                                   stderr=log)
    try:
        def up():
            check(process.poll() is None, "postgres has ended:", open(home.path("log")).read())
            return tap.run(["pg_isready", "-q", *ask], env=home.env).returncode == 0
        tap.wait_until(up, 60, "postgres is up")
        yield process
    finally:
        stop(process, seconds=60)


def postgresql(home, options):
    (bin_,) = glob.glob("/usr/lib/postgresql/*/bin")
    made = home.run(options, bin_ + "/initdb", "-D", home.path("data"), "-U", "me", "-A", "trust", "--no-sync",
                    "--locale=C")
    ask = ["-h", home.folder, "-U", "me", "-d", "postgres"]
    with server(home, options, bin_ + "/postgres", ask) as process:
        asked = home.run(None, "psql", "-qAt", *ask, input=QUERIES.encode())
        filled = home.run(None, bin_ + "/pgbench", "-i", "-q", *ask)
        run = home.run(None, bin_ + "/pgbench", "-n", "-c", "4", "-t", "100", *ask)
    log = open(home.path("log")).read()
    check(not CRASH.search(log), "the server's log", log)
    processed = re.findall(r"number of .*", run.out)
    return [("initdb", made.returncode, made.out), ("psql", asked.returncode, asked.out, asked.err),
            ("pgbench -i", filled.returncode), ("pgbench", run.returncode, processed), ("postgres", process.returncode)]


def outcome(trial, options):
    """How a trial's commands ended, and what is in their recordings: {program: images}, {(program, reason): starts},
    losses.
    """
    with private_dir() as folder:
        home = Home(folder)
        ended = trial(home, options)
        images, unobserved, lost = {}, {}, []
        for path in home.recordings:
            for name, count in recording_reader.rows(
                    path, "SELECT s.text, count(*) FROM image JOIN string s ON s.id = comm GROUP BY 1"):
                images[name] = images.get(name, 0) + count
            for program, reason, count in recording_reader.rows(path, """
                    SELECT p.text, r.text, processes FROM unobserved JOIN string p ON p.id = program JOIN string r ON r.id = reason"""):
                key = os.path.basename(program), reason
                unobserved[key] = unobserved.get(key, 0) + count
            report = json.loads(succeed([built("ALLIUM"), "report", path, "--json"]).stdout)
            lost.append({name: value for name, value in report["lost"].items() if value})
        return ended, images, unobserved, lost


def same(trial, observed, unobserved):
    """`observed`: programs of which each process with a sample has an image. `unobserved`: programs that are named,
    with the reason.
    """
    def test():
        want = outcome(trial, None)[0]
        for options in OPTIONS:
            have, images, named, lost = outcome(trial, options)
            print("# %s: images %s, unobserved %s, lost %s" % (" ".join(options) or "default", images, named, lost),
                  flush=True)
            for losses in lost:
                stacks = losses.pop("stacks_broken", 0) + losses.pop("stacks_cut", 0)
                check(stacks <= STACKS_MOST, stacks, "stacks are not whole")
                equal(set(losses) - {"inherited_frees", "failed_requests"}, set(), "losses")
            equal(have, want, "how it ended with %s" % options)
            missing = [name for name in observed if not images.get(name)]
            check(not missing, "without an image:", missing, images)
            equal(sorted(named), sorted(unobserved), "programs that could not be observed")
    return test


tap.main([("Chromium in its sandbox cannot tell that it is observed",
           same(chromium, [], [("chromium", OWN_MALLOC), ("chromium", HIDDEN),
                               ("chrome_crashpad_handler", OWN_MALLOC)])),
          ("LibreOffice cannot tell that it is observed", same(libreoffice, ["soffice.bin"], [])),
          ("PostgreSQL cannot tell that it is observed", same(postgresql, ["postgres", "initdb"], [])),])
