# SPDX-License-Identifier: BSD-2-Clause
"""`allium sys import --script`, and import of what it packs: a tar archive or a folder, whole, cut, or of something else;
and --state with copies of the kernel's files.
"""
import io
import json
import os
import shutil
import sys
import tarfile

sys.dont_write_bytecode = True
import lib
import tap
from lib import check, equal
from traces import PIPES, allium, cells, recorded

TABLES = "sys_kmem", "sys_kmem_pair", "sys_kpages", "sys_frag_sites", "sys_state"


def script(folder):
    path = folder + "/pack.sh"
    with open(path, "wb") as file:
        file.write(allium("sys", "import", "--script").stdout)
    return path


def packed(folder, shell, *words, path=None):
    """-> the folder that the script leaves if there is no tar, of a program that makes 400 pipes"""
    command = 'cd "$1"; (sleep 0.5; "$2" "$3" "$4" "$5") & shift 5; "$@"; code=$?; wait; ' \
        'ls /sys/kernel/tracing/instances 2>/dev/null; exit $code'
    shell = [shutil.which("env"), "BUFFER_KB=65536", *(["PATH=" + path] if path else []), *shell]
    done = tap.run([*tap.unshare(), shutil.which("sh"), "-c", command, "sh", folder, *PIPES, *shell, script(folder),
                    *words])
    equal(done.returncode, 0, done.stderr.decode())
    equal(done.stdout.decode().split(), [words[1] + ("" if path else ".tar.gz")], "what it says")


def without_tar(folder):
    """-> a PATH with what the script needs at least"""
    os.mkdir(folder + "/bin")
    for name in "cat", "mkdir", "rmdir", "rm", "mount", "umount", "sleep", "grep", "ls":
        os.symlink(shutil.which(name), folder + "/bin/" + name)
    return folder + "/bin"


def packs():
    """By busybox and by another shell; with tar and gzip, and without them."""
    shells = [["dash"]] + [["busybox", "sh"]] * bool(shutil.which("busybox"))
    with tap.private_dir() as folder:
        for number, shell in enumerate(shells):
            name, out = "pack%d" % number, folder + "/r%d.allium" % number
            packed(folder, shell, "1", name)
            said = allium("sys", "import", "%s/%s.tar.gz" % (folder, name), "-o", out).stderr.decode()
            check("lacks" not in said or "missing" not in said, said)
            row, = json.loads(allium("sql", "--json", out, "SELECT sum(allocations) AS n FROM sys_kmem WHERE call_site "
                                     "LIKE 'alloc_pipe_info+%'").stdout)["rows"]
            check(row["n"] >= 800, "pipes", row)
            check(b'"unmovable"' in allium("sys", "kpages", "--from", out, "--by", "type", "--json").stdout, "types")
            for words in (("frag",), ("advise",)):
                check(allium("sys", *words, "--from", out).stdout.count(b"\n") > 5, words)
            with open("/proc/sys/kernel/osrelease") as file:
                check(file.read().strip() in allium("sys", "advise", "--from", out).stdout.decode(), "release")
            # The folder, and an archive without gzip, are the same.
            tap.succeed(["tar", "-C", folder, "-xzf", "%s/%s.tar.gz" % (folder, name)])
            with tarfile.open(folder + "/plain.tar", "w", format=tarfile.GNU_FORMAT) as file:
                file.add(folder + "/" + name, name)
            for source in folder + "/" + name, folder + "/plain.tar":
                allium("sys", "import", source, "-o", folder + "/again.allium", "--force")
                for table in TABLES:
                    equal(cells(folder + "/again.allium", "SELECT * FROM " + table),
                          cells(out, "SELECT * FROM " + table), "%s of %s" % (table, source))
        packed(folder, [shutil.which("dash")], "0.6", "bare", path=without_tar(folder))
        check(os.path.isfile(folder + "/bare/trace"), os.listdir(folder + "/bare"))
        allium("sys", "import", folder + "/bare", "-o", out, "--force")
        done = tap.run(["sh", folder + "/pack.sh", "1", folder + "/bare"])
        check(done.returncode == 1 and b"exists: give another name" in done.stderr, done.stderr)


def archive(*members):
    """-> the bytes of a tar archive"""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.USTAR_FORMAT) as file:
        for name, text in members:
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(text), 1600000000
            file.addfile(member, io.BytesIO(text))
    return data.getvalue()


def damaged():
    """Archives that are cut or have no trace, names that lead elsewhere: one line, and nothing is written."""
    line = b"a-1 [000] .... 1.000005: kmalloc: call_site=%s ptr=00000000abcd0000 bytes_req=40 bytes_alloc=64\n"
    trace = line % b"f+0x1/0x2" + line % b"ffffffff81000010" * 200
    with tap.private_dir() as folder:
        path, out = folder + "/a.tar", folder + "/r.allium"
        whole = archive(("p/trace", trace), ("p/kallsyms", b"ffffffff81000000 T start\nffffffff81000100 T end\n"),
                        ("p/state/proc/pagetypeinfo", b"Node 0, zone DMA, type Unmovable 0\n"),
                        ("p/../../" + "evil", b"x"), ("p/state/../../evil", b"x"))

        def imported(data, *options, code=0):
            with open(path, "wb") as file:
                file.write(data)
            return allium("sys", "import", path, "-o", out, "--force", *options, code=code).stderr.decode()

        imported(whole)
        names = {row["call_site"] for row in json.loads(allium("sql", "--json", out, "SELECT call_site FROM sys_kmem")
                                                        .stdout)["rows"]}
        equal(names, {"f+0x1", "start+0x10"}, "calls")
        check(b"2020-09-13" in allium("report", out).stdout, "when the trace was written")
        equal(sorted(os.listdir(folder)), ["a.tar", "r.allium"], "files")
        for data, words in (
            (whole[:3000], "is damaged or cut; --partial keeps"), (whole[:700], "is damaged or cut"),
            (whole[:512], "is damaged or cut"), (archive(("p/other", b"x")), "is an archive without a trace"),
        ):
            said = imported(data, code=1)
            check(words in said and said.count("\n") == 1, words, said)
        check("what was read before is kept" in imported(whole[:5000], "--partial"), "what can be read")


def states():
    """--state: copies of the kernel's files, as they lie below /; for a trace that has none."""
    with tap.private_dir() as folder:
        raw, _, _ = recorded(folder, "--events", "slab,page")
        shutil.rmtree(raw + "/state")
        out, copies = folder + "/r.allium", folder + "/copies"
        for name in ("/proc/slabinfo", "/proc/buddyinfo", "/proc/pagetypeinfo", "/proc/zoneinfo", "/proc/meminfo",
                     "/proc/sys/kernel/osrelease"):
            os.makedirs(os.path.dirname(copies + name), exist_ok=True)
            with open(name, "rb") as source, open(copies + name, "wb") as copy:
                copy.write(source.read())
        with open(copies + "/proc/sys/kernel/osrelease", "w") as file:
            file.write("9.9.9-elsewhere\n")
        allium("sys", "import", raw, "-o", out, "--force", "--state", copies)
        check(allium("sys", "frag", "--from", out).stdout.count(b"\n") > 5, "sys frag")
        check(b"Linux 9.9.9-elsewhere" in allium("sys", "advise", "--from", out).stdout, "sys advise")
        types = allium("sys", "kpages", "--from", raw, "--state", copies, "--by", "type", "--json").stdout
        check(b'"unmovable"' in types, types)
        allium("sys", "import", raw, "-o", out, "--force", "--state", "/")
        done = allium("sys", "import", raw, "-o", out, "--force", "--state", raw, code=1)
        check(b"has no file of a kernel" in done.stderr and done.stderr.count(b"\n") == 1, done.stderr)
        for words in ["--script", "x"], ["--script", "-o", out]:
            check(b"--script prints a script" in allium("sys", "import", *words, code=2).stderr, words)


lib.main([
    ("what the script packs is imported", packs),
    ("archives that are damaged or of something else", damaged),
    ("copies of the kernel's files", states),
])
