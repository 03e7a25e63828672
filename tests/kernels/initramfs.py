# SPDX-License-Identifier: BSD-2-Clause
"""The file system a guest begins with: busybox, allium with its libraries, tests, modules. Packed by cpio."""
import os
import re
import shutil
import subprocess

from debian import Missing

HERE = os.path.dirname(os.path.realpath(__file__))


def need(program, package):
    """Path of a program of this machine."""
    path = shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if not path:
        raise Missing("no %s here: install Debian's package %s" % (program, package))
    return path


def libraries(program):
    """Paths of the libraries and the loader that a program needs; none for a static one."""
    done = subprocess.run(["ldd", program], capture_output=True, text=True)
    if "not found" in done.stdout:
        raise Missing("a library of %s is not here: %s" % (program, done.stdout))
    return re.findall(r"(?:=> |^\s+)(/\S+)", done.stdout, re.M)


class Tree:
    """A folder that becomes an initramfs."""

    def __init__(self, folder):
        self.folder = folder
        for name in ("proc", "sys", "dev", "bin", "etc", "modules", "tests"):
            os.makedirs(folder + "/" + name)

    def write(self, name, data, mode=0o644):
        path = self.folder + "/" + name
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data if isinstance(data, bytes) else data.encode())
        os.chmod(path, mode)

    def copy(self, source, name):
        """A file of this machine; it may be replaced meanwhile by a build, but not written to."""
        os.makedirs(os.path.dirname(self.folder + "/" + name), exist_ok=True)
        shutil.copy(source, self.folder + "/" + name)

    def copy_program(self, source, name):
        """With the libraries it needs, which keep their paths."""
        self.copy(source, name)
        for library in libraries(source):
            if not os.path.exists(self.folder + library):
                self.copy(library, library[1:])

    def pack(self, path):
        names = sorted(os.path.relpath(os.path.join(where, name), self.folder)
                       for where, folders, files in os.walk(self.folder) for name in folders + files)
        with open(path, "wb") as file:
            subprocess.run([need("cpio", "cpio"), "--create", "--null", "--format=newc", "--owner=+0:+0", "--quiet"],
                           cwd=self.folder, input="".join(name + "\0" for name in names).encode(), stdout=file,
                           check=True)


def add_busybox(tree):
    busybox = need("busybox", "busybox-static")
    tree.copy_program(busybox, "bin/busybox")
    listed = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout
    for applet in listed.split():
        if applet != "busybox":
            os.symlink("busybox", tree.folder + "/bin/" + applet)


def add_allium(tree, build):
    """As it lies in the build directory: the command finds the rest beside itself."""
    tree.copy_program(build + "/allium", "allium/allium")
    for name in ("liballium-agent.so", "liballium-agent-full.so", "wrappers", "kernel-helpers"):
        tree.copy(build + "/" + name, "allium/" + name)
    tree.copy_program(build + "/allium-bench-hooks", "allium/allium-bench-hooks")
    os.symlink("/allium/allium", tree.folder + "/bin/allium")


def make(folder, kernel, tests, build):
    """FOLDER/initramfs for one boot of these tests (tests.py); returns its path."""
    tree = Tree(folder + "/tree")
    add_busybox(tree)
    add_allium(tree, build)
    tree.copy(HERE + "/init", "init")
    os.chmod(tree.folder + "/init", 0o755)
    for shared in ("tap.sh", "reclaim.sh", "shrink.sh"):
        tree.copy(HERE + "/" + shared, "tests/" + shared)
    tree.write("etc/passwd", "root:x:0:0::/tmp:/bin/sh\nnobody:x:65534:65534::/tmp:/bin/sh\n")
    tree.write("etc/group", "root:x:0:\nnogroup:x:65534:\n")
    for test in tests:
        tree.copy(test.path, "tests/%s.sh" % test.name)
        for program in test.programs:
            tree.copy_program("%s/tests/kernels/%s" % (build, program), "tests/" + program)
        for program in test.copies:
            tree.copy_program(need(program, "it belongs to"), "usr/bin/" + program)
    modules = kernel.module_files(module for test in tests for module in test.modules)
    for name, code in modules:
        tree.write("modules/" + name, code)
    tree.write("modules/list", "".join(name + "\n" for name, _ in modules))
    tree.write("tests/list", "".join("%s %d\n" % (test.name, test.seconds) for test in tests))
    tree.pack(folder + "/initramfs")
    shutil.rmtree(tree.folder)
    return folder + "/initramfs"
