# SPDX-License-Identifier: BSD-2-Clause
"""What the checks of the tree share: which files there are, and the proof that a check can fail.

A check is a function of a tree's root that returns its complaints, one line each, with the file's name first.
"""
import fnmatch
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.realpath(__file__ + "/../../..")


def files(root, *patterns):
    """The tree's files, as sorted names relative to root: what git tracks or would; without git, all but builds."""
    names = git_files(root) if os.path.exists(root + "/.git") else None
    if names is None:
        names = walked_files(root)
    if patterns:
        names = [name for name in names if any(fnmatch.fnmatch(name, pattern) for pattern in patterns)]
    return sorted(name for name in names if os.path.isfile(os.path.join(root, name)))


def git_files(root):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, env=clean, capture_output=True, text=True)
    except FileNotFoundError:
        return None
    return set(listed.stdout.rstrip("\0").split("\0")) if listed.returncode == 0 else None


def walked_files(root):
    for folder, folders, names in os.walk(root):
        if folder == root:
            folders[:] = [name for name in folders if name not in (".git", "build") and not name.startswith("build-")]
        for name in names:
            yield os.path.relpath(os.path.join(folder, name), root)


def read(root, name):
    with open(os.path.join(root, name), encoding="utf-8", errors="replace") as file:
        return file.read()


def write(root, name, text):
    path = os.path.join(root, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


_NOT_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def code_only(text):
    """C without comments, strings and character constants; every line stays on its line."""
    return _NOT_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)


def prove(check, plants, harmless=()):
    """Plants one violation after the other in a copy of the tree: (file or files, text, words of the complaint).

    Each must bring a new complaint with those words, none of the `harmless` (file, text) may bring any.
    """
    bad = []
    with tempfile.TemporaryDirectory(prefix="allium-check-") as tree:
        for name in files(ROOT):
            os.makedirs(os.path.dirname(os.path.join(tree, name)), exist_ok=True)
            shutil.copy(os.path.join(ROOT, name), os.path.join(tree, name))
        before = set(check(tree))
        for name, text, *words in list(plants) + list(harmless):
            planted = name if isinstance(name, list) else [name]
            for one in planted:
                if os.path.exists(os.path.join(tree, one)):
                    sys.exit("self-test: %s exists" % one)
                write(tree, one, text)
            new = sorted(set(check(tree)) - before)
            for one in planted:
                os.remove(os.path.join(tree, one))
            if words and not any(words[0] in line for line in new):
                bad.append("planted %s, and no complaint says %r: %s" % (name, words[0], new))
            if not words and new:
                bad.append("harmless %s, and yet: %s" % (name, new))
        left = sorted(set(check(tree)) ^ before)
        if left:
            bad.append("the plants are gone, these complaints are not: %s" % left)
    return bad


def main(check, plants, harmless=()):
    """CHECK [--self-test | ROOT]"""
    words = sys.argv[1:]
    if words == ["--self-test"]:
        complaints = prove(check, plants, harmless)
    else:
        complaints = check(words[0] if words else ROOT)
    for line in complaints:
        print(line)
    sys.exit(1 if complaints else 0)
