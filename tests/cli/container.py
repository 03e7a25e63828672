# SPDX-License-Identifier: BSD-2-Clause
"""A container for tests: namespaces and a root of its own, a tmpfs for its /dev/shm, and of our files only /usr, /etc
and what it is given.
"""
import os
import shutil
import signal

import tap
from tap import built, equal

# Within the root the folder has the same path as one outside, and other files in it.
SETUP = r"""
set -e
root=$1 inside=$2 folder=$3 shm=$4 agent=$5
shift 5
mount -t tmpfs -o mode=755 none "$root"
cd "$root"
mkdir -p etc proc dev/shm tmp run opt old "./$folder"
for name in usr bin sbin lib lib32 lib64 libx32; do
    if [ -L /$name ]; then cp -P /$name $name
    elif [ -d /$name ]; then mkdir $name; mount --rbind /$name $name
    fi
done
mount --rbind /etc etc
for name in null zero urandom fuse; do
    [ ! -e /dev/$name ] || { touch dev/$name; mount --bind /dev/$name dev/$name; }
done
[ "$shm" = none ] || mount -t tmpfs -o size=$shm,mode=1777 none dev/shm
mount -t proc proc proc
mount --bind "$inside" "./$folder"
cp "$inside/liballium-agent.so" opt
if [ -n "$agent" ]; then mkdir -p ".${agent%/*}"; cp "$inside/liballium-agent.so" ".$agent"; fi
pivot_root . old
cd "$folder"
umount -l /old
exec "$@"
"""
AGENT = "/opt/liballium-agent.so"


def namespaces():
    """Words before a command that shall have all namespaces of its own."""
    return [*tap.unshare(), "--pid", "--fork", "--uts", "--ipc", "--kill-child"]


class Container:
    """What is put into `inside` (on this machine) lies in the container at the path of the place's folder."""

    def __init__(self, place, shm="1m", agent=""):
        self.agent = agent  # where else it lies
        self.place, self.shm = place, shm
        self.root, self.inside = place.folder + "-root", place.folder + "-inside"
        os.mkdir(self.root)
        os.mkdir(self.inside)
        shutil.copy(built("ALLIUM_AGENT"), self.inside)
        os.chmod(self.inside, 0o755)

    def put(self, path, name=None):
        shutil.copy(path, os.path.join(self.inside, name or os.path.basename(path)))

    def write(self, name, text):
        with open(os.path.join(self.inside, name), "w") as file:
            file.write(text)

    def words(self, *command):
        return [
            *namespaces(), "sh", "-c", SETUP, "sh", self.root, self.inside, self.place.folder, self.shm, self.agent,
            *command
        ]

    def start(self, *command, period=None, **more):
        """As process 1 of the container, with the agent if a period is given."""
        env = dict(os.environ, **{name: str(value) for name, value in more.items()})
        env.pop("XDG_RUNTIME_DIR", None)
        if period:
            command = ["env", "LD_PRELOAD=" + AGENT, "ALLIUM_PERIOD=%s" % period, *command]
        return self.place.start(*self.words(*command), env=env)


def first_process(unshare, name=None):
    """What this machine calls the process that unshare has started as number 1."""
    def find():
        with open("/proc/%d/task/%d/children" % (unshare.pid, unshare.pid)) as file:
            children = file.read().split()
        for child in children:
            with open("/proc/%s/comm" % child) as file:
                if name in (None, file.read().strip()):
                    return int(child)
        return None
    return tap.wait_until(find, 20, "unshare has no child" + (" " + name if name else ""))


def ready(process, word=b"ready\n"):
    equal(process.stdout.readline(), word, "the first word of what runs in the container")


def kill(process):
    """Process 1 is killed with its unshare, and all of the container with it."""
    tap.stop(process, signal.SIGKILL)
