# SPDX-License-Identifier: BSD-2-Clause
"""Kernels of Debian: found through apt by pattern, unpacked below the build directory, never installed."""
import glob
import lzma
import os
import re
import subprocess
import tempfile

# Name -> package, oldest kernel first. The cloud ones: small, and built with BTF, kprobes and fentry.
PACKAGES = {
    "6.1": r"linux-image-(6\.1\.0-\d+-cloud-amd64)",
    "6.12": r"linux-image-(6\.12\.\d+(?:\+deb\d+)?-cloud-amd64)",
}


class Missing(Exception):
    """This machine cannot have what the tests need; says what to do."""


class Wrong(Exception):
    """What a guest test asks for cannot be; says why."""


class Kernel:
    """An unpacked package: `image` boots, `module_files()` are what insmod takes."""

    def __init__(self, name, folder):
        self.name, self.folder = name, folder
        self.image, = glob.glob(glob.escape(folder) + "/boot/vmlinuz-*")
        self._modules = {module_name(path): path
                         for path in self._find("kernel/**/*.ko*")}

    def _find(self, pattern):
        """Debian 13 has its modules in /usr/lib, Debian 12 in /lib."""
        return [path for at in ("/lib", "/usr/lib")
                for path in glob.glob(glob.escape(self.folder) + at + "/modules/*/" + pattern, recursive=True)]

    def module_files(self, names):
        """[(file name, bytes)] of these modules and of those they need, which come first; less what is built in."""
        files, built_in = {}, self._built_in()

        def add(name):
            if name in files or name in built_in:
                return
            if name not in self._modules:
                raise Wrong("%s has no module %s" % (os.path.basename(self.folder), name))
            code = read_module(self._modules[name])
            needs = re.search(rb"\0depends=([^\0]*)\0", code)
            for need in needs.group(1).decode().split(",") if needs and needs.group(1) else []:
                add(need.replace("-", "_"))
            files[name] = code

        for name in names:
            add(name.replace("-", "_"))
        return [(name + ".ko", code) for name, code in files.items()]

    def _built_in(self):
        path, = self._find("modules.builtin")
        with open(path) as file:
            return {module_name(line.strip()) for line in file}


def module_name(path):
    return os.path.basename(path).partition(".")[0].replace("-", "_")


def read_module(path):
    with (lzma.open if path.endswith(".xz") else open)(path, "rb") as file:
        return file.read()


def get(name, cache):
    """The newest kernel of that name: from apt, or where apt has none, what the cache has. Missing, if there is none.
    """
    os.makedirs(cache, exist_ok=True)
    found, why = find(name, apt_packages()), "apt knows none"
    if not found and refresh():
        found = find(name, apt_packages())
    if found and not os.path.exists(cache + "/" + found):
        why = fetch(found, cache)
        if why and refresh():
            found = find(name, apt_packages()) or found
            why = fetch(found, cache)
    elif found:
        why = ""
    if why:
        found = find(name, os.listdir(cache))
    if not found:
        raise Missing(
            "no linux-image-%s.*-cloud-amd64 (%s): add bookworm-security to apt's sources, then apt-get update" %
            (name, why))
    return Kernel(name, cache + "/" + found)


def find(name, packages):
    """The package of the newest kernel of that name, None if there is none."""
    fitting = [package for package in packages if re.fullmatch(PACKAGES[name], package)]
    return max(fitting, key=lambda package: [int(number) for number in re.findall(r"\d+", package)], default=None)


def apt(*command, **how):
    """The command's result; of one that is not there, a failed one."""
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              env=dict(os.environ, LC_ALL="C"), **how)
    except FileNotFoundError as error:
        return subprocess.CompletedProcess(command, 127, "", str(error))


def apt_packages():
    said = apt("apt-cache", "search", "--names-only", "^linux-image-.*-cloud-amd64$").stdout
    return [line.split(" ")[0] for line in said.splitlines()]


def refresh():
    """Lets apt read its lists anew; only root can."""
    return os.geteuid() == 0 and apt("apt-get", "-qq", "update").returncode == 0


def fetch(package, cache):
    """Puts CACHE/PACKAGE there, whole or not at all; returns why not."""
    with tempfile.TemporaryDirectory(prefix="fetch-", dir=cache) as folder:
        done = apt("apt-get", "-qq", "download", package, cwd=folder)
        archives = glob.glob(glob.escape(folder) + "/*.deb")
        if not done.returncode and archives:
            done = apt("dpkg-deb", "--extract", archives[0], folder + "/tree")
        if done.returncode or not archives:
            return (done.stderr.strip().splitlines() or ["apt-get download brought nothing"])[-1]
        try:
            os.rename(folder + "/tree", cache + "/" + package)
        except OSError:
            if not os.path.exists(cache + "/" + package):  # else somebody was faster
                raise
    return ""
