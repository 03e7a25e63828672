# SPDX-License-Identifier: BSD-2-Clause
"""Programs of others, from Debian's sources, built with <allium/malloc_hooks.h> or without. Nothing else of them
changes.

Sources come through apt, with lists and archives of our own. They and what was built of them are kept in the build
folder, until the headers or the way to build them change.
"""
import fcntl
import glob
import hashlib
import inspect
import os
import re
import shutil
import subprocess
import sys

from building import INCLUDE
from tap import Skipped, built, check, equal, run, succeed

LIBRARY = built("TEST_TAGS_LIBRARY")
FOLDER = built("TEST_TAGS_SOURCES")
RELEASE = "bookworm"
HOOKS = "-I%s -include allium/malloc_hooks.h" % os.path.abspath(INCLUDE)
LINK = "%s -Wl,-rpath,%s" % (LIBRARY, os.path.dirname(LIBRARY))
TIME = 3600  # for one build, on a machine that has other work, too


def apt(*words):
    etc, lists = FOLDER + "/etc", FOLDER + "/lists"
    os.makedirs(lists + "/partial", exist_ok=True)
    os.makedirs(etc, exist_ok=True)
    with open(etc + "/src.list", "w") as file:
        file.write("deb-src http://deb.debian.org/debian %s main\n" % RELEASE)
    done = run([
        "apt-get", "-q", "-o", "Dir::Etc::sourcelist=" + etc + "/src.list", "-o", "Dir::Etc::sourceparts=/dev/null",
        "-o", "Dir::State::lists=" + lists, "-o", "Acquire::Retries=2", *words
    ], cwd=FOLDER, timeout=600)
    if done.returncode:
        raise Skipped("sources cannot be had: no network? apt-get said: " +
                      done.stderr.decode().strip().splitlines()[-1])


def source(package):
    """The folder of the unpacked source; tests that run side by side wait until one of them has fetched it."""
    into = "%s/%s" % (FOLDER, package)
    os.makedirs(FOLDER, exist_ok=True)
    with open(FOLDER + "/lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        fetch(package, into)
    return into


def fetch(package, into):
    """Fetches and unpacks the source, unless the folder exists."""
    if not os.path.exists(into):
        if not glob.glob(FOLDER + "/lists/*Sources*"):
            apt("update")
        if not glob.glob("%s/%s_*.orig.tar.*" % (FOLDER, package)):
            apt("source", "--download-only", package)
        archive, = glob.glob("%s/%s_*.orig.tar.*" % (FOLDER, package))
        shutil.rmtree(into + ".new", ignore_errors=True)
        os.makedirs(into + ".new")
        succeed(["tar", "xf", archive, "--strip-components=1", "-C", into + ".new"])
        os.rename(into + ".new", into)


class Variant:
    """How a program is built: with tags, or without."""

    def __init__(self, compiler, level, tags=True):
        self.compiler, self.level, self.tags = compiler, level, tags
        self.plus = {"gcc": "g++", "clang": "clang++"}[compiler]
        self.hooks = HOOKS if tags else ""
        self.link = LINK if tags else ""
        self.flags = "-g %s %s" % (level, self.hooks)
        self.name = "%s %s%s" % (compiler, level, "" if tags else " without tags")


def digest(names, text=""):
    sums = hashlib.sha256(text.encode())
    for name in sorted(names):
        with open(name, "rb") as file:
            sums.update(file.read())
    return sums.hexdigest()[:12]


class Build:
    """A program that was built: its folder, and what the compiler warned of."""

    def __init__(self, program, v):
        self.program, self.v, self.name = program, v, "%s, %s" % (program, v.name)
        key = digest(glob.glob(INCLUDE + "/allium/*") if v.tags else [], inspect.getsource(PROGRAMS[program][1]))
        name = "%s/built/%s" % (FOLDER, re.sub("[ ,]+", "_", self.name))
        self.folder = "%s.%s" % (name, key)
        self.log = self.folder + "/allium-build.log"
        if os.path.exists(self.log):
            return
        for old in glob.glob(name + ".*"):
            shutil.rmtree(old)
        print("# %s: is being built" % self.name, flush=True)
        os.makedirs(FOLDER + "/built", exist_ok=True)
        succeed(["cp", "-a", source(PROGRAMS[program][0]), self.folder], timeout=TIME)
        with open(self.folder + "/allium-building.log", "w") as log:
            self.said = log
            PROGRAMS[program][1](self)
        os.rename(self.folder + "/allium-building.log", self.log)

    def do(self, *command, **how):
        how.setdefault("cwd", self.folder)
        done = run(["nice", *command], stdout=self.said, stderr=subprocess.STDOUT, timeout=TIME, **how)
        if done.returncode:
            with open(self.said.name, errors="replace") as file:
                check(False, self.v.name, command, "ended with %d:" % done.returncode, file.read()[-2500:])

    def warnings(self):
        """{what the compiler says, without places}"""
        with open(self.log, errors="replace") as file:
            found = re.findall(r"^([^\s:][^:\n]*):(?:\d+:)*.*?warning: (.*)$", file.read(), re.M)
        return {"%s: %s" % (os.path.basename(file), words) for file, words in found}


def sqlite(b):
    """The shell, and the program that runs its tests, which are in Tcl."""
    b.do("sh", "-c",
         "./configure -q --with-tcl=$(dirname $(find /usr/lib -name tclConfig.sh -not -path '*/tcltk/*' | head -1))")
    b.do("make", "-s", "sqlite3.c", "shell.c")
    b.do("make", "-s", "-j2", "-O", "sqlite3", "testfixture", "CC=" + b.v.compiler, "CFLAGS=" + b.v.flags,
         "LIBS=-lpthread -ldl " + b.v.link, "OPTS=-DSQLITE_ENABLE_FTS5 -DSQLITE_ENABLE_MEMORY_MANAGEMENT",
         "READLINE_FLAGS=-DHAVE_READLINE=0", "LIBREADLINE=")


def bash(b):
    b.do("sh", "-c", "./configure -q --without-bash-malloc --disable-nls")
    b.do("make", "-j2", "-O", "CC=" + b.v.compiler, "CFLAGS=" + b.v.flags, "LOCAL_LIBS=" + b.v.link)
    b.do("make", "recho", "zecho", "printenv", "xcase", "CC=gcc")


def git(b):
    without = ["NO_%s=1" % what for what in "CURL EXPAT TCLTK GETTEXT PERL PYTHON OPENSSL INSTALL_HARDLINKS".split()]
    b.do("make", "-j2", "-O", *without, "CC=" + b.v.compiler, "CFLAGS=" + b.v.flags, "EXTLIBS=-lz " + b.v.link)


def redis(allocator):
    def make(b):
        b.do("make", "-j2", "-O", "MALLOC=" + allocator, "CC=" + b.v.compiler, "CXX=" + b.v.plus,
             "OPTIMIZATION=" + b.v.level, "BUILD_TLS=no", "USE_SYSTEMD=no", "CFLAGS=-g " + b.v.hooks,
             "LDFLAGS=" + (b.v.link and "-Wl,--no-as-needed " + b.v.link))
    return make


def ninja(b):
    """In C++: what `new` gives is tagged by the operators of <allium/operator_new.hh>."""
    link = b.v.link
    if b.v.tags:
        with open(b.folder + "/new.cc", "w") as file:
            file.write("#include <allium/operator_new.hh>\n")
        b.do(b.v.plus, *b.v.flags.split(), "-c", "new.cc")
        link = b.folder + "/new.o " + link
    b.do(sys.executable, "configure.py", env=dict(os.environ, CXX=b.v.plus, CFLAGS=b.v.flags, LDFLAGS=link))
    b.do("ninja", "-j2", "-v", "ninja", "ninja_test")


def lua(b):
    b.do("make", "-C", "src", "-j2", "linux", "CC=%s -std=gnu99" % b.v.compiler, "MYCFLAGS=" + b.v.flags,
         "MYLIBS=" + b.v.link)


def mawk(b):
    b.do("sh", "-c", "./configure -q CC=%s CFLAGS='%s' LIBS='-lm %s'" % (b.v.compiler, b.v.flags, b.v.link))
    b.do("make", "-j2", "-O")


# name: (Debian's source package, what builds it in a copy of that)
PROGRAMS = {
    "sqlite3": ("sqlite3", sqlite), "bash": ("bash", bash), "git": ("git", git), "redis": ("redis", redis("libc")),
    "redis with its jemalloc": ("redis", redis("jemalloc")), "ninja": ("ninja-build", ninja),
    "lua": ("lua5.4", lua), "mawk": ("mawk", mawk),
}
