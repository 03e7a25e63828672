# SPDX-License-Identifier: BSD-2-Clause
"""The files of calls by the names of their functions, `allium sys import --source`, judged by debug information: for
`sites`, whose boot and truth these are."""
import collections
import glob
import json
import os
import re
import subprocess
import tempfile

import debian

QUERY = "SELECT call_site, file, sum(allocated_bytes) bytes FROM sys_kmem GROUP BY 1, 2"
CPU_SECONDS_MAX, KIB_MAX = 20, 300 << 10  # of making the index of a whole kernel


def archive(kernel_name, cache):
    """The package of the kernel's source, of which only the archive is kept."""
    package = "linux-source-" + kernel_name
    out = cache + "/" + package
    if not os.path.exists(out):
        with tempfile.TemporaryDirectory(prefix="fetch-", dir=cache) as here:
            done = debian.apt("apt-get", "-qq", "download", package, cwd=here)
            found = glob.glob(here + "/*.deb")
            if done.returncode or not found:
                raise debian.Missing((done.stderr.strip().splitlines() or ["apt brought nothing"])[-1])
            subprocess.run(["dpkg-deb", "--extract", found[0], here + "/tree"], check=True)
            os.rename(here + "/tree", out)
    path, = glob.glob(out + "/usr/src/*.tar.*")
    return path


class Sources:
    def __init__(self, proof, source):
        self.proof, self.source = proof, source
        self.recording = proof.folder + "/sources.allium"
        self.state, self.symbols = proof.folder + "/state", proof.folder + "/System.map"
        config, = glob.glob(proof.kernel.folder + "/boot/config-*")
        release = os.path.basename(config).partition("-")[2]
        with open(config) as file:
            configuration = file.read()
        for path, text in (("proc/sys/kernel/osrelease", release + "\n"), ("boot/config-" + release, configuration)):
            os.makedirs(os.path.dirname(self.state + "/" + path), exist_ok=True)
            with open(self.state + "/" + path, "w") as file:
                file.write(text)
        with open(self.symbols, "w") as file:
            subprocess.run(["nm", "-n", proof.vmlinux], stdout=file, check=True)

    def rows(self, cache, *options):
        """-> {call_site: {file: bytes}}, CPU seconds, KiB"""
        with tempfile.NamedTemporaryFile("r") as usage:
            env = {**os.environ, "XDG_CACHE_HOME": cache, "USAGE": usage.name}
            code = ("import os, resource, subprocess, sys; done = subprocess.run(sys.argv[1:]);"
                    "u = resource.getrusage(resource.RUSAGE_CHILDREN);"
                    "open(os.environ['USAGE'], 'w').write('%f %d' % (u.ru_utime + u.ru_stime, u.ru_maxrss));"
                    "sys.exit(done.returncode)")
            subprocess.run(["python3", "-S", "-c", code, self.proof.allium, "sys", "import",
                            self.proof.folder + "/trace.txt", "-o", self.recording, "--force", "--quiet",
                            "--source", self.source, *options],
                           env=env, check=True)
            seconds, kib = map(float, usage.read().split())
        said = subprocess.run([self.proof.allium, "sql", "--json", self.recording, QUERY], capture_output=True,
                              text=True, check=True)
        rows = collections.defaultdict(dict)
        for row in json.loads(said.stdout)["rows"]:
            rows[re.sub(r" (\(helper\)|\?)$", "", row["call_site"])][row["file"]] = row["bytes"]
        return rows, seconds, kib

    def judge(self, truth, sites):
        """`truth`: {call_site without a size: files}. Checks the shares of bytes, and what the index costs."""
        ways = (("configuration and symbols", "--state", self.state, "--kallsyms", self.symbols),
                ("configuration", "--state", self.state), ("symbols", "--kallsyms", self.symbols), ("nothing else", ))
        with tempfile.TemporaryDirectory() as cache:
            for number, (name, *options) in enumerate(ways):
                rows, seconds, kib = self.rows(cache, *options)
                all_bytes = sum(size for _, size in sites)
                found = wrong = 0
                details = []
                for site, files in rows.items():
                    for file, size in files.items():
                        if file.startswith("[unknown]"):
                            details.append((size, site, "unknown", truth.get(site)))
                            continue
                        found += size
                        if site in truth and file not in {path + " ~" for path in truth[site]}:
                            wrong += size
                            details.append((size, site, file, truth.get(site)))
                what = "%s: %.3f %% of %d bytes have a file, %.3f %% a wrong one, %.1f s of CPU time" % (
                    name, 100 * found / all_bytes, all_bytes, 100 * wrong / all_bytes, seconds)
                details = ["%d of %s: %s, want %s" % one for one in sorted(details, key=lambda one: -one[0])[:12]]
                if not number:
                    self.proof.result(found >= 0.99 * all_bytes and wrong <= 0.001 * all_bytes,
                                      "by names, 99 % of the bytes have a file, 0.1 % a wrong one", what, *details)
                    self.proof.result(seconds < CPU_SECONDS_MAX and kib < KIB_MAX, "the index takes 20 s, 300 MiB",
                                      "%.1f s of CPU time, %d MiB, of %s" % (seconds, kib / 1024, self.source))
                else:
                    print("#", what, flush=True)
