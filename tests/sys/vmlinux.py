# SPDX-License-Identifier: BSD-2-Clause
"""A vmlinux for the kernel that runs, made of a few of its functions: at the places that /proc/kallsyms gives them,
linked elsewhere as KASLR would have it, with the kernel's build id, and with lines of a source tree of the test's own.
"""
import functools
import os

from lib import check, tap

LINKED = 0xffffffff90000000  # what _stext has in the file
LINE, INLINED_LINE = 215, 600  # of the call to an inline function of a header, and in that header
HEADER = "include/linux/slab.h"
NOTES = "/sys/kernel/notes"


@functools.lru_cache(maxsize=None)
def symbols():
    """{name: (address, bytes)} of the kernel's own code whose names are there once."""
    with open("/proc/kallsyms") as file:
        lines = [line.split() for line in file]
    lines = sorted((int(words[0], 16), words[1], words[2]) for words in lines if len(words) == 3)
    addresses = sorted({address for address, _, _ in lines})
    after = dict(zip(addresses, addresses[1:]))
    found, twice = {}, set()
    for address, kind, name in lines:
        if name in found:
            twice.add(name)
        if kind in "tT" and address in after:
            found[name] = (address, after[address] - address)
    return {name: place for name, place in found.items() if name not in twice}


def build_id():
    with open(NOTES, "rb") as file:
        notes = file.read()
    at = notes.index(b"GNU\0") - 12
    sizes = [int.from_bytes(notes[at + i:at + i + 4], "little") for i in (0, 4, 8)]
    check(sizes[0] == 4 and sizes[2] == 3, "no build id in", NOTES)
    return notes[at + 16:at + 16 + sizes[1]].hex()


def write_source(tree, path, names, bytes_of):
    """Each function is one call of kmalloc(), which the header has: all of its bytes come from there, but a return."""
    full = os.path.join(tree, path)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full, "w") as file:
        file.write('#include <linux/slab.h>\n')
        for name in names:
            file.write('#line %d\nvoid %s(void) {\n    kmalloc(%d);\n}\n' % (LINE - 1, name, bytes_of[name] - 1))


HEADER_TEXT = """#line %d
static inline __attribute__((always_inline)) void kmalloc(int bytes) { __asm__ volatile(".skip %%c0, 0x90" : : "i"(bytes)); }
""" % INLINED_LINE
COMPILE = [
    "cc", "-g", "-O1", "-c", "-ffunction-sections", "-fomit-frame-pointer", "-fcf-protection=none", "-fno-pic",
    "-mcmodel=kernel", "-fno-asynchronous-unwind-tables", "-Iinclude"
]


def make(folder, files, the_id=None):
    """vmlinux in `folder`: `files` is {"fs/file_table.c": names of functions}. With the kernel's build id or another
    one. -> its path.
    """
    there, tree = symbols(), os.path.join(folder, "linux")
    begin = there["_stext"][0]
    files = {**files, "init/main.c": ["start_kernel"]}
    sizes = {name: there[name][1] for names in files.values() for name in names}
    os.makedirs(os.path.join(tree, os.path.dirname(HEADER)), exist_ok=True)
    with open(os.path.join(tree, HEADER), "w") as file:
        file.write(HEADER_TEXT)
    objects, places = [], []
    for number, (path, names) in enumerate(files.items()):
        write_source(tree, path, names, sizes)
        objects.append("%d.o" % number)
        tap.succeed([*COMPILE, path, "-o", objects[-1]], cwd=tree)
        places += [(there[name][0] - begin + LINKED, name) for name in names]
    made = os.path.join(folder, "vmlinux")
    with open(os.path.join(tree, "places.lds"), "w") as file:
        file.write(
            "SECTIONS {\n/DISCARD/ : { *(.comment) *(.eh_frame) *(.note.GNU-stack) *(.note.gnu.property) }\n_stext = %#x;\n"
            % LINKED)
        file.writelines(".text.%s %#x : { *(.text.%s) }\n" % (name, address, name) for address, name in sorted(places))
        file.write(".note.gnu.build-id : { *(.note.gnu.build-id) }\n}\n")
    tap.succeed(
        ["ld", "--build-id=" + (the_id or "0x" + build_id()), "-e", "0", "-T", "places.lds", *objects, "-o", made],
        cwd=tree)
    return made


def alone(*commands):
    """Words before a command to which nothing is installed where a vmlinux is searched for; `commands` of a shell may
    put one there.
    """
    places = ("/usr/lib/debug", "/boot", "/lib/modules")
    hide = ["[ ! -d %s ] || mount -t tmpfs tmpfs %s" % (place, place) for place in places]
    return ["unshare", "-m", "sh", "-c", " && ".join([*hide, *commands, 'exec "$@"']), "sh"]
